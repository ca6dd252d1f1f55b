"""Widgets and fields of back-office forms: texts, autocomplete, dates and times."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.admin import ModelAdmin
from django.contrib.admin.widgets import AutocompleteSelect, AutocompleteSelectMultiple
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.http import HttpRequest
from django.utils.formats import get_format
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.contrib.filters.forms import AutocompleteDropdownForm
from unfold.widgets import (
    BASE_INPUT_CLASSES,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminTextInputWidget,
)

from roombook.backoffice.typing_bases import AnyAdminBase
from roombook.card_numbers import refuse_card_number
from roombook.dates import YEARS, read_time_of_day
from roombook.ids import is_id
from roombook.money import MoneyField
from roombook.texts import clean_line, clean_text

INPUT_CLASSES = " ".join(BASE_INPUT_CLASSES)


class StaffTextField(forms.CharField):
    """A text that staff enter about a booking or payment: it has no card number (B18)."""

    widget = UnfoldAdminTextInputWidget
    default_validators = [refuse_card_number]

    def clean(self, value: object) -> str:
        text = clean_text(super().clean(value))
        # Again, because nothing that is visible may be left of it, or a card number.
        return str(super().clean(text if clean_line(text) else ""))


# --- Autocomplete -------------------------------------------------------------------------------


class SelectedIdsMixin:
    """Loads the selected rows only if the submitted values are valid ids.

    Django would pass any text to the database, which raises an error.
    """

    def optgroups(self, name: str, value: Sequence[str], attr: Any = None) -> Any:
        ids = [each for each in value if is_id(str(each))]
        return super().optgroups(name, ids, attr)  # type: ignore[misc]


class AutocompleteWidget(SelectedIdsMixin, AutocompleteSelect):
    """Selects one row."""


class AutocompleteMultipleWidget(SelectedIdsMixin, AutocompleteSelectMultiple):
    """Selects several rows. Each can be removed; a button for all would not be accessible."""

    def build_attrs(
        self, base_attrs: dict[str, Any], extra_attrs: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        attrs = super().build_attrs(base_attrs, extra_attrs)
        placeholder = base_attrs.get("data-placeholder", "")  # Django removes it.
        return {**attrs, "data-allow-clear": "false", "data-placeholder": placeholder}


class AutocompleteMultipleField(forms.ModelMultipleChoiceField):
    """Several rows by their ids.

    Values that cannot be ids are a validation error; Django would pass them to the database, which
    raises an error. (``ModelChoiceField`` handles this itself.)
    """

    def __init__(self, queryset: Any, *, max_rows: int | None = None, **kwargs: Any) -> None:
        super().__init__(queryset, **kwargs)
        self.max_rows = max_rows

    def clean(self, value: Any) -> Any:
        ids = [each for each in self.prepare_value(value or ()) if each != ""]
        if self.max_rows is not None and len(ids) > self.max_rows:
            raise ValidationError(f"Choose at most {self.max_rows}.")
        for each in ids:
            if not is_id(str(each)):
                raise ValidationError(f"“{str(each)[:40]}” is not a valid choice.")
        return super().clean(ids)


class AutocompleteMixin(AnyAdminBase):
    """Uses these widgets for ``autocomplete_fields``."""

    def formfield_for_foreignkey(
        self, db_field: models.ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField | None:
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs.setdefault("widget", AutocompleteWidget(db_field, self.admin_site))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(
        self, db_field: models.ManyToManyField, request: HttpRequest, **kwargs: Any
    ) -> forms.ModelMultipleChoiceField | None:
        kwargs.setdefault("form_class", AutocompleteMultipleField)
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs.setdefault("widget", AutocompleteMultipleWidget(db_field, self.admin_site))
        return super().formfield_for_manytomany(db_field, request, **kwargs)


# --- Filters of lists: they work with tables of any size and ignore invalid values ---------------


class AutocompleteFilterForm(AutocompleteDropdownForm):
    """Names the selected row only if the user may view it."""

    widget = AutocompleteWidget

    def __init__(
        self,
        request: HttpRequest,
        *args: Any,
        field: models.ForeignKey,
        model_admin: ModelAdmin,
        **kwargs: Any,
    ) -> None:
        super().__init__(request, *args, field=field, model_admin=model_admin, **kwargs)
        model = field.related_model
        page = model_admin.admin_site.get_model_admin(model)
        may_view = page.has_view_permission(request)
        rows = page.get_queryset(request) if may_view else model._default_manager.none()
        for each in self.fields.values():
            each.queryset = rows


class AutocompleteFilter(AutocompleteSelectFilter):
    """Filters by one related row, which is selected by typing instead of from a long list."""

    form_class = AutocompleteFilterForm


# --- Dates and times ----------------------------------------------------------------------------


# Text, because browsers show their own date and time inputs in the format of their language, and
# the back office has one format everywhere (roombook/dates.py).


class DateTextInput(forms.DateInput):
    """A day: ``2027-03-15``. A script adds a button that opens the browser's calendar."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(
            {
                "class": f"{INPUT_CLASSES} date-input",
                "placeholder": "YYYY-MM-DD",
                "autocomplete": "off",
                **(attrs or {}),
            },
            format="%Y-%m-%d",
        )

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        # Not before, because the settings are checked when all modules are imported.
        _, local, *_ = get_format("DATE_INPUT_FORMATS")
        return super().get_context(name, value, {"data-calendar": local, **(attrs or {})})


