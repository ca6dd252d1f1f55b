from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from roombook.backoffice.spreadsheets import InvalidFile
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
        if file == "-":
            for line in RESOURCES[what]().export_csv():
                self.stdout.write(line, ending="")
            return
        resource = RESOURCES[what](report_progress=self._report_progress)
        # Under another name until it is complete.
        part = Path(f"{file}.part")
        try:
            if file.lower().endswith(".xlsx"):
                with resource.export_workbook() as book:
                    part.write_bytes(book.read())
            else:
                with part.open("w", encoding="utf-8", newline="") as out:
                    out.writelines(resource.export_csv())
            part.replace(file)
        except InvalidFile as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}.") from error
        finally:
            part.unlink(missing_ok=True)
        name = what.replace("-", " ")
        self.stdout.write(f"Exported {resource.exported_count:,} {name} to {file}.")

    def _report_progress(self, rows: int) -> None:
        if rows % 1000 == 0:
            self.stdout.write(f"{rows:,} rows")
