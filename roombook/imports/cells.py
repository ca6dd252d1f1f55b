"""How values stand in cells: one unambiguous way each, out and in.

`clean` raises ValueError with a sentence for the person who wrote the cell. What `render` wrote,
`clean` reads as the same value.
"""

import csv
import datetime as dt
import io
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from import_export.fields import Field
from import_export.widgets import Widget

from roombook.imports.files import Cell, NumberCell, format_number, normalize_cell

HIGHEST = 2**31 - 1
NOTHING = (None, "")


class CellWidget(Widget):
    """How one kind of value is written; the base is text."""

    # For the people who write the cells.
    how = "text"
    # A spreadsheet could take it for a formula.
    is_text = True

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> Any:
        return str(value)

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else normalize_cell(str(value))

    def cell(self, value: Any, text: str) -> Cell:
        """The value as a workbook's cell, beside how it was rendered."""
        return text


class TextWidget(CellWidget):
    pass


class ValueWidget(CellWidget):
    """What is no text: not guarded, and an empty cell is no value."""

    is_text = False

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> Any:
        return None if value in NOTHING else self.read(value)

    def read(self, text: str) -> Any:
        raise NotImplementedError

    def cell(self, value: Any, text: str) -> Cell:
        return value if text else None


class BooleanWidget(ValueWidget):
    """true or false."""

    how = "true or false"

    WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> bool:
        found = self.WORDS.get(value.lower())
        if found is None:
            raise ValueError("Write true or false.")
        return found

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else "true" if value else "false"


class IntegerWidget(ValueWidget):
    """A whole number from 0."""

    how = "a whole number"

    def read(self, text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,10}", text):
            raise ValueError("Write a whole number, such as 12.")
        if int(text) > HIGHEST:
            raise ValueError(f"This is more than {HIGHEST}.")
        return int(text)


class DecimalWidget(ValueWidget):
    """A decimal with a fixed number of places; more are refused, never rounded."""

    def __init__(self, places: int) -> None:
        super().__init__()
        self.places = places
        self.how = f"a number, at most {places} places after the point"

    def read(self, text: str) -> Decimal:
        shown = text.shown if isinstance(text, NumberCell) else text
        found = re.fullmatch(r"-?[0-9]{1,15}(?:\.([0-9]+))?", shown)
        if found is None:
            raise ValueError("Write a number such as 1250.50, without a sign of the currency.")
        if len((found[1] or "").rstrip("0")) > self.places:
            raise ValueError(f"At most {self.places} places after the point.")
        return Decimal(shown).quantize(Decimal(1).scaleb(-self.places))

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else f"{value:.{self.places}f}"

    def cell(self, value: Any, text: str) -> Cell:
        return Decimal(text) if text else None


class FloatWidget(ValueWidget):
    """A floating-point number."""

    how = "a number such as 39.7433"

    def read(self, text: str) -> float:
        found = re.fullmatch(r"-?[0-9]{1,15}(?:\.[0-9]{1,400})?", text)
        if found is None or not math.isfinite(float(text)):
            raise ValueError("Write a number such as 39.7433.")
        return float(text)

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else format_number(repr(float(value)))


class DateWidget(ValueWidget):
    """2027-03-01."""

    how = "a day such as 2027-03-01"

    def read(self, text: str) -> dt.date:
        # A workbook's day is a midnight.
        text = text.removesuffix("T00:00")
        try:
            if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
                return dt.date.fromisoformat(text)
        except ValueError:
            pass
        raise ValueError("Write a day such as 2027-03-01.")

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else value.isoformat()


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
    """A time without seconds that nobody wrote."""
    if when.microsecond:
        return when.isoformat()
    return when.isoformat(timespec="seconds" if when.second else "minutes")


class DateTimeWidget(ValueWidget):
    """A moment that belongs to no center: 2027-03-01T09:00Z."""

    how = "a time such as 2027-03-01T09:00Z (without Z: UTC too)"

    def read(self, text: str) -> dt.datetime:
        found = parse_datetime(text)
        try:
            return found.astimezone(dt.UTC) if found.tzinfo else found.replace(tzinfo=dt.UTC)
        except OverflowError as error:
            raise ValueError("This time is out of range.") from error

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        if value is None:
            return ""
        return format_datetime(value.astimezone(dt.UTC)).replace("+00:00", "Z")

    def cell(self, value: Any, text: str) -> Cell:
        return text


class ChoiceWidget(CellWidget):
    """One of a few words."""

    def __init__(self, choices: Iterable[str]) -> None:
        super().__init__()
        self.choices = list(choices)
        self.how = " or ".join(self.choices)

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> str:
        if value.lower() not in self.choices:
            raise ValueError(f"Write one of: {', '.join(self.choices)}.")
        return value.lower()


# --- several in one cell ------------------------------------------------------------------------


def join_list(texts: Iterable[str]) -> str:
    """Several texts in one cell, semicolons between them; `parted` gives them back."""
    line = io.StringIO()
    csv.writer(line, delimiter=";", lineterminator="").writerow(texts)
    return line.getvalue().replace(";", "; ") if '"' not in line.getvalue() else line.getvalue()


def split_list(cell: str) -> list[str]:
    try:
        lines = csv.reader(io.StringIO(cell), delimiter=";", skipinitialspace=True, strict=True)
        parts = [part.strip() for line in lines for part in line]
    except csv.Error as error:
        raise ValueError("Part them by semicolons.") from error
    return [part for part in parts if part]


class Column(Field):
    """A column of a sheet: an attribute of the row, and how it is written."""

    widget: CellWidget

    def __init__(
        self, attribute: str, kind: CellWidget | None = None, *, how: str = "", **kwargs: Any
    ) -> None:
        super().__init__(attribute=attribute, widget=kind or TextWidget(), **kwargs)
        self.how = how or self.widget.how
