"""Files to import, for tests."""

import csv
import datetime as dt
import io
import json

import openpyxl
from django.core.files.uploadedfile import SimpleUploadedFile

from roombook.imports.sheet import SHEETS, Allowed, Origin, read_all

NOON = dt.datetime(2026, 11, 2, 12, tzinfo=dt.UTC)


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


def check(name, content, allowed=None):
    sheet = SHEETS[name](allowed or Allowed())
    return sheet, read_all(sheet.check(content))


def errors_of(name, content, allowed=None):
    """(row, column, words) of everything that is wrong."""
    _, plan = check(name, content, allowed)
    return [(row.number, column, text) for row in plan.rows for column, text in row.errors]


def load(name, content, actor=None, allowed=None):
    """Check and write; the counts."""
    sheet, plan = check(name, content, allowed)
    assert not plan.has_errors, [row.errors for row in plan.rows if row.errors]
    sheet.write(plan, Origin(file="rows.csv", at=NOON, actor=actor))
    return {kind: count for kind, count in plan.counts.items() if count}


def counts(name, content):
    _, plan = check(name, content)
    return {kind: count for kind, count in plan.counts.items() if count}


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
