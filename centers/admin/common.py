"""What the pages of centers have in common."""

from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import ForeignKey
from django.db.models.fields.files import FieldFile
from django.forms import ModelChoiceField
from django.http import HttpRequest
from django.utils.html import format_html

from centers import models
from roombook.admin import number


def preview(file: FieldFile) -> str:
    """A stored picture in small."""
    return format_html('<img src="{}" alt="" height="80">', file.url) if file else "-"


def object_id_of(request: HttpRequest) -> int | None:
    """The row that a change page is about, by its address; None while adding one."""
    match = request.resolver_match
    return number(match.kwargs.get("object_id") if match else None)


class OfTheCenter:
    """Inlines of a center whose choices (rates, rooms) are the center's own: few enough to list."""

    choices_of_center: tuple[str, ...] = ()

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        if db_field.name in self.choices_of_center:
            center = object_id_of(request)
            related = db_field.related_model._default_manager
            kwargs["queryset"] = (
                related.filter(center=center) if center is not None else related.none()
            )
        return super().formfield_for_foreignkey(  # type: ignore[misc]
            db_field, request, **kwargs
        )


def zone_of_center(pk: str | None) -> ZoneInfo | None:
    """The time zone of a center by its id as a page has it."""
    center = models.Center.objects.filter(pk=number(pk) or 0).first()
    return center.zone if center else None
