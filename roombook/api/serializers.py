"""Requests and responses written as the contract writes them.

Attributes carry the contract's names; where each value comes from (or goes to) is derived from
the name. Fields are strict: `true` is no number, `12` is no text (B1.5). Only a cell of a CSV body
(`flat.Cell`) is text by nature and is read as its field's type.

Reasons for a refusal never repeat the value: it might be a card number.
"""

import datetime as dt
import math
import re
import threading
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property
from types import MethodType
from typing import Any, NoReturn, Self, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.fields import SkipField, empty

from roombook.api.csv_table import CSVCell, FieldTree
from roombook.api.naming import to_snake_case
from roombook.api.urls import build_absolute_url

MAX_TEXT_LENGTH = 255
MAX_LIST_LENGTH = 100
MAX_INT = 2**31 - 1
MAX_AMOUNT = 9_999_999_999
# Far enough for any booking or card, near enough that no conversion between zones overflows.
ALLOWED_YEARS = range(1900, 3000)

INTEGER_PATTERN = re.compile(r"[+-]?[0-9]{1,20}")
NUMBER_PATTERN = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")
DATE_PATTERN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
DATE_TIME_PATTERN = re.compile(
    DATE_PATTERN.pattern + r"[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
    r"([Zz]|[+-][0-9]{2}:?[0-5][0-9])?"
)

N = TypeVar("N", int, float, Decimal)


def raise_invalid(reason: str) -> NoReturn:
    raise ValidationError(reason)


def check_bounds(number: N, low: float | Decimal | None, high: float | Decimal | None) -> N:
    """The number itself, if it lies between the bounds."""
    if low is not None and number < low:
        raise_invalid(f"Must be at least {low}.")
    if high is not None and number > high:
        raise_invalid(f"Must be at most {high}.")
    return number


