"""Files to import, for tests."""

import csv
import datetime as dt
import io
import re

import openpyxl
from django.core.exceptions import NON_FIELD_ERRORS
from django.core.files.uploadedfile import SimpleUploadedFile

from centers.models import ResourceType
from roombook.backoffice.spreadsheets import Sheet, iterate_csv, write_workbook
from roombook.imports.resources import RESOURCES
from tests.factories_centers import ResourceTypeFactory

NOON = dt.datetime(2026, 11, 2, 12, tzinfo=dt.UTC)

# The lists that are imported and exported: whether their rows belong to centers.
LISTS = {
    "centers/center": True,
    "centers/meetingroom": True,
    "centers/rate": True,
    "centers/pricelist": True,
    "centers/terms": True,
    "centers/service": True,
    "centers/closure": True,
    "centers/resourcetype": False,
    "reservations/promocode": False,
    "reservations/allowance": False,
}

OMAHA = {
    "name": "Old Market",
    "street1": "1001 Howard Street",
    "city": "Omaha",
    "state": "Nebraska",
    "country": "USA",
    "latitude": "41.2565",
    "longitude": "-95.9345",
    "mon": "08:00-12:30, 14:00-24:00",
    "sun": "closed",
    "tax_rate": "5.5",
    "prices_include_tax": "yes",
}


def build_csv(*rows, delimiter=","):
    """CSV of rows, each a list, or all of them dicts with one set of names."""
    if isinstance(rows[0], dict):
        rows = [list(rows[0]), *(list(row.values()) for row in rows)]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    return out.getvalue().encode()


def build_workbook(*rows, sheet="Sheet1", more=(), merged=()):
    book = openpyxl.Workbook()
    book.active.title = sheet
    for row in rows:
        book.active.append(list(row))
    for name in more:
        book.create_sheet(name)
    for cells in merged:
        book.active.merge_cells(cells)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def check(name, content, user=None):
    """The resource, and what the file would do."""
    resource = RESOURCES[name](user)
    resource.table = resource.read_file(content)
    return resource, resource.import_data(resource.table, dry_run=True)


def get_errors(name, content, user=None):
    """(row, column, message) of everything that is wrong."""
    _, result = check(name, content, user)
    return [
        (row.number, "" if column == NON_FIELD_ERRORS else column, message)
        for row in result.invalid_rows
        for column, messages in row.error_dict.items()
        for message in messages
    ]


def save(resource, result):
    """Confirm what was checked."""
    again = type(resource)(resource.user)
    return again.import_data(resource.table, digest=result.digest, file_name="rows.csv")


def load(name, content, user=None):
    """Write a file; the counts."""
    resource = RESOURCES[name](user)
    table = resource.read_file(content)
    return get_counts(resource.import_data(table, file_name="rows.csv"))


def export_csv(name):
    table = RESOURCES[name]().export()
    return "".join(iterate_csv(table.headers, table))


def export_workbook(name):
    resource = RESOURCES[name]()
    sheet = Sheet(name, resource.get_sheet_columns(), resource.export())
    with write_workbook([sheet]) as book:
        return book.read()


def count_rows(name, content):
    return get_counts(check(name, content)[1])


def get_counts(result):
    names = {"new": "new", "update": "changed", "skip": "unchanged", "invalid": "errors"}
    return {names[kind]: count for kind, count in result.totals.items() if count}


def closure_row(center, **fields):
    return {
        "center_id": center.pk,
        "room": "",
        "starts_at": "2027-12-24T12:00",
        "ends_at": "2027-12-27T00:00",
        "reason": "Holidays",
    } | fields


def room_row(center, **fields):
    if not ResourceType.objects.filter(name="Board room").exists():
        ResourceTypeFactory(name="Board room")
    return {
        "center_id": center.pk,
        "name": "Aspen",
        "type": "Board room",
        "capacity": "8",
        **fields,
    }


def get_cells(errors):
    """Errors without their messages."""
    return [(row, column) for row, column, _ in errors]


class Browser:
    """The pages of an import."""

    def __init__(self, client, list_url):
        self.client, self.list_url = client, list_url

    def upload(self, content, name="rows.csv"):
        """Upload a file; the page with its preview or errors."""
        data = {"import_file": SimpleUploadedFile(name, content), "format": "0", "resource": ""}
        return self._follow(self.client.post(f"{self.list_url}import/", data, follow=True))

    def confirm(self, page=None, **changes):
        """Confirm a preview; the list with its messages, or another preview."""
        fields = hidden_fields(page or self.page) | changes
        return self._follow(
            self.client.post(f"{self.list_url}process_import/", fields, follow=True)
        )

    def _follow(self, response):
        self.response, self.page = response, response.content.decode()
        return self.page


def hidden_fields(page):
    """The fields of the form that confirms a preview."""
    form = page.split("process_import/")[1].split("</form>")[0]
    inputs = re.findall(r"<input[^>]*>", form)
    found = (
        (re.search(r'name="([^"]*)"', each), re.search(r'value="([^"]*)"', each)) for each in inputs
    )
    return {name[1]: value[1] if value else "" for name, value in found if name}
