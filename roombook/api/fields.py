"""The fields of requests and responses: DRF's own, made strict.

`true` is no number and `12` is no text (B1.5). Only a cell of a CSV body (`csv_table.CSVCell`) is
always text, and is read as the type of its field. All fields are optional unless declared with
`required=True`, and `null` is the same as an absent field.

Validation messages never repeat the submitted value: it might be a card number.
"""

import datetime as dt
import math
import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, ClassVar

from django.db.models.fields.files import FieldFile
from rest_framework import serializers
from rest_framework.fields import empty

from roombook.api.csv_table import CSVCell
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


class StrictField(serializers.Field[Any, Any, Any, Any]):
    """Makes a field of DRF strict and optional.

    `contract_type` is the type that the contract names, where it is not the usual one of the class.
    """

    contract_type = ""
    # The types of JSON values that are accepted; a cell is converted by `read_cell` before.
    json_types: ClassVar[tuple[type[Any], ...]] = ()
    # A builtin type renders a value faster than a method; without one, a value stays as it is.
    rendered_type: ClassVar[type[Any] | None] = None

    default_error_messages = {
        "required": "Required.",
        "null": "Must not be null.",
        "invalid": "This field cannot be sent.",
        "min_value": "Must be at least {min_value}.",
        "max_value": "Must be at most {max_value}.",
        "not_a_list": "Must be a list.",
        "max_length": "Must have at most {max_length} elements.",
    }

    def __init__(
        self, *args: Any, required: bool = False, contract_type: str = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, required=required, **kwargs)
        if contract_type:
            self.contract_type = contract_type

    def get_value(self, dictionary: Mapping[str, object]) -> object:
        sent = dictionary.get(str(self.field_name))
        return empty if sent is None else sent

    def to_internal_value(self, data: object) -> Any:
        return super().to_internal_value(self.require_type(data))

    def require_type(self, data: object) -> Any:
        """Return the value, or that of a cell, if its type is accepted."""
        value = self.read_cell(data) if isinstance(data, CSVCell) else data
        if type(value) not in self.json_types:
            self.fail("invalid")
        return value

    def read_cell(self, cell: str) -> object:
        return str(cell)

    def to_representation(self, value: Any) -> Any:
        return self.rendered_type(value) if self.rendered_type else super().to_representation(value)


