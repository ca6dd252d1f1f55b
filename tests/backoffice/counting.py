"""How many queries a page of the back office takes."""

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext


def queries_of(client: Client, address: str) -> int:
    """The number of queries of one page, once what is asked once a process has been asked."""
    client.get(address)
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(address)
    assert answer.status_code == 200, answer.status_code
    return len(queries)
