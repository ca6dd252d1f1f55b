"""Small operations to try the API's plumbing with, apart from any app."""

from decimal import Decimal

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.core.exceptions import ValidationError as ModelValidationError
from django.db import IntegrityError, InterfaceError, OperationalError
from django.http import Http404, UnreadablePostError
from django.urls import path, re_path
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import APIException, Throttled
from rest_framework.exceptions import PermissionDenied as NotPermitted

from roombook import errors
from roombook.api.errors import handle_unknown_path
from roombook.api.fields import (
    BooleanField,
    CenterDateTimeField,
    ChoiceField,
    DateTimeField,
    DecimalField,
    DoubleField,
    IdField,
    IntegerField,
    ListField,
    TextField,
)
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer


class FakeToken(BaseAuthentication):
    """Accepts the Token "good"."""

    def authenticate(self, request):
        if request.data.get("Token") != "good":
            raise errors.NotSignedIn
        return "bob", "good"


class NoToken(BaseAuthentication):
    """Finds no account, and raises no error."""

    def authenticate(self, request):
        return None


class Thing(ContractSerializer):
    Id = IdField(required=True)
    Name = TextField()
    Tags = ListField(TextField(max_length=5))


class AllFields(ContractSerializer):
    Id = IdField()
    Text = TextField()
    Flag = BooleanField()
    Count = IntegerField(min_value=-5, max_value=1000)
    Measure = DoubleField(min_value=-90, max_value=90)
    Amount = DecimalField(min_value=0)
    Kind = ChoiceField(["Account", "Staff"])
    At = CenterDateTimeField()
    Utc = DateTimeField()
    Ids = ListField(IdField())
    Item = Thing()
    Items = Thing(many=True)
    HasCVV = BooleanField()


class Echo(Operation):
    """Returns the deserialized fields as text."""

    requires_token = False
    Input = AllFields

    class Output(ContractSerializer):
        Understood = TextField()

    def perform(self, user, **fields):
        return {"understood": repr(fields)}


class Mirror(Operation):
    """Returns the submitted fields."""

    requires_token = False
    Input = AllFields

    class Output(AllFields):
        At = DateTimeField()

    def perform(self, user, **fields):
        return fields


class Row(ContractSerializer):
    Id = IdField()
    Name = TextField()
    Note = TextField()
    Price = DecimalField()
    Rooms = Thing(many=True)


class Rows(Operation):
    """A main list with other fields around it."""

    requires_token = False
    csv_rows_field = "Rows"

    class Input(ContractSerializer):
        Many = IntegerField()

    class Output(ContractSerializer):
        Before = TextField()
        Rows = Row(many=True)
        After = Thing()

    def perform(self, user, many=0):
        rows = [
            {"id": 1, "name": "=1+1", "price": Decimal("12.50")},
            {"id": 2, "name": 'a "b", c\r\nd', "note": "late", "rooms": [{"id": 7, "tags": ["x"]}]},
        ]
        return {"before": "b", "rows": rows[:many], "after": {"id": 3, "name": "after"}}


class WhoAmI(Operation):
    """Requires a Token."""

    authentication_classes = [FakeToken]

    class Input(ContractSerializer):
        Id = IdField(required=True)

    class Output(ContractSerializer):
        User = TextField()
        Token = TextField()

    def perform(self, user, *, id):  # noqa: A002
        return {"user": user, "token": self.request.auth}


class Nobody(WhoAmI):
    authentication_classes = [NoToken]


class Nothing(Operation):
    """Has no fields in the request and none in the response."""

    requires_token = False

    def perform(self, user):
        return None


class Unwritable(Operation):
    """Returns a value that JSON cannot represent."""

    requires_token = False

    class Output(ContractSerializer):
        Number = DoubleField()

    def perform(self, user):
        return {"number": float("nan")}


class Client500(APIException):
    """The framework's own 500."""


