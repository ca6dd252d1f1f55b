"""Describes the fields of requests and responses as OpenAPI schemas.

drf-spectacular finds the class below, which it calls for every ContractSerializer.
"""

import inspect
import json
from functools import cache
from typing import Any

from django.urls import get_resolver
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import append_meta, build_array_type, build_object_type
from drf_spectacular.utils import Direction

from roombook.api import fields
from roombook.api.contract_schema import find_nested_classes, get_operations
from roombook.api.envelope import RequestBase
from roombook.api.rendering import JSONDict
from roombook.api.serializers import AnyField, ContractListSerializer, ContractSerializer

LOCAL_TIME_PATTERN = f"^({fields.DATE_TIME_PATTERN.pattern})$"
DAY_OR_TIME_PATTERN = f"^({fields.DATE_PATTERN.pattern}|{fields.DATE_TIME_PATTERN.pattern})$"


class ContractSerializerExtension(OpenApiSerializerExtension):
    """Describes an object of the contract.

    Responses may leave out all fields but Success, so only fields of requests are required.
    """

    target_class = ContractSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> JSONDict:
        serializer: ContractSerializer = self.target
        if type(serializer) in find_request_types():
            direction = "request"
        defaults = find_defaults(auto_schema.view) if isinstance(serializer, RequestBase) else {}
        properties = {}
        for name, field in serializer.fields.items():
            description = field.help_text or ""
            if field.source in defaults:
                description += f" Default: `{json.dumps(defaults[field.source])}`."
            meta = {"description": description.strip()} if description else {}
            properties[name] = append_meta(describe_field(field, auto_schema, direction), meta)
        return build_object_type(
            properties,
            required=[name for name, field in serializer.fields.items() if field.required],
            description=inspect.cleandoc(type(serializer).__doc__ or ""),
        )


@cache
def find_request_types() -> frozenset[type[ContractSerializer]]:
    """Return the types inside requests. They are described as requests have them: with bounds."""
    operations = get_operations(get_resolver().url_patterns).values()
    return frozenset(find_nested_classes([each.Input() for each in operations]).values())


def find_defaults(operation: Any) -> JSONDict:
    """Return the default values of request fields, by their Python names."""
    parameters = inspect.signature(operation.perform).parameters.values()
    return {
        each.name: each.default
        for each in parameters
        if each.default not in (inspect.Parameter.empty, None, "")
    }


def describe_field(field: AnyField, auto_schema: AutoSchema, direction: Direction) -> JSONDict:
    """Return the schema of a field's value, without its description."""
    match field:
        case ContractListSerializer() | fields.ListField():
            schema: JSONDict = build_array_type(describe_field(field.child, auto_schema, direction))
            return schema | ({"maxItems": field.max_length} if direction == "request" else {})
        case ContractSerializer(contract_type=str(name)) if name:
            # A part of this type, which another field describes whole.
            return {"$ref": f"#/components/schemas/{name}"}
        case ContractSerializer():
            reference: JSONDict = auto_schema.resolve_serializer(field, direction).ref
            return reference
    schema = describe_value(field, direction)
    nullable = getattr(field, "contract_type", "").endswith("?")
    described: JSONDict = append_meta(schema, {"nullable": True} if nullable else {})
    return described


def describe_value(field: AnyField, direction: Direction) -> JSONDict:
    """Return the schema of a value that is neither an object nor a list."""
    is_request = direction == "request"
    # Requests are checked against bounds, responses are not.
    bounds = describe_bounds(field) if is_request and hasattr(field, "min_value") else {}
    match field:
        case fields.ChoiceField():
            # Responses may get new values, which the clients of today should accept.
            return {"type": "string", "enum" if is_request else "x-extensible-enum": field.values}
        case fields.TextField():
            if not is_request:
                return {"type": "string"}
            least = {} if field.allow_blank else {"minLength": 1}
            return {"type": "string", "maxLength": field.max_length, **least}
        case fields.BooleanField():
            return {"type": "boolean"}
        case fields.IntegerField():
            return {"type": "integer", "format": "int32", **bounds}
        case fields.DoubleField():
            return {"type": "number", "format": "double", **bounds}
        case fields.DecimalField():
            return {"type": "number", **bounds}
        case fields.CenterDayOrTimeField() if is_request:
            return {"type": "string", "pattern": DAY_OR_TIME_PATTERN}
        case fields.CenterDateTimeField() if is_request:
            # A local time without offset is no `date-time`.
            return {"type": "string", "pattern": LOCAL_TIME_PATTERN}
        case fields.DateTimeField():
            return {"type": "string", "format": "date-time"}
        case fields.ObjectField():
            return {"type": "object", "additionalProperties": True}
        case fields.UrlField():
            return {"type": "string", "format": "uri"}
    raise TypeError(f"{type(field).__name__} has no description; add it to describe_value.")


def describe_bounds(field: Any) -> JSONDict:
    bounds = {"minimum": field.min_value, "maximum": field.max_value}
    return {name: bound for name, bound in bounds.items() if bound is not None}
