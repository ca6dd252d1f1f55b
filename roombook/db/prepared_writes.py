"""Rows that are written by statements made once a process.

    @prepared_writes
    class Payment(models.Model): ...

    @prepared_update
    def forgiven() -> Update:
        return AttemptWindow.objects.filter(key=text("key")), {"count": F("count") - 1}

    forgiven(key="7")  # how many rows it met, as queryset.update(...) would say

Not for models with children by multi-table inheritance.
"""

import functools
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, TypeVar

from django.db import connections, models, router, transaction
from django.db.models import sql

from roombook.db.compiled_queries import Param, Statement

M = TypeVar("M", bound=models.Model)

# The rows that change, and what their columns become: values, expressions or a `Param`.
Update = tuple["models.QuerySet[Any, Any]", Mapping[str, Any]]


class Cell(Param):
    """The place of a value that becomes a column's."""

    def bound(self, value: Any, connection: Any) -> Any:
        return self.output_field.get_db_prep_save(value, connection)


def prepared_writes(model: type[M]) -> type[M]:
    """Let `save()` and `create()` of a model write their SQL once for each set of columns.

    All else about saving stays Django's, and so does a row with an expression among its values.
    """
    hooks: Any = model
    plain_insert, plain_update = hooks._do_insert, hooks._do_update

    def _do_insert(
        row: Any,
        manager: Any,
        using: str,
        fields: Any,
        returning: Any,
        raw: bool,  # noqa: FBT001 (Django's signature)
    ) -> Any:
        values = {
            each.attname: getattr(row, each.attname) if raw else each.pre_save(row, add=True)
            for each in fields
        }
        if _any_expression(values) or not _returns_columns(using):
            return plain_insert(row, manager, using, fields, returning, raw)
        rows, _ = _insert(model, using, tuple(values)).execute(values)
        return rows

    def _do_update(
        row: Any, rows: Any, using: str, pk: Any, values: Any, update_fields: Any, forced: Any
    ) -> bool:
        told = {field.attname: value for field, _, value in values}
        if not told or _any_expression(told):
            return bool(plain_update(row, rows, using, pk, values, update_fields, forced))
        _, met = _save(model, using, tuple(told)).execute(told | {"pk": pk})
        return met > 0

    hooks._do_insert, hooks._do_update = _do_insert, _do_update
    return model


def insert_unless_there(row: models.Model) -> bool:
    """INSERT a row where nothing unique is in its way, and say whether it is there by us.

    Its id stays unknown. Of rivals one is told yes, and the others once it has committed.
    """
    model, using = type(row), router.db_for_write(type(row))
    fields = [each for each in model._meta.concrete_fields if not each.primary_key]
    values = {each.attname: each.pre_save(row, add=True) for each in fields}
    with transaction.mark_for_rollback_on_error(using):
        _, met = _insert(model, using, tuple(values), unless_there=True).execute(values)
    return met > 0


def prepared_update(write: Callable[[], Update]) -> Callable[..., int]:
    """A change of many rows by the function that writes it, as `prepared` is a question."""

    @functools.cache
    def statement() -> Statement:
        return _update(*write())

    @functools.wraps(write)
    def change(**values: Any) -> int:
        with transaction.mark_for_rollback_on_error(statement().using):
            _, met = statement().execute(values)
        return met

    return change


@functools.lru_cache
def _insert(
    model: type[models.Model],
    using: str,
    columns: tuple[str, ...],
    *,
    unless_there: bool = False,
) -> Statement:
    cells = _cells(model, columns)
    query: Any = sql.InsertQuery(model)
    fields = [cell.output_field for cell in cells.values()]
    query.insert_values(fields, [SimpleNamespace(**cells)], raw=True)
    compiler = query.get_compiler(using=using)
    compiler.returning_fields = None if unless_there else query.get_meta().db_returning_fields
    [(text, params)] = compiler.as_sql()
    if unless_there:
        # Not Django's IGNORE: on SQLite that forgives rows that break a rule, too.
        text += " ON CONFLICT DO NOTHING"
    return Statement(text, params, using=using, keep_plan=True)


@functools.lru_cache
def _save(model: type[models.Model], using: str, columns: tuple[str, ...]) -> Statement:
    row = model._base_manager.using(using).filter(pk=Cell("pk", model._meta.pk))
    return _update(row, _cells(model, columns))


def _update(rows: "models.QuerySet[Any, Any]", becomes: Mapping[str, Any]) -> Statement:
    query: Any = rows.query.chain(sql.UpdateQuery)
    query.add_update_values(becomes)
    text, params = query.get_compiler(using=rows.db).as_sql()
    return Statement(text, params, using=rows.db, keep_plan=True)


def _cells(model: type[models.Model], columns: tuple[str, ...]) -> dict[str, Cell]:
    meta: Any = model._meta
    return {column: Cell(column, meta.get_field(column)) for column in columns}


def _any_expression(values: Mapping[str, Any]) -> bool:
    return any(hasattr(value, "resolve_expression") for value in values.values())


def _returns_columns(using: str) -> bool:
    """Whether an INSERT tells the new row's id: old SQLite does not."""
    return bool(connections[using].features.can_return_columns_from_insert)
