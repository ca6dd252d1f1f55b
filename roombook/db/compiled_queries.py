"""Querysets whose SQL is built once per process.

Building SQL takes the ORM several times as long as PostgreSQL takes to execute it. The hot paths
therefore use functions decorated with `compiled_query`. Such a function returns an ordinary
queryset with a `Param` in place of each value. It runs once; each later call only binds the values
and reads the rows.

    @compiled_query(keep_plan=True)
    def get_room_by_id() -> QuerySet[MeetingRoom]:
        return MeetingRoom.objects.bookable().filter(pk=int_param("room"))

    get_room_by_id(room=7)  # a list of rooms, as list(queryset) would be

On PostgreSQL each connection prepares such a statement when it first executes it, so that the
server does not parse and plan it again. docs/private-api.md lists the private API of Django that
this module uses.
"""

import datetime as dt
import functools
import itertools
import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar, cast

from django.db import DatabaseError, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import Field, ForeignObject, Lookup
from django.db.models import query as django_query
from django.db.models.expressions import BaseExpression, Expression
from django.db.models.sql.compiler import SQLCompiler
from django.db.transaction import TransactionManagementError

from roombook.db.replica import get_read_alias
from roombook.db.transactions import RetryTransaction

RowT = TypeVar("RowT")
# A row of values in the order of the selected columns, and a queryset of such rows (values_list).
Row: TypeAlias = tuple[Any, ...]
RowQuerySet: TypeAlias = "models.QuerySet[Any, Row]"


# --- Parameters ----------------------------------------------------------------------------------


