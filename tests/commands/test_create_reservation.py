"""The create_reservation command: drafts by the rules of the API."""

import datetime as dt
from decimal import Decimal

import pytest
import time_machine
from django.core.management import CommandError

from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_centers import FlatRateFactory, ServiceFactory
from tests.factories_people import StaffFactory, UserFactory
from tests.factories_reservations import MINUTE, NOW, make_booking, make_room

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _clock():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def room():
    return make_room()


@pytest.fixture
def ada():
    return UserFactory(email="ada@example.com")


def words(room, *more, user="ada@example.com", start="2027-03-03T09:00", end="2027-03-03T14:00"):
    return ("--user", user, "--room", room.pk, "--start", start, "--end", end, *more)


def test_command_creates_draft_and_prints_its_bill(run, room, ada):
    coffee = ServiceFactory(center=room.center, name="Coffee", needs_quantity=True)
    projector = ServiceFactory(
        center=room.center,
        name="Projector",
        needs_duration=True,
        rate=FlatRateFactory(
            center=room.center, is_flat_rate=False, flat_rate=None, hourly=Decimal(8)
        ),
    )

    services = ("--service", f"{coffee.pk}:4", "--service", f"{projector.pk}:1.5h")
    said = run("create_reservation", *words(room, *services, "--attendees", 4))

    reservation = Reservation.objects.get()
    assert said.splitlines() == [
        f"Reservation {reservation.pk} for ada@example.com: Boardroom at Glenarm,"
        " Wed, Mar 3, 2027, 9:00 AM - 2:00 PM",
        "It is New and holds the room until 2027-03-01 09:15 (the center's time).",
        "  Room     Boardroom, 5 hours: half day + 1 hour ($90.00/half day + $25.00/hour)  $115.00",
        "  Service  Coffee, 4 pieces ($15.00 flat)                                          $60.00",
        "  Service  Projector, 1.5 hours ($8.00/hour)                                       $12.00",
        "  Total                                                                           $187.00",
    ]
    assert (reservation.user, reservation.status) == (ada, Status.NEW)
    assert reservation.start == dt.datetime(2027, 3, 3, 16, tzinfo=dt.UTC)
    assert reservation.number_of_attendees == 4
    assert reservation.created_by is None
    assert reservation.hold_until == NOW + dt.timedelta(minutes=15)


def test_draft_by_staff_is_held_for_a_day(run, room, ada):
    staff = StaffFactory(email="sam@example.com")

    run("create_reservation", *words(room, "--staff", "SAM@example.com"))

    reservation = Reservation.objects.get()
    assert reservation.created_by == staff
    assert reservation.hold_until == NOW + dt.timedelta(hours=24)


def test_times_with_offset_are_independent_of_the_center(run, room, ada):
    run(
        "create_reservation",
        *words(room, start="2027-03-03T17:00+01:00", end="2027-03-03T18:00+01:00"),
    )

    assert Reservation.objects.get().start == dt.datetime(2027, 3, 3, 16, tzinfo=dt.UTC)


def test_refused_draft_prints_every_reason(run, room, ada):
    other = make_booking(room=room)

    with pytest.raises(CommandError) as refusal:
        run("create_reservation", *words(room, start="2027-03-03T09:05", end="2027-03-03T18:20"))

    assert str(refusal.value).splitlines() == [
        "Bookings begin and end on a 15-minute step.",
        "  off-grid: Every 15 minutes from local midnight.",
        "  closed: It opens Mon-Sun 08:00 - 18:00.",
        f"  held: Reservation {other.pk} (Confirmed), Wed 2027-03-03 09:00 - 12:00",
    ]
    assert Reservation.objects.get() == other


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"user": "nobody@example.com"}, "There is no account nobody@example.com."),
        ({"end": "2027-03-03T09:00"}, "--end: The end must be after the start."),
        (
            {"start": "2027-03-14T02:30", "end": "2027-03-14T09:00"},
            "--start: The clock skips this time at the center.",
        ),
        ({"start": "2027-03-03"}, "'2027-03-03' is not a time, such as 2027-03-01T09:00"),
        ({"start": "soon"}, "'soon' is not a time"),
    ],
)
def test_invalid_input_is_reported_with_its_option(run, room, ada, more, expected):
    with pytest.raises(CommandError) as refusal:
        run("create_reservation", *words(room, **more))

    assert expected in str(refusal.value)
    assert not Reservation.objects.exists()


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (("--service", "999"), "--service 0 service_id: This center does not offer this service."),
        (("--service", "x"), "'x' is not a whole number"),
        (("--service", "1:0"), "'0' is not a whole number from 1 to 1000"),
        (("--service", "1:2:3"), "pieces or hours are given twice"),
        (("--service", "1:-1h"), "'-1' is not a number of hours"),
        (("--service", "1:nanh"), "'nan' is not a number of hours"),
        (("--service", "1:0.001h"), "'0.001' is not a number of hours"),
        (("--service", "1:h"), "'' is not a number of hours"),
        (("--attendees", "0"), "'0' is not a whole number"),
        (("--attendees", "9"), "--attendees: The room holds 8 people."),
        (("--staff", "ada@example.com"), "ada@example.com is not staff."),
        (("--room", "0"), "'0' is not a whole number"),
        (("--room", "99999"), "There is no room 99999."),
        (("--room", "9" * 30), "is not a whole number"),
    ],
)
def test_invalid_options_are_reported(run, room, ada, more, expected):
    with pytest.raises(CommandError) as refusal:
        run("create_reservation", *words(room, *more))

    assert expected in str(refusal.value)
    assert not Reservation.objects.exists()


def test_disabled_account_is_refused(run, room):
    UserFactory(email="gone@example.com", is_active=False)

    with pytest.raises(CommandError, match=r"The account gone@example\.com is disabled\."):
        run("create_reservation", *words(room, user="gone@example.com"))


def test_room_without_a_rate_is_refused(run, room, ada):
    room.rate = None
    room.save()

    with pytest.raises(CommandError, match="no price yet"):
        run("create_reservation", *words(room))

    assert not Reservation.objects.exists()


def test_draft_without_times_takes_the_next_free_hour(run, room, ada):
    run("create_reservation", "--user", ada.email, "--room", room.pk)

    reservation = Reservation.objects.get()
    assert (reservation.start - NOW, reservation.end - NOW) == (15 * MINUTE, 75 * MINUTE)
    said = run("explain_quote", "--room", room.pk)
    assert "Mar 1, 2027, 10:15 AM - 11:15 AM" in said


def test_draft_without_times_is_refused_if_the_room_is_never_free(run, room, ada):
    room.center.opening_hours.all().delete()

    with pytest.raises(CommandError, match="not free in the next three weeks"):
        run("create_reservation", "--user", ada.email, "--room", room.pk)
