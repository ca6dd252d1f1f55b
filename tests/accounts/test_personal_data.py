"""docs/privacy.md lists all columns with personal data; TABLES says what becomes of them."""

import re
from pathlib import Path

import pytest
from django.apps import apps

from accounts.models import User
from accounts.personal_data import TABLES, AtErasure, Exported

PAGE = Path(__file__).parents[2] / "docs/privacy.md"
HARMLESS = Path(__file__).with_name("not_personal_columns.txt")
ROW_NAME = re.compile(r"^\| \*\*([\w.]+)\*\*: (.*?) \| .* \| (.*) \|$", re.M)


def get_models():
    return [model for model in apps.get_models(include_auto_created=True) if not model._meta.proxy]


def read_harmless():
    rows = (line.partition(": ") for line in HARMLESS.read_text().splitlines())
    return {(table, column) for table, _, columns in rows for column in columns.split()}


def read_page():
    """The columns and what an erasure does, by table."""
    rows = ROW_NAME.findall(PAGE.read_text())
    assert len({label for label, _, _ in rows}) == len(rows) > 30
    return {label: (re.findall(r"`(\w+)`", columns), end) for label, columns, end in rows}


def test_every_column_is_listed_as_personal_or_as_harmless():
    listed = {(label, name) for label, (columns, _) in read_page().items() for name in columns}
    existing = {
        (model._meta.label, field.name)
        for model in get_models()
        for field in model._meta.concrete_fields
    }
    harmless = read_harmless()

    references = {
        (model._meta.label, field.name)
        for model in get_models()
        for field in model._meta.concrete_fields
        if field.related_model is User
    }

    assert listed & harmless == set()
    assert references <= listed
    assert listed | harmless == existing, (
        "List a new column in docs/privacy.md, and its table in accounts/personal_data.py, if it"
        f" holds data about a person, else in {HARMLESS.name}."
    )


def test_page_says_deleted_of_the_tables_that_an_erasure_deletes():
    says_deleted = {label for label, (_, end) in read_page().items() if end.startswith("Deleted")}
    deleted = {label for label, table in TABLES.items() if table.at_erasure is AtErasure.DELETE}
    # Deleted with its device, or with the card and the customer at the gateway.
    followers = {"otp_static.StaticToken", "payments.StripeCustomer"}
    followers |= {"payments.SandboxCard", "payments.SandboxSetup"}

    assert says_deleted == deleted | followers
    unlisted = {label for label, table in TABLES.items() if table.at_erasure != AtErasure.STAY}
    assert unlisted - read_page().keys() == set()


@pytest.mark.django_db
def test_erased_table_is_exported_or_says_why_not():
    """A path to the account leads to the rows of each, and the export reaches each part."""
    reached = set()

    def follow(label):
        reached.add(label)
        for each in TABLES[label].export.fields.split():
            path = each.rpartition("=")[2]
            found = {field.name: field for field in apps.get_model(label)._meta.get_fields()}
            if path in found and found[path].is_relation:
                follow(found[path].related_model._meta.label)

    for label, table in TABLES.items():
        if table.owner:
            # The path leads to the account.
            table.find_rows(label, User(pk=1, email="ada@example.com")).exists()
        else:
            assert table.at_erasure is AtErasure.STAY, label
        if isinstance(table.export, Exported) and table.export.name:
            follow(label)
        else:
            assert table.export, label

    parts = {label for label, table in TABLES.items() if isinstance(table.export, Exported)}
    # The card is what the account's property returns.
    assert reached | {"payments.SavedCard"} == parts
