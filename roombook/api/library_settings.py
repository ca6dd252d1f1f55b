"""The settings of Django REST framework and of drf-spectacular."""

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.BodyTokenAuthentication"],
    "DEFAULT_RENDERER_CLASSES": [
        "roombook.api.renderers.JSONRenderer",
        "roombook.api.renderers.CSVRenderer",
    ],
    "DEFAULT_PARSER_CLASSES": [
        "roombook.api.parsers.JSONParser",
        "roombook.api.parsers.CSVParser",
    ],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "roombook.api.negotiation.ContentNegotiation",
    "EXCEPTION_HANDLER": "roombook.api.exceptions.exception_handler",
    "DEFAULT_PERMISSION_CLASSES": [],  # each operation declares whether it needs a token
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_THROTTLE_CLASSES": [],  # limits are counted in the database, for all workers together
    "COERCE_DECIMAL_TO_STRING": False,
    "DEFAULT_SCHEMA_CLASS": "roombook.api.openapi.OperationAutoSchema",
}

# The introduction of the OpenAPI description.
DESCRIPTION = """\
roombook books meeting rooms. All operations are `POST` requests with named fields.

- **Sign in** returns a Token. Every other request has it in its field `Token`; there is no
  authentication header.
- **Requests** are JSON, or CSV with a header and one row, whose columns have dotted names
  (`PaymentInfo.FirstName`, `ServiceOptions.0.ServiceId`). Unknown fields are ignored, and `null` is
  the same as an absent field.
- **Responses** are JSON or CSV: by a suffix of the path (`/api/sign-in.csv`, `/api/sign-in.json`),
  else by the query parameter `format`, else by `Accept`. `callback` wraps JSON as JSONP. Fields
  without a value are left out.
- **Errors** have `Success` false and an `Error`. Programs decide by the HTTP status and by
  `Error.Summary`, which is a stable code. A path that does not exist is 404 `NotFound`, a method
  other than POST is 405 `MethodNotAllowed`.
- **Dates and times** are ISO 8601. Responses have the offset of the center. A time without an
  offset, in a request about a center, is the center's local time.
- **New values** of enumerations and new fields may be added: accept those that you do not know.
"""

SPECTACULAR_SETTINGS = {
    "TITLE": "roombook",
    # A test compares it with pyproject.toml.
    "VERSION": "0.1.0",
    "DESCRIPTION": DESCRIPTION,
    "OAS_VERSION": "3.1.0",
    "PREPROCESSING_HOOKS": ["roombook.api.openapi.list_endpoints"],
    "POSTPROCESSING_HOOKS": ["roombook.api.openapi.share_error_responses"],
    "SORT_OPERATIONS": False,
    "SORT_OPERATION_PARAMETERS": False,
}
# For `manage.py spectacular --custom-settings`: many generators of clients do not know 3.1 yet.
OPENAPI_3_0 = {"OAS_VERSION": "3.0.3"}
