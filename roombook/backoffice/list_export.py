"""Exports a list of the back office as a file, with its search, filters and order."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from roombook.backoffice.spreadsheets import (
    CellValue,
    Sheet,
    SheetColumn,
    download_csv,
    download_workbook,
    iterate_csv,
    write_workbook,
)
from roombook.backoffice.typing_bases import ModelAdminBase

logger = logging.getLogger(__name__)

MAX_ROWS = 20_000
BATCH_SIZE = 500
DATETIME_NUMBER_FORMAT = "yyyy-mm-dd hh:mm"


class ListExportMixin(ModelAdminBase):
    """A list that can be exported as CSV or .xlsx. Comes before ModelAdmin in the bases."""

    change_list_template = "backoffice/list_with_export.html"
    export_columns: Sequence[SheetColumn] = ()

    def get_export_columns(self) -> Sequence[SheetColumn]:
        return self.export_columns

    @property
    def export_name(self) -> str:
        """The name of the sheet, and the beginning of the name of the file."""
        return str(self.opts.verbose_name_plural)

    def get_export_row(self, row: Any) -> Sequence[CellValue]:
        """The cells of a row; times are local, without an offset."""
        raise NotImplementedError

    def get_export_rows(self, row: Any) -> Iterable[Sequence[CellValue]]:
        """The rows of the file for a row of the list: one, unless this is overridden."""
        return [self.get_export_row(row)]

    def iterate_export_rows(
        self, request: HttpRequest, rows: QuerySet[Any]
    ) -> Iterator[Sequence[CellValue]]:
        ids = list(rows.values_list("pk", flat=True))
        for first in range(0, len(ids), BATCH_SIZE):
            batch = ids[first : first + BATCH_SIZE]
            by_id = rows.order_by().in_bulk(batch)
            for pk in batch:
                if pk in by_id:
                    yield from self.get_export_rows(by_id[pk])

    def has_export_permission(self, request: HttpRequest) -> bool:
        return self.has_view_or_change_permission(request)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {"has_export_permission": self.has_export_permission(request)}
        return super().changelist_view(request, {**(extra_context or {}), **context})

    def get_urls(self) -> list[URLPattern]:
        url = path(
            "export/<slug:extension>/",
            self.admin_site.admin_view(self.export_view),
            name=f"{self.opts.app_label}_{self.opts.model_name}_list_export",
        )
        return [url, *super().get_urls()]

    def export_view(self, request: HttpRequest, extension: str) -> HttpResponseBase:
        """Send the rows of the list that the query selects."""
        if not self.has_export_permission(request):
            raise PermissionDenied
        if extension not in {"csv", "xlsx"}:
            raise Http404
        list_url = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")
        changelist: Any = self.get_changelist_instance(request)
        filtered_url = f"{list_url}?{request.GET.urlencode()}"
        if changelist.has_unreadable_filter:
            return redirect(filtered_url)
        rows = changelist.queryset
        if (count := rows.order_by()[: MAX_ROWS + 1].count()) > MAX_ROWS:
            text = f"At most {MAX_ROWS:,} rows can be exported. Filter the list for fewer rows."
            messages.error(request, text)
            return redirect(filtered_url)
        logger.info("%s exports %s %s", request.user.pk, count, self.export_name)
        cells = self.iterate_export_rows(request, rows)
        return self.send_file(f"{timezone.now():%Y-%m-%d}", extension, cells)

    def send_file(
        self, suffix: str, extension: str, cells: Iterable[Sequence[CellValue]]
    ) -> HttpResponseBase:
        """Send rows as CSV or .xlsx."""
        name, columns = self.export_name, self.get_export_columns()
        file_name = f"{name.replace(' ', '-')}-{suffix}.{extension}"
        if extension == "csv":
            header = [column.name for column in columns]
            return download_csv(iterate_csv(header, cells), file_name)
        book = write_workbook([Sheet(name, columns, cells)])
        return download_workbook(book, file_name)
