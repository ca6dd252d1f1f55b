"""After an erasure, no personal value is left anywhere but in the rows that stay."""

import logging

import pytest
from django.core.files.base import ContentFile
from django.db import connection, transaction

from accounts import personal_data
from accounts.personal_data import STAY, TABLES
from reservations.booking import account_erasure
from tests.erasure_traces import (
    PICTURE,
    STAYING,
    find_traces,
    find_traces_in_pg_dump,
    make_leaving_account,
)
from tests.factories_people import PASSWORD
from tests.gateway_faults import FaultKind, add_fault
from tests.http import post
from tests.world import NOW


@pytest.fixture
def leaving(world):
    return make_leaving_account(world)


def test_delete_account_leaves_no_trace_in_database_media_or_logs(world, leaving, caplog):
    assert len(find_traces(leaving.pk)) > 30
    caplog.set_level(logging.DEBUG)

    response = post(
        world.client, "/api/account/delete", {"Token": world.token, "Password": PASSWORD}
    )

    assert (response.status_code, response.json()) == (200, {"Success": True})
    assert f"Account {leaving.pk} was erased." in caplog.messages
    assert find_traces(leaving.pk, logs=caplog.text) == set()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="needs PostgreSQL")
@pytest.mark.django_db(transaction=True)
def test_file_of_pg_dump_has_no_trace_after_an_erasure(world, leaving):
    # The picture, and the number of a network, are in no table.
    assert len(find_traces_in_pg_dump()) > 8

    response = post(
        world.client, "/api/account/delete", {"Token": world.token, "Password": PASSWORD}
    )

    assert response.status_code == 200
    assert find_traces_in_pg_dump() == set()


def test_each_rule_of_the_registry_is_needed(world, leaving, monkeypatch):
    """A negative control: without a single rule, the search finds something."""
    # The gateway does not answer, so that the row of the card stays.
    add_fault(operation="forget", kind=FaultKind.TIMEOUT_BEFORE)
    staying = {*STAYING, "payments_savedcard", "payments_sandboxcard"}
    tables = dict(TABLES)
    useless = []
    for label in [None, *(each for each, table in tables.items() if table.at_erasure != STAY)]:
        others = {each: table for each, table in tables.items() if each != label}
        monkeypatch.setattr(personal_data, "TABLES", others)
        before = transaction.savepoint()
        account_erasure.erase_account(leaving.pk, by=None, now=NOW)
        traces = find_traces(leaving.pk, staying=staying)
        transaction.savepoint_rollback(before)
        if bool(traces) != (label is not None):
            useless.append((label, traces))
        if not leaving.thumbnail.storage.exists(leaving.thumbnail.name):
            leaving.thumbnail.save(leaving.thumbnail.name, ContentFile(PICTURE), save=False)

    assert useless == []
