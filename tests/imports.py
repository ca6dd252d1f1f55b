"""Files to import, for tests."""

import csv
import datetime as dt
import io
import json

import openpyxl
from django.core.files.uploadedfile import SimpleUploadedFile

from centers.models import ResourceType
from roombook.imports.checking import Check
from roombook.imports.plan import Origin
from roombook.imports.sheet import EVERYWHERE, RESOURCES
from roombook.imports.writing import write
from tests.factories_centers import ResourceTypeFactory

NOON = dt.datetime(2026, 11, 2, 12, tzinfo=dt.UTC)

# The lists that are imported and exported: whether their rows belong to centers.
LISTS = {
    "centers/center": True,
    "centers/meetingroom": True,
    "centers/rate": True,
    "centers/service": True,
    "centers/closure": True,
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
}


def csv_of(*rows, delimiter=","):
    """CSV of rows, each a list, or all of them dicts with one set of names."""
    if isinstance(rows[0], dict):
        rows = [list(rows[0]), *(list(row.values()) for row in rows)]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    return out.getvalue().encode()


def xlsx_of(*rows, sheet="Sheet1", more=()):
    book = openpyxl.Workbook()
    book.active.title = sheet
    for row in rows:
        book.active.append(list(row))
    for name in more:
        book.create_sheet(name)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def check(name, content, allowed=EVERYWHERE):
    found = Check(RESOURCES[name](allowed), content)
    for _ in found.steps():
        pass
    return found.sheet, found.plan


def errors_of(name, content, allowed=EVERYWHERE):
    """(row, column, words) of everything that is wrong."""
    _, plan = check(name, content, allowed)
    return [(row.number, column, text) for row in plan.rows for column, text in row.errors]


def load(name, content, actor=None, allowed=EVERYWHERE):
    """Check and write; the counts."""
    sheet, plan = check(name, content, allowed)
    assert not plan.has_errors, [row.errors for row in plan.rows if row.errors]
    write(sheet, plan, Origin(file="rows.csv", at=NOON, actor=actor))
    return {kind: count for kind, count in plan.counts.items() if count}


def counts(name, content):
    _, plan = check(name, content)
    return {kind: count for kind, count in plan.counts.items() if count}


def a_closure(center, **fields):
    return {
        "center_id": center.pk,
        "room": "",
        "starts_at": "2027-12-24T12:00",
        "ends_at": "2027-12-27T00:00",
        "reason": "Holidays",
    } | fields


def a_room(center, **fields):
    if not ResourceType.objects.filter(name="Board room").exists():
        ResourceTypeFactory(name="Board room")
    return {
        "center_id": center.pk,
        "name": "Aspen",
        "type": "Board room",
        "capacity": "8",
        **fields,
    }


def told(problems):
    """Errors without their words."""
    return [(row, column) for row, column, _ in problems]


class Browser:
    """What the script of the page does."""

    def __init__(self, client, list_address):
        self.client, self.list_address = client, list_address

    def send(self, content, name="rows.csv"):
        """Send a file; its page, or the answer that refused it."""
        file = SimpleUploadedFile(name, content)
        answer = self.client.post(f"{self.list_address}import/", {"file": file})
        self.page = answer["Location"] if answer.status_code == 302 else ""
        return answer

    def told(self, answer):
        lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]
        self.news = lines[:-1]
        return lines[-1]["html"]

    def preview(self):
        return self.told(self.client.get(f"{self.page}check/"))

    def confirm(self, preview):
        digest = preview.split('name="digest" value="')[1].split('"')[0]
        return self.told(self.client.post(f"{self.page}write/", {"digest": digest}))
