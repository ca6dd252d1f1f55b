"""Many rows, some hundred at a time: no statement grows with a file."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django.db.models import QuerySet

BATCH = 500


def batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    left = iter(items)
    while batch := list(islice(left, BATCH)):
        yield batch


def iterate_rows_where(
    rows: QuerySet[Any, Any], column: str, values: Iterable[Any]
) -> Iterator[Any]:
    """The rows whose column has one of these values."""
    for batch in batches(sorted(values)):
        yield from rows.filter(**{f"{column}__in": batch})
