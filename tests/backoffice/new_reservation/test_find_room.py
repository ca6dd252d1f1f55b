"""Find a room: on a page of its own, and where a form says that a room is not available."""

import re
from html import unescape

import pytest
from django.urls import reverse

from reservations.models import Reservation
from tests.admin_forms import form_of
from tests.backoffice.new_reservation.helpers import ADD, PREVIEW, typed
from tests.backoffice.reading import words
from tests.backoffice.reservation_pages import action_url
from tests.factories_centers import MeetingRoomFactory, RateFactory
from tests.factories_reservations import HOUR, START, make_booking, make_room

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

PAGE = reverse("admin:reservations_find_room")
# START at the center, in Denver.
AT = {"start_0": "2027-03-03", "start_1": "09:00", "duration": "2"}


@pytest.fixture
def rooms(room):
    """A small cheap room, the Boardroom for 8 at $25 an hour, and a large expensive one."""
    return [
        MeetingRoomFactory(
            center=room.center,
            name=name,
            capacity=capacity,
            rate=RateFactory(center=room.center, hourly=price, half_day=None, full_day=None),
        )
        for name, capacity, price in (("Closet", 4, 10), ("Hall", 30, 60))
    ]


def found_on(page):
    """The rows of the table: name, people, time and price."""
    found = page.context["found"]
    return [(each.room.name, each.room.capacity, each.time, each.price) for each in found.rooms]


def test_free_rooms_for_so_many_people_are_listed_with_their_price_the_cheapest_first(
    office, room, rooms, user
):
    page = office.get(PAGE, {"people": "5", **AT})
    assert found_on(page) == [
        ("Boardroom", 8, "09:00 - 11:00", "$50.00"),
        ("Hall", 30, "09:00 - 11:00", "$120.00"),
    ]
    assert page.context["found"].reasons == []
    # A click fills a new reservation in.
    address = unescape(re.search(r'href="([^"]*/add/\?[^"]*)">Boardroom', page.text)[1])
    fields = form_of(office.get(address))
    names = ("room", "start_0", "start_1", "end_1", "number_of_attendees")
    assert [fields[name] for name in names] == [str(room.pk), "2027-03-03", "09:00", "11:00", "5"]
    office.post(ADD, {**fields, "email": "", "user": user.pk})
    assert Reservation.objects.get().total_cost == 50


@pytest.mark.parametrize(
    ("query", "reason", "first"),
    [
        ({"people": "40"}, "No other room for 40 people: the largest one holds 30.", None),
        (
            {"people": "20"},
            "Hall: The room is already taken at that time.",
            ("Hall", 30, "12:00 - 14:00", "$120.00"),
        ),
        (
            {"people": "20", "start_1": "17:30"},
            "Hall: The center is closed at that time. It opens",
            ("Hall", 30, "Thu 2027-03-04 08:00 - 10:00", "$120.00"),
        ),
        ({"duration": "0.1"}, "Bookings begin and end on a 15-minute step.", None),
    ],
)
def test_nothing_free_says_why_and_when_the_next_times_are(
    office, room, rooms, query, reason, first
):
    make_booking(room=rooms[1], start=START, hours=3)
    page = office.get(PAGE, {**AT, **query})
    assert reason in words(page)
    assert found_on(page)[:1] == ([first] if first else [])


def test_nearby_centers_are_offered_to_those_who_may_book_there(client, staff, room):
    make_booking(room=room, start=START, hours=8)
    other, hidden = (make_room(name=name) for name in ("Loft", "Secret"))
    user = staff("Desk", room.center, other.center)
    client.force_login(user)
    page = client.get(PAGE, {**AT, "center": room.center_id})
    assert [(each.room, each.elsewhere) for each in page.context["found"].rooms] == [
        (room, ""),
        (other, "Glenarm, 0.00 miles"),
    ]
    assert hidden.name not in page.text
    refused = client.get(PAGE, {"center": hidden.center_id})
    assert refused.status_code == 404


def test_new_reservation_lists_free_rooms_until_one_is_chosen_and_instead_of_one_that_is_taken(
    office, room, rooms, user
):
    assert len(found_on(office.post(PREVIEW, typed(room, room="")))) == 3
    assert office.post(PREVIEW, typed(room)).context["found"] is None
    make_booking(room=room, start=START, hours=2)
    taken = typed(room, user, end="2027-03-03 10:00", number_of_attendees="3")
    page = office.post(PREVIEW, taken)
    assert found_on(page)[:3] == [
        ("Closet", 4, "09:00 - 10:00", "$10.00"),
        ("Hall", 30, "09:00 - 10:00", "$60.00"),
        ("Boardroom", 8, "08:00 - 09:00", "$25.00"),
    ]
    # A button changes the room and the time, and keeps the rest.
    last = page.context["found"].rooms[2].choice
    chosen = office.post(ADD, {**taken, "choose": last})
    fields = form_of(chosen)
    names = ("room", "start_1", "end_1", "number_of_attendees", "user")
    expected = [str(room.pk), "08:00", "09:00", "3", str(user.pk)]
    assert [fields[name] for name in names] == expected
    assert "✓ Available" in words(chosen)
    assert Reservation.objects.count() == 1


def test_rescheduling_to_a_taken_time_offers_others_and_previews_the_chosen_one(
    office, room, rooms
):
    booking = make_booking(room=room, start=START + 24 * HOUR, hours=2)
    make_booking(room=room, start=START, hours=3)
    url = action_url(booking, "move")
    fields = form_of(office.get(url)) | {"start_0": "2027-03-03", "end_0": "2027-03-03"}
    page = office.post(url, fields, headers={"X-Requested-With": "fetch"})
    found = page.context["preview"].found
    assert [(each.room.name, each.time) for each in found.rooms][:2] == [
        ("Hall", "09:00 - 11:00"),
        ("Boardroom", "12:00 - 14:00"),
    ]
    chosen = office.post(url, {**fields, "choose": found.rooms[1].choice})
    assert "To Boardroom" in words(chosen)
    booking.refresh_from_db()
    assert booking.start == START + 24 * HOUR
