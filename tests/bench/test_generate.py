"""`generate_data` makes the same of a seed, keeps all books right, and leaves real data alone."""

import datetime as dt
import re
from collections import Counter

import pytest
import time_machine
from django.core.management import CommandError
from django.db import connection, transaction

from accounts.models import User
from centers.models import Center, MeetingRoom
from centers.search.index import refresh_search_columns
from payments.models import Payment
from reservations.booking import integrity
from reservations.generate import bookings, maker
from reservations.generate.people import token_of
from reservations.models import LineItem, Reservation
from reservations.models.status import BOOKED_STATUSES, Status
from reservations.pricing import bill
from tests.factories_centers import CenterFactory
from tests.factories_people import UserFactory

TODAY = dt.date(2026, 3, 2)
SIZE = {"centers": 40, "reservations": 300, "seed": 7, "today": TODAY}

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _development(settings):
    settings.DEBUG = True


def all_rows():
    return {
        model.__name__: list(model._default_manager.order_by("pk").values_list())
        for model in maker.MODELS
    }


class MadeAnew(Exception):
    """Takes what was made back."""


def made_by(run, **size):
    rows = {}
    try:
        with transaction.atomic():
            run("generate_data", **SIZE | size)
            rows = all_rows()
            raise MadeAnew
    except MadeAnew:
        return rows


# --- What it makes -------------------------------------------------------------------------------


def test_the_same_seed_and_day_make_the_same_data(run):
    first = made_by(run)

    assert made_by(run) == first
    assert made_by(run, seed=8)["Reservation"] != first["Reservation"]


def test_it_makes_as_much_as_was_asked_for_and_all_books_are_right(run):
    run("generate_data", **SIZE)

    assert Center.objects.count() == 40
    assert MeetingRoom.objects.count() == 200
    assert Reservation.objects.count() == 300
    assert set(Reservation.objects.values_list("status", flat=True)) >= {
        *(Status.COMPLETED, Status.CONFIRMED, Status.CANCELLED, Status.EXPIRED),
    }
    assert Payment.objects.filter(reservation__status__in=BOOKED_STATUSES).exists()
    now = dt.datetime.combine(TODAY, dt.time(12), dt.UTC)
    assert list(integrity.find_problems(now=now)) == []


def test_prices_are_those_of_any_quote(run):
    run("generate_data", **SIZE)
    plain = Reservation.objects.filter(promo_code=None, allowance_uses=None)

    for reservation in plain.select_related("room__center", "room__rate")[:100]:
        quote = bill.quote_list_price(
            reservation.room, reservation.span, bill.get_selected_services(reservation)
        )
        lines = LineItem.objects.filter(reservation=reservation).order_by("position")
        assert [line.total for line in lines] == [line.total for line in quote.lines]
        assert [line.description for line in lines] == [line.description for line in quote.lines]
        assert reservation.total_cost == quote.total


def test_searches_read_what_saving_would_have_written(run):
    run("generate_data", **SIZE)
    columns = ["pk", *Center.SEARCH_COLUMNS]
    generated = list(Center.objects.order_by("pk").values_list(*columns))

    refresh_search_columns(Center.objects.values_list("pk", flat=True))

    for made, saved in zip(
        generated, Center.objects.order_by("pk").values_list(*columns), strict=True
    ):
        *made, made_text = made
        *saved, saved_text = saved
        assert made == saved
        # Landmarks have no order.
        assert sorted(made_text.split("\n")) == sorted(saved_text.split("\n"))


def test_customers_are_signed_in_and_see_their_reservations(run, client):
    run("generate_data", **SIZE)
    customer = User.objects.filter(is_staff=False).order_by("pk").first()
    own = Reservation.objects.filter(user=customer)

    with time_machine.travel(dt.datetime.combine(TODAY, dt.time(12), dt.UTC)):
        response = client.post(
            "/api/account/reservations",
            {"Token": token_of(7, 1)},
            content_type="application/json",
        )

    assert own
    assert len(response.json()["Reservations"]) == own.count()


def test_large_cities_have_more_centers_than_small_ones(run):
    run("generate_data", **SIZE | {"centers": 500})

    by_country = Counter(Center.objects.values_list("country", flat=True))

    assert by_country["CN"] > by_country["GB"] > by_country["IE"]


def test_what_is_added_later_gets_the_next_number(run):
    run("generate_data", **SIZE)
    last = Center.objects.order_by("pk").last()

    assert CenterFactory().pk == last.pk + 1


@pytest.mark.postgres
def test_indexes_and_constraints_are_as_before(run):
    before = indexes_and_constraints()

    run("generate_data", **SIZE)

    assert indexes_and_constraints() == before


def indexes_and_constraints():
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'")
        indexes = [definition for (definition,) in cursor]
        cursor.execute(
            "SELECT concat(conrelid::regclass, conname, pg_get_constraintdef(oid))"
            " FROM pg_constraint"
        )
        definitions = [*indexes, *(definition for (definition,) in cursor)]
    # Told again, PostgreSQL writes its casts elsewhere.
    return sorted(re.sub(r"::[a-z ]+|[()\[\]]", "", each) for each in definitions)


# --- Where it refuses ----------------------------------------------------------------------------


def test_with_debug_off_it_wants_to_be_forced(run, settings):
    settings.DEBUG = False

    with pytest.raises(CommandError, match=r"DEBUG is off, .* add --force"):
        run("generate_data", **SIZE)


@pytest.mark.parametrize("factory", [UserFactory, CenterFactory])
def test_other_data_is_left_alone_unless_told(run, factory):
    other = factory()

    with pytest.raises(CommandError, match="add --into-non-empty"):
        run("generate_data", **SIZE)
    run("generate_data", **SIZE, into_non_empty=True)

    other.refresh_from_db()
    assert Reservation.objects.count() == 300


def test_a_second_seed_goes_beside_the_first_but_no_seed_twice(run):
    run("generate_data", **SIZE)
    run("generate_data", **SIZE | {"seed": 8}, into_non_empty=True)

    with (
        pytest.raises(CommandError, match="This seed was used here already"),
        transaction.atomic(),
    ):
        run("generate_data", **SIZE, into_non_empty=True)

    assert Reservation.objects.count() == 600


def test_it_makes_all_or_nothing(run, monkeypatch):
    def fail(self):
        raise MadeAnew

    monkeypatch.setattr(bookings.Bookings, "finish", fail)
    with pytest.raises(MadeAnew):
        run("generate_data", **SIZE)

    assert not any(rows for rows in all_rows().values())
