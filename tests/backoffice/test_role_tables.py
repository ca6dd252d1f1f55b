"""Every model and every page of the back office is in the tables of role_tables.py."""

from django.contrib import admin
from django.urls import URLResolver

from tests.backoffice.role_tables import (
    IMPORTED,
    MODELS,
    OF_A_MODEL,
    OPEN,
    PAGES,
)


def walk(patterns):
    for each in patterns:
        if isinstance(each, URLResolver):
            yield from walk(each.url_patterns)
        else:
            yield each


def test_every_registered_model_is_in_the_table():
    assert {model._meta.label for model in admin.site._registry} == set(MODELS)


def test_every_back_office_url_is_in_a_table():
    known = {*OPEN, *PAGES}
    for label in MODELS:
        known |= {f"{label.lower().replace('.', '_')}_{page}" for page in OF_A_MODEL}
    for name in IMPORTED:
        known |= {f"{name}_{page}" for page in ("import", "process_import", "list_export")}
    # Without a name: Django's redirect of an object, and the catch-all.
    assert {each.name for each in walk(admin.site.urls[0]) if each.name} - known == set()
