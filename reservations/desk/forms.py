"""Fields that forms of the back office share."""

import datetime as dt
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import QuerySet

from centers.hours import NonexistentLocalTime, localize
from centers.models import Center, MeetingRoom
from roombook.backoffice.widgets import AutocompleteWidget, DateTimeTextInput
from roombook.dates import YEARS

MAX_ADJUSTMENT = Decimal(100_000)
MAX_NAME_LENGTH, MAX_EMAIL_LENGTH = 255, 254


def build_search_box(model: type[models.Model], field: str) -> AutocompleteWidget:
    """A widget that finds rows by typing: there may be a hundred thousand of them."""
    return AutocompleteWidget(model._meta.get_field(field), admin.site)


class CenterSearchField(forms.ModelChoiceField):
    """A center, found by typing."""

    def __init__(self, centers: QuerySet[Center]) -> None:
        # The autocomplete view needs a foreign key to a center; any one does.
        super().__init__(centers, widget=build_search_box(MeetingRoom, "center"))


class CenterForm(forms.Form):
    """Asks for one of the centers that may be chosen, before the other fields."""

    def __init__(self, *args: Any, centers: QuerySet[Center], **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields = {"center": CenterSearchField(centers), **self.fields}


class LocalTimeField(forms.SplitDateTimeField):
    """A local date and time without a time zone: the center may not be known yet."""

    widget = DateTimeTextInput

    def compress(self, data_list: tuple[dt.date, dt.time] | None) -> dt.datetime | None:
        value = super().compress(data_list)
        if value and value.year not in YEARS:
            raise ValidationError(f"Enter a year from {YEARS[0]} to {YEARS[-1]}.")
        # The back office runs in UTC, so removing the time zone does not change the time.
        return value and value.replace(tzinfo=None)


def localize_input(local: dt.datetime, center: Center) -> dt.datetime:
    """The local time of a center that a form has. Raises ValidationError if the clock skips it."""
    try:
        return localize(local, center.zone)
    except NonexistentLocalTime:
        message = "This local time does not exist: the clocks go forward."
        raise ValidationError(message) from None
