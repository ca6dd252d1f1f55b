import sys
from argparse import ArgumentParser
from html import unescape
from pathlib import Path

from django.core.exceptions import NON_FIELD_ERRORS
from django.core.management.base import BaseCommand, CommandError
from django.utils.html import strip_tags
from django.utils.safestring import SafeString

from roombook.backoffice.spreadsheets import InvalidFile
from roombook.imports.resources import RESOURCES
from roombook.imports.results import ImportRefused, ImportResult

MAX_DISPLAYED_ERRORS = 100


class Command(BaseCommand):
    help = (
        "Import centers, or with --what their rooms, rates and so on, from a CSV or XLSX file: all"
        " rows or, if one is wrong, none; what exists already is left alone, so that it is safe to"
        " run twice; exits with 1 on errors, which are reported by row and column."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="The file; - is standard input.")
        parser.add_argument(
            "--what", choices=list(RESOURCES), default="centers", help="Default: centers."
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Check and report, and write nothing."
        )

    def handle(self, *, file: str, what: str, dry_run: bool, **options: object) -> None:
        resource = RESOURCES[what]()
        try:
            table = resource.read_file(read_file(file))
            result = resource.import_data(table, dry_run, file_name=Path(file).name)
        except InvalidFile as error:
            raise CommandError(str(error)) from error
        except ImportRefused as refused:
            raise CommandError(f"Nothing was written. {refused}") from refused
        if result.has_validation_errors():
            self._report_errors(result)
            raise CommandError(f"Nothing was written. {result.summary}.")
        for row in result.rows:
            for column, note in row.notes:
                # Notes with links are HTML.
                text = unescape(strip_tags(note)) if isinstance(note, SafeString) else note
                self.stdout.write(f"Row {row.number}, {column}: {text}")
        if losses := result.describe_losses(resource.singular):
            self.stdout.write(f"{losses}.")
        done = (
            "Nothing was written: --dry-run." if dry_run else f"Imported {what.replace('-', ' ')}:"
        )
        self.stdout.write(f"{done} {result.summary}.")

    def _report_errors(self, result: ImportResult) -> None:
        for row in result.invalid_rows[:MAX_DISPLAYED_ERRORS]:
            for column, messages in row.error_dict.items():
                cell = f"Row {row.number}" + ("" if column == NON_FIELD_ERRORS else f", {column}")
                for message in messages:
                    self.stderr.write(f"{cell}: {message}")
        more = result.totals["invalid"] - MAX_DISPLAYED_ERRORS
        if more > 0:
            self.stderr.write(f"and {more:,} more rows")


def read_file(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}.") from error
