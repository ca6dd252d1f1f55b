"""The pages of the reports: figures on screen, and the same as CSV and XLSX."""

import datetime as dt
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from accounts import roles
from accounts.models import User
from reservations.admin.reports.filters import SEE, ReportFilters
from reservations.admin.reports.report_tables import REPORTS
from reservations.admin.reports.selection import ReportTooLarge
from reservations.admin.reports.tables import ReportExport, render_csv, render_xlsx

XLSX_CONTENT_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
# What of an address is the file that is wanted, and not the selection.
EXPORT_PARAMETERS = ("format", "table")
TIMEOUT_MESSAGE = "This takes too long for one report. Choose fewer days, or some centers."


class ReportPages:
    """The reports under their addresses, on a site of the admin."""

    def __init__(self, site: AdminSite) -> None:
        self.site = site

    def urls(self) -> list[URLPattern]:
        return [
            path("reports/", self.site.admin_view(self.first), name="reservations_reports"),
            path(
                "reports/<slug:name>/", self.site.admin_view(self.page), name="reservations_report"
            ),
        ]

    def first(self, request: HttpRequest) -> HttpResponse:
        """To the first of the reports, with what was asked for."""
        address = reverse("admin:reservations_report", args=[next(iter(REPORTS))])
        asked = request.GET.urlencode()
        return HttpResponseRedirect(f"{address}?{asked}" if asked else address)

    def page(self, request: HttpRequest, name: str) -> HttpResponseBase:
        if not roles.has_permission(request.user, SEE):
            raise PermissionDenied
        if name not in REPORTS:
            raise Http404
        assert isinstance(request.user, User)
        now = timezone.now()
        filters = ReportFilters(request.GET, user=request.user, today=now.date())
        title, make = REPORTS[name]
        report = None
        if filters.is_valid():
            try:
                report = make(filters.selection)
            except ReportTooLarge as error:
                filters.add_error(None, str(error))
            except OperationalError as error:
                # The database lets no question keep it busy for long (STATEMENT_TIMEOUT).
                if "statement timeout" not in str(error):
                    raise
                filters.add_error(None, TIMEOUT_MESSAGE)
        if report is not None and (wanted := request.GET.get("format")):
            book = ReportExport(
                title, [*filters.about, ("What is counted", report.what)], report.tables
            )
            answer = _export(book, wanted, request.GET.get("table"), name, now)
            if answer is not None:
                return answer
            filters.add_error(None, "The format is csv, with the name of a table, or xlsx.")
        context = {
            **self.site.each_context(request),
            "title": f"Reports: {title}",
            "report": None if filters.errors else report,
            "filters": filters,
            "selection": _build_query_without(request, *EXPORT_PARAMETERS),
            "tabs": _build_tabs(request, name),
            "shortcuts": _build_shortcuts(request, filters),
            "media": filters.media,
        }
        status = HTTPStatus.BAD_REQUEST if filters.errors else HTTPStatus.OK
        return TemplateResponse(request, "office/report.html", context, status=status)


def _export(
    book: ReportExport, wanted: str, table: str | None, name: str, now: dt.datetime
) -> HttpResponseBase | None:
    """The file that is wanted, or nothing where there is no such file."""
    if wanted == "xlsx":
        answer: HttpResponseBase = HttpResponse(render_xlsx(book), content_type=XLSX_CONTENT_TYPE)
        file_name = f"{name}.xlsx"
    elif wanted == "csv" and (found := book.table(table)) is not None:
        answer = StreamingHttpResponse(render_csv(found), content_type="text/csv; charset=utf-8")
        file_name = f"{name}-{found.key}.csv"
    else:
        return None
    answer["Content-Disposition"] = f'attachment; filename="{now:%Y-%m-%d}-{file_name}"'
    return answer


def _build_query_without(request: HttpRequest, *names: str) -> str:
    """The address's parameters but for these, ready to be added to."""
    left = [(key, each) for key, each in _get_query_pairs(request) if key not in names]
    return f"{urlencode(left)}&" if left else ""


def _get_query_pairs(request: HttpRequest) -> list[tuple[str, str]]:
    return [(key, each) for key, values in request.GET.lists() for each in values]


def _build_tabs(request: HttpRequest, current: str) -> list[dict[str, Any]]:
    """The reports, each for the same selection."""
    asked = _build_query_without(request, *EXPORT_PARAMETERS)
    return [
        {
            "title": title,
            "address": f"{reverse('admin:reservations_report', args=[name])}?{asked}".rstrip("?&"),
            "is_current": name == current,
        }
        for name, (title, _) in REPORTS.items()
    ]


def _build_shortcuts(request: HttpRequest, filters: ReportFilters) -> list[dict[str, Any]]:
    others = _build_query_without(request, "since", "until", *EXPORT_PARAMETERS)
    current = filters.cleaned_data.get("period")
    return [
        {
            "title": title,
            "address": f"?{others}since={period.first}&until={period.last}",
            "is_current": period == current,
        }
        for title, period in filters.shortcuts()
    ]
