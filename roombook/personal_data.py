"""The registry of personal data (B22.10): every table that holds some, and how long it is kept.

Each app registers its tables in `ready` (`personal_data.py` of the app). An erasure calls what each
table says, `erase_expired` deletes what is older than its setting, and docs/privacy.md says why.
A test fails for a column of any table that is neither registered here nor known to be harmless.
"""

import datetime as dt
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Model, Q, QuerySet

logger = logging.getLogger(__name__)

BATCH_SIZE = 1000
# Leap days included, so that nothing is deleted too early.
DAYS_PER_YEAR = 366


@dataclass(frozen=True, slots=True)
class ErasedAccount:
    """The account that is erased; `email` is its address before the erasure."""

    pk: int
    email: str


EraseRows = Callable[[ErasedAccount], object]
FindRows = Callable[[ErasedAccount], Q]


@dataclass(frozen=True, slots=True)
class Expiry:
    """When rows expire: a period after a date; None is never.

    `find_rows` returns the expired rows for the latest date that has expired. `cleared` are the
    columns that are emptied, with their values; without them, rows are deleted.
    """

    get_period: Callable[[], dt.timedelta | None]
    find_rows: Callable[[dt.datetime], QuerySet[Any]]
    cleared: Mapping[str, object] = field(default_factory=dict)

    def expire(self, now: dt.datetime) -> int:
        """Delete or clear the expired rows, in batches; return how many they were."""
        period = self.get_period()
        if period is None:
            return 0
        rows = self.find_rows(now - period)
        if self.cleared:
            # Not those that are empty already.
            rows = rows.exclude(**self.cleared)
        total = 0
        while batch := list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH_SIZE]):
            chosen = rows.model._base_manager.filter(pk__in=batch)
            if self.cleared:
                chosen.update(**self.cleared)
            else:
                chosen.delete()
            total += len(batch)
        return total


@dataclass(frozen=True, slots=True)
class PersonalTable:
    """A table with personal data; ``erase`` is None if its rows stay, or go with others."""

    model: type[Model]
    columns: tuple[str, ...]
    erase: EraseRows | None
    expiries: tuple[Expiry, ...]


def setting_days(name: str, *, days_per_unit: int = 1) -> Callable[[], dt.timedelta | None]:
    """Return a function that reads a period from a setting, in which 0 means for ever."""

    def get_period() -> dt.timedelta | None:
        count: int = getattr(settings, name)
        return dt.timedelta(days=count * days_per_unit) if count else None

    return get_period


_tables: list[PersonalTable] = []


def register(
    model: type[Model],
    columns: str,
    *,
    erase: EraseRows | None = None,
    expiries: Iterable[Expiry] = (),
) -> None:
    """Register a table. `columns` are the names of its personal columns, separated by spaces."""
    names = tuple(columns.split())
    for name in names:
        model._meta.get_field(name)
    _tables.append(PersonalTable(model, names, erase, tuple(expiries)))


def register_owned(model: type[Model], columns: str) -> None:
    """Register a table whose rows belong to their `user`; an erasure deletes them."""
    register(model, columns, erase=delete_rows(model, find_by_user))


def get_tables() -> list[PersonalTable]:
    return list(_tables)


def find_by_user(account: ErasedAccount) -> Q:
    return Q(user=account.pk)


def delete_rows(model: type[Model], find_rows: FindRows) -> EraseRows:
    """Return a function that deletes an account's rows."""
    return lambda account: model._base_manager.filter(find_rows(account)).delete()


def clear_rows(model: type[Model], find_rows: FindRows, **values: object) -> EraseRows:
    """Return a function that replaces values in an account's rows."""
    return lambda account: model._base_manager.filter(find_rows(account)).update(**values)


def erase_account_data(account: ErasedAccount) -> None:
    """Do in every table what an erasure does there. The caller is in a transaction."""
    for table in _tables:
        if table.erase is not None:
            table.erase(account)


def erase_expired_data(*, now: dt.datetime) -> tuple[dict[str, int], list[str]]:
    """Delete or clear all rows that have expired; an error of one table does not stop the others.

    Returns how many they were, by the name of their table, and the names of tables that failed.
    """
    counts: dict[str, int] = {}
    failed = []
    for table in _tables:
        name = str(table.model._meta.verbose_name_plural)
        for expiry in table.expiries:
            try:
                counts[name] = counts.get(name, 0) + expiry.expire(now)
            except DatabaseError:
                logger.exception("Expired %s are left. erase_expired tries it again.", name)
                failed.append(name)
    return counts, failed
