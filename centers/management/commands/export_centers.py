from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from roombook.imports.exporting import Export
from roombook.imports.files import InvalidFile
from roombook.imports.sheet import RESOURCES


class Command(BaseCommand):
    help = (
        "Export all centers, or with --what their rooms, rates and so on, as CSV, or as a workbook"
        " where the file is called .xlsx; text that a spreadsheet would run gets an apostrophe,"
        " and import_centers takes the file as it is."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", nargs="?", default="-", help="Default: standard output."
        )
        parser.add_argument(
            "--what", choices=list(RESOURCES), default="centers", help="Default: centers."
        )

    def handle(self, *, file: str, what: str, **options: Any) -> None:
        sheet = RESOURCES[what]()
        if file == "-":
            for line in Export(sheet).csv():
                self.stdout.write(line, ending="")
            return
        export = Export(sheet, tell=self._tell)
        # Under another name until it is whole.
        part = Path(f"{file}.part")
        try:
            if file.lower().endswith(".xlsx"):
                with export.xlsx() as book:
                    part.write_bytes(book.read())
            else:
                with part.open("w", encoding="utf-8", newline="") as out:
                    out.writelines(export.csv())
            part.replace(file)
        except InvalidFile as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}.") from error
        finally:
            part.unlink(missing_ok=True)
        self.stdout.write(f"Exported {export.count:,} {sheet.plural()} to {file}.")

    def _tell(self, rows: int) -> None:
        if rows % 1000 == 0:
            self.stdout.write(f"{rows:,} rows")
