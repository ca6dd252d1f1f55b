"""The search in the head of every page (Ctrl+K), over pages and over the rows of some lists.

It finds what the search of each list finds, so only what the user may see. Settings name the lists
(``UNFOLD["COMMAND"]["search_models"]``).
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.http import HttpRequest
from django.urls import reverse
from unfold.dataclasses import SearchResult
from unfold.settings import get_config
from unfold.sites import UnfoldAdminSite

from roombook.backoffice.model_admin import ModelAdmin

MAX_RESULTS_OF_LIST = 6
MAX_COUNT = 1_000
MAX_TERM_LENGTH = 200


def search(site: UnfoldAdminSite, request: HttpRequest) -> list[SearchResult]:
    """The results of the request's term (parameter ``s``); pages come last."""
    # No stored text contains NUL, and PostgreSQL accepts none.
    term = request.GET.get("s", "")[:MAX_TERM_LENGTH].replace("\x00", "").strip()
    if not term:
        return []
    results: list[SearchResult] = []
    for label in get_config()["COMMAND"]["search_models"]:
        model_admin: Any = site.get_model_admin(apps.get_model(label))
        if model_admin.has_view_or_change_permission(request):
            results += _search_list(model_admin, request, term)
    for group in site.get_sidebar_list(request):
        for page in group["items"]:
            if page["has_permission"] and term.casefold() in page["title"].casefold():
                results.append(SearchResult(page["title"], "Page", page["link"], page["icon"]))
    return results


def _search_list(
    model_admin: ModelAdmin, request: HttpRequest, term: str
) -> Iterator[SearchResult]:
    rows, may_have_duplicates = model_admin.get_search_results(
        request, model_admin.get_queryset(request), term
    )
    related = model_admin.get_list_select_related(request)
    if isinstance(related, tuple):
        rows = rows.select_related(*related)
    if may_have_duplicates:
        rows = rows.distinct()
    page = f"admin:{model_admin.opts.app_label}_{model_admin.opts.model_name}_change"
    for row in rows[:MAX_RESULTS_OF_LIST]:
        yield SearchResult(
            title=model_admin.get_result_title(row),
            description=model_admin.get_result_description(row),
            link=reverse(page, args=[row.pk]),
            icon=model_admin.result_icon,
        )
    if (count := rows.order_by()[:MAX_COUNT].count()) > MAX_RESULTS_OF_LIST:
        total = f"{count} or more" if count == MAX_COUNT else count
        yield SearchResult(
            title=f"{MAX_RESULTS_OF_LIST} of {total} {model_admin.opts.verbose_name_plural}",
            description="Show all",
            link=f"{reverse(f'{page}list')}?{urlencode({'q': term})}",
            icon="list",
        )
