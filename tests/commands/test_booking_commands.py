"""availability, create_reservation and explain_quote: the functions of pages and operations."""

import datetime as dt

import pytest
import time_machine
from django.core.management import CommandError

from reservations.models import Reservation
from tests.factories_centers import ServiceFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import MINUTE, NOW, make_booking, make_draft

pytestmark = pytest.mark.django_db

TIMES = ("--start", "2027-03-03T09:00", "--end", "2027-03-03T14:00")
ROOM_LINE = "  Room: Boardroom, 5 hours: half day + 1 hour, $115.00"
DAY_LINE = (
    "  2027-03-03, 5 hours billed: half day + 1 hour at $115.00; 5 hours would be $125.00,"
    " day would be $160.00, 2 half days would be $180.00"
)


@pytest.fixture(autouse=True)
def _clock():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def ada():
    return UserFactory(email="ada@example.com")


def test_availability_prints_every_reason_or_that_it_is_available(run, room):
    other = make_booking(room=room)

    free = run("availability", "--room", room.pk)
    taken = run("availability", "--room", room.pk, *TIMES[:2], "--end", "2027-03-03T18:20")

    assert free.splitlines()[1:] == ["  available"]
    assert [line.strip() for line in taken.splitlines()[1:]] == [
        "off-grid: Every 15 minutes from local midnight.",
        "closed: It opens Mon-Sun 08:00 - 18:00.",
        f"held: Reservation {other.pk} (Confirmed), Wed 2027-03-03 09:00 - 12:00",
    ]


def test_create_reservation_creates_draft_and_prints_its_bill(run, room, ada):
    coffee = ServiceFactory(center=room.center, name="Coffee", needs_quantity=True)

    said = run(
        "create_reservation",
        *("--user", "ADA@example.com", "--room", room.pk, *TIMES),
        *("--service", f"{coffee.pk}:4", "--attendees", 4),
    )

    reservation = Reservation.objects.get()
    assert said.splitlines()[1:] == [
        ROOM_LINE,
        "  Service: Coffee, 4 pieces, $60.00",
        "  Total: $175.00",
    ]
    assert (reservation.user, reservation.number_of_attendees) == (ada, 4)
    assert reservation.start == dt.datetime(2027, 3, 3, 16, tzinfo=dt.UTC)


def test_create_reservation_without_times_takes_the_next_free_hour(run, room, ada):
    words = ("create_reservation", "--user", ada.email, "--room", room.pk)
    run(*words)

    reservation = Reservation.objects.get()
    assert (reservation.start - NOW, reservation.end - NOW) == (15 * MINUTE, 75 * MINUTE)
    room.center.opening_hours.all().delete()
    with pytest.raises(CommandError, match="not free in the next three weeks"):
        run(*words)


def test_explain_quote_prints_the_tiers_of_each_day(run, room):
    listed = run("explain_quote", "--room", room.pk, *TIMES)
    draft = make_draft(room=room, hours=5)

    assert listed.splitlines() == [
        f"{room}: $25.00/hour, $90.00/half day, $160.00/day",
        *(DAY_LINE, ROOM_LINE, "  Total: $115.00"),
    ]
    assert run("explain_quote", "--reservation", draft.pk) == listed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--room", "77777", *TIMES), "does not exist"),
        (("--room", "{room}", *TIMES, "--service", "x"), "invalid parse_service value"),
        (("--room", "{room}", *TIMES, "--attendees", "9"), "The room holds 8 people."),
        (("--room", "{room}", *TIMES, "--user", "bob@example.com"), "no such account"),
    ],
)
def test_invalid_input_is_refused_with_the_reason(run, room, ada, words, message):
    options = [word.format(room=room.pk) for word in words]

    with pytest.raises(CommandError, match=message):
        run("create_reservation", "--user", ada.email, *options)

    assert not Reservation.objects.exists()
