"""Drafts: /api/reservations/create, update-allowances, and /api/reservation/update-promo-code

What is refused of promo codes and allowances is in tests/reservations/test_allowances.py.
"""

import pytest

from centers.models import MeetingRoom
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_centers import ClosureFactory, ServiceFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    PromoCodeFactory,
    ReservationFactory,
    make_draft,
)
from tests.operations.helpers import refused

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

NINE_TO_TWELVE = {"StartDate": "2027-03-03T09:00:00", "EndDate": "2027-03-03T12:00:00"}
GRACE = {"Name": "Grace", "EmailAddress": "grace@example.com", "CompanyName": "Navy"}


@pytest.fixture
def create(call, room):
    return lambda **fields: call(
        "/api/reservations/create", **{"MeetingRoomId": room.pk, **NINE_TO_TWELVE, **fields}
    )


@pytest.fixture
def created(create):
    def created(**fields):
        response = create(**fields)
        assert response.status_code == 200, response.content
        return response.json()["Reservation"]

    return created


def test_create_returns_the_whole_draft(create, read, ada, room):
    coffee = ServiceFactory(
        center=room.center, name="Coffee", needs_quantity=True, needs_duration=True
    )
    option = {"ServiceId": coffee.pk, "Quantity": 2, "DurationHours": 1.5}

    response = create(ServiceOptions=[option], Attendees=[GRACE])

    assert response.status_code == 200
    reservation = Reservation.objects.get()
    assert response.json() == {"Success": True, "Reservation": read(reservation)}
    shown = response.json()["Reservation"]
    # The example of the contract has all fields.
    assert (shown["Start"], shown["Status"]) == ("2027-03-03T09:00:00-07:00", "New")
    [service] = shown["Services"]
    assert service.items() >= {**option, "Selected": True}.items()
    creator, guest = shown["Attendees"]
    assert (creator["CompanyName"], creator["IsCreator"]) == ("Engines Ltd", True)
    assert guest == {"Id": guest["Id"], **GRACE, "IsCreator": False}
    assert [each["Total"] for each in shown["LineItems"]] == [75, 30]
    assert (shown["TotalCost"], shown["NumberOfAttendees"]) == (105, 2)
    assert (reservation.user, reservation.created_by) == (ada, None)
    assert reservation.currency == "USD"
    assert (reservation.holds_slot, reservation.hold_until) == (True, NOW + 15 * MINUTE)


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        # The caller is the first, unless an address in any case is the caller's.
        ([GRACE], [("Ada Lovelace", True), ("Grace", False)]),
        (
            [GRACE, {"Name": "A. L.", "EmailAddress": "ADA@example.com"}],
            [("Grace", False), ("A. L.", True)],
        ),
        # Who is the creator cannot be chosen.
        ([{"Name": "Joan", "IsCreator": True}], [("Ada Lovelace", True), ("Joan", False)]),
    ],
)
def test_caller_is_an_attendee_and_the_creator(created, sent, shown):
    reservation = created(Attendees=sent)
    assert [(each["Name"], each["IsCreator"]) for each in reservation["Attendees"]] == shown
    assert reservation["NumberOfAttendees"] == len(shown)
    assert created(Attendees=sent, NumberOfAttendees=8)["NumberOfAttendees"] == 8


# --- Holds ----------------------------------------------------------------------------------------


def test_new_draft_takes_over_the_hold_of_an_own_draft(created, ada, room):
    apart = make_draft(ada, room, start=START + 5 * HOUR, hours=1)
    earlier = make_draft(ada, room, start=START - HOUR, hours=2)
    shown = created()
    for row in (apart, earlier):
        row.refresh_from_db()
        assert row.status == Status.NEW
    assert (earlier.holds_slot, apart.holds_slot) == (False, True)
    assert Reservation.objects.get(pk=shown["Id"]).holds_slot


