"""What the admin pages of centers and of their rooms, rates and services have in common."""

from typing import Any
from zoneinfo import ZoneInfo

from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.db.models import ForeignKey, Model, Q, QuerySet
from django.db.models.fields.files import FieldFile
from django.forms import ModelChoiceField
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html

from accounts import roles
from accounts.admin.center_scope import CenterScopedMixin
from centers import models
from centers.search.words import split_words
from roombook.backoffice.concurrent_edits import CachedChoiceField
from roombook.backoffice.pagination import CappedPaginator
from roombook.backoffice.typing_bases import InlineAdminBase, ModelAdminBase
from roombook.ids import parse_id
from roombook.texts import clean_line

# Groups the rows of each center, in the order of an index.
CENTER_ORDERING = ("center_id", "name", "pk")

MAX_SEARCH_WORDS = 8


def render_thumbnail(file: FieldFile) -> str:
    return format_html('<img src="{}" alt="Preview" height="80">', file.url) if file else "-"


def get_object_id(request: HttpRequest) -> int | None:
    """The id of the row that a change page shows; None on an add page."""
    match = request.resolver_match
    return parse_id(match.kwargs.get("object_id") if match else None)


def get_center_zone(pk: str | None) -> ZoneInfo | None:
    """The time zone of a center, by the id in a request."""
    center = models.Center.objects.filter(pk=parse_id(pk) or 0).first()
    return center.zone if center else None


def search_rows_and_centers(rows: QuerySet[Any], text: str, *, column: str) -> QuerySet[Any]:
    """The rows whose column, or whose center, contains the words.

    The first or the last words may belong to the row, and the others to its center ("aspen
    denver"). Each possible split is a query of its own, because only then an index can be used.
    Each finds as many rows as a list shows at most.
    """
    words = text.split()[:MAX_SEARCH_WORDS]
    if not words:
        return rows

    def in_column(part: list[str]) -> Q:
        return Q(*(Q(**{f"{column}__icontains": word}) for word in part))

    def in_center(part: list[str]) -> Q:
        centers = models.Center.objects.containing_words(split_words(" ".join(part)))
        return Q(center__in=centers)

    conditions = [in_column(words), in_center(words)]
    for cut in range(1, len(words)):
        conditions += [
            in_column(words[:cut]) & in_center(words[cut:]),
            in_column(words[cut:]) & in_center(words[:cut]),
        ]
    found: set[int] = set()
    for condition in conditions:
        ids = rows.filter(condition).order_by().values_list("pk", flat=True)
        found.update(ids[: CappedPaginator.MAX_ROWS])
    return rows.filter(pk__in=found)


class CenterSearchMixin(ModelAdminBase):
    """A ModelAdmin whose rows are found by a column of theirs, and by their center."""

    search_column = "name"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        words = clean_line(search_term)
        return search_rows_and_centers(queryset, words, column=self.search_column), False


class CenterChoicesMixin(InlineAdminBase):
    """Inlines of a center that choose among the center's own rates or rooms, or among types.

    These are few enough for a select box. They are read once for all rows of the inline.
    """

    center_choices: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: object
    ) -> ModelChoiceField | None:
        if db_field.name in (*self.center_choices, *self.choices):
            rows = db_field.related_model._default_manager.order_by("name")
            if db_field.name in self.center_choices:
                center = get_object_id(request)
                rows = rows.filter(center=center) if center is not None else rows.none()
            kwargs = {"queryset": rows, "form_class": CachedChoiceField, **kwargs}
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and isinstance(field.widget, RelatedFieldWidgetWrapper):
            # No links to add or change: the choices have their own tab or list.
            field.widget = field.widget.widget
        return field


class TimelineLinkMixin(CenterScopedMixin):
    """A ModelAdmin whose page links to the timeline, for staff who may view reservations."""

    change_form_template = "centers/timeline_link.html"
    timeline_label: str

    def get_timeline_url(self, obj: Any) -> str:
        raise NotImplementedError

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        obj: Model | None = kwargs.get("obj")
        if obj is not None and roles.has_permission(
            request.user, roles.VIEW_RESERVATION, self.get_center_id(obj)
        ):
            context["timeline_label"] = self.timeline_label
            context["timeline_url"] = self.get_timeline_url(obj)
        return super().render_change_form(request, context, *args, **kwargs)


class CenterRatesMixin(ModelAdminBase):
    """A ModelAdmin of rows that have a rate of their center.

    The choices are the rates of the center in the request, or of the row's center. A script loads
    those of another center while it is being selected.
    """

    # The relation from the center to these rows.
    rate_relation: str

    class Media:
        js = ["centers/rate_choices.js"]

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: object
    ) -> ModelChoiceField | None:
        if db_field.name != "rate":
            return super().formfield_for_foreignkey(db_field, request, **kwargs)
        permissions = ("centers.view_rate", "centers.change_rate")
        visible = models.Rate.objects.filter(
            roles.get_center_filter(request.user, permissions, "center")
        )
        query = request.POST if request.method == "POST" else request.GET
        center, row = parse_id(query.get("center")), get_object_id(request)
        rates = visible.none()
        if center is not None:
            rates = visible.filter(center=center)
        elif row is not None:
            rates = models.Rate.objects.filter(**{f"center__{self.rate_relation}": row})
        kwargs["queryset"] = rates.order_by("name")
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if field is not None:
            url = reverse("admin:centers_rate_choices")
            field.widget.attrs["data-choices-url"] = f"{url}?for={self.rate_relation}"
        return field
