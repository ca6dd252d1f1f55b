"""The fields of requests and responses.

Fields are strict: `true` is no number and `12` is no text (B1.5). Only a cell of a CSV body
(`csv_table.CSVCell`) is always text, and is read as the type of its field.

Validation messages never repeat the submitted value: it might be a card number.
"""

import datetime as dt
import math
import re
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, ClassVar, NoReturn, TypedDict, TypeVar, Unpack

from django.db.models.fields.files import FieldFile
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from roombook.api.csv_table import CSVCell
from roombook.api.rendering import RenderContext
from roombook.texts import remove_controls

MAX_TEXT_LENGTH = 255
MAX_LIST_LENGTH = 100
MAX_INT = 2**31 - 1
MAX_AMOUNT = 9_999_999_999
# Wide enough for any booking or card; no conversion between time zones overflows.
ALLOWED_YEARS = range(1900, 3000)

INTEGER_PATTERN = re.compile(r"[+-]?[0-9]{1,20}")
NUMBER_PATTERN = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")
DATE_PATTERN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
DATE_TIME_PATTERN = re.compile(
    DATE_PATTERN.pattern + r"[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
    r"([Zz]|[+-][0-9]{2}:?[0-5][0-9])?"
)

REQUIRED_MESSAGES = {"required": "Required.", "null": "Must not be null."}

N = TypeVar("N", int, float, Decimal)


def raise_invalid(message: str) -> NoReturn:
    raise ValidationError(message)


def check_bounds(number: N, low: float | Decimal | None, high: float | Decimal | None) -> N:
    """Return the number if it lies between the bounds, else raise a ValidationError."""
    if low is not None and number < low:
        raise_invalid(f"Must be at least {low}.")
    if high is not None and number > high:
        raise_invalid(f"Must be at most {high}.")
    return number


class FieldOptions(TypedDict, total=False):
    """The options of every field, without those of its own class."""

    required: bool
    contract_type: str
    source: str
    help_text: str


class ContractField(serializers.Field[Any, Any, Any, Any]):
    """A field that is optional unless declared with `required=True`.

    `contract_type` is the type that the contract names, for fields of which it is not
    the usual one of their class.
    """

    contract_type: str
    # A builtin type renders a value faster than a method; without one, a value stays as it is.
    rendered_type: ClassVar[type[Any] | None] = None

    default_error_messages = {**REQUIRED_MESSAGES}

    def __init__(
        self,
        *,
        required: bool = False,
        contract_type: str = "",
        source: str | None = None,
        help_text: str | None = None,
    ) -> None:
        super().__init__(required=required, source=source, help_text=help_text)
        if contract_type:
            self.contract_type = contract_type

    def to_internal_value(self, data: object) -> object:
        return raise_invalid("This field cannot be sent.")

    def to_representation(self, value: Any) -> object:
        return self.rendered_type(value) if self.rendered_type else value


class TextField(ContractField):
    """Text of bounded length. NUL and lone surrogates, which no database accepts, are refused.

    Other control characters are removed, because people paste them without seeing them.
    """

    contract_type = "string"
    rendered_type = str

    def __init__(
        self,
        *,
        max_length: int = MAX_TEXT_LENGTH,
        trim: bool = True,
        allow_blank: bool = True,
        **kwargs: Unpack[FieldOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.max_length = max_length
        self.trim = trim
        self.allow_blank = allow_blank

    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str):
            raise_invalid("Must be text.")
        text = str(data.strip() if self.trim else data)
        if len(text) > self.max_length:
            raise_invalid(f"Must have at most {self.max_length} characters.")
        if "\0" in text or not is_encodable(text):
            raise_invalid("Must not hold a NUL character or half of a surrogate pair.")
        if self.trim:
            text = remove_controls(text).strip()
        if not text and not self.allow_blank:
            raise_invalid("Must not be empty.")
        return text


def is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class ChoiceField(ContractField):
    """One of the values of an enumeration; upper and lower case matter."""

    contract_type = "string"
    rendered_type = str

    def __init__(self, choices: Iterable[str], **kwargs: Unpack[FieldOptions]) -> None:
        super().__init__(**kwargs)
        # Iterating over a Django TextChoices class yields its members, which are text.
        self.values = [str(choice) for choice in choices]

    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str) or data not in self.values:
            raise_invalid(f"Must be one of {', '.join(self.values)}.")
        return str(data)


class BooleanField(ContractField):
    """`true` or `false`; in CSV in any case, because spreadsheets write TRUE."""

    contract_type = "bool"
    rendered_type = bool

    def to_internal_value(self, data: object) -> bool:
        if isinstance(data, CSVCell):
            data = {"true": True, "false": False}.get(data.strip().lower())
        if not isinstance(data, bool):
            raise_invalid("Must be true or false.")
        return data


