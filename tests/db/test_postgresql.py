"""How roombook's PostgreSQL backend checks whether a connection is alive."""

import pytest
from django.db import connection

from accounts.models import User

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


def test_connection_closed_by_the_server_is_not_usable():
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

    assert not connection.is_usable()
    connection.close()
    assert User.objects.count() == 0
    assert connection.prepared == set()
