"""Fields that forms of the back office share."""

import datetime as dt
import re
from decimal import Decimal

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import models
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminTextareaWidget

from centers.hours import NonexistentLocalTime, localize
from centers.models import Center, MeetingRoom
from reservations.booking.drafts import AttendeeInput
from roombook.backoffice.widgets import AutocompleteWidget, DateTimeTextInput
from roombook.dates import YEARS
from roombook.texts import clean_text

MAX_ADJUSTMENT = Decimal(100_000)
MAX_NAME_LENGTH, MAX_EMAIL_LENGTH = 255, 254
EMAIL_PATTERN = re.compile(r"\S+@\S+")


def build_search_box(model: type[models.Model], field: str) -> AutocompleteWidget:
    """A widget that finds rows by typing: there may be a hundred thousand of them."""
    return AutocompleteWidget(model._meta.get_field(field), admin.site)


class CenterSearchField(forms.ModelChoiceField):
    """A center, found by typing. The form sets the queryset: the centers that may be chosen."""

    def __init__(self) -> None:
        # The autocomplete view needs a foreign key to a center; any one does.
        super().__init__(Center.objects.none(), widget=build_search_box(MeetingRoom, "center"))


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


class AttendeeCountField(forms.IntegerField):
    """The number of attendees. If it is empty, the guests are counted, or it stays as it is."""

    def __init__(self, help_text: str) -> None:
        super().__init__(
            label="Number of attendees",
            min_value=1,
            required=False,
            widget=UnfoldAdminIntegerFieldWidget(),
            help_text=help_text,
        )


class GuestsField(forms.CharField):
    """Guests, one on each line. Its value is a list of them."""

    def __init__(self) -> None:
        super().__init__(
            label="Guests",
            required=False,
            max_length=20_000,
            widget=UnfoldAdminTextareaWidget({"rows": 3}),
            help_text="One on each line: a name, an e-mail address, or both.",
        )

    def clean(self, value: object) -> list[AttendeeInput]:
        lines = clean_text(super().clean(value)).splitlines()
        return [_parse_attendee(line) for line in lines if line.strip()]


def _parse_attendee(line: str) -> AttendeeInput:
    """Parse ``Ada King <ada@example.com>``, ``Ada King, ada@example.com``, or one of the two."""
    match = EMAIL_PATTERN.search(line)
    email = match.group().strip("<>,;()") if match else ""
    name = line.replace(match.group(), "") if match else line
    name = name.strip(" ,;<>\t")
    if len(name) > MAX_NAME_LENGTH or len(email) > MAX_EMAIL_LENGTH:
        raise ValidationError("One of these lines is too long.")
    return {"name": name, "email_address": email}
