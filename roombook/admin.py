"""What the back office's pages have in common."""

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect, AutocompleteSelectMultiple
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

admin.site.site_header = admin.site.site_title = "roombook"
admin.site.index_title = "Back office"


HIGHEST_ID = 2**31 - 1


def number(text: str | None) -> int | None:
    """An id as a page or an address has it, if it can be one."""
    if not text or len(text) > len(str(HIGHEST_ID)) or not (text.isascii() and text.isdigit()):
        return None
    return int(text) if int(text) <= HIGHEST_ID else None


# Boxes that find rows by typing


class OnlyIds:
    """Shows a row that is chosen already; words where an id should be are no choice.

    Django would ask the database for them, and crash.
    """

    def optgroups(self, name: str, value: Sequence[str], attr: Any = None) -> Any:
        ids = [each for each in value if number(str(each)) is not None]
        return super().optgroups(name, ids, attr)  # type: ignore[misc]


class SearchBox(OnlyIds, AutocompleteSelect):
    """A box for one row."""


class SearchBoxes(OnlyIds, AutocompleteSelectMultiple):
    """A box for several rows."""


class FindsByTyping:
    """A ModelAdmin or inline whose `autocomplete_fields` take any nonsense that is sent to them."""

    def formfield_for_foreignkey(
        self, db_field: models.ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField | None:
        return super().formfield_for_foreignkey(  # type: ignore[misc]
            db_field, request, **self._box(SearchBox, db_field, request), **kwargs
        )

    def formfield_for_manytomany(
        self, db_field: models.ManyToManyField, request: HttpRequest, **kwargs: Any
    ) -> forms.ModelMultipleChoiceField | None:
        return super().formfield_for_manytomany(  # type: ignore[misc]
            db_field, request, **self._box(SearchBoxes, db_field, request), **kwargs
        )

    def _box(self, box: type, db_field: models.Field, request: HttpRequest) -> dict[str, Any]:
        if db_field.name not in self.get_autocomplete_fields(request):  # type: ignore[attr-defined]
            return {}
        return {"widget": box(db_field, self.admin_site)}  # type: ignore[attr-defined]


# Days and times


class TimeInput(forms.TimeInput):
    """A time of day, by the browser's own means."""

    input_type = "time"

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(attrs, format="%H:%M:%S")


class MomentInput(forms.SplitDateTimeWidget):
    """A day and a time, by the browser's own means."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(
            attrs,
            date_format="%Y-%m-%d",
            time_format="%H:%M:%S",
            # A year of five digits is a slip that browsers allow.
            date_attrs={"type": "date", "max": "9999-12-31"},
            time_attrs={"type": "time"},
        )


class PlainTimes:
    """A ModelAdmin or inline without Django's shortcuts, which are the browser's today and now.

    Django also tells how far the browser's clock is from UTC, where the page shows a center's.
    """

    formfield_overrides: Any = {
        models.DateTimeField: {"widget": MomentInput},
        models.TimeField: {"widget": TimeInput},
    }


class CenterClock(PlainTimes):
    """A ModelAdmin whose change page shows and takes times on the clock of the row's center.

    Stands before ModelAdmin among the bases; `zone_of` says which clock.
    """

    def zone_of(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        """The time zone of the center in question, None where it is not known yet (UTC then)."""
        raise NotImplementedError

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        zone = self.zone_of(request, object_id)
        with timezone.override(zone or timezone.get_current_timezone()):
            response = super().changeform_view(  # type: ignore[misc]
                request, object_id, form_url, extra_context
            )
            # A template is filled in after the view: too late for the clock.
            if hasattr(response, "render"):
                response.render()
        return response


class ReadOnly:
    """Nothing is added, changed or deleted by hand."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class SavesWhatChanged:
    """A ModelAdmin that writes only the columns that were typed into.

    What else stands in the row (counters, a password) may have moved while the page was open, and
    Django would write it back as it was. Stands before ModelAdmin among the bases.
    """

    def save_model(
        self,
        request: HttpRequest,
        obj: Any,
        form: Any,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        if not change:
            super().save_model(request, obj, form, change)  # type: ignore[misc]
            return
        columns = {field.name for field in obj._meta.concrete_fields}
        obj.save(update_fields=[name for name in form.changed_data if name in columns])
