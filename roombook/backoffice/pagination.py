"""Pages of lists and inlines, for tables of any size."""

from typing import Any

from django.contrib import messages
from django.contrib.admin import SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from unfold.contrib.filters.admin import RangeDateFilter
from unfold.forms import PaginationInlineFormSet
from unfold.views import ChangeList

from roombook.backoffice.widgets import parse_day
from roombook.ids import parse_id


class CappedPaginator(Paginator):
    """Shows only the first rows: counting a million rows takes longer than reading a page.

    To find rows beyond the cap, staff search or filter.
    """

    MAX_ROWS = 5_000

    @cached_property
    def _counted_ids(self) -> Any:
        """The ids of the rows up to the cap, or the rows themselves if they are already loaded."""
        rows = self.object_list
        if not isinstance(rows, QuerySet):
            return rows
        return list(rows.order_by().values_list("pk", flat=True)[: self.MAX_ROWS])

    @cached_property
    def count(self) -> int:
        return len(self._counted_ids)

    def page(self, number: int | str) -> Page:
        """Select by ids when all of them are known.

        Sorting the rows of a few centers is faster than walking an index by time through a million
        rows of all centers.
        """
        rows = self.object_list
        if isinstance(rows, QuerySet) and not self.is_capped:
            self.object_list = rows.filter(pk__in=self._counted_ids)
        return super().page(number)

    @property
    def is_capped(self) -> bool:
        return self.count >= self.MAX_ROWS


class BackofficeChangeList(ChangeList):
    """Shows the number of results only if the list is searched or filtered.

    If a filter cannot be read, nothing is listed: all rows would look like the answer.
    """

    has_unreadable_filter = False
    # Without a value if the parameters cannot be read.
    filter_specs: Any = ()

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> QuerySet[Any]:
        try:
            rows: QuerySet[Any] = super().get_queryset(request, *args, **kwargs)
            is_readable = all(map(_is_readable, self.filter_specs))
        except IncorrectLookupParameters:
            rows, is_readable = self.root_queryset, False
        if is_readable:
            return rows
        self.has_unreadable_filter = True
        text = "A filter cannot be read, so nothing is listed. A day is entered as 2027-03-15."
        messages.error(request, text)
        return rows.none()

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not (self.query or self.filter_params):
            self.full_result_count = self.result_count
        # The queryset keeps these rows in its cache: an editable list needs a queryset.
        self.model_admin.annotate_page(request, list(self.result_list))


def _is_readable(spec: Any) -> bool:
    """Return whether the value of a filter is a day, or one of its choices."""
    if isinstance(spec, RangeDateFilter):
        return all(map(parse_day, filter(None, spec.used_parameters.values())))
    if isinstance(spec, SimpleListFilter):
        known = {"", "None", *(str(value) for value, _ in spec.lookup_choices)}
        return str(spec.value()) in known | getattr(spec, "unlisted_values", set())
    return True


class PaginatedInlineFormSet(PaginationInlineFormSet):
    """The rows of an inline, in pages of ``per_page`` rows if that is set."""

    def get_page_num(self) -> int:
        # The theme's own method raises an error if the page is not a number.
        key = self.get_pagination_key()
        page = self.request and (self.request.GET.get(key) or self.request.POST.get(key))
        return parse_id(page) or 1
