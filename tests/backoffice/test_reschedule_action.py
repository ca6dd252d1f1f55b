"""Rescheduling in the back office, through HTTP requests."""

from decimal import Decimal

import pytest
from django.urls import reverse

from accounts.models import CenterRole, User
from payments.models import Payment
from reservations.desk.action_forms import SAVED_CARD
from reservations.models import Reservation, history
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import DAY, action_url, confirm, fill_slot
from tests.factories_centers import ClosureFactory, MeetingRoomFactory, RateFactory, ServiceFactory
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    START,
    ReservationFactory,
    make_booking,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


def at_rate(room, hourly):
    rate = RateFactory(center=room.center, hourly=Decimal(hourly), half_day=None, full_day=None)
    return MeetingRoomFactory(center=room.center, rate=rate, name=f"At {hourly}")


def test_reschedule_previews_bill_and_executes(office):
    reservation = make_booking()
    cheap = at_rate(reservation.room, 15)

    shown = office.post(action_url(reservation, "move"), fill_slot(cheap, START + DAY))

    for text in ("$75.00", "-$30.00", "Refund $30.00"):
        assert text in words(shown)
    assert shown.context["preview"].expected_amount == 45
    assert reservation.room == Reservation.objects.get().room
    sent = dict(shown.context["submitted"])
    assert sent == {key: str(value) for key, value in fill_slot(cheap, START + DAY).items()}
    # A script gets the part of the page.
    script = {"X-Requested-With": "fetch"}
    fragment = office.post(action_url(reservation, "move"), sent, headers=script).text
    assert "<html" not in fragment
    assert "-$30.00" in fragment
    assert 'name="csrfmiddlewaretoken"' in fragment
    done = confirm(office, reservation, "move", **sent, expected_amount="45.00")
    assert messages_of(done)[0][0] == "success"
    reservation.refresh_from_db()
    assert (reservation.room, reservation.start, reservation.total_cost) == (
        *(cheap, START + DAY, 45),
    )


def test_reschedule_more_expensive_needs_waiver(office, client, staff):
    reservation = make_booking()
    expensive = at_rate(reservation.room, 40)

    refused = office.post(action_url(reservation, "move"), fill_slot(expensive))
    waived = office.post(action_url(reservation, "move"), fill_slot(expensive, waiver="Leak"))

    assert "$45.00 more" in words(refused)
    assert 'name="confirmed"' not in refused.text
    assert 'name="confirmed"' in waived.text
    assert "Adjustment: Leak" in words(waived)
    forced = confirm(office, reservation, "move", **fill_slot(expensive), expected_amount="120.00")
    assert "$45.00 more" in messages_of(forced)[0][1]
    # It needs the permission to adjust prices.
    client.force_login(staff("Desk", reservation.room.center))
    typed = fill_slot(expensive, waiver="Please")
    confirm(client, reservation, "move", **typed, expected_amount="75.00")
    assert Reservation.objects.get().room == reservation.room
    assert "waiver" not in client.get(action_url(reservation, "move")).context["form"].fields


def test_waiver_without_permission_at_the_other_center_names_it(client, staff, groups):
    reservation, expensive = make_booking(), at_rate(make_room(name="Theirs"), 40)
    here, there = reservation.room.center, expensive.center
    there.name = "Far away"
    there.save()
    someone = staff("Desk", here, there)
    CenterRole.objects.create(user=someone, center=here, group=groups["Manager"])
    client.force_login(someone)
    typed = fill_slot(expensive, waiver="Leak")
    refusal = "Only who may adjust prices at Far away can waive the difference."

    assert refusal in words(client.post(action_url(reservation, "move"), fill_slot(expensive)))
    for page in (
        client.post(action_url(reservation, "move"), typed),
        confirm(client, reservation, "move", **typed, expected_amount="75.00"),
    ):
        assert page.context["form"].errors == {"waiver": [refusal]}
        assert refusal in words(page)
    assert Reservation.objects.get().room == reservation.room


