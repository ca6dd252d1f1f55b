"""What the admin pages of centers and of their rooms, rates and services have in common."""

from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Model, Q, QuerySet
from django.db.models.fields.files import FieldFile
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from accounts import roles
from accounts.admin.center_scope import CenterScopedMixin
from centers import models
from centers.search import split_words
from roombook.backoffice.pagination import CappedPaginator, PaginatedInlineFormSet
from roombook.backoffice.typing_bases import ModelAdminBase
from roombook.ids import parse_id
from roombook.texts import fold_name

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

    def search(self, request: HttpRequest, rows: QuerySet[Any], words: str) -> QuerySet[Any]:
        return search_rows_and_centers(rows, words, column=self.search_column)


class FixedCenterMixin(CenterScopedMixin):
    """A ModelAdmin whose rows stay at their center, because other rows of it refer to them."""

    def get_form(self, request: HttpRequest, obj: Any = None, *args: Any, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, *args, **kwargs)
        if obj is not None and "center" in form.base_fields:
            # Of a read-only field, the form would not check that names are unique at the center.
            form.base_fields["center"].disabled = True
        return form


class NamedRowsFormSet(PaginatedInlineFormSet):
    """Rows with names of their own: each form alone compares its name with stored rows only."""

    def clean(self) -> None:
        super().clean()
        names: set[str] = set()
        for form in self.forms:
            data = getattr(form, "cleaned_data", None) or {}
            name = "" if data.get("DELETE") else fold_name(data.get("name") or "")
            if name and name in names:
                form.add_error("name", "Another row here has this name.")
            names.add(name)


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
