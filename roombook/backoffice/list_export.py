"""Exports a list of the back office as a file, with its search, filters and order."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from roombook.backoffice.spreadsheets import (
    CellValue,
    InvalidFile,
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
    export_columns: tuple[SheetColumn, ...]

    def get_export_row(self, row: Any) -> Sequence[CellValue]:
        """The cells of a row; times are local, without an offset."""
        raise NotImplementedError

    def get_urls(self) -> list[URLPattern]:
        url = path(
            "export/<slug:extension>/",
            self.admin_site.admin_view(self.export_view),
            name=f"{self.opts.app_label}_{self.opts.model_name}_list_export",
        )
        return [url, *super().get_urls()]

    def export_view(self, request: HttpRequest, extension: str) -> HttpResponseBase:
        """Send the rows of the list that the query selects."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        if extension not in {"csv", "xlsx"}:
            raise Http404
        list_url = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")
        try:
            changelist: Any = self.get_changelist_instance(request)
        except IncorrectLookupParameters:
            return redirect(list_url)
        if changelist.has_unreadable_filter:
            return redirect(f"{list_url}?{request.GET.urlencode()}")
        rows = changelist.queryset
        ids = list(rows.values_list("pk", flat=True)[: MAX_ROWS + 1])
        if len(ids) > MAX_ROWS:
            text = f"At most {MAX_ROWS:,} rows can be exported. Filter the list for fewer rows."
            messages.error(request, text)
            return redirect(f"{list_url}?{request.GET.urlencode()}")

        def iterate_rows() -> Iterator[Sequence[CellValue]]:
            for first in range(0, len(ids), BATCH_SIZE):
                batch = ids[first : first + BATCH_SIZE]
                by_id = rows.order_by().in_bulk(batch)
                for pk in batch:
                    if pk in by_id:
                        yield self.get_export_row(by_id[pk])

        name = str(self.opts.verbose_name_plural)
        logger.info("%s exports %s %s", request.user.pk, len(ids), name)
        file_name = f"{name.replace(' ', '-')}-{timezone.now():%Y-%m-%d}.{extension}"
        if extension == "csv":
            header = [column.name for column in self.export_columns]
            return download_csv(iterate_csv(header, iterate_rows()), file_name)
        try:
            book = write_workbook([Sheet(name, self.export_columns, iterate_rows())])
        except InvalidFile as error:
            messages.error(request, str(error))
            return redirect(f"{list_url}?{request.GET.urlencode()}")
        return download_workbook(book, file_name)
