"""Rows in batches, so that the number of queries does not grow with the number of rows."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from django.db.models import Model, QuerySet

# Rows read or written by one statement.
BATCH_SIZE = 500

ItemT = TypeVar("ItemT")
# A row of a file: column -> text.
Cells = Mapping[str, str]


def batches(items: Iterable[ItemT]) -> Iterator[list[ItemT]]:
    iterator = iter(items)
    while batch := list(islice(iterator, BATCH_SIZE)):
        yield batch


def iterate_rows_where(
    rows: QuerySet[Model, ItemT], column: str, values: Iterable[int | str]
) -> Iterator[ItemT]:
    """The rows whose column has one of these values."""
    for batch in batches(sorted(values)):
        yield from rows.filter(**{f"{column}__in": batch})
