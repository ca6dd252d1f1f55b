"""What the pages of centers have in common."""

from typing import Any
from zoneinfo import ZoneInfo

from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.db.models import ForeignKey, Q, QuerySet
from django.db.models.fields.files import FieldFile
from django.forms import ModelChoiceField
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from accounts import roles
from centers import models
from centers.search.locations import words_of
from roombook.backoffice.concurrent_edits import ListedOnce
from roombook.backoffice.model_admin import CappedPaginator
from roombook.backoffice.typing_bases import InlinePart, PagePart
from roombook.ids import number

# Who may see these may see the timeline.
BOOKINGS = "reservations.view_reservation"

# Rows of one center stand together, and an index has them in this order.
OF_CENTER = ("center_id", "name", "pk")


def preview(file: FieldFile) -> str:
    """A stored picture in small."""
    return format_html('<img src="{}" alt="" height="80">', file.url) if file else "-"


def object_id_of(request: HttpRequest) -> int | None:
    """The row that a change page is about, by its address; None while adding one."""
    match = request.resolver_match
    return number(match.kwargs.get("object_id") if match else None)


def zone_of_center(pk: str | None) -> ZoneInfo | None:
    """The time zone of a center by its id as a page has it."""
    center = models.Center.objects.filter(pk=number(pk) or 0).first()
    return center.zone if center else None


def found_through_centers(rows: QuerySet[Any], text: str, *, column: str = "name") -> QuerySet[Any]:
    """The rows that are called so, or belong to a center that customers would find so.

    Of several words, the first or the last ones may be the row's and the rest the center's ("aspen
    denver"). Each way is asked by itself, since an index can answer that, and for as many rows as
    a list shows at most.
    """
    words = text.split()[:8]
    if not words:
        return rows

    def called(part: list[str]) -> Q:
        return Q(*(Q(**{f"{column}__icontains": word}) for word in part))

    def at(part: list[str]) -> Q:
        return Q(center__in=models.Center.objects.containing(words_of(" ".join(part))))

    ways = [called(words), at(words)]
    for cut in range(1, len(words)):
        ways += [
            called(words[:cut]) & at(words[cut:]),
            called(words[cut:]) & at(words[:cut]),
        ]
    found: set[int] = set()
    for way in ways:
        found.update(
            rows.filter(way).order_by().values_list("pk", flat=True)[: CappedPaginator.MOST]
        )
    return rows.filter(pk__in=found)


class OfTheCenter(InlinePart):
    """Inlines of a center whose choices (rates, rooms) are the center's own: few enough to list.

    Types are few as well. Either are read once for all rows.
    """

    choices_of_center: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        if db_field.name in (*self.choices_of_center, *self.choices):
            listed = db_field.related_model._default_manager.order_by("name")
            if db_field.name in self.choices_of_center:
                center = object_id_of(request)
                listed = listed.filter(center=center) if center is not None else listed.none()
            kwargs = {"queryset": listed, "form_class": ListedOnce, **kwargs}
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and isinstance(field.widget, RelatedFieldWidgetWrapper):
            # What can be chosen has a tab or a list of its own.
            field.widget = field.widget.widget
        return field


class OnTimeline(PagePart):
    """A ModelAdmin of what the timeline shows: its page leads there whoever may see bookings."""

    change_form_template = "centers/on_timeline.html"
    timeline_label: str

    def timeline_address(self, obj: Any) -> str:
        raise NotImplementedError

    def center_of(self, obj: Any) -> int:
        raise NotImplementedError

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        obj = kwargs.get("obj")
        if obj is not None and roles.may(request.user, BOOKINGS, self.center_of(obj)):
            context["timeline_label"] = self.timeline_label
            context["timeline_address"] = self.timeline_address(obj)
        return super().render_change_form(request, context, *args, **kwargs)


class OwnRates(PagePart):
    """A ModelAdmin of rows that take one of their center's rates, chosen after the first save."""

    # How rates are led to such a row.
    rows_of_center: str

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        if db_field.name == "rate":
            row = object_id_of(request)
            rates = models.Rate.objects.order_by("name")
            kwargs["queryset"] = (
                rates.filter(**{f"center__{self.rows_of_center}": row})
                if row is not None
                else rates.none()
            )
        return super().formfield_for_foreignkey(db_field, request, **kwargs)
