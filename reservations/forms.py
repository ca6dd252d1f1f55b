"""What staff type to make a draft."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.dateparse import parse_datetime

from accounts.models import User
from centers.models import MeetingRoom, Service
from reservations.models import ChosenService, Reservation
from roombook.admin import MomentInput, SearchBox, number

# Nearer to the ends of the calendar, a step of a day or of a time zone falls off it.
YEARS = range(2000, 2101)
HIGHEST_ADJUSTMENT = Decimal(100_000)


def search_box(model: type[models.Model], field: str) -> SearchBox:
    """A box that finds by typing: there may be a hundred thousand to choose from."""
    return SearchBox(model._meta.get_field(field), admin.site)


class LocalTimeField(forms.SplitDateTimeField):
    """A date and a time on the clock of a center that is not known yet: without a zone."""

    widget = MomentInput

    def compress(self, data_list: Any) -> Any:
        moment = super().compress(data_list)
        if moment and moment.year not in YEARS:
            raise ValidationError(f"A year from {YEARS[0]} to {YEARS[-1]}.")
        # The back office's own clock is UTC, so that nothing was moved by reading it.
        return moment and moment.replace(tzinfo=None)


class DraftForm(forms.Form):
    """A new reservation for a customer; times are the center's."""

    user = forms.ModelChoiceField(
        User.objects.filter(is_active=True),
        label="Customer",
        widget=search_box(Reservation, "user"),
    )
    room = forms.ModelChoiceField(MeetingRoom.objects.all(), widget=search_box(Reservation, "room"))
    start = LocalTimeField(help_text="On the center's clock.")
    end = LocalTimeField(help_text="On the center's clock.")
    number_of_attendees = forms.IntegerField(min_value=1, required=False)

    @staticmethod
    def initial_from(query: Mapping[str, str]) -> dict[str, Any]:
        """What an address may fill in beforehand; what cannot be read is left out."""
        initial: dict[str, Any] = {
            name: number(query.get(name)) for name in ("user", "room", "number_of_attendees")
        }
        for name in ("start", "end"):
            try:
                moment = parse_datetime(query.get(name, ""))
            except ValueError:
                continue
            initial[name] = moment and moment.replace(tzinfo=None)
        return initial


class ExtraForm(forms.Form):
    """A service of the draft."""

    service = forms.ModelChoiceField(
        Service.objects.filter(is_active=True), widget=search_box(ChosenService, "service")
    )
    duration_hours = forms.DecimalField(
        label="Hours", min_value=0, max_digits=5, decimal_places=2, required=False
    )
    quantity = forms.IntegerField(label="Pieces", min_value=1, max_value=1000, required=False)


ExtraFormSet = forms.formset_factory(ExtraForm, extra=3)