def test_draft_above_the_limit_releases_the_oldest_hold(created, ada, room, settings):
    settings.HELD_DRAFTS_MAX = 2
    made_by_staff = make_draft(
        ada, room, start=START + 24 * HOUR, created_by=UserFactory(is_staff=True)
    )
    oldest = make_draft(ada, room, start=START + 48 * HOUR)
    older = make_draft(ada, room, start=START + 72 * HOUR, now=NOW + MINUTE)

    created()

    for reservation in (made_by_staff, oldest, older):
        reservation.refresh_from_db()
    assert [made_by_staff.holds_slot, oldest.holds_slot, older.holds_slot] == [True, False, True]
    assert oldest.status == Status.NEW


def test_draft_is_not_held_beyond_its_start(created, time_machine):
    time_machine.move_to(START - 5 * MINUTE, tick=False)

    created()

    assert Reservation.objects.get().hold_until == START


# --- Refused, and nothing is created --------------------------------------------------------------


def get_refusal(response):
    return refused(response, 409, "SlotUnavailable")["Message"]


def test_unavailable_room_is_refused(create, room):
    make_draft(room=room)
    assert get_refusal(create()) == "The room is already taken at that time."
    ClosureFactory(center=room.center, starts_at=START, ends_at=START + HOUR)
    assert get_refusal(create()) == "The room is closed at that time."
    MeetingRoom.objects.filter(pk=room.pk).update(is_blocked=True)
    assert get_refusal(create()) == "The room cannot be booked at the moment."
    assert Reservation.objects.count() == 1


def test_drafts_above_the_hourly_limit_are_refused(create, ada, room, settings, time_machine):
    settings.CREATES_PER_HOUR = 2
    make_draft(ada, room, start=START + 48 * HOUR, created_by=UserFactory(is_staff=True))
    refused(create(MeetingRoomId=2**31 - 1), 404, "NotFound")
    for _ in range(2):
        assert create().status_code == 200

    time_machine.move_to(NOW + 40 * MINUTE, tick=False)
    response = create()

    assert refused(response, 429, "TooManyRequests")["Message"] == (
        "Too many attempts. Please wait a little and try again."
    )
    assert response["Retry-After"] == "1200"
    time_machine.move_to(NOW + HOUR, tick=False)
    assert create().status_code == 200
    # Zero allows any number.
    settings.CREATES_PER_HOUR = 0
    assert [create().status_code for _ in range(3)] == [200] * 3


# --- Promo codes and allowances -------------------------------------------------------------------


PROMO_CODE = "/api/reservation/update-promo-code"
ALLOWANCES = "/api/reservations/update-allowances"


@pytest.mark.parametrize(
    ("path", "fields"),
    [(PROMO_CODE, {"PromoCode": "TEN"}), (PROMO_CODE, {"PromoCode": ""}), (ALLOWANCES, {})],
)
def test_change_of_reservation_that_is_not_new_is_refused(call, ada, path, fields):
    PromoCodeFactory(code="TEN")
    for status in set(Status) - {Status.NEW}:
        row = ReservationFactory(user=ada, status=status)
        error = refused(call(path, ReservationId=row.pk, **fields), 409, "ReservationNotOpen")
        assert error["Message"] == "This reservation can no longer be changed."


def test_promo_code_adds_its_line_and_the_reservation_is_returned(get, call, read, ada):
    PromoCodeFactory(code="TEN", max_uses=9)
    drafted = make_draft(ada)
    before = read(drafted)

    updated = get(PROMO_CODE, ReservationId=drafted.pk, PromoCode="ten")["UpdatedReservation"]

    assert updated == read(drafted)
    line = {"Amount": "-$7.50", "Description": "Promo code TEN, 10% off", "Type": "Promotion"}
    lines = [*before["LineItems"], {**line, "Total": -7.5}]
    assert updated == {**before, "TotalCost": 67.5, "LineItems": lines, "Promotion": "TEN"}
    wrong = call(PROMO_CODE, ReservationId=drafted.pk, PromoCode="ELEVEN")
    assert refused(wrong, 409, "PromoCodeInvalid")["Message"] == (
        "This promo code cannot be used for this booking."
    )
    assert read(drafted) == updated
