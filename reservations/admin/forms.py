"""What forms of the back office have in common."""

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import models

from roombook.backoffice.model_admin import AutocompleteWidget, NativeDateTimeInput

# Nearer to the ends of the calendar, a step of a day or of a time zone falls off it.
YEARS = range(2000, 2101)
HIGHEST_ADJUSTMENT = Decimal(100_000)


def build_search_box(model: type[models.Model], field: str) -> AutocompleteWidget:
    """A box that finds by typing: there may be a hundred thousand to choose from."""
    return AutocompleteWidget(model._meta.get_field(field), admin.site)


class LocalTimeField(forms.SplitDateTimeField):
    """A date and a time on the clock of a center that is not known yet: without a zone."""

    widget = NativeDateTimeInput

    def compress(self, data_list: Any) -> Any:
        moment = super().compress(data_list)
        if moment and moment.year not in YEARS:
            raise ValidationError(f"A year from {YEARS[0]} to {YEARS[-1]}.")
        # The back office's own clock is UTC, so that nothing was moved by reading it.
        return moment and moment.replace(tzinfo=None)
