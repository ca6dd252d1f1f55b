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
        # Under another name until it is complete.
        part = Path(f"{file}.part")
        try:
            if file.lower().endswith(".xlsx"):
                columns = resource.get_sheet_columns()
                with write_workbook([Sheet(what, columns, table)]) as book:
                    part.write_bytes(book.read())
            else:
                with part.open("w", encoding="utf-8", newline="") as out:
                    out.writelines(lines)
            part.replace(file)
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}.") from error
        finally:
            part.unlink(missing_ok=True)
        self.stdout.write(f"Exported {len(table):,} {what.replace('-', ' ')} to {file}.")
