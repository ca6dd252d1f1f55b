from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from roombook.backoffice.spreadsheets import Sheet, iterate_csv, write_workbook
from roombook.imports.resources import RESOURCES


class Command(BaseCommand):
    help = (
        "Export all centers, or with --what their rooms, rates and so on, as CSV, or as a workbook"
        " if the file is called .xlsx; text that a spreadsheet would run gets an apostrophe, and"
        " import_centers takes the file as it is."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", nargs="?", default="-", help="Default: standard output."
        )
        parser.add_argument(
            "--what", choices=list(RESOURCES), default="centers", help="Default: centers."
        )

    def handle(self, *, file: str, what: str, **options: object) -> None:
        resource = RESOURCES[what]()
        table = resource.export()
        lines = iterate_csv(table.headers, table)
        if file == "-":
            for line in lines:
                self.stdout.write(line, ending="")
            return
        if file.lower().endswith(".xlsx"):
            with write_workbook([Sheet(what, resource.get_sheet_columns(), table)]) as book:
                content = book.read()
        else:
            content = "".join(lines).encode()
        try:
            Path(file).write_bytes(content)
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}.") from error
        self.stdout.write(f"Exported {len(table):,} {what.replace('-', ' ')} to {file}.")