class ContractField(serializers.Field[Any, Any, Any, Any]):
    """A field that may be left out, unless it says `required=True`."""

    default_error_messages = {"required": "Required.", "null": "Must not be null."}

    def __init__(self, *, required: bool = False, **kwargs: Any) -> None:
        super().__init__(required=required, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        return raise_invalid("This field cannot be sent.")

    def to_representation(self, value: Any) -> Any:
        return value


class TextField(ContractField):
    """Text of bounded length, without what no database takes: NUL and halves of surrogate pairs."""

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

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise_invalid("Must be text.")
        text = str(data.strip() if self.trim else data)
        if not text and not self.allow_blank:
            raise_invalid("Must not be empty.")
        if len(text) > self.max_length:
            raise_invalid(f"Must have at most {self.max_length} characters.")
        if "\0" in text or not is_encodable(text):
            raise_invalid("Must not hold a NUL character or half of a surrogate pair.")
        return text

    def to_representation(self, value: Any) -> str:
        return str(value)


def is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class ChoiceField(ContractField):
    """One of the names of an enumeration, in exactly its case."""

    def __init__(self, choices: Iterable[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # A Django TextChoices class iterates over its members, which are text.
        self.names = [str(choice) for choice in choices]

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.names:
            raise_invalid(f"Must be one of {', '.join(self.names)}.")
        return str(data)

    def to_representation(self, value: Any) -> str:
        return str(value)


class BooleanField(ContractField):
    """`true` or `false`; in CSV in any case, since spreadsheets write TRUE."""

    def to_internal_value(self, data: Any) -> bool:
        if isinstance(data, CSVCell):
            data = {"true": True, "false": False}.get(data.strip().lower())
        if not isinstance(data, bool):
            raise_invalid("Must be true or false.")
        return data

    def to_representation(self, value: Any) -> bool:
        return bool(value)


class IntegerField(ContractField):
    """A whole number; by default any that a column can hold."""

    def __init__(
        self, *, min_value: int = -MAX_INT - 1, max_value: int = MAX_INT, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.min_value = min_value
        self.max_value = max_value

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, CSVCell) and INTEGER_PATTERN.fullmatch(data.strip()):
            data = int(data)
        if isinstance(data, bool) or not isinstance(data, int):
            raise_invalid("Must be a whole number.")
        return check_bounds(data, self.min_value, self.max_value)

    def to_representation(self, value: Any) -> int:
        return int(value)


class IdField(IntegerField):
    """The number of a row."""

    def __init__(self, *, min_value: int = 1, **kwargs: Any) -> None:
        super().__init__(min_value=min_value, **kwargs)


class DoubleField(ContractField):
    """A measure such as a latitude: a finite number."""

    def __init__(
        self, *, min_value: float | None = None, max_value: float | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.min_value = min_value
        self.max_value = max_value

    def to_internal_value(self, data: Any) -> float:
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

    def to_representation(self, value: Any) -> float:
        return float(value)


class DecimalField(ContractField):
    """Money or hours: exact inside, a JSON number of at most two places outside (B2.2)."""

    PLACES = 2

    def __init__(
        self,
        *,
        min_value: Decimal | int = -MAX_AMOUNT,
        max_value: Decimal | int = MAX_AMOUNT,
        decimal_places: int = PLACES,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.min_value = min_value
        self.max_value = max_value
        self.decimal_places = decimal_places

    def to_internal_value(self, data: Any) -> Decimal:
        number = self.parse_decimal(data)
        check_bounds(number, self.min_value, self.max_value)
        if number != round(number, self.decimal_places):
            raise_invalid(f"Must have at most {self.decimal_places} decimal places.")
        return number

    @staticmethod
    def parse_decimal(data: Any) -> Decimal:
        if isinstance(data, CSVCell) and NUMBER_PATTERN.fullmatch(data.strip()):
            return Decimal(data.strip())
        if isinstance(data, bool) or not isinstance(data, int | float) or not is_finite(data):
            raise_invalid("Must be a number.")
        # The shortest text of a float is what the client wrote: 0.1 stays 0.1.
        return Decimal(repr(data))

    def to_representation(self, value: Any) -> float:
        return to_json_number(Decimal(value))


def is_finite(number: float) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def to_json_number(amount: Decimal) -> float:
    """The amount as JSON writes it.

    Amounts have at most twelve digits, so the float's shortest text is the decimal's own, without
    noise; the encoder knows no other way to write a fraction. Adding zero makes 0.0 of -0.0.
    """
    return float(amount.quantize(Decimal("0.01"), ROUND_HALF_UP)) + 0.0


class DateTimeField(ContractField):
    """A moment: ISO 8601; without an offset it is UTC, and a date alone is its midnight."""

    example = "2027-03-01T09:00:00Z"

    def to_internal_value(self, data: Any) -> dt.datetime:
        text = data.strip() if isinstance(data, str) else ""
        if not self.has_valid_format(text):
            raise_invalid(f"Must be a date and time such as {self.example}.")
        try:
            # Python's own reader wants the letters in capitals.
            moment = dt.datetime.fromisoformat(text.upper())
        except ValueError:
            raise_invalid("Must be a date and time that exists.")
        if moment.year not in ALLOWED_YEARS:
            raise_invalid(
                f"Must be of a year from {ALLOWED_YEARS.start} to {ALLOWED_YEARS.stop - 1}."
            )
        return self.with_time_zone(moment)

    def has_valid_format(self, text: str) -> bool:
        return bool(DATE_TIME_PATTERN.fullmatch(text) or DATE_PATTERN.fullmatch(text))

    def with_time_zone(self, moment: dt.datetime) -> dt.datetime:
        return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)

    def to_representation(self, value: dt.datetime) -> str:
        if value.tzinfo is None:
            raise ValueError(f"{self.field_name} has no time zone.")
        return value.isoformat(timespec="seconds")


class CenterDateTimeField(DateTimeField):
    """A time at a center: with an offset it is a moment, without one the center's local time.

    The local time stays naive here: only the domain knows the center (`centers.hours.localize`).
    """

    example = "2027-03-01T09:00:00 or 2027-03-01T09:00:00-07:00"

    def has_valid_format(self, text: str) -> bool:
        return bool(DATE_TIME_PATTERN.fullmatch(text))

    def with_time_zone(self, moment: dt.datetime) -> dt.datetime:
        return moment


class UrlField(ContractField):
    """The absolute address of a stored file (or of a path); nothing where there is no file."""

    def to_representation(self, value: Any) -> str | None:
        if not value:
            return None
        url = value if isinstance(value, str) else value.url
        return build_absolute_url(self.context.get("request"), url)


class ListField(serializers.ListField):
    """A list of simple values: `ListField(IdField())`."""

    default_error_messages = {
        "required": "Required.",
        "null": "Must not be null.",
        "not_a_list": "Must be a list.",
        "max_length": "Must have at most {max_length} elements.",
    }

    def __init__(
        self,
        child: ContractField,
        *,
        required: bool = False,
        max_length: int = MAX_LIST_LENGTH,
        **kwargs: Any,
    ) -> None:
        super().__init__(required=required, child=child, **kwargs)
        self.max_length = max_length

    def to_internal_value(self, data: Any) -> list[Any]:
        validate_list(self, data)
        return list(self.run_child_validation(data))


class ContractListSerializer(serializers.ListSerializer[Any]):
    """What `many=True` makes of a ContractSerializer."""

    default_error_messages = ListField.default_error_messages

    def to_internal_value(self, data: Any) -> list[Any]:
        validate_list(self, data)
        values: list[Any] = []
        errors: dict[Any, Any] = {}
        for index, element in enumerate(data):
            try:
                values.append(self.run_child_validation(element))
            except ValidationError as error:
                errors[index] = error.detail
        if errors:
            raise ValidationError(errors)
        return values


def validate_list(field: Any, data: Any) -> None:
    if not isinstance(data, list):
        field.fail("not_a_list")
    if len(data) > field.max_length:
        field.fail("max_length", max_length=field.max_length)


class PerThread(threading.local):
    """Made anew in each thread that looks at it."""

    def __init__(self) -> None:
        self.instances: dict[type, Any] = {}


class ContractSerializer(serializers.Serializer[Any]):
    """An object of the contract, for requests and responses alike.

    Coming in, fields that are absent or null are left out and unknown ones ignored. Going out,
    fields without a value (null, empty text, an object without any value) are left out; `false`,
    `0` and `[]` stay. A mapping may lack a field; of an object, a missing attribute is a defect.
    """

    default_error_messages = {
        "required": "Required.",
        "null": "Must not be null.",
        "invalid": "Must be an object.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("required", False)
        super().__init__(*args, **kwargs)

    @classmethod
    def many_init(cls, *args: Any, **kwargs: Any) -> ContractListSerializer:
        kwargs = {"required": False, "max_length": MAX_LIST_LENGTH, "child": cls(), **kwargs}
        return ContractListSerializer(*args, **kwargs)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        for name, field in fields.items():
            if field.source is None:
                field.source = to_snake_case(name)
        return fields

    # --- one tree of fields a thread and class -----------------------------------------------

    _shared = PerThread()

    @classmethod
    def get_shared(cls) -> Self:
        """This thread's own instance: to build the tree of fields costs more than to use it."""
        known = cls._shared.instances.get(cls)
        if known is None:
            known = cls._shared.instances[cls] = cls()
        return known

    @classmethod
    def deserialize(cls, data: Any) -> dict[str, Any]:
        """The request's fields by our names, or a ValidationError that names each wrong one."""
        return dict(cls.get_shared().run_validation(data))

    @classmethod
    def render(cls, value: Any, context: Mapping[str, Any]) -> dict[str, Any]:
        """The value by the contract's names."""
        serializer = cls.get_shared()
        serializer._context = dict(context)
        try:
            return serializer.to_representation(value)
        finally:
            serializer._context = {}

    @classmethod
    def field_tree(cls) -> FieldTree:
        """The names in the contract's order, nested: what sorts columns and error lines."""
        return build_field_tree(cls.get_shared())

    # --- in ------------------------------------------------------------------------------------

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            # Under the object's own name, not under one of its fields.
            self.fail("invalid")
        values: dict[str, Any] = {}
        errors: dict[str, Any] = {}
        for name, field in self.fields.items():
            sent = data.get(name)
            try:
                value = field.run_validation(empty if sent is None else sent)
            except SkipField:
                continue
            except ValidationError as error:
                errors[name] = error.detail
            else:
                self.set_value(values, field.source_attrs, value)
        if errors:
            raise ValidationError(errors)
        return values

    # --- out -----------------------------------------------------------------------------------

    @cached_property
    def _outgoing(self) -> list[tuple[str, Any]]:
        return [(name, field) for name, field in self.fields.items() if not field.write_only]

    def to_representation(self, instance: Any) -> dict[str, Any]:
        result = {}
        for name, field in self._outgoing:
            value = self._value_of(field, instance)
            if value is not None:
                value = field.to_representation(value)
            if value is None or value == "" or value == {}:
                continue
            result[name] = value
        return result

    def _value_of(self, field: Any, instance: Any) -> Any:
        if type(field).get_attribute is not serializers.Field.get_attribute:
            return field.get_attribute(instance)
        value = instance
        for attribute in field.source_attrs:
            value = get_attribute_value(value, attribute)
            if value is None:
                return None
        return value


def get_attribute_value(value: Any, attribute: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(attribute)
    try:
        found = getattr(value, attribute)
    except ObjectDoesNotExist:
        # The other side of a one-to-one relation that is not there.
        return None
    return found() if isinstance(found, MethodType) else found


def build_field_tree(field: Any) -> FieldTree:
    """Names in order, each with the shape of what it holds; `{}` for a plain value."""
    field = getattr(field, "child", field)
    if not isinstance(field, ContractSerializer):
        return {}
    return {name: build_field_tree(inner) for name, inner in field.fields.items()}
