"""Questions to the database that are written once a process, and only bound from then on.

To write a statement takes the ORM several times as long as PostgreSQL takes to answer it. So the
hot roads ask by `@prepared` functions: such a function returns an ordinary queryset with a `Param`
in the place of each value. It runs once; each call of it then binds the values and reads the rows.

    @prepared
    def room_by_id() -> QuerySet[MeetingRoom]:
        return MeetingRoom.objects.bookable().filter(pk=number("room"))

    room_by_id(room=7)  # a list of rooms, as list(queryset) would be

PostgreSQL keeps the plan, too: each connection prepares such a statement at its first use.
"""

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from django.db import DatabaseError, connections, models
from django.db.models import Expression, Field, ForeignObject, Lookup
from django.db.models import query as django_query
from django.db.transaction import TransactionManagementError

from roombook.db.transactions import RetryTransaction

RowT = TypeVar("RowT")


class Param(Expression):
    """The place of a value that is told by name when the question is asked."""

    def __init__(self, name: str, output_field: "Field[Any, Any]", *, many: bool = False) -> None:
        super().__init__(output_field=output_field)
        self.name = name
        self.many = many

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", (self,)

    def get_group_by_cols(self) -> list[Any]:
        return []

    def bound(self, value: Any, connection: Any) -> Any:
        """The value as this database's driver takes it."""
        prepare = self.output_field.get_db_prep_value
        if not self.many:
            return prepare(value, connection, prepared=False)
        values = list(value)
        # Ids come by the hundred, and are what every driver takes.
        if not isinstance(self.output_field, models.IntegerField):
            values = [prepare(each, connection, prepared=False) for each in values]
        return values if connection.vendor == "postgresql" else json.dumps(values)


def int_param(name: str) -> Any:
    return Param(name, models.IntegerField())


def float_param(name: str) -> Any:
    return Param(name, models.FloatField())


def datetime_param(name: str) -> Any:
    return Param(name, models.DateTimeField())


def text_param(name: str) -> Any:
    return Param(name, models.TextField())


def uuid_param(name: str) -> Any:
    return Param(name, models.UUIDField())


def int_list_param(name: str) -> Any:
    """Some numbers, for the look-up `any_of`: `filter(pk__any_of=numbers("rooms"))`."""
    return Param(name, models.IntegerField(), many=True)


def text_list_param(name: str) -> Any:
    """Some texts, for the look-up `any_of`."""
    return Param(name, models.TextField(), many=True)


@Field.register_lookup
@ForeignObject.register_lookup
class AnyOf(Lookup):
    """Equal to one of `numbers`, `texts` or a list: `__in`, in the same words however many."""

    lookup_name = "any_of"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        left, params = self.process_lhs(compiler, connection)
        if isinstance(self.rhs, Param):
            right, more = self.process_rhs(compiler, connection)
        else:
            many = Param("", self.lhs.output_field, many=True)
            right, more = "%s", (many.bound(self.rhs, connection),)
        is_postgresql = connection.vendor == "postgresql"
        how = "= ANY(%s)" if is_postgresql else "IN (SELECT value FROM json_each(%s))"
        return f"{left} {how % right}", (*params, *more)


class CompiledQueryFunction(Generic[RowT]):
    """A question by the function that writes it.

    Positional arguments go to that function, as the statement's words depend on them (the number
    of words in a search): each combination is written once, the last `LIMIT` of them are kept.
    """

    LIMIT = 256

    def __init__(
        self, write: Callable[..., "models.QuerySet[Any, RowT]"], *, keep_plan: bool
    ) -> None:
        functools.update_wrapper(self, write)
        self._question = functools.lru_cache(self.LIMIT)(
            lambda *how: CompiledQuery(write(*how), keep_plan=keep_plan)
        )

    def __call__(self, *how: Any, **values: Any) -> list[RowT]:
        return list(self._question(*how).ask(values))

    def first(self, *how: Any, **values: Any) -> RowT | None:
        """The first row, or None; the question itself says how many it wants."""
        return next(iter(self._question(*how).ask(values)), None)


def compiled_query(
    *, keep_plan: bool
) -> Callable[[Callable[..., "models.QuerySet[Any, RowT]"]], CompiledQueryFunction[RowT]]:
    """Compile the queryset that the function returns once per process.

    With `keep_plan`, PostgreSQL keeps the plan too. Without, it plans each execution: use that if
    the best plan depends on the values, or if an empty answer must not be wrong: a kept plan
    looks at the table before it waits for a migration that rewrites it, and then finds no rows.
    """

    def decorate(
        build: Callable[..., "models.QuerySet[Any, RowT]"],
    ) -> CompiledQueryFunction[RowT]:
        return CompiledQueryFunction(build, keep_plan=keep_plan)

    return decorate


