"""Counts the queries of a back office page."""

from django.db import connection
from django.test.utils import CaptureQueriesContext


def count_queries(client, address):
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200, address
    return len(queries)
