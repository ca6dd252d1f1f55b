"""How values are written in cells: in one unambiguous way each, for import and export.

``clean`` raises ValueError with a sentence for the author of the cell. It reads what ``render``
wrote as the same value. The library's own widgets guess: 1.5 is the integer 1, "maybe" is False.
"""

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from operator import attrgetter
from typing import Any

from django.db.models import Model
from import_export.widgets import Widget

from roombook.imports.displayed_values import CellKind, format_number
from roombook.imports.files import normalize_cell

MAX_INTEGER = 2**31 - 1


class TextWidget(Widget):
    """Text. The base of all widgets."""

    # Displayed on the import page.
    help_text = "text"
    # How cells of a workbook are read.
    kind = CellKind.TEXT

    def __init__(self, help_text: str = "") -> None:
        super().__init__()
        self.help_text = help_text or self.help_text

    def clean(self, value: str, **kwargs: object) -> object:
        return str(value)

    def render(self, value: Any, **kwargs: object) -> str:
        return "" if value is None else normalize_cell(str(value))


class ReferenceWidget(TextWidget):
    """A row that a cell names; an empty cell means None."""

    def __init__(
        self,
        help_text: str,
        find: Callable[[str, Any, Any], Model],
        get_name: Callable[[Any], str] = attrgetter("name"),
    ) -> None:
        """`find` gets the name, the resource and the row to import; it raises ValueError."""
        super().__init__(help_text)
        self.find = find
        self.get_name = get_name

    def clean(self, value: str, **kwargs: object) -> Model | None:
        return self.find(value, kwargs["resource"], kwargs["record"]) if value else None

    def render(self, value: Model | None, **kwargs: object) -> str:
        return "" if value is None else normalize_cell(self.get_name(value))


class ValueWidget(TextWidget):
    """A value that is not text: an empty cell means None.

    A cell can be read without the row that it belongs to.
    """

    kind = CellKind.NUMBER

    def clean(self, value: str, **kwargs: object) -> object:
        return self.parse(value) if value else None

    def parse(self, text: str) -> object:
        raise NotImplementedError


class BooleanWidget(ValueWidget):
    """true or false."""

    help_text = "true or false"
    kind = CellKind.BOOLEAN

    VALUES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

    def clean(self, value: str, **kwargs: object) -> bool:
        if value.lower() not in self.VALUES:
            raise ValueError("Write true or false.")
        return self.VALUES[value.lower()]

    def render(self, value: bool | None, **kwargs: object) -> str:
        return "" if value is None else str(value).lower()


class IntegerWidget(ValueWidget):
    """A whole number, not negative."""

    help_text = "a whole number"

    def parse(self, text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,10}", text):
            raise ValueError("Write a whole number, such as 12.")
        if int(text) > MAX_INTEGER:
            raise ValueError(f"This is more than {MAX_INTEGER}.")
        return int(text)


class DecimalWidget(ValueWidget):
    """A decimal with a fixed number of places; more are refused, never rounded."""

    noun = "a number"

    def __init__(self, places: int) -> None:
        super().__init__(f"{self.noun}, at most {places} places after the point")
        self.places = places

    def parse(self, text: str) -> Decimal:
        match = re.fullmatch(r"-?[0-9]{1,15}(?:\.([0-9]+))?", text)
        if match is None:
            raise ValueError("Write a number such as 1250.50, without a currency sign.")
        if len((match[1] or "").rstrip("0")) > self.places:
            raise ValueError(f"At most {self.places} places after the point.")
        return Decimal(text).quantize(Decimal(1).scaleb(-self.places))

    def render(self, value: Decimal | None, **kwargs: object) -> str:
        return "" if value is None else f"{value:.{self.places}f}"


class PercentWidget(DecimalWidget):
    """A percentage: 8.5, 8.5% or 8.5 %."""

    kind = CellKind.PERCENT
    noun = "a percentage such as 8.5 or 8.5%"

    def parse(self, text: str) -> Decimal:
        return super().parse(text[:-1].rstrip() if text.endswith("%") else text)


class FloatWidget(ValueWidget):
    """A floating-point number."""

    help_text = "a number such as 39.7433"

    def parse(self, text: str) -> float:
        if not re.fullmatch(r"-?[0-9]{1,15}(?:\.[0-9]{1,400})?", text):
            raise ValueError("Write a number such as 39.7433.")
        return float(text)

    def render(self, value: float | None, **kwargs: object) -> str:
        # Spreadsheets keep 15 digits.
        return "" if value is None else format_number(f"{value:.15g}")


class DateWidget(ValueWidget):
    """2027-03-01."""

    help_text = "a day such as 2027-03-01"
    kind = CellKind.TIME

    def parse(self, text: str) -> dt.date:
        # A workbook stores a day as its midnight.
        text = text.removesuffix("T00:00")
        try:
            if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
                return dt.date.fromisoformat(text)
        except ValueError:
            pass
        raise ValueError("Write a day such as 2027-03-01.")


class DateTimeWidget(ValueWidget):
    """A time in UTC: 2027-03-01T09:00Z."""

    help_text = "a time such as 2027-03-01T09:00Z (without Z: UTC too)"
    kind = CellKind.TIME

    def parse(self, text: str) -> dt.datetime:
        value = parse_datetime(text)
        try:
            return value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
        except OverflowError as error:
            raise ValueError("This time is out of range.") from error

    def render(self, value: dt.datetime | None, **kwargs: object) -> str:
        if value is None:
            return ""
        return format_datetime(value.astimezone(dt.UTC)).replace("+00:00", "Z")


def parse_datetime(text: str) -> dt.datetime:
    """A time as it is written, with its offset if it has one."""
    pattern = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?: ?[+-]\d\d:\d\d| ?Z)?"
    try:
        if re.fullmatch(pattern, text, re.ASCII):
            return dt.datetime.fromisoformat(f"{text[:10]}T{text[11:].replace(' ', '')}")
    except ValueError:
        pass
    raise ValueError("Write a time such as 2027-03-01T09:00.")


def format_datetime(when: dt.datetime) -> str:
    """A time in ISO 8601, without zero seconds."""
    if when.microsecond:
        return when.isoformat()
    return when.isoformat(timespec="seconds" if when.second else "minutes")
