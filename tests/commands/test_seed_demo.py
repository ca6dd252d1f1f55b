"""`seed_demo` makes the same on any day, and never gets among real data (B20)."""

import datetime as dt

import pytest
import time_machine
from django.core.management import CommandError
from django.db import OperationalError

from accounts.models import User
from centers.models import Center, Closure, MeetingRoom
from reservations.demo.data_files import read_csv
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_centers import CenterFactory
from tests.factories_people import UserFactory

# --- Where it refuses ----------------------------------------------------------------------------


@pytest.mark.django_db
def test_seed_demo_with_debug_off_or_another_gateway_is_refused(run, settings, monkeypatch):
    settings.DEBUG = False
    with pytest.raises(CommandError, match=r"DEBUG is off, .* add --force"):
        run("seed_demo")
    with pytest.raises(CommandError, match="DEBUG is off"):
        run("seed_demo", "--if-empty")

    class Live:
        name = "stripe"

    settings.DEBUG = True
    monkeypatch.setattr("payments.gateways.get_current_gateway", Live)
    with pytest.raises(CommandError, match="PAYMENT_GATEWAY=sandbox"):
        run("seed_demo")
    assert not User.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("factory", [UserFactory, CenterFactory])
def test_seed_demo_with_other_data_refuses_even_if_forced(run, settings, factory, debug):
    settings.DEBUG = debug
    factory()

    for force in (True, False) if debug else (True,):
        with pytest.raises(CommandError, match="The database is not empty"):
            run("seed_demo", force=force)
    assert run("seed_demo", if_empty=True) == "No demo data made: the database is not empty.\n"
    assert User.objects.count() + Center.objects.count() == 1
    assert not MeetingRoom.objects.exists()


@pytest.mark.django_db
@pytest.mark.usefixtures("tiny_pictures")
def test_interrupted_seed_demo_is_no_demo(run, settings, monkeypatch):
    settings.DEBUG = True

    def interrupt(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr("reservations.demo.meetings.create_from_file", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run("seed_demo", small=True)

    with pytest.raises(CommandError, match=r"The demo is not whole: .* Delete the database"):
        run("seed_demo", if_empty=True)


@pytest.mark.django_db
def test_database_error_is_reported_without_a_traceback(run, settings, monkeypatch):
    settings.DEBUG = True

    def refuses(**_):
        raise OperationalError("canceling statement due to lock timeout")

    monkeypatch.setattr("reservations.demo.loader.load", refuses)

    with pytest.raises(CommandError, match=r"The database refused: .* lock timeout\. Is it"):
        run("seed_demo")


# --- On any day ----------------------------------------------------------------------------------


@pytest.mark.django_db(reset_sequences=True, transaction=True)
@pytest.mark.usefixtures("tiny_pictures")
@pytest.mark.parametrize(
    "time",
    [
        "2028-02-29T23:30:00+00:00",  # a leap day, another day in half of the world
        "2026-12-23T06:00:00+00:00",  # just before holidays
        "2027-03-12T18:00:00+00:00",  # the clocks of North America change on Sunday
    ],
)
def test_ids_names_and_statuses_are_the_same_on_any_day(run, settings, time):
    settings.DEBUG = True
    now = dt.datetime.fromisoformat(time)

    with time_machine.travel(now, tick=False):
        run("seed_demo", small=True)

    def numbered(name, *columns):
        rows = read_csv(f"{name}.csv", now=now)
        return [
            (str(pk), *(row[column] for column in columns)) for pk, row in enumerate(rows, start=1)
        ]

    assert facts() == {
        "centers": numbered("centers", "name", "city"),
        "rooms": numbered("rooms", "name", "capacity"),
        "closures": numbered("closures", "reason"),
        "users": [
            *((1, "demo"), (2, "guest"), (3, "staff")),
            *((4, "manager"), (5, "desk"), (6, "viewer"), (7, "leaving")),
        ],
        "reservations": [
            (1, 1, "Boardroom", "Completed"),
            (2, 1, "Office 904", "Completed"),
            (3, 1, "Lakeview", "NoShow"),
            (4, 1, "Zilker", "Expired"),
            (5, 1, "Presidio", "Declined"),
            (6, 1, "Hawksmoor", "Cancelled"),
            (7, 2, "Bowery", "Confirmed"),
            (8, 2, "Juniper", "Confirmed"),
            (9, 1, "Maple", "Confirmed"),
            (10, 1, "Charles", "Confirmed"),
            (11, 1, "Rainier", "Pending"),
            (12, 1, "Juniper", "New"),
        ],
    }
    assert Reservation.objects.get(status=Status.NEW).start > now
    assert not Closure.objects.filter(ends_at__lte=now).exists()


def facts():
    """What must be the same every time: ids, names, order, statuses; not days."""
    return {
        "centers": texts_of(Center, "pk", "name", "city"),
        "rooms": texts_of(MeetingRoom, "pk", "name", "capacity"),
        "closures": texts_of(Closure, "pk", "reason"),
        "users": [(user.pk, user.email.split("@")[0]) for user in User.objects.order_by("pk")],
        "reservations": list(
            Reservation.objects.order_by("pk").values_list("pk", "user", "room__name", "status")
        ),
    }


def texts_of(model, *columns):
    return [tuple(map(str, row)) for row in model.objects.order_by("pk").values_list(*columns)]
