"""Counts the queries of a back office page."""

from django.db import connection
from django.test.utils import CaptureQueriesContext


def count_queries(client, address, *, can_be_refused=False):
    """The queries of a page; 0 if it is refused."""
    with CaptureQueriesContext(connection) as queries:
        status = client.get(address).status_code
    assert status == 200 or can_be_refused, address
    return len(queries) if status == 200 else 0