class IntegerField(ContractField):
    """A whole number; by default any that an integer column can hold."""

    contract_type = "int"
    rendered_type = int

    def __init__(
        self,
        *,
        min_value: int = -MAX_INT - 1,
        max_value: int = MAX_INT,
        **kwargs: Unpack[FieldOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.min_value = min_value
        self.max_value = max_value

    def to_internal_value(self, data: object) -> int:
        if isinstance(data, CSVCell) and INTEGER_PATTERN.fullmatch(data.strip()):
            data = int(data)
        if isinstance(data, bool) or not isinstance(data, int):
            raise_invalid("Must be a whole number.")
        return check_bounds(data, self.min_value, self.max_value)


class IdField(IntegerField):
    """The primary key of a row."""

    def __init__(self, *, min_value: int = 1, **kwargs: Unpack[FieldOptions]) -> None:
        super().__init__(min_value=min_value, **kwargs)


class DoubleField(ContractField):
    """A finite number, such as a latitude."""

    contract_type = "double"
    rendered_type = float

    def __init__(
        self,
        *,
        min_value: float | None = None,
        max_value: float | None = None,
        **kwargs: Unpack[FieldOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.min_value = min_value
        self.max_value = max_value

    def to_internal_value(self, data: object) -> float:
        if isinstance(data, CSVCell) and NUMBER_PATTERN.fullmatch(data.strip()):
            data = float(data)
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise_invalid("Must be a number.")
        try:
            number = float(data)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise_invalid("Must be a finite number.")
        return check_bounds(number, self.min_value, self.max_value)


class DecimalField(ContractField):
    """Money or hours: a Decimal in Python, a number with at most two places in JSON (B2.2)."""

    contract_type = "decimal"

    PLACES = 2

    def __init__(
        self,
        *,
        min_value: Decimal | int = -MAX_AMOUNT,
        max_value: Decimal | int = MAX_AMOUNT,
        decimal_places: int = PLACES,
        **kwargs: Unpack[FieldOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.min_value = min_value
        self.max_value = max_value
        self.decimal_places = decimal_places

    def to_internal_value(self, data: object) -> Decimal:
        number = self.parse_decimal(data)
        check_bounds(number, self.min_value, self.max_value)
        if number != round(number, self.decimal_places):
            raise_invalid(f"Must have at most {self.decimal_places} decimal places.")
        return number

    @staticmethod
    def parse_decimal(data: object) -> Decimal:
        if isinstance(data, CSVCell) and NUMBER_PATTERN.fullmatch(data.strip()):
            return Decimal(data.strip())
        if isinstance(data, bool) or not isinstance(data, int | float) or not is_finite(data):
            raise_invalid("Must be a number.")
        # The shortest text of a float is the text that the client sent: 0.1 stays 0.1.
        return Decimal(repr(data))

    def to_representation(self, value: Decimal | int) -> float:
        """Return the amount as JSON writes it.

        Amounts have at most twelve digits, so the shortest text of the float is the decimal's
        own. Adding zero turns -0.0 into 0.0.
        """
        return float(Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP)) + 0.0


def is_finite(number: float) -> bool:
    # math.isfinite raises OverflowError for very large ints.
    return isinstance(number, int) or math.isfinite(number)


class DateTimeField(ContractField):
    """ISO 8601 date and time. Without an offset it is UTC; a date alone is its midnight."""

    contract_type = "DateTime"

    example = "2027-03-01T09:00:00Z"

    def to_internal_value(self, data: object) -> dt.datetime:
        text = data.strip() if isinstance(data, str) else ""
        if not self.has_valid_format(text):
            raise_invalid(f"Must be a date and time such as {self.example}.")
        try:
            # fromisoformat reads only capital letters.
            value = dt.datetime.fromisoformat(text.upper())
        except ValueError:
            raise_invalid("Must be a date and time that exists.")
        if value.year not in ALLOWED_YEARS:
            first, last = ALLOWED_YEARS.start, ALLOWED_YEARS.stop - 1
            raise_invalid(f"Must be of a year from {first} to {last}.")
        return self.with_time_zone(value)

    def has_valid_format(self, text: str) -> bool:
        return bool(DATE_TIME_PATTERN.fullmatch(text) or DATE_PATTERN.fullmatch(text))

    def with_time_zone(self, value: dt.datetime) -> dt.datetime:
        return value if value.tzinfo else value.replace(tzinfo=dt.UTC)

    def to_representation(self, value: dt.datetime) -> str:
        if value.tzinfo is None:
            raise ValueError(f"{self.field_name} has no time zone.")
        return value.isoformat(timespec="seconds")


class CenterDateTimeField(DateTimeField):
    """A date and time at a center. Without an offset it is the center's local time.

    A local time stays naive here: only the domain knows the center (`centers.hours.localize`).
    """

    example = "2027-03-01T09:00:00 or 2027-03-01T09:00:00-07:00"

    def has_valid_format(self, text: str) -> bool:
        return bool(DATE_TIME_PATTERN.fullmatch(text))

    def with_time_zone(self, value: dt.datetime) -> dt.datetime:
        return value


class CenterDayOrTimeField(CenterDateTimeField):
    """As CenterDateTimeField; a date alone is its midnight at the center."""

    def has_valid_format(self, text: str) -> bool:
        return DateTimeField.has_valid_format(self, text)


class ObjectField(ContractField):
    """An object without a type: its fields are described elsewhere."""

    contract_type = "object"


class UrlField(ContractField):
    """The absolute URL of a stored file or of a path; left out if there is no file."""

    contract_type = "string"

    def render(self, value: str | FieldFile | None, context: RenderContext) -> str | None:
        """Return the URL; the value is a path or a FieldFile."""
        if not value:
            return None
        return context.build_url(value if isinstance(value, str) else value.url)


class ListField(serializers.ListField):
    """A list of simple values: `ListField(IdField())`."""

    default_error_messages = {**REQUIRED_MESSAGES}

    def __init__(
        self,
        child: ContractField,
        *,
        required: bool = False,
        max_length: int = MAX_LIST_LENGTH,
        help_text: str | None = None,
    ) -> None:
        super().__init__(required=required, child=child, help_text=help_text)
        self.max_length: int = max_length

    def to_internal_value(self, data: object) -> list[object]:
        return list(self.run_child_validation(validate_list(data, self.max_length)))


def validate_list(data: object, max_length: int) -> list[Any]:
    """Return the data if it is a list that is not too long."""
    if not isinstance(data, list):
        raise_invalid("Must be a list.")
    if len(data) > max_length:
        raise_invalid(f"Must have at most {max_length} elements.")
    return data
