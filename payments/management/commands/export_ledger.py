"""Writes the ledger as a file for accountants."""

import shutil
from argparse import ArgumentParser
from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from payments.gateways import get_current_gateway
from payments.models import LedgerLine
from payments.statements import COLUMNS, build_row, render_journal
from roombook.backoffice.spreadsheets import Sheet, SheetColumn, iterate_csv, write_workbook


class Command(BaseCommand):
    help = "Write the ledger to a file, for spreadsheets or for hledger and beancount."

    def add_arguments(self, parser: ArgumentParser) -> None:
        formats = ("csv", "xlsx", "hledger", "beancount")
        parser.add_argument("file", type=Path, help="The file to be written")
        parser.add_argument("--format", choices=formats, required=True)
        parser.add_argument("--from", dest="since", type=date.fromisoformat, help="The first day")
        parser.add_argument("--to", dest="until", type=date.fromisoformat, help="The last day")
        parser.add_argument("--center", type=int, help="The id of a center")

    def handle(self, *args: Any, **options: Any) -> None:
        # As in reports: a deployment with a live gateway keeps test payments apart.
        rows = LedgerLine.objects.filter(is_test=not get_current_gateway().is_live)
        rows = rows.select_related("center").order_by("day", "pk")
        wanted = {
            "day__gte": options["since"],
            "day__lte": options["until"],
            "center": options["center"],
        }
        lines = rows.filter(**{name: value for name, value in wanted.items() if value is not None})
        try:
            self._write(options["file"], options["format"], lines.iterator(chunk_size=2000))
        except OSError as error:
            raise CommandError(f"The file cannot be written: {error}") from error

    def _write(self, path: Path, name: str, lines: Any) -> None:
        if name == "xlsx":
            columns = [SheetColumn(column, 16) for column in COLUMNS]
            sheet = Sheet("Ledger", columns, map(build_row, lines))
            with write_workbook([sheet]) as book, path.open("wb") as file:
                shutil.copyfileobj(book, file)
            return
        with path.open("w", encoding="utf-8", newline="") as file:
            if name == "csv":
                file.writelines(iterate_csv(COLUMNS, map(build_row, lines)))
            else:
                file.writelines(render_journal(lines, is_beancount=name == "beancount"))
