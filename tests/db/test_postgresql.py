"""How roombook's PostgreSQL backend finds out that a connection is of no use any more."""

import pytest
from django.db import OperationalError, close_old_connections, connection

from accounts.models import User
from tests.factories_people import PASSWORD, UserFactory
from tests.http import post

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]


def test_is_usable_on_a_busy_connection_queries_the_server_once_a_second():
    connection.ensure_connection()
    connection._seen_alive = 0.0

    assert connection.is_usable()
    checked_at = connection._seen_alive
    assert checked_at
    assert connection.is_usable()
    assert connection._seen_alive == checked_at  # no query
    connection._seen_alive -= 1.1
    assert connection.is_usable()
    assert connection._seen_alive >= checked_at  # a new query


def test_connection_closed_by_the_server_fails_once_and_is_not_usable_then():
    connection.ensure_connection()
    assert connection.is_usable()
    another = connection.copy()
    try:
        with another.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid]
            )
    finally:
        another.close()

    with pytest.raises(OperationalError):
        User.objects.count()
    close_old_connections()
    assert User.objects.count() == 0
    assert connection.prepared == set()


def test_server_that_refuses_changes_is_unavailable_until_the_next_connection(client):
    body = {"EmailAddress": UserFactory().email, "Password": PASSWORD}
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")

    refused = post(client, "/api/sign-in", body)
    # What Django does after each request, except those of the test client.
    close_old_connections()
    accepted = post(client, "/api/sign-in", body)

    assert refused.status_code == 503
    assert int(refused["Retry-After"]) > 0
    assert accepted.status_code == 200
