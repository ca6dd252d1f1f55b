"""Counts the queries of a back office page."""

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext


def queries_of(client: Client, address: str) -> int:
    """Return the number of queries of a page, after a first request has filled the caches."""
    client.get(address)
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(address)
    assert answer.status_code == 200, answer.status_code
    return len(queries)