class Param(Expression):
    """A placeholder for a value that is passed by name when the query is executed."""

    def __init__(self, name: str, output_field: "Field[Any, Any]", *, many: bool = False) -> None:
        super().__init__(output_field=output_field)
        self.name = name
        self.many = many

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        return "%s", (self,)

    def get_group_by_cols(self) -> list[BaseExpression]:
        return []

    def bind(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        """Converts the value, which has the type of the field, to what the driver accepts."""
        # Every driver accepts integers as they are, and lists of them are long.
        is_integer = isinstance(self.output_field, models.IntegerField)
        prepare = self.output_field.get_db_prep_value
        if not self.many:
            return value if is_integer else prepare(value, connection, prepared=True)
        values = list(value)
        if not is_integer:
            values = [prepare(each, connection, prepared=True) for each in values]
        return values if connection.vendor == "postgresql" else json.dumps(values)


# These are typed as the values that they stand for.


def int_param(name: str) -> int:
    return cast("int", Param(name, models.IntegerField()))


def float_param(name: str) -> float:
    return cast("float", Param(name, models.FloatField()))


def datetime_param(name: str) -> dt.datetime:
    return cast("dt.datetime", Param(name, models.DateTimeField()))


def text_param(name: str) -> str:
    return cast("str", Param(name, models.TextField()))


def uuid_param(name: str) -> uuid.UUID:
    return cast("uuid.UUID", Param(name, models.UUIDField()))


def int_list_param(name: str) -> list[int]:
    """A list of integers for the lookup `any_of`: `filter(pk__any_of=int_list_param("rooms"))`."""
    return cast("list[int]", Param(name, models.IntegerField(), many=True))


def text_list_param(name: str) -> list[str]:
    """A list of texts for the lookup `any_of`."""
    return cast("list[str]", Param(name, models.TextField(), many=True))


@Field.register_lookup
@ForeignObject.register_lookup
class AnyOf(Lookup):
    """Like `__in`, but the SQL is the same for any number of values, so it can be compiled once."""

    lookup_name = "any_of"
    prepare_rhs = False

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        left, left_params = self.process_lhs(compiler, connection)
        if isinstance(self.rhs, Param):
            right, right_params = self.process_rhs(compiler, connection)
        else:
            param = Param("", self.lhs.output_field, many=True)
            right, right_params = "%s", (param.bind(self.rhs, connection),)
        is_postgresql = connection.vendor == "postgresql"
        condition = "= ANY(%s)" if is_postgresql else "IN (SELECT value FROM json_each(%s))"
        return f"{left} {condition % right}", (*left_params, *right_params)


# --- Queries -------------------------------------------------------------------------------------


class CompiledQueryFunction(Generic[RowT]):
    """Executes the queryset that the decorated function builds.

    Positional arguments go to the decorated function, because the SQL depends on them (for
    example on the number of words in a search). Each combination is compiled once for the database
    and once for its replica, and the `MAX_COMBINATIONS` that were used last are kept. Keyword
    arguments are the values.
    """

    MAX_COMBINATIONS = 256

    def __init__(
        self, build: Callable[..., "models.QuerySet[Any, RowT]"], *, keep_plan: bool
    ) -> None:
        functools.update_wrapper(self, build)
        self._compile = functools.lru_cache(self.MAX_COMBINATIONS)(
            lambda alias, *shape: CompiledQuery(build(*shape), keep_plan=keep_plan)
        )

    def __call__(self, *shape: object, **values: object) -> list[RowT]:
        return list(self._compile(get_read_alias(), *shape).execute(values))

    def first(self, *shape: object, **values: object) -> RowT | None:
        """Returns the first row, or None. It does not add a LIMIT to the query."""
        return next(iter(self._compile(get_read_alias(), *shape).execute(values)), None)


def compiled_query(
    *, keep_plan: bool
) -> Callable[[Callable[..., "models.QuerySet[Any, RowT]"]], CompiledQueryFunction[RowT]]:
    """Compiles the queryset that the decorated function returns once per process.

    With `keep_plan`, PostgreSQL keeps the plan too. Without, it plans each execution: use that if
    the best plan depends on the values, or if an empty result must not be wrong. A kept plan looks
    at the table before it waits for a migration that rewrites the table, and then finds no rows.
    """

    def decorate(
        build: Callable[..., "models.QuerySet[Any, RowT]"],
    ) -> CompiledQueryFunction[RowT]:
        return CompiledQueryFunction(build, keep_plan=keep_plan)

    return decorate


def query_related(
    rows: "models.QuerySet[Any]", by: str, columns: Iterable[str]
) -> CompiledQueryFunction[Row]:
    """Compile a query for the rows that refer to any of some objects: `query(ids=[1, 2])`.

    `by` is their foreign key. Its value is the first column of each row.
    """

    @compiled_query(keep_plan=True)
    def query() -> RowQuerySet:
        related = rows.filter(**{f"{by}__any_of": int_list_param("ids")})
        return related.values_list(f"{by}_id", *columns)

    return query


# feature_not_supported: a migration changed the type of a column that a kept plan returns.
# invalid_sql_statement_name: the server dropped the statement, for example by DEALLOCATE ALL.
STALE_PLAN_CODES = {"0A000", "26000"}


class CompiledQuery:
    """The statement of a queryset, and how its rows become what the queryset would return."""

    numbers = itertools.count(1)
    # Part of the names of prepared statements. When a kept plan is found to be stale, it is raised,
    # so that each connection prepares its statements again.
    generation = 1

    def __init__(self, queryset: Any, *, keep_plan: bool) -> None:
        assert not queryset._prefetch_related_lookups, "a compiled query cannot prefetch"
        compiler = queryset.query.get_compiler(using=queryset.db)
        self.sql, self.params = compiler.as_sql()
        self.placeholders = f" ({', '.join(['%s'] * len(self.params))})" if self.params else ""
        self.using = queryset.db
        self.keep_plan = keep_plan
        self.number = next(self.numbers)
        self.is_locking = queryset.query.select_for_update
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        self.converters = compiler.get_converters(columns)
        is_model = issubclass(queryset._iterable_class, django_query.ModelIterable)
        self.build_result: Callable[[Sequence[Any]], object] = (
            get_instance_factory(compiler, queryset.db) if is_model else tuple
        )

    def execute(self, values: Mapping[str, object]) -> Iterable[Any]:
        connection: Any = connections[self.using]
        if self.is_locking and not connection.in_atomic_block:
            raise TransactionManagementError("select_for_update needs a transaction.")
        bound = [
            each.bind(values[each.name], connection) if isinstance(each, Param) else each
            for each in self.params
        ]
        rows = self._fetch(bound, connection)
        converted = self._convert(rows, connection) if self.converters else rows
        return map(self.build_result, converted)

    def _fetch(self, bound: list[object], connection: Any) -> list[Row]:
        with connection.cursor() as cursor:
            sql = self._prepare(connection, cursor) if self.keep_plan else self.sql
            try:
                cursor.execute(sql, bound)
            except DatabaseError as error:
                code = getattr(error.__cause__, "pgcode", None)
                if sql == self.sql or code not in STALE_PLAN_CODES:
                    raise
                CompiledQuery.generation += 1
                if connection.in_atomic_block:
                    raise RetryTransaction from error
                cursor.execute(self.sql, bound)
            rows: list[Row] = cursor.fetchall()
            return rows

    def _prepare(self, connection: BaseDatabaseWrapper, cursor: CursorWrapper) -> str:
        """Prepare the statement unless the connection has done so, and return how to execute it.

        On SQLite, and behind a pooler, nothing is prepared.
        """
        prepared: set[str] | None = getattr(connection, "prepared", None)
        if prepared is None:
            return self.sql
        name = f"roombook_{self.generation}_{self.number}"
        if name not in prepared:
            # The driver's own cursor keeps PREPARE out of the log and the counts of queries.
            with connection.wrap_database_errors:
                cursor.cursor.execute(f"PREPARE {name} AS {with_numbered_placeholders(self.sql)}")
            prepared.add(name)
        return f"EXECUTE {name}{self.placeholders}"

    def _convert(
        self, rows: Iterable[Row], connection: BaseDatabaseWrapper
    ) -> Iterator[list[object]]:
        for row in rows:
            values = list(row)
            for position, (converters, expression) in self.converters.items():
                for convert in converters:
                    values[position] = convert(values[position], expression, connection)
            yield values


def with_numbered_placeholders(sql: str) -> str:
    """The statement with `$1`, `$2` and so on, which PREPARE expects, in place of `%s`."""
    numbers = itertools.count(1)
    return re.sub("%[s%]", lambda match: "%" if match[0] == "%%" else f"${next(numbers)}", sql)


def get_instance_factory(
    compiler: SQLCompiler, using: str
) -> Callable[[Sequence[Any]], models.Model]:
    """Returns a function that makes a model instance of a row, as Django's ModelIterable does.

    ModelIterable prepares its column names and populators at each execution; here it is done once.
    """
    assert not compiler.annotation_col_map, "a compiled query of instances has no annotations"
    info = compiler.klass_info
    model: type[models.Model] = info["model"]
    first, last = info["select_fields"][0], info["select_fields"][-1] + 1
    names = [column.target.attname for column, *_ in compiler.select[first:last]]
    get_populators: Any = django_query.get_related_populators
    populators = get_populators(info, compiler.select, using)

    def build_instance(row: Sequence[Any]) -> models.Model:
        instance = model.from_db(using, names, row[first:last])
        for populator in populators:
            populator.populate(row, instance)
        return instance

    return build_instance