class DayField(forms.DateField):
    """A day within the years of the back office."""

    widget = DateTextInput
    default_error_messages = {
        "invalid": f"Choose a day from {YEARS[0]} to {YEARS[-1]}, such as 2027-03-15."
    }

    def to_python(self, value: Any) -> dt.date | None:
        day: dt.date | None = super().to_python(value)
        if day is not None and day.year not in YEARS:
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return day


def parse_day(text: object) -> dt.date | None:
    """Return the day that forms would read, or None."""
    try:
        return DayField().to_python(text)
    except ValidationError:
        return None


class TimeTextInput(forms.TimeInput):
    """A time of the day: ``09:00``, with seconds only if there are any."""

    # What 24:00 means: without a day, a time that ends something is 00:00.
    end_of_day = "00:00"

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(
            {
                "class": f"{INPUT_CLASSES} time-input",
                "placeholder": "HH:MM",
                "autocomplete": "off",
                **(attrs or {}),
            }
        )

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        value = super().value_from_datadict(data, files, name)
        read = read_time_of_day(value) if isinstance(value, str) else value
        return self.end_of_day if read == "24:00" else read

    def format_value(self, value: object) -> str | None:
        if isinstance(value, dt.time):
            return value.isoformat("seconds" if value.second else "minutes")
        return super().format_value(value)


class DateTimeTextInput(forms.SplitDateTimeWidget):
    """A day and a time, side by side."""

    # What a day without a time means.
    empty_time = ""
    template_name = "backoffice/date_time_input.html"

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        time_input = TimeTextInput({"aria-label": "Time"})
        time_input.end_of_day = "24:00"
        forms.MultiWidget.__init__(self, [DateTextInput(), time_input], attrs)

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        """Read 24:00 as midnight of the next day: the hour of a time is at most 23."""
        day, time = super().value_from_datadict(data, files, name)
        if day and not time:
            time = self.empty_time
        if time == "24:00" and (read := parse_day(day)):
            return [str(read + dt.timedelta(days=1)), "00:00"]
        return [day, time]

    def id_for_label(self, id_: str) -> str:
        """Label the day."""
        return f"{id_}_0" if id_ else id_


# Django's own widgets have shortcuts for the browser's "today" and "now" and show the browser's
# offset from UTC, which is wrong on pages that show a center's local time.
FIELD_OVERRIDES: dict[type[models.Field], dict[str, Any]] = {
    models.DateTimeField: {"widget": DateTimeTextInput},
    models.DateField: {"widget": DateTextInput},
    models.TimeField: {"widget": TimeTextInput},
    # The constraints of the tables say the same, but not beside the field.
    MoneyField: {
        "widget": UnfoldAdminDecimalFieldWidget,
        "validators": [MinValueValidator(0, "A price must not be negative.")],
    },
}
