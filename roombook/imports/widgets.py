"""How values are written in cells: in one unambiguous way each, for import and export.

``clean`` raises ValueError with a sentence for the author of the cell. The library's own widgets
guess: 1.5 is the integer 1, "maybe" is False. Therefore the fields of models and forms read values.
"""

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from operator import attrgetter
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from import_export.fields import Field
from import_export.widgets import Widget

from roombook.imports.displayed_values import CellKind, format_number
from roombook.imports.files import UnreadableCell, normalize_cell


class TextWidget(Widget):
    """Text, as the field of the model cleans it. The base of all widgets."""

    # Displayed on the import page.
    help_text = "text"
    # How cells of a workbook are read.
    kind = CellKind.TEXT

    def __init__(self, model_field: Any = None, help_text: str = "") -> None:
        super().__init__()
        self.model_field = model_field
        self.help_text = help_text or self.help_text

    def clean(self, value: str, **kwargs: Any) -> Any:
        if isinstance(value, UnreadableCell):
            raise ValueError(value.problem)
        try:
            return self.parse(value, **kwargs)
        except ValidationError as error:
            raise ValueError(" ".join(error.messages)) from error

    def parse(self, text: str, **kwargs: Any) -> Any:
        # So that it is compared with what will be stored.
        return self.model_field.to_python(text) if self.model_field else text

    def render(self, value: Any, **kwargs: object) -> str:
        return "" if value is None else normalize_cell(str(value))


class RelatedField(Field):
    """Rows of another table in one cell: an attribute that is read from prefetched rows."""

    def __init__(self, attribute: str, read: Callable[[Any], Any], widget: TextWidget) -> None:
        super().__init__(attribute, widget=widget)
        self.read = read

    def get_value(self, instance: Any) -> Any:
        if self.attribute not in vars(instance):
            return None if instance.pk is None else self.read(instance)
        return getattr(instance, self.attribute)


class ReferenceWidget(TextWidget):
    """A row that a cell names; an empty cell means None."""

    def __init__(
        self,
        help_text: str,
        find: Callable[[str, Any, Any], models.Model | None],
        get_name: Callable[[Any], str] = attrgetter("name"),
    ) -> None:
        """`find` gets the name, the resource and the row to import; it raises ValueError."""
        super().__init__(help_text=help_text)
        self.find = find
        self.get_name = get_name

    def parse(self, text: str, **kwargs: Any) -> models.Model | None:
        return self.find(text, kwargs["resource"], kwargs["record"]) if text else None

    def render(self, value: models.Model | None, **kwargs: object) -> str:
        return "" if value is None else normalize_cell(self.get_name(value))


class BooleanWidget(TextWidget):
    """true or false."""

    help_text = "true or false"
    kind = CellKind.BOOLEAN

    VALUES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

    def parse(self, text: str, **kwargs: Any) -> bool:
        if text.lower() not in self.VALUES:
            raise ValueError("Write true or false.")
        return self.VALUES[text.lower()]

    def render(self, value: bool | None, **kwargs: object) -> str:
        return "" if value is None else str(value).lower()


class FormFieldWidget(TextWidget):
    """A value that a field of a form reads; an empty cell means None."""

    form_field: forms.Field = forms.IntegerField(required=False, max_value=2**31 - 1)
    kind = CellKind.NUMBER
    help_text = "a whole number"
    message = "Write a whole number, such as 12."
    # The field of the form would read 1E+03, as which a spreadsheet displays 1234 too, and 1.000,
    # which is a thousand in some countries, as one.
    characters = "-0-9"

    def parse(self, text: str, **kwargs: Any) -> Any:
        if not re.fullmatch(f"[{self.characters}]*", text):
            raise ValueError(self.message)
        return self.form_field.clean(text)


class FloatWidget(FormFieldWidget):
    """A floating-point number."""

    form_field = forms.FloatField(required=False)
    help_text = "a number such as 39.7433"
    message = "Write a number such as 39.7433."
    characters = "-0-9."

    def parse(self, text: str, **kwargs: Any) -> Any:
        return super().parse(text.replace(",", "."), **kwargs)

    def render(self, value: float | None, **kwargs: object) -> str:
        # Spreadsheets keep 15 digits.
        return "" if value is None else format_number(f"{value:.15g}")


class DecimalWidget(FormFieldWidget):
    """A decimal with a fixed number of places; more are refused, never rounded."""

    message = "Write a number such as 1250.50, without a currency sign."
    characters = "-0-9."
    noun = "a number"
    can_be_thousands = True

    def __init__(self, model_field: Any) -> None:
        self.places = model_field.decimal_places
        self.form_field = forms.DecimalField(required=False, decimal_places=self.places)
        super().__init__(help_text=f"{self.noun}, at most {self.places} places after the point")

    def parse(self, text: str, **kwargs: Any) -> Any:
        # Some countries write a thousand as 1,250, others as 1.250.
        if self.can_be_thousands and re.fullmatch(r"-?[1-9]\d{0,2}[.,]\d{3}", text):
            raise ValueError(self.message)
        # 12,50 has a decimal comma.
        text = re.sub(r"^(-?\d+),(\d+)$", r"\1.\2", text)
        # Zeros at the end do not count as places.
        return super().parse(re.sub(r"(\.\d*?)0+$", r"\1", text).removesuffix("."), **kwargs)

    def render(self, value: Decimal | None, **kwargs: object) -> str:
        return "" if value is None else f"{value:.{self.places}f}"


class PercentWidget(DecimalWidget):
    """A percentage: 8.5, 8.5% or 8.5 %."""

    kind = CellKind.PERCENT
    noun = "a percentage such as 8.5 or 8.5%"
    can_be_thousands = False

    def parse(self, text: str, **kwargs: Any) -> Any:
        return super().parse(text.removesuffix("%").rstrip() or text, **kwargs)


class DateWidget(FormFieldWidget):
    """2027-03-01."""

    # A workbook stores a day as its midnight.
    form_field = forms.DateField(required=False, input_formats=["%Y-%m-%d", "%Y-%m-%dT00:00"])
    help_text = "a day such as 2027-03-01"
    message = "Write a day such as 2027-03-01."
    characters = "-0-9T:"
    kind = CellKind.TIME


class DateTimeWidget(TextWidget):
    """A time in UTC: 2027-03-01T09:00Z."""

    help_text = "a time such as 2027-03-01T09:00Z (without Z: UTC too)"
    kind = CellKind.TIME

    def parse(self, text: str, **kwargs: Any) -> dt.datetime | None:
        if not text:
            return None
        value = parse_datetime(text)
        try:
            return value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
        except OverflowError as error:
            raise ValueError("This time is out of range.") from error

    def render(self, value: dt.datetime | None, **kwargs: object) -> str:
        if value is None:
            return ""
        return format_datetime(value.astimezone(dt.UTC)).replace("+00:00", "Z")


# The first one whose field a column is. A day is no time.
WIDGETS: tuple[tuple[type[models.Field], type[TextWidget]], ...] = (
    (models.BooleanField, BooleanWidget),
    (models.DateTimeField, DateTimeWidget),
    (models.DateField, DateWidget),
    (models.DecimalField, DecimalWidget),
    (models.FloatField, FloatWidget),
    (models.IntegerField, FormFieldWidget),
    (models.Field, TextWidget),
)


def build_widget(model_field: models.Field) -> TextWidget:
    return next(widget for kind, widget in WIDGETS if isinstance(model_field, kind))(model_field)


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