def test_reschedule_room_suggestions_name_centers(office, django_assert_max_num_queries):
    reservation = make_booking()
    for _ in range(5):
        MeetingRoomFactory(name="Boardroom")
    box = reverse("admin:autocomplete")
    query = {
        "app_label": "reservations",
        "model_name": "reservation",
        "field_name": "room",
        "term": "board",
    }
    office.get(box, query)

    with django_assert_max_num_queries(6):  # however many rooms there are
        suggested = [each["text"] for each in office.get(box, query).json()["results"]]

    assert len(suggested) == 6
    assert "Boardroom, Glenarm" in suggested
    assert "Boardroom, Glenarm" in words(office.get(action_url(reservation, "move")))


@pytest.mark.parametrize(
    "typed",
    [
        {},
        {"room": "abc", "start_0": "x"},
        {"room": "9" * 30},
        {"room": "1", "start_0": "9999-12-31", "start_1": "09:00"},
    ],
)
def test_reschedule_invalid_data_shows_errors(office, typed):
    reservation = make_booking()

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


def test_reschedule_more_expensive_takes_the_difference_at_the_terminal(office):
    reservation = make_booking()
    target = fill_slot(at_rate(reservation.room, 40), way="terminal")

    incomplete = words(office.post(action_url(reservation, "move"), target))
    shown = words(office.post(action_url(reservation, "move"), {**target, "reference": "Slip 7"}))
    refused = confirm(office, reservation, "move", **target, expected_amount="120.00")
    done = confirm(
        office, reservation, "move", **target, reference="Slip 7", expected_amount="120.00"
    )

    assert "number of the terminal's slip" in incomplete
    assert "Charge $45.00, Card terminal" in incomplete
    assert "Not possible" not in shown
    assert messages_of(refused)[0][0] == "error"
    assert "$45.00 paid at the card terminal." in messages_of(done)[-1][1]
    payment = reservation.payments.get(purpose="change")
    assert (payment.amount, payment.reference) == (45, "Slip 7")


CHANGES = {
    "move": lambda row: fill_slot(at_rate(row.room, 40)),
    "extend": lambda row: fill_slot(row.room, hours=5),
    "services": lambda row: {
        f"service-{ServiceFactory(center=row.room.center).pk}_chosen": "on",
        "expected_version": str(row.version),
    },
}


@pytest.mark.parametrize("name", CHANGES)
def test_difference_is_taken_only_for_the_amount_that_was_shown_and_with_a_slip(office, name):
    reservation = make_booking(room=at_rate(make_room(), 25))
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


def test_reschedule_more_expensive_charges_the_saved_card_with_consent(office):
    reservation = make_booking()
    SavedCardFactory(user=reservation.user)
    target = fill_slot(at_rate(reservation.room, 40), way="card")

    shown = words(office.post(action_url(reservation, "move"), target))
    done = confirm(office, reservation, "move", **target, consent="on", expected_amount="120.00")

    assert "Charge $45.00, Visa ending 4242" in shown
    assert "Ask the customer" in shown
    assert messages_of(done)[0] == (
        "success",
        f"{reservation}: Changed, and $45.00 charged to the saved card.",
    )
    consent, changed = history.get_changes(reservation).order_by("pk")[2:4]
    assert consent.changes["consent_to_charge"] == [None, "Visa ending 4242"]
    assert changed.changes["charge"] == [None, "$45.00 (Visa ending 4242)"]


@pytest.mark.parametrize("way", ["terminal", SAVED_CARD])
def test_extension_of_a_booking_that_was_moved_since_its_preview_is_refused(office, way):
    reservation = make_booking(room=at_rate(make_room(), 25))
    SavedCardFactory(user=reservation.user)
    form = office.get(action_url(reservation, "extend")).context["form"]
    version = form["expected_version"].value()
    extended = fill_slot(reservation.room, hours=3.5, way=way, reference="7", consent="on")
    other = MeetingRoomFactory(center=reservation.room.center, rate=reservation.room.rate)
    move = fill_slot(other, expected_amount="75.00")
    assert messages_of(confirm(office, reservation, "move", **move))[0][0] == "success"

    done = confirm(
        office, reservation, "extend", **extended, expected_version=version, expected_amount="87.50"
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
    reservation = make_booking()
    room = reservation.room
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
