"""The pages of the reports, and their export as CSV and XLSX."""

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import urlencode

from django.contrib.admin import AdminSite
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
from reservations.admin.reports import discounts, outcomes, revenue, utilization
from reservations.admin.reports.filters import ReportFilters
from reservations.admin.reports.report import Report
from reservations.admin.reports.selection import ReportSelection, ReportTooLarge
from reservations.admin.reports.tables import render_csv, render_xlsx

# By the end of the URL: the title, and the function that builds the report.
REPORTS: dict[str, tuple[str, Callable[[ReportSelection], Report]]] = {
    "revenue": ("Revenue", revenue.build_report),
    "utilization": ("Utilization", utilization.build_report),
    "cancellations": ("Cancellations and no-shows", outcomes.build_report),
    "discounts": ("Discounts", discounts.build_report),
}
XLSX_CONTENT_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
# Query parameters that choose a file; the others select what the report covers.
EXPORT_PARAMETERS = ("format", "table")
TIMEOUT_MESSAGE = "This takes too long for one report. Choose fewer days, or some centers."


class ReportPages:
    """The pages of the reports on an admin site."""

    def __init__(self, site: AdminSite) -> None:
        self.site = site

    def urls(self) -> list[URLPattern]:
        view = self.site.admin_view
        return [
            path("reports/", view(self.redirect_to_first), name="reservations_reports"),
            path("reports/<slug:name>/", view(self.show_report), name="reservations_report"),
        ]

    def redirect_to_first(self, request: HttpRequest) -> HttpResponse:
        """Redirect to the first report, with the same query."""
        url = reverse("admin:reservations_report", args=[next(iter(REPORTS))])
        query = request.GET.urlencode()
        return HttpResponseRedirect(f"{url}?{query}" if query else url)

    def show_report(self, request: HttpRequest, name: str) -> HttpResponseBase:
        """Show a report, or export it if the query has a format."""
        user = roles.require_permission(request, roles.SEE_REPORTS)
        if name not in REPORTS:
            raise Http404
        now = timezone.now()
        filters = ReportFilters(request.GET, user=user, today=now.date())
        title, build_report = REPORTS[name]
        report = None
        if filters.is_valid():
            try:
                report = build_report(filters.selection)
            except ReportTooLarge as error:
                filters.add_error(None, str(error))
            except OperationalError as error:
                # The database cancels long queries (STATEMENT_TIMEOUT).
                if "statement timeout" not in str(error):
                    raise
                filters.add_error(None, TIMEOUT_MESSAGE)
        if report is not None and request.GET.get("format"):
            response = _export(request, report, title, filters, f"{now:%Y-%m-%d}-{name}")
            if response is not None:
                return response
            filters.add_error(None, "The format is csv, with the name of a table, or xlsx.")
        query = _build_query_without(request, *EXPORT_PARAMETERS)
        period = filters.cleaned_data.get("period")
        other_filters = _build_query_without(request, "since", "until", *EXPORT_PARAMETERS)
        context = {
            **self.site.each_context(request),
            "title": f"Reports: {title}",
            "report": None if filters.errors else report,
            "filters": filters,
            "query": query,
            "tabs": [
                (
                    title,
                    f"{reverse('admin:reservations_report', args=[key])}?{query}".rstrip("?&"),
                    key == name,
                )
                for key, (title, _) in REPORTS.items()
            ],
            "shortcuts": [
                (title, f"?{other_filters}since={each.first}&until={each.last}", each == period)
                for title, each in filters.get_shortcuts()
            ],
            "media": filters.media,
        }
        status = HTTPStatus.BAD_REQUEST if filters.errors else HTTPStatus.OK
        return TemplateResponse(request, "admin/reservations/report.html", context, status=status)


def _export(
    request: HttpRequest, report: Report, title: str, filters: ReportFilters, file_name: str
) -> HttpResponseBase | None:
    """The file that the query asks for, or None if there is no such file."""
    response: HttpResponseBase | None = None
    if request.GET["format"] == "xlsx":
        about = [*filters.describe(), ("What is counted", report.description)]
        content = render_xlsx(title, about, report.tables)
        response = HttpResponse(content, content_type=XLSX_CONTENT_TYPE)
        file_name += ".xlsx"
    elif request.GET["format"] == "csv":
        for table in report.tables:
            if table.key == request.GET.get("table"):
                response = StreamingHttpResponse(
                    render_csv(table), content_type="text/csv; charset=utf-8"
                )
                file_name += f"-{table.key}.csv"
    if response is not None:
        response["Content-Disposition"] = f'attachment; filename="{file_name}"'
    return response


def _build_query_without(request: HttpRequest, *names: str) -> str:
    """The query of the request without some parameters, ready to be appended to."""
    kept = [
        (key, value) for key, values in request.GET.lists() for value in values if key not in names
    ]
    return f"{urlencode(kept)}&" if kept else ""
