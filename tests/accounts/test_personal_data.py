"""The registry of personal data knows every column, and docs/privacy.md lists it."""

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model

from roombook.personal_data import get_tables

PAGE = Path(__file__).parents[2] / "docs/privacy.md"
HARMLESS = Path(__file__).with_name("not_personal_columns.txt")


def get_models():
    return [model for model in apps.get_models(include_auto_created=True) if not model._meta.proxy]


def read_harmless():
    rows = (line.partition(": ") for line in HARMLESS.read_text().splitlines())
    return {(table, column) for table, _, columns in rows for column in columns.split()}


def test_every_column_is_registered_as_personal_or_listed_as_harmless():
    registered = {(each.model._meta.label, name) for each in get_tables() for name in each.columns}
    existing = {
        (model._meta.label, field.name)
        for model in get_models()
        for field in model._meta.concrete_fields
    }
    harmless = read_harmless()

    assert registered & harmless == set()
    assert registered | harmless == existing, (
        "Register a new column in the personal_data.py of its app if it holds data about a person,"
        f" else list it in {HARMLESS.name}."
    )


def test_each_table_is_registered_once():
    models = [each.model for each in get_tables()]

    assert len(models) == len(set(models))


@pytest.mark.parametrize("model", get_models(), ids=lambda model: model._meta.label)
def test_reference_to_an_account_is_personal(model):
    columns = {name for each in get_tables() if each.model is model for name in each.columns}
    references = {
        field.name
        for field in model._meta.concrete_fields
        if field.related_model is get_user_model()
    }

    assert references <= columns


def test_privacy_page_lists_the_columns_of_the_registry():
    listed = re.findall(r"^\| \*\*([\w.]+)\*\*: (.*?) \|", PAGE.read_text(), re.M)

    registered = {
        each.model._meta.label: ", ".join(f"`{name}`" for name in each.columns)
        for each in get_tables()
    }
    assert dict(listed) == registered
    assert len(listed) == len(registered)
