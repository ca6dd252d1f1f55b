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
from centers.search.locations import split_words
from roombook.backoffice.concurrent_edits import CachedChoiceField
from roombook.backoffice.model_admin import CappedPaginator
from roombook.backoffice.typing_bases import InlineAdminBase, ModelAdminBase
from roombook.ids import parse_id

# Who may see these may see the timeline.
VIEW_RESERVATIONS_PERMISSION = "reservations.view_reservation"

# Rows of one center stand together, and an index has them in this order.
CENTER_ORDERING = ("center_id", "name", "pk")


def render_thumbnail(file: FieldFile) -> str:
    """A stored picture in small."""
    return format_html('<img src="{}" alt="" height="80">', file.url) if file else "-"


def get_object_id(request: HttpRequest) -> int | None:
    """The row that a change page is about, by its address; None while adding one."""
    match = request.resolver_match
    return parse_id(match.kwargs.get("object_id") if match else None)


def get_center_zone(pk: str | None) -> ZoneInfo | None:
    """The time zone of a center by its id as a page has it."""
    center = models.Center.objects.filter(pk=parse_id(pk) or 0).first()
    return center.zone if center else None


def search_rows_and_centers(
    rows: QuerySet[Any], text: str, *, column: str = "name"
) -> QuerySet[Any]:
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
        return Q(center__in=models.Center.objects.containing_words(split_words(" ".join(part))))

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


class CenterChoicesMixin(InlineAdminBase):
    """Inlines of a center whose choices (rates, rooms) are the center's own: few enough to list.

    Types are few as well. Either are read once for all rows.
    """

    center_choices: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        if db_field.name in (*self.center_choices, *self.choices):
            listed = db_field.related_model._default_manager.order_by("name")
            if db_field.name in self.center_choices:
                center = get_object_id(request)
                listed = listed.filter(center=center) if center is not None else listed.none()
            kwargs = {"queryset": listed, "form_class": CachedChoiceField, **kwargs}
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and isinstance(field.widget, RelatedFieldWidgetWrapper):
            # What can be chosen has a tab or a list of its own.
            field.widget = field.widget.widget
        return field


class TimelineLinkMixin(ModelAdminBase):
    """A ModelAdmin of what the timeline shows: its page leads there whoever may see bookings."""

    change_form_template = "centers/on_timeline.html"
    timeline_label: str

    def get_timeline_url(self, obj: Any) -> str:
        raise NotImplementedError

    def get_center_id(self, obj: Any) -> int:
        raise NotImplementedError

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        obj = kwargs.get("obj")
        if obj is not None and roles.has_permission(
            request.user, VIEW_RESERVATIONS_PERMISSION, self.get_center_id(obj)
        ):
            context["timeline_label"] = self.timeline_label
            context["timeline_url"] = self.get_timeline_url(obj)
        return super().render_change_form(request, context, *args, **kwargs)


class CenterRatesMixin(ModelAdminBase):
    """A ModelAdmin of rows that take one of their center's rates, chosen after the first save."""

    # How rates are led to such a row.
    rate_relation: str

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        if db_field.name == "rate":
            row = get_object_id(request)
            rates = models.Rate.objects.order_by("name")
            kwargs["queryset"] = (
                rates.filter(**{f"center__{self.rate_relation}": row})
                if row is not None
                else rates.none()
            )
        return super().formfield_for_foreignkey(db_field, request, **kwargs)
