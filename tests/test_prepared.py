"""Questions that are written once: they answer as the queryset itself would."""

import datetime as dt
import time
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection, models, transaction
from django.db.models import Exists, OuterRef, Q
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from accounts.models import ApiToken, User
from centers.models import Center, MeetingRoom, OpeningHours, Service
from roombook.db.compiled_queries import (
    compiled_query,
    datetime_param,
    float_param,
    int_list_param,
    int_param,
    text_list_param,
    text_param,
    with_numbered_placeholders,
)
from roombook.db.transactions import in_transaction
from tests import factories_centers as make
from tests.factories_people import UserFactory, issue_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def rooms():
    return [make.MeetingRoomFactory(capacity=capacity) for capacity in (4, 8, 12)]


@compiled_query(keep_plan=True)
def larger_rooms() -> "models.QuerySet[MeetingRoom]":
    return (
        MeetingRoom.objects.filter(capacity__gte=int_param("seats"))
        .select_related("center", "rate", "resource_type")
        .annotate(is_open=Exists(OpeningHours.objects.filter(center=OuterRef("center"))))
        .order_by("pk")
    )


def test_rows_are_what_the_queryset_gives(rooms):
    make.MeetingRoomFactory(capacity=20, rate=None)
    plain = list(
        MeetingRoom.objects.filter(capacity__gte=8)
        .select_related("center", "rate", "resource_type")
        .order_by("pk")
    )

    found = larger_rooms(seats=8)

    assert found == plain
    with CaptureQueriesContext(connection) as asked:
        for mine, theirs in zip(found, plain, strict=True):
            for name in ("center", "rate", "resource_type"):
                one, other = getattr(mine, name), getattr(theirs, name)
                assert one == other
                assert one is None or vars(one).keys() == vars(other).keys()
                assert one is None or state(one) == state(other)
            assert state(mine) == {**state(theirs), "is_open": mine.is_open}
    assert not asked.captured_queries
    assert mine._state.adding is False


def state(row):
    return {name: value for name, value in vars(row).items() if name != "_state"}


def test_each_call_has_values_of_its_own(rooms):
    assert [len(larger_rooms(seats=seats)) for seats in (1, 5, 9, 13, 1)] == [3, 2, 1, 0, 3]


def test_the_function_runs_once(rooms):
    runs = []

    @compiled_query(keep_plan=True)
    def by_id():
        runs.append(1)
        return MeetingRoom.objects.filter(pk=int_param("room"))

    assert [by_id(room=room.pk) for room in rooms] == [[room] for room in rooms]
    assert len(runs) == 1


def test_what_the_words_depend_on_is_written_once_each(rooms):
    runs = []

    @compiled_query(keep_plan=True)
    def narrowed(words, limit):
        runs.append((words, limit))
        found = Center.objects.order_by("pk")
        for place in range(words):
            found = found.filter(search_text__contains=text_param(f"word{place}"))
        return found[:limit]

    first = rooms[0].center
    words = first.name_folded.split()
    for _ in range(3):
        assert narrowed(0, 2) == [rooms[0].center, rooms[1].center]
        assert narrowed(1, 1, word0=words[0]) == [first]
        assert narrowed(1, 1, word0="no such thing") == []
    assert runs == [(0, 2), (1, 1)]


def test_values_of_every_kind_come_and_go():
    user = UserFactory()
    issue_token(user)
    noon = dt.time(12, 30)
    make.OpeningHoursFactory(
        center=make.CenterFactory(latitude=12.25, longitude=3.5), weekday=6, opens=noon
    )

    @compiled_query(keep_plan=True)
    def tokens():
        return ApiToken.objects.filter(
            user__email=text_param("email"), expires_at__gt=datetime_param("now")
        ).values_list("user_id", "expires_at", "user__is_active")

    @compiled_query(keep_plan=True)
    def hours():
        return OpeningHours.objects.filter(
            center__latitude__gte=float_param("south"), weekday=int_param("day")
        ).values_list("opens", "center__latitude", "center__tax_rate")

    token = ApiToken.objects.get()
    asked = {"email": user.email, "now": token.created_at}
    assert tokens(**asked) == [(user.pk, token.expires_at, True)]
    assert tokens(**asked | {"now": token.expires_at}) == []
    center = Center.objects.get()
    assert hours(south=12.2, day=6) == [(noon, 12.25, center.tax_rate)]
    assert hours(south=12.3, day=6) == []


def test_any_of_many(rooms):
    @compiled_query(keep_plan=True)
    def some():
        return MeetingRoom.objects.filter(pk__any_of=int_list_param("ids")).order_by("pk")

    @compiled_query(keep_plan=True)
    def of_centers():
        return MeetingRoom.objects.filter(center__any_of=int_list_param("ids")).order_by("pk")

    @compiled_query(keep_plan=True)
    def named():
        return MeetingRoom.objects.filter(name__any_of=text_list_param("names")).order_by("pk")

    one, _, three = rooms
    assert some(ids=[three.pk, one.pk, 0]) == [one, three]
    assert some(ids=[]) == []
    assert of_centers(ids=[one.center_id, three.center_id]) == [one, three]
    assert named(names=[one.name, 'it\'s "this", {or} that']) == [one]


def test_a_value_is_never_a_part_of_the_statement(rooms):
    @compiled_query(keep_plan=True)
    def named():
        return MeetingRoom.objects.filter(
            Q(name=text_param("name")) | Q(provider=text_param("name"))
        )

    assert named(name="x' OR '1'='1") == []
    assert named(name="%s") == []


