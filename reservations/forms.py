"""What staff type to make a draft."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AdminSplitDateTime, AutocompleteSelect
from django.db import models

from accounts.models import User
from centers.models import MeetingRoom, Service
from reservations.models import ChosenService, Reservation


def search_box(model: type[models.Model], field: str) -> AutocompleteSelect:
    """A box that finds by typing: there may be a hundred thousand to choose from."""
    return AutocompleteSelect(model._meta.get_field(field), admin.site)


class LocalTimeField(forms.SplitDateTimeField):
    """A date and a time on the clock of a center that is not known yet: without a zone."""

    def compress(self, data_list: Any) -> Any:
        moment = super().compress(data_list)
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
    start = LocalTimeField(widget=AdminSplitDateTime, help_text="On the center's clock.")
    end = LocalTimeField(widget=AdminSplitDateTime, help_text="On the center's clock.")
    number_of_attendees = forms.IntegerField(min_value=1, required=False)


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