class TextField(StrictField):
    """Text of bounded length. NUL and lone surrogates, which no database accepts, are refused.

    Other control characters are removed, because people paste them without seeing them.
    """

    contract_type = "string"
    json_types = (str,)
    rendered_type = str
    default_error_messages = {
        "invalid": "Must be text.",
        "max_length": "Must have at most {max_length} characters.",
        "characters": "Must not hold a NUL character or half of a surrogate pair.",
        "blank": "Must not be empty.",
    }

    def __init__(
        self,
        *,
        max_length: int = MAX_TEXT_LENGTH,
        trim: bool = True,
        allow_blank: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.max_length = max_length
        self.trim = trim
        self.allow_blank = allow_blank

    def to_internal_value(self, data: object) -> str:
        # Not DRF's CharField: it would validate the text before control characters are removed.
        text: str = self.require_type(data)
        text = text.strip() if self.trim else text
        if len(text) > self.max_length:
            self.fail("max_length", max_length=self.max_length)
        if "\0" in text or re.search("[\ud800-\udfff]", text):
            self.fail("characters")
        if self.trim:
            text = remove_controls(text).strip()
        if not text and not self.allow_blank:
            self.fail("blank")
        return text


class ChoiceField(StrictField, serializers.ChoiceField):
    """One of the values of an enumeration; upper and lower case matter."""

    contract_type = "string"
    json_types = (str,)
    rendered_type = str

    def __init__(self, choices: Iterable[str], **kwargs: Any) -> None:
        # Iterating over a Django TextChoices class yields its members, which are text.
        self.values = [str(choice) for choice in choices]
        message = f"Must be one of {', '.join(self.values)}."
        messages = dict.fromkeys(["invalid", "invalid_choice"], message)
        super().__init__(self.values, error_messages=messages, **kwargs)


class BooleanField(StrictField, serializers.BooleanField):
    """`true` or `false`; in CSV in any case, because spreadsheets write TRUE."""

    contract_type = "bool"
    json_types = (bool,)
    rendered_type = bool
    default_error_messages = {"invalid": "Must be true or false."}

    def read_cell(self, cell: str) -> object:
        return {"true": True, "false": False}.get(cell.strip().lower())


class IntegerField(StrictField, serializers.IntegerField):
    """A whole number; by default any that an integer column can hold."""

    contract_type = "int"
    json_types = (int,)
    rendered_type = int
    default_error_messages = {"invalid": "Must be a whole number."}

    def __init__(
        self, *, min_value: int = -MAX_INT - 1, max_value: int = MAX_INT, **kwargs: Any
    ) -> None:
        super().__init__(min_value=min_value, max_value=max_value, **kwargs)

    def read_cell(self, cell: str) -> object:
        return int(cell) if INTEGER_PATTERN.fullmatch(cell.strip()) else None


class IdField(IntegerField):
    """The primary key of a row."""

    def __init__(self, *, min_value: int = 1, **kwargs: Any) -> None:
        super().__init__(min_value=min_value, **kwargs)


class DoubleField(StrictField, serializers.FloatField):
    """A finite number, such as a latitude."""

    contract_type = "double"
    json_types = (int, float)
    rendered_type = float
    default_error_messages = {
        "invalid": "Must be a number.",
        "infinite": "Must be a finite number.",
    }

    def to_internal_value(self, data: object) -> float:
        try:
            number: float = super().to_internal_value(data)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.fail("infinite")
        return number

    def read_cell(self, cell: str) -> object:
        return float(cell) if NUMBER_PATTERN.fullmatch(cell.strip()) else None


class DecimalField(StrictField):
    """Money or hours: a Decimal in Python, a number with at most two places in JSON (B2.2)."""

    contract_type = "decimal"
    json_types = (int, float, Decimal)
    default_error_messages = {
        "invalid": "Must be a number.",
        "max_decimal_places": "Must have at most {places} decimal places.",
    }

    def __init__(
        self,
        *,
        min_value: Decimal | int = -MAX_AMOUNT,
        max_value: Decimal | int = MAX_AMOUNT,
        decimal_places: int = 2,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.min_value = min_value
        self.max_value = max_value
        self.decimal_places = decimal_places

    def to_internal_value(self, data: object) -> Decimal:
        # Not DRF's DecimalField: it raises an error of its own for numbers like 1e300.
        value = self.require_type(data)
        # The shortest text of a float is the text that the client sent: 0.1 stays 0.1.
        number = value if isinstance(value, Decimal) else Decimal(repr(value))
        if not number.is_finite():
            self.fail("invalid")
        if number < self.min_value:
            self.fail("min_value", min_value=self.min_value)
        if number > self.max_value:
            self.fail("max_value", max_value=self.max_value)
        if number != round(number, self.decimal_places):
            self.fail("max_decimal_places", places=self.decimal_places)
        return number

    def read_cell(self, cell: str) -> object:
        return Decimal(cell.strip()) if NUMBER_PATTERN.fullmatch(cell.strip()) else None

    def to_representation(self, value: Decimal | int) -> float:
        """Return the amount as JSON writes it.

        Amounts have at most twelve digits, so the shortest text of the float is the decimal's
        own. Adding zero turns -0.0 into 0.0.
        """
        return float(Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP)) + 0.0


class DateTimeField(StrictField):
    """ISO 8601 date and time. Without an offset it is UTC; a date alone is its midnight."""

    contract_type = "DateTime"
    json_types = (str,)
    patterns: ClassVar[tuple[re.Pattern[str], ...]] = (DATE_TIME_PATTERN, DATE_PATTERN)
    # Of times without an offset.
    time_zone: ClassVar[dt.tzinfo | None] = dt.UTC
    default_error_messages = {
        "invalid": "Must be a date and time such as 2027-03-01T09:00:00Z.",
        "nonexistent": "Must be a date and time that exists.",
        "year": f"Must be of a year from {ALLOWED_YEARS[0]} to {ALLOWED_YEARS[-1]}.",
    }

    def to_internal_value(self, data: object) -> dt.datetime:
        text: str = self.require_type(data).strip()
        if not any(pattern.fullmatch(text) for pattern in self.patterns):
            self.fail("invalid")
        try:
            # fromisoformat reads only capital letters.
            value = dt.datetime.fromisoformat(text.upper())
        except ValueError:
            self.fail("nonexistent")
        if value.year not in ALLOWED_YEARS:
            self.fail("year")
        return value if value.tzinfo else value.replace(tzinfo=self.time_zone)

    def to_representation(self, value: dt.datetime) -> str:
        if value.tzinfo is None:
            raise ValueError(f"{self.field_name} has no time zone.")
        return value.isoformat(timespec="seconds")


class CenterDateTimeField(DateTimeField):
    """A date and time at a center. Without an offset it is the center's local time.

    A local time stays naive here: only the domain knows the center (`centers.hours.localize`).
    """

    patterns: ClassVar[tuple[re.Pattern[str], ...]] = (DATE_TIME_PATTERN,)
    time_zone = None
    default_error_messages = {
        "invalid": "Must be a date and time such as 2027-03-01T09:00:00 or"
        " 2027-03-01T09:00:00-07:00."
    }


class CenterDayOrTimeField(CenterDateTimeField):
    """As CenterDateTimeField; a date alone is its midnight at the center."""

    patterns = DateTimeField.patterns


class ObjectField(StrictField):
    """An object without a type: its fields are described elsewhere."""

    contract_type = "object"

    def to_representation(self, value: Any) -> object:
        return value


class UrlField(StrictField):
    """The absolute URL of a stored file or of a path; left out if there is no file."""

    contract_type = "string"

    def render(self, value: str | FieldFile | None, context: Any) -> str | None:
        """Return the URL; the value is a path or a FieldFile, the context a RenderContext."""
        if not value:
            return None
        url: str = context.build_url(value if isinstance(value, str) else value.url)
        return url


class ListField(StrictField, serializers.ListField):
    """A list of simple values: `ListField(IdField())`."""

    json_types = (list,)
    default_error_messages = {"invalid": "Must be a list."}

    def __init__(
        self, child: StrictField, *, max_length: int = MAX_LIST_LENGTH, **kwargs: Any
    ) -> None:
        super().__init__(child=child, **kwargs)
        self.max_length: int = max_length

    def to_internal_value(self, data: object) -> list[object]:
        # DRF would validate the elements of a list of any length first.
        if isinstance(data, list) and len(data) > self.max_length:
            self.fail("max_length", max_length=self.max_length)
        return list(super().to_internal_value(data))