STATEMENT_NUMBERS = itertools.count(1)
# feature_not_supported: a migration changed the type of a column that a kept plan answers with.
# invalid_sql_statement_name: the server has forgotten it, such as after DEALLOCATE ALL.
STALE_PLAN_CODES = {"0A000", "26000"}


def with_numbered_placeholders(sql: str) -> str:
    """The statement with its places as PostgreSQL names them: `$1`, `$2`."""
    places = itertools.count(1)
    return re.sub("%[s%]", lambda match: "%" if match[0] == "%%" else f"${next(places)}", sql)


class Statement:
    """SQL, the places of its values, and the name by which each connection's server knows it.

    It asks the database that it was written for, in each process once.
    """

    def __init__(self, sql: str, params: Sequence[Any], *, using: str, keep_plan: bool) -> None:
        self.sql = sql
        self.params = params
        self.using = using
        self.keep_plan = keep_plan
        self.name = f"roombook_{next(STATEMENT_NUMBERS)}"
        self.places = f" ({', '.join(['%s'] * len(params))})" if params else ""

    def execute(self, values: Mapping[str, Any]) -> tuple[list[Any], int]:
        """The rows that it answers with, and how many it met."""
        connection: Any = connections[self.using]
        bound = [
            each.bound(values[each.name], connection) if isinstance(each, Param) else each
            for each in self.params
        ]
        with connection.cursor() as cursor:
            known = self._known_as(connection, cursor)
            try:
                cursor.execute(known or self.sql, bound)
            except DatabaseError as error:
                if not known or getattr(error.__cause__, "pgcode", None) not in STALE_PLAN_CODES:
                    raise
                # Nothing is prepared on this connection any more; it ends with the request.
                connection.prepared = None
                connection.close_at = 0.0
                if connection.in_atomic_block:
                    raise RetryTransaction from error
                cursor.execute(self.sql, bound)
            return cursor.fetchall() if cursor.description else [], cursor.rowcount

    def _known_as(self, connection: Any, cursor: Any) -> str:
        """What executes the statement as this connection's server has prepared it."""
        prepared = getattr(connection, "prepared", None)
        if prepared is None or not self.keep_plan:
            return ""
        if self.name not in prepared:
            # Past the log of statements: it is no question, and comes once a connection.
            with connection.wrap_database_errors:
                cursor.cursor.execute(
                    f"PREPARE {self.name} AS {with_numbered_placeholders(self.sql)}"
                )
            prepared.add(self.name)
        return f"EXECUTE {self.name}{self.places}"


class CompiledQuery(Statement):
    """The statement of a queryset, and the way from rows to results."""

    def __init__(self, queryset: Any, *, keep_plan: bool) -> None:
        assert not queryset._prefetch_related_lookups, "prefetches are questions of their own"
        compiler = queryset.query.get_compiler(using=queryset.db)
        super().__init__(*compiler.as_sql(), using=queryset.db, keep_plan=keep_plan)
        self.locks = queryset.query.select_for_update
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        self.converters = compiler.get_converters(columns)
        is_model = issubclass(queryset._iterable_class, django_query.ModelIterable)
        self.result: Callable[[Any], Any] = self._maker(compiler) if is_model else tuple

    def ask(self, values: Mapping[str, Any]) -> Iterable[Any]:
        connection: Any = connections[self.using]
        if self.locks and not connection.in_atomic_block:
            raise TransactionManagementError("A lock outside of a transaction holds nothing.")
        rows, _ = self.execute(values)
        if self.converters:
            return map(self.result, self._converted(rows, connection))
        return map(self.result, rows)

    def _converted(self, rows: Iterable[Sequence[Any]], connection: Any) -> Iterator[list[Any]]:
        for row in rows:
            cells = list(row)
            for position, (converters, expression) in self.converters.items():
                for convert in converters:
                    cells[position] = convert(cells[position], expression, connection)
            yield cells

    def _maker(self, compiler: Any) -> Callable[[Sequence[Any]], models.Model]:
        """What Django's own ModelIterable does to a row, with its preparations made once."""
        info = compiler.klass_info
        model: type[models.Model] = info["model"]
        first, last = info["select_fields"][0], info["select_fields"][-1] + 1
        names = [column.target.attname for column, *_ in compiler.select[first:last]]
        populators_of: Any = django_query.get_related_populators
        populators = populators_of(info, compiler.select, self.using)
        annotations = list(compiler.annotation_col_map.items())

        def make(row: Sequence[Any]) -> models.Model:
            made = model.from_db(self.using, names, row[first:last])
            for populator in populators:
                populator.populate(row, made)
            for name, position in annotations:
                setattr(made, name, row[position])
            return made

        return make