def test_rows_of_several_tables(rooms):
    service = make.ServiceFactory(center=rooms[0].center)

    @compiled_query(keep_plan=True)
    def names():
        return (
            MeetingRoom.objects.filter(center=int_param("center"))
            .values_list("name")
            .union(
                Service.objects.filter(center=int_param("center")).order_by().values_list("name"),
                all=True,
            )
        )

    assert set(names(center=rooms[0].center_id)) == {(rooms[0].name,), (service.name,)}


@pytest.mark.django_db(transaction=True)
def test_a_lock_needs_a_transaction():
    @compiled_query(keep_plan=True)
    def locked():
        return User.objects.filter(pk=int_param("user")).select_for_update()

    user = UserFactory()
    with transaction.atomic():
        assert locked(user=user.pk) == [user]
    if connection.features.has_select_for_update:
        with pytest.raises(TransactionManagementError):
            locked(user=user.pk)


def test_a_value_that_is_missing_is_a_defect():
    with pytest.raises(KeyError):
        larger_rooms()


def test_a_prefetch_is_refused():
    @compiled_query(keep_plan=True)
    def with_rooms():
        return Center.objects.prefetch_related("rooms")

    with pytest.raises(AssertionError):
        with_rooms()


# --- On PostgreSQL: kept by the server ------------------------------------------------------------


@pytest.mark.postgres
def test_a_connection_prepares_a_statement_once(rooms):
    with connection.cursor() as cursor:
        connection.prepared = set()
        cursor.execute("DEALLOCATE ALL")
    with CaptureQueriesContext(connection) as asked:
        for seats in (5, 9):
            assert larger_rooms(seats=seats)

    sent = [each["sql"].split(" (")[0] for each in asked]
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM pg_prepared_statements")
        [[name]] = cursor.fetchall()
    assert connection.prepared == {name}
    assert sent == [f"EXECUTE {name}"] * 2


@pytest.mark.postgres
def test_no_statement_is_prepared_where_a_pooler_may_stand(rooms, monkeypatch):
    monkeypatch.setattr(connection, "prepared", None)
    with CaptureQueriesContext(connection) as asked:
        assert len(larger_rooms(seats=5)) == 2

    (sent,) = asked
    assert sent["sql"].startswith("SELECT")


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT 1", "SELECT 1"),
        ("a = %s AND b LIKE '%%' || %s", "a = $1 AND b LIKE '%' || $2"),
        ("'%%s' = %s", "'%s' = $1"),
    ],
)
def test_places_as_postgresql_names_them(sql, told):
    assert with_numbered_placeholders(sql) == told


# --- On PostgreSQL: whether a connection is alive -------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgres
def test_a_busy_connection_is_asked_once_a_second():
    connection.ensure_connection()
    connection._seen_alive = 0.0

    assert connection.is_usable()
    asked = connection._seen_alive
    assert asked
    assert connection.is_usable()
    assert connection._seen_alive == asked  # believed
    connection._seen_alive -= 1.1
    assert connection.is_usable()
    assert connection._seen_alive >= asked  # asked again


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgres
def test_a_connection_that_the_server_closed_is_never_believed():
    connection.ensure_connection()
    assert connection.is_usable()
    another = connection.copy()
    try:
        with another.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid]
            )
    finally:
        another.close()

    assert not connection.is_usable()
    connection.close()
    assert User.objects.count() == 0
    assert connection.prepared == set()


def alter(kind):
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE centers_meetingroom ALTER capacity TYPE {kind}")


@pytest.fixture
def _ends():
    """A connection that prepares nothing any more ends with its request; here with its test."""
    yield
    connection.close()


@pytest.fixture
def widened(_ends):
    """A migration that changes a column's type while plans with it are kept."""
    yield lambda: alter("bigint")
    alter("integer")


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_migration_that_changes_a_column_makes_no_kept_plan_fail(rooms, widened):
    assert len(larger_rooms(seats=8)) == 2
    widened()

    assert len(larger_rooms(seats=8)) == 2
    assert larger_rooms(seats=12) == [rooms[2]]


@compiled_query(keep_plan=False)
def rooms_for_sure() -> "models.QuerySet[Any, Any]":
    return MeetingRoom.objects.filter(capacity__gte=int_param("seats")).values_list("pk")


def write_anew(has_begun):
    """Hold the table until somebody waits for it, as a migration does that copies each row."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("ALTER TABLE centers_meetingroom ALTER capacity TYPE bigint")
            has_begun.set()
            waits = "SELECT 1 FROM pg_locks WHERE NOT granted"
            while cursor.execute(waits) or not cursor.fetchall():
                time.sleep(0.01)
            cursor.execute("COMMIT")
    finally:
        connection.close()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_who_must_know_for_sure_finds_the_rows_of_a_table_that_is_written_anew(rooms, widened):
    assert len(rooms_for_sure(seats=8)) == 2
    has_begun = Event()
    migration = Thread(target=write_anew, args=(has_begun,))
    migration.start()
    assert has_begun.wait(timeout=10)

    found = rooms_for_sure(seats=8)

    migration.join(timeout=10)
    assert len(found) == 2


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_within_a_transaction_the_whole_of_it_is_done_again(rooms, widened):
    larger_rooms(seats=8)
    widened()
    tries = []

    @in_transaction
    def read():
        tries.append(1)
        return larger_rooms(seats=8)

    assert len(read()) == 2
    assert len(tries) == 2


@pytest.mark.postgres
@pytest.mark.usefixtures("_ends")
@pytest.mark.django_db(transaction=True)
def test_a_statement_that_the_server_has_forgotten_is_asked_in_full(rooms):
    larger_rooms(seats=8)
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")

    assert len(larger_rooms(seats=8)) == 2
