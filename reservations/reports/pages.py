"""The pages of the reports, and their export as CSV and XLSX."""

from collections.abc import Callable
from http import HTTPStatus

from django.db import OperationalError
from django.http import Http404, HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.generic import RedirectView

from accounts import roles
from reservations.reports import discounts, month_end, outcomes, revenue, utilization
from reservations.reports.cube import Report, ReportTable
from reservations.reports.filters import ReportFilters
from reservations.reports.selection import ReportSelection, ReportTooLarge
from roombook.backoffice.pages import BackofficePages
from roombook.backoffice.spreadsheets import (
    Sheet,
    SheetColumn,
    download_csv,
    download_workbook,
    iterate_csv,
    write_workbook,
)
from roombook.db.replica import reads_from_replica

# By the end of the URL: the title, and the function that builds the report.
REPORTS: dict[str, tuple[str, Callable[[ReportSelection], Report]]] = {
    "revenue": ("Revenue", revenue.build_report),
    "month-end": ("Month's end", month_end.build_report),
    "utilization": ("Utilization", utilization.build_report),
    "cancellations": ("Cancellations and no-shows", outcomes.build_report),
    "discounts": ("Discounts", discounts.build_report),
}
# A limit of the XLSX format.
MAX_SHEET_NAME_LENGTH = 31
TIMEOUT_MESSAGE = "This takes too long for one report. Choose fewer days, or some centers."


class ReportPages(BackofficePages):
    """The pages of the reports."""

    pages = (
        ("reports/", "show_first", "reservations_reports", {"name": next(iter(REPORTS))}),
        ("reports/<slug:name>/", "show_report", "reservations_report"),
    )
    show_first = staticmethod(
        RedirectView.as_view(pattern_name="admin:reservations_report", query_string=True)
    )

    def show_report(self, request: HttpRequest, name: str) -> HttpResponseBase:
        """Show a report, or export it if the query has a format."""
        user = roles.require_permission(request, roles.SEE_REPORTS)
        if name not in REPORTS:
            raise Http404
        now = timezone.now()
        # A booking can move to a room of another type when its month is over.
        has_room_types = name != "month-end"
        filters = ReportFilters(
            request.GET, user=user, today=now.date(), has_room_types=has_room_types
        )
        title, build_report = REPORTS[name]
        report = None
        if filters.is_valid():
            try:
                report = reads_from_replica(build_report)(filters.selection)
            except ReportTooLarge as error:
                filters.add_error(None, str(error))
            except OperationalError as error:
                # The database cancels long queries (STATEMENT_TIMEOUT).
                if "statement timeout" not in str(error):
                    raise
                filters.add_error(None, TIMEOUT_MESSAGE)
        if report is not None and request.GET.get("format"):
            period = filters.cleaned_data["period"]
            response = _export(request.GET, report, title, filters, f"{period.label}-{name}")
            if response is not None:
                return response
            filters.add_error(None, "The format is csv, with the name of a table, or xlsx.")
        context = {
            "title": f"Reports: {title}",
            "report": None if filters.errors else report,
            "filters": filters,
            "name": name,
            "tabs": [(key, title) for key, (title, _) in REPORTS.items()],
            "period": filters.cleaned_data.get("period"),
            "shortcuts": filters.get_shortcuts(),
            "media": filters.media,
        }
        status = HTTPStatus.BAD_REQUEST if filters.errors else HTTPStatus.OK
        return self.render(request, "admin/reservations/report.html", context, status=status)


def _export(
    query: QueryDict, report: Report, title: str, filters: ReportFilters, file_name: str
) -> HttpResponseBase | None:
    """The file that the query asks for, or None if there is no such file."""
    tables = {table.key: table for table in report.tables}
    if query["format"] == "xlsx":
        about = [*filters.describe(), ("What is counted", report.description)]
        columns = [SheetColumn("Report", 20), SheetColumn(title, 100)]
        sheets = [Sheet("About", columns, about), *map(_build_sheet, report.tables)]
        return download_workbook(write_workbook(sheets), f"{file_name}.xlsx")
    if query["format"] == "csv" and (table := tables.get(query.get("table", ""))):
        total = [] if table.total is None else [table.total]
        rows = map(table.get_cells, [*table.rows, *total])
        lines = iterate_csv([column.name for column in table.columns], rows)
        return download_csv(lines, f"{file_name}-{table.key}.csv")
    return None


def _build_sheet(table: ReportTable) -> Sheet:
    columns = [
        SheetColumn(each.name, 14 if each.format.is_number else 28, each.format.number_format)
        for each in table.columns
    ]
    total = table.get_cells(table.total) if table.total else ()
    rows = map(table.get_cells, table.rows)
    return Sheet(table.title[:MAX_SHEET_NAME_LENGTH], columns, rows, total)
