"""Compiled queries return what their querysets would, and keep their statements on PostgreSQL."""

import datetime as dt
import time
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection, models, transaction
from django.db.models import Q
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from accounts.models import ApiToken, User
from centers.models import Center, MeetingRoom, OpeningHours
from roombook.db.compiled_queries import (
    compiled_query,
    datetime_param,
    float_param,
    int_list_param,
    int_param,
    text_list_param,
    text_param,
)
from roombook.db.transactions import in_transaction
from tests import factories_centers as make
from tests.factories_people import UserFactory, issue_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def rooms():
    return [make.MeetingRoomFactory(capacity=capacity) for capacity in (4, 8, 12)]


@compiled_query(keep_plan=True)
def get_rooms_by_capacity() -> "models.QuerySet[MeetingRoom]":
    return (
        MeetingRoom.objects.filter(capacity__gte=int_param("seats"))
        .select_related("center", "rate", "resource_type")
        .order_by("pk")
    )


def test_compiled_query_returns_the_instances_of_its_queryset(rooms):
    make.MeetingRoomFactory(capacity=20, rate=None)
    plain = list(
        MeetingRoom.objects.filter(capacity__gte=8)
        .select_related("center", "rate", "resource_type")
        .order_by("pk")
    )

    found = get_rooms_by_capacity(seats=8)

    assert found == plain
    with CaptureQueriesContext(connection) as queries:
        for room, expected in zip(found, plain, strict=True):
            for name in ("center", "rate", "resource_type"):
                related, expected_related = getattr(room, name), getattr(expected, name)
                assert related == expected_related
                assert related is None or get_attributes(related) == get_attributes(
                    expected_related
                )
            assert get_attributes(room) == get_attributes(expected)
    assert not queries.captured_queries
    assert room._state.adding is False


def get_attributes(instance):
    return {name: value for name, value in vars(instance).items() if name != "_state"}


def test_compiled_query_uses_the_values_of_each_call_and_needs_them(rooms):
    counts = {seats: len(get_rooms_by_capacity(seats=seats)) for seats in (1, 5, 9, 13)}
    assert counts == {1: 3, 5: 2, 9: 1, 13: 0}
    assert len(get_rooms_by_capacity(seats=1)) == 3
    with pytest.raises(KeyError):
        get_rooms_by_capacity()


def test_params_and_columns_of_every_type_are_converted():
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
    values = {"email": user.email, "now": token.created_at}
    assert tokens(**values) == [(user.pk, token.expires_at, True)]
    assert tokens(**values | {"now": token.expires_at}) == []
    center = Center.objects.get()
    assert hours(south=12.2, day=6) == [(noon, 12.25, center.tax_rate)]
    assert hours(south=12.3, day=6) == []


def test_any_of_finds_rows_equal_to_one_of_the_values_which_are_no_sql(rooms):
    @compiled_query(keep_plan=True)
    def by_ids():
        return MeetingRoom.objects.filter(pk__any_of=int_list_param("ids")).order_by("pk")

    @compiled_query(keep_plan=True)
    def by_centers():
        return MeetingRoom.objects.filter(center__any_of=int_list_param("ids")).order_by("pk")

    @compiled_query(keep_plan=True)
    def by_names():
        return MeetingRoom.objects.filter(name__any_of=text_list_param("names")).order_by("pk")

    @compiled_query(keep_plan=True)
    def by_name():
        return MeetingRoom.objects.filter(
            Q(name=text_param("name")) | Q(provider=text_param("name"))
        )

    one, _, three = rooms
    assert by_ids(ids=[three.pk, one.pk, 0]) == [one, three]
    assert by_ids(ids=[]) == []
    assert by_centers(ids=[one.center_id, three.center_id]) == [one, three]
    assert by_names(names=[one.name, 'it\'s "this", {or} that']) == [one]
    for name in ("x' OR '1'='1", "%s"):
        assert by_name(name=name) == []


@pytest.mark.django_db(transaction=True)
def test_select_for_update_outside_a_transaction_is_refused():
    @compiled_query(keep_plan=True)
    def locked():
        return User.objects.filter(pk=int_param("user")).select_for_update()

    user = UserFactory()
    with transaction.atomic():
        assert locked(user=user.pk) == [user]
    if connection.features.has_select_for_update:
        with pytest.raises(TransactionManagementError):
            locked(user=user.pk)


# --- Prepared statements on PostgreSQL ------------------------------------------------------------


@pytest.mark.postgres
def test_connection_prepares_a_statement_once(rooms):
    with connection.cursor() as cursor:
        connection.prepared = set()
        cursor.execute("DEALLOCATE ALL")
    with CaptureQueriesContext(connection) as queries:
        for seats in (5, 9):
            assert get_rooms_by_capacity(seats=seats)

    sent = [query["sql"].split(" (")[0] for query in queries]
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM pg_prepared_statements")
        [[name]] = cursor.fetchall()
    assert connection.prepared == {name}
    assert sent == [f"EXECUTE {name}"] * 2


@pytest.mark.postgres
def test_nothing_is_prepared_behind_a_pooler(rooms, monkeypatch):
    monkeypatch.setattr(connection, "prepared", None)
    with CaptureQueriesContext(connection) as queries:
        assert len(get_rooms_by_capacity(seats=5)) == 2

    (query,) = queries
    assert query["sql"].startswith("SELECT")


def change_type_of_capacity(kind):
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE centers_meetingroom ALTER capacity TYPE {kind}")


@pytest.fixture
def widen_capacity():
    """A migration that changes the type of a column."""
    yield lambda: change_type_of_capacity("bigint")
    change_type_of_capacity("integer")


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_kept_plan_after_a_column_changed_its_type_is_replaced(rooms, widen_capacity):
    assert len(get_rooms_by_capacity(seats=8)) == 2
    widen_capacity()

    assert len(get_rooms_by_capacity(seats=8)) == 2
    assert get_rooms_by_capacity(seats=12) == [rooms[2]]


@compiled_query(keep_plan=False)
def get_rooms_without_kept_plan() -> "models.QuerySet[Any, Any]":
    return MeetingRoom.objects.filter(capacity__gte=int_param("seats")).values_list("pk")


def rewrite_table(has_begun):
    """Locks the table until somebody waits for it, as a migration does that copies each row."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("ALTER TABLE centers_meetingroom ALTER capacity TYPE bigint")
            has_begun.set()
            waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
            while cursor.execute(waiting) or not cursor.fetchall():
                time.sleep(0.01)
            cursor.execute("COMMIT")
    finally:
        connection.close()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_query_without_kept_plan_during_a_table_rewrite_finds_its_rows(rooms, widen_capacity):
    assert len(get_rooms_without_kept_plan(seats=8)) == 2
    has_begun = Event()
    migration = Thread(target=rewrite_table, args=(has_begun,))
    migration.start()
    assert has_begun.wait(timeout=60)

    found = get_rooms_without_kept_plan(seats=8)

    migration.join()
    assert len(found) == 2


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_stale_plan_within_a_transaction_runs_the_transaction_again(rooms, widen_capacity):
    get_rooms_by_capacity(seats=8)
    widen_capacity()
    attempts = []

    @in_transaction
    def read():
        attempts.append(1)
        return get_rooms_by_capacity(seats=8)

    assert len(read()) == 2
    assert len(attempts) == 2


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_statement_dropped_by_the_server_is_sent_in_full(rooms):
    get_rooms_by_capacity(seats=8)
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")

    assert len(get_rooms_by_capacity(seats=8)) == 2
