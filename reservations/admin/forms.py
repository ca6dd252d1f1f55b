"""Fields that forms of the back office share."""

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import QuerySet

from centers.models import Center, MeetingRoom
from roombook.backoffice.widgets import AutocompleteWidget, NativeDateTimeInput

# Dates closer to the ends of the calendar overflow when a day or an offset is added.
YEARS = range(2000, 2101)
MAX_ADJUSTMENT = Decimal(100_000)


def build_search_box(model: type[models.Model], field: str) -> AutocompleteWidget:
    """A widget that finds rows by typing: there may be a hundred thousand of them."""
    return AutocompleteWidget(model._meta.get_field(field), admin.site)


class CenterSearchField(forms.ModelChoiceField):
    """A center, found by typing. ``limit_to`` sets the centers and the widget."""

    def __init__(self) -> None:
        super().__init__(Center.objects.none())

    def limit_to(self, centers: QuerySet[Center], site: AdminSite) -> None:
        self.queryset = centers
        # The autocomplete view needs a foreign key to a center; any one does.
        self.widget = AutocompleteWidget(MeetingRoom._meta.get_field("center"), site)
        self.widget.choices = self.choices


class LocalTimeField(forms.SplitDateTimeField):
    """A local date and time without a time zone: the center may not be known yet."""

    widget = NativeDateTimeInput

    def compress(self, data_list: Any) -> Any:
        value = super().compress(data_list)
        if value and value.year not in YEARS:
            raise ValidationError(f"Enter a year from {YEARS[0]} to {YEARS[-1]}.")
        # The back office runs in UTC, so removing the time zone does not change the time.
        return value and value.replace(tzinfo=None)
