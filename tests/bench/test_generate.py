"""The data generator is reproducible and consistent, and leaves other data alone."""

import datetime as dt
import re
from collections import Counter

import pytest
import time_machine
from django.db import connection, transaction

from accounts.models import User
from centers.models import Center, MeetingRoom
from centers.search.index import refresh_search_columns
from payments.models import Payment
from reservations.booking import integrity
from reservations.models import LineItem, Reservation
from reservations.models.status import BOOKED_STATUSES, Status
from reservations.pricing import bill
from reservations.pricing.quote import calculate_quote
from tests.bench.generate import bookings, command, generator
from tests.bench.generate.people import get_token
from tests.factories_centers import CenterFactory
from tests.factories_people import UserFactory

TODAY = dt.date(2026, 3, 2)
SIZE = {"centers": 40, "reservations": 300, "seed": 7, "today": TODAY}
ARGUMENTS = [f"--{name}={value}" for name, value in SIZE.items()]

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _development(settings):
    settings.DEBUG = True


def generate(**size):
    generator.generate(**SIZE | size, report=lambda line: None)


def read_all_rows():
    return {
        model.__name__: list(model._default_manager.order_by("pk").values_list())
        for model in generator.MODELS
    }


class RollBack(Exception):
    pass


def generate_and_roll_back(**size):
    rows = {}
    try:
        with transaction.atomic():
            generate(**size)
            rows = read_all_rows()
            raise RollBack
    except RollBack:
        return rows


# --- The data ------------------------------------------------------------------------------------


def test_same_seed_and_day_give_the_same_data():
    first = generate_and_roll_back()

    assert generate_and_roll_back() == first
    assert generate_and_roll_back(seed=8)["Reservation"] != first["Reservation"]


def test_generated_data_have_the_requested_size_and_pass_the_integrity_checks():
    generate()

    assert Center.objects.count() == 40
    assert MeetingRoom.objects.count() == 200
    assert Reservation.objects.count() == 300
    assert set(Reservation.objects.values_list("status", flat=True)) >= {
        *(Status.COMPLETED, Status.CONFIRMED, Status.CANCELLED, Status.EXPIRED),
    }
    assert Payment.objects.filter(reservation__status__in=BOOKED_STATUSES).exists()
    now = dt.datetime.combine(TODAY, dt.time(12), dt.UTC)
    assert list(integrity.find_problems(now=now)) == []


def test_generated_prices_equal_quotes():
    generate()
    plain = Reservation.objects.filter(promo_code=None, allowance_uses=None)

    for reservation in plain.select_related("room__center", "room__rate")[:100]:
        services = bill.get_selected_services(reservation)
        quote = calculate_quote(reservation.room, reservation.span, services=services)
        lines = LineItem.objects.filter(reservation=reservation).order_by("position")
        assert [line.total for line in lines] == [line.total for line in quote.lines]
        assert [line.description for line in lines] == [line.description for line in quote.lines]
        assert reservation.total_cost == quote.total


def test_generated_refunds_follow_the_cancellation_terms():
    generate(reservations=1000)
    cancelled = Reservation.objects.filter(status=Status.CANCELLED, total_cost__gt=0)

    assert {*cancelled.values_list("refund_promised", flat=True)} > {0}
    for reservation in cancelled:
        is_free = reservation.cancelled_at <= reservation.free_cancellation_until
        assert reservation.refund_promised == (reservation.total_cost if is_free else 0)


def test_generated_search_columns_equal_those_that_saving_writes():
    generate()
    columns = ["pk", *Center.SEARCH_COLUMNS]
    generated = list(Center.objects.order_by("pk").values_list(*columns))

    refresh_search_columns(Center.objects.values_list("pk", flat=True))

    for before, after in zip(
        generated, Center.objects.order_by("pk").values_list(*columns), strict=True
    ):
        *before_columns, before_text = before
        *after_columns, after_text = after
        assert before_columns == after_columns
        # Landmarks have no order.
        assert sorted(before_text.split("\n")) == sorted(after_text.split("\n"))


def test_generated_token_lists_the_reservations_of_its_customer(client):
    generate()
    customer = User.objects.filter(is_staff=False).order_by("pk").first()
    reservations = Reservation.objects.filter(user=customer)

    with time_machine.travel(dt.datetime.combine(TODAY, dt.time(12), dt.UTC)):
        response = client.post(
            "/api/account/reservations",
            {"Token": get_token(7, 1)},
            content_type="application/json",
        )

    assert reservations
    assert len(response.json()["Reservations"]) == reservations.count()


def test_large_cities_have_more_centers_than_small_ones():
    generate(centers=500)

    by_country = Counter(Center.objects.values_list("country", flat=True))

    assert by_country["CN"] > by_country["GB"] > by_country["IE"]


def test_row_added_later_gets_the_next_id():
    generate()
    last = Center.objects.order_by("pk").last()

    assert CenterFactory().pk == last.pk + 1


@pytest.mark.postgres
def test_indexes_and_constraints_are_restored():
    before = read_indexes_and_constraints()

    generate()

    assert read_indexes_and_constraints() == before


def read_indexes_and_constraints():
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'")
        indexes = [definition for (definition,) in cursor]
        cursor.execute(
            "SELECT concat(conrelid::regclass, conname, pg_get_constraintdef(oid))"
            " FROM pg_constraint"
        )
        definitions = [*indexes, *(definition for (definition,) in cursor)]
    # PostgreSQL writes the casts of a restored definition in other places.
    return sorted(re.sub(r"::[a-z ]+|[()\[\]]", "", each) for each in definitions)


# --- The command line ----------------------------------------------------------------------------


def test_command_without_debug_is_refused(settings):
    settings.DEBUG = False

    with pytest.raises(SystemExit, match="DEBUG is off"):
        command.main(ARGUMENTS)


@pytest.mark.parametrize("factory", [UserFactory, CenterFactory])
def test_command_with_other_data_is_refused_without_the_option(factory):
    other = factory()

    with pytest.raises(SystemExit, match="use --into-non-empty"):
        command.main(ARGUMENTS)
    command.main([*ARGUMENTS, "--into-non-empty"])

    other.refresh_from_db()
    assert Reservation.objects.count() == 300


def test_command_adds_another_seed_but_refuses_a_used_one():
    command.main(ARGUMENTS)
    command.main([*ARGUMENTS, "--seed=8", "--into-non-empty"])

    with pytest.raises(SystemExit, match="This seed was used before"), transaction.atomic():
        command.main([*ARGUMENTS, "--into-non-empty"])

    assert Reservation.objects.count() == 600


def test_failure_at_the_end_leaves_the_database_empty(monkeypatch):
    def fail(self):
        raise RollBack

    monkeypatch.setattr(bookings.ReservationGenerator, "finish", fail)
    with pytest.raises(RollBack):
        generate()

    assert not any(rows for rows in read_all_rows().values())
