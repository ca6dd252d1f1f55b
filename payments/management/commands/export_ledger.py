"""Writes the ledger as a file for accountants."""

import shutil
from argparse import ArgumentParser
from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q

from payments.gateways import get_current_gateway
from payments.models import LedgerLine
from payments.statements import COLUMNS, build_row, render_journal
from roombook.backoffice.spreadsheets import Sheet, SheetColumn, iterate_csv, write_workbook

JOURNALS = ("hledger", "beancount")


class Command(BaseCommand):
    help = "Write the ledger to a file, for spreadsheets or for hledger and beancount."

    def add_arguments(self, parser: ArgumentParser) -> None:
        formats = ("csv", "xlsx", *JOURNALS)
        parser.add_argument("file", type=Path, help="The file to be written")
        parser.add_argument("--format", choices=formats, required=True)
        day = date.fromisoformat
        parser.add_argument("--from", dest="since", type=day, default=date.min, help="First day")
        parser.add_argument("--to", dest="until", type=day, default=date.max, help="Last day")
        parser.add_argument("--center", type=int, help="The id of a center")

    def handle(self, *args: Any, **options: Any) -> None:
        name, since, until = options["format"], options["since"], options["until"]
        # What was deferred before these days can count in them.
        is_late_enough = Q(day__gte=since)
        if name in JOURNALS:
            is_late_enough |= Q(recognized_on__gte=since)
        # As in reports: a deployment with a live gateway keeps test payments apart.
        is_test = not get_current_gateway().is_live
        rows = LedgerLine.objects.filter(is_late_enough, is_test=is_test, day__lte=until)
        if options["center"] is not None:
            rows = rows.filter(center=options["center"])
        lines = rows.select_related("center").order_by("day", "pk").iterator(chunk_size=2000)
        try:
            if name == "xlsx":
                columns = [SheetColumn(column, 16) for column in COLUMNS]
                sheet = Sheet("Ledger", columns, map(build_row, lines))
                with write_workbook([sheet]) as book, options["file"].open("wb") as file:
                    shutil.copyfileobj(book, file)
                return
            texts = (
                render_journal(lines, since, until, is_beancount=name == "beancount")
                if name in JOURNALS
                else iterate_csv(COLUMNS, map(build_row, lines))
            )
            with options["file"].open("w", encoding="utf-8", newline="") as file:
                file.writelines(texts)
        except OSError as error:
            raise CommandError(f"The file cannot be written: {error}") from error