def build_chained_error():
    error = errors.ServiceUnavailable("Please ask again.")
    error.__cause__ = OperationalError("canceling statement\nDETAIL: Key (email)=(ada@example.com)")
    return error


# In another order than that of the contract.
INVALID_FIELDS = {
    "items.10.name": "Ten.",
    "items.2.name": "Two.",
    "id": "First.",
    "has_cvv": "Last.",
}
# The status, the Summary, and the error that an operation raises.
ERRORS = {
    "crash": (500, "InternalError", ZeroDivisionError("secret 4242424242424242")),
    "invalid": (400, "InvalidRequest", errors.InvalidRequest(INVALID_FIELDS)),
    "credentials": (401, "InvalidCredentials", errors.InvalidCredentials()),
    "declined": (402, "CardDeclined", errors.CardDeclined(details=("decline code 51",))),
    "missing": (404, "NotFound", errors.NotFound()),
    "http404": (404, "NotFound", Http404("Center matching query 42")),
    "denied": (404, "NotFound", PermissionDenied()),
    "drf-denied": (404, "NotFound", NotPermitted()),
    "taken": (409, "SlotUnavailable", errors.SlotUnavailable("The room is closed then.")),
    "not-open": (409, "ReservationNotOpen", errors.ReservationNotOpen()),
    "promo": (409, "PromoCodeInvalid", errors.PromoCodeInvalid()),
    "allowance": (409, "AllowanceExhausted", errors.AllowanceExhausted()),
    "no-card": (409, "NoSavedCard", errors.NoSavedCard()),
    "no-rate": (409, "RateNotConfigured", errors.RateNotConfigured()),
    "slow-down": (429, "TooManyRequests", errors.TooManyRequests(retry_after=900)),
    "throttled": (429, "TooManyRequests", Throttled(wait=5)),
    "away": (503, "ServiceUnavailable", errors.ServiceUnavailable("You were not charged.")),
    "outcome-unknown": (503, "ServiceUnavailable", build_chained_error()),
    "database": (503, "ServiceUnavailable", OperationalError("server closed the connection")),
    "interface": (503, "ServiceUnavailable", InterfaceError("connection already closed")),
    "integrity": (500, "InternalError", IntegrityError("duplicate key")),
    "suspicious": (400, "InvalidRequest", SuspiciousOperation("odd")),
    "unreadable": (400, "InvalidRequest", UnreadablePostError("gone")),
    "model": (
        400,
        "InvalidRequest",
        ModelValidationError({"first_name": "“4242424242424242” is wrong", "id": "No."}),
    ),
    "model-plain": (400, "InvalidRequest", ModelValidationError("“4242424242424242” is wrong")),
    "domain": (500, "InternalError", errors.DomainError("internals")),
    "drf-500": (500, "InternalError", Client500()),
}


class Raises(Operation):
    requires_token = False

    class Input(ContractSerializer):
        Id = IdField()
        FirstName = TextField()
        Items = Thing(many=True)
        HasCVV = BooleanField()

    def post(self, request, name, format=None):  # noqa: A002
        raise ERRORS[name][-1]


def page_that_raises(request, name):
    raise ERRORS[name][-1]


def operation(route, view):
    return re_path(rf"^api/{route}(?:\.(?P<format>json|csv))?\Z", view.as_view())


urlpatterns = [
    operation("echo", Echo),
    operation("mirror", Mirror),
    operation("rows", Rows),
    operation("who-am-i", WhoAmI),
    operation("nobody", Nobody),
    operation("nothing", Nothing),
    operation("unwritable", Unwritable),
    operation("raises/(?P<name>[a-z0-9-]+)", Raises),
    path("api/page/<name>", page_that_raises),
    re_path(r"^api(?:/|\Z)", handle_unknown_path),
    path("page/<name>", page_that_raises),
]

handler400 = "roombook.api.errors.handler400"
handler403 = "roombook.api.errors.handler403"
handler404 = "roombook.api.errors.handler404"
handler500 = "roombook.api.errors.handler500"
