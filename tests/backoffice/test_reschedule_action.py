"""The forms that reschedule and extend: what they propose, who may, and what a stale one does."""

import pytest

from accounts.models import CenterRole, User
from payments.models import Payment
from reservations.desk.action_forms import SAVED_CARD
from reservations.models import Reservation
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import action_url, confirm, fill_slot
from tests.factories_centers import ClosureFactory, MeetingRoomFactory, ServiceFactory
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    START,
    ReservationFactory,
    make_booking,
    make_room,
)
from tests.reservations.rescheduling_helpers import make_room_at_rate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


def test_waiver_needs_the_permission_to_adjust_prices_at_both_centers(client, staff, groups):
    reservation, there = make_booking(), make_room_at_rate(make_room(name="Theirs"), 40)
    here = make_room_at_rate(reservation.room, 40)
    there.center.name = "Far away"
    there.center.save()
    someone = staff("Desk", here.center, there.center)
    client.force_login(someone)
    confirm(
        client, reservation, "move", **fill_slot(here, waiver="Please", expected_amount="75.00")
    )
    assert "waiver" not in client.get(action_url(reservation, "move")).context["form"].fields

    CenterRole.objects.create(user=someone, center=here.center, group=groups["Manager"])
    refusal = "Only who may adjust prices at Far away can waive the difference."
    assert refusal in words(client.post(action_url(reservation, "move"), fill_slot(there)))
    typed = fill_slot(there, waiver="Leak")
    for page in (
        client.post(action_url(reservation, "move"), typed),
        confirm(client, reservation, "move", **typed, expected_amount="75.00"),
    ):
        assert page.context["form"].errors == {"waiver": [refusal]}
    assert Reservation.objects.get().room == reservation.room


def test_invalid_room_or_time_shows_errors(office):
    reservation = make_booking()

    for typed in ({}, {"room": "9" * 30}, {"room": "1", "start_0": "9999-12-31"}):
        for data in (typed, {**typed, "confirmed": "yes", "expected_amount": "NaN?"}):
            page = office.post(action_url(reservation, "move"), data)
            assert page.status_code == 200
            assert page.context["form"].errors
    reservation.refresh_from_db()
    assert reservation.start == START


def test_reschedule_to_unpermitted_center_is_refused_without_naming_the_room(client, staff):
    reservation, theirs = make_booking(), make_room(name="Vault")
    client.force_login(staff("Manager", reservation.room.center))

    page = confirm(client, reservation, "move", **fill_slot(theirs), expected_amount="75.00")

    assert "There is no such room that you may book." in words(page)
    assert "Vault" not in words(page)
    reservation.refresh_from_db()
    assert reservation.room != theirs


CHANGES = {
    "move": lambda row: fill_slot(make_room_at_rate(row.room, 40)),
    "extend": lambda row: fill_slot(row.room, hours=5),
    "services": lambda row: {
        f"service-{ServiceFactory(center=row.room.center).pk}_chosen": "on",
        "expected_version": str(row.version),
    },
}


@pytest.mark.parametrize("name", CHANGES)
def test_difference_is_taken_only_for_the_amount_that_was_shown_and_with_a_slip(office, name):
    reservation = make_booking(room=make_room_at_rate(make_room(), 25))
    SavedCardFactory(user=reservation.user)
    User.objects.filter(pk=reservation.user_id).update(credit_limit=500)
    changed = CHANGES[name](reservation)
    for way, reference, amount in (
        *(("terminal", "", ""), ("terminal", "Slip 7", ""), ("cash", "", "")),
        *(("account", "PO 9", ""), ("card", "", ""), ("terminal", "", "75.00")),
        *(("terminal", " - ", "right"), ("terminal", "\u200b", "right")),
        *(("cash", "", "75.00"), ("cash", "", "0")),
    ):
        typed = {**changed, "way": way, "reference": reference, "consent": "on"}
        if amount == "right":
            page = office.post(action_url(reservation, name), typed)
            amount = str(page.context["preview"].expected_amount)

        done = confirm(
            office, reservation, name, **typed, **({"expected_amount": amount} if amount else {})
        )

        assert {level for level, _ in messages_of(done)} == {"error"}, (way, amount)
        assert Payment.objects.count() == 1, (way, amount)
        reservation.refresh_from_db()
        assert (reservation.total_cost, reservation.end) == (75, START + 3 * HOUR)


def test_extension_charged_to_the_card_after_another_change_is_refused(office):
    reservation = make_booking(room=make_room_at_rate(make_room(), 25))
    SavedCardFactory(user=reservation.user)
    extended = fill_slot(reservation.room, hours=3.5, way=SAVED_CARD, consent="on")
    Reservation.objects.update(version=reservation.version + 1)

    done = confirm(
        *(office, reservation, "extend"),
        **extended,
        expected_version=reservation.version,
        expected_amount="87.50",
    )

    assert "It was changed meanwhile" in messages_of(done)[-1][1]
    assert Reservation.objects.get().total_cost == 75


@pytest.mark.parametrize(
    ("is_closed", "has_other_room", "expected"),
    [
        (False, True, ("Boardroom", "2027-03-03T09:00", "2027-03-03T12:00")),
        (True, True, ("Other", "2027-03-03T09:00", "2027-03-03T12:00")),
        # The closure of the room ends at 13:00.
        (True, False, ("Boardroom", "2027-03-03T13:00", "2027-03-03T16:00")),
    ],
)
def test_reschedule_proposes_what_can_be_booked(office, is_closed, has_other_room, expected):
    room = make_room()
    reservation = make_booking(room=room)
    if is_closed:
        ClosureFactory(
            center=room.center, room=room, starts_at=START - HOUR, ends_at=START + 4 * HOUR
        )
    if has_other_room:
        MeetingRoomFactory(center=room.center, rate=room.rate, name="Other")

    form = office.get(action_url(reservation, "move")).context["form"]

    times = (form[name].value().isoformat(timespec="minutes") for name in ("start", "end"))
    assert (room.center.rooms.get(pk=form["room"].value()).name, *times) == expected


@pytest.mark.parametrize(
    ("grid_minutes", "next_starts_after", "end"),
    [(None, 60, "12:30"), (None, 15, "12:15"), (60, 60, "13:00"), (None, 0, "12:15")],
)
def test_extension_proposes_half_an_hour_or_the_next_slot(
    office, grid_minutes, next_starts_after, end
):
    reservation = make_booking(room=make_room(grid_minutes=grid_minutes))
    ReservationFactory(room=reservation.room, start=reservation.end + next_starts_after * MINUTE)

    form = office.get(action_url(reservation, "extend")).context["form"]

    assert form["end"].value().isoformat() == f"2027-03-03T{end}:00"
