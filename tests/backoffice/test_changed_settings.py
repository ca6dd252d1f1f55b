"""Settings list the bookings that they touch: on pages, in imports, until they are resolved."""

import pytest
from django.urls import reverse

from accounts.act import Act
from accounts.models import OutboxMessage
from centers.models import Center, Closure, MeetingRoom
from reservations.booking import cancellation, resending
from reservations.desk.dashboard.alerts import find_alerts
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.errors import ReservationNotOpen
from roombook.imports import resources
from tests.admin_forms import errors_of, form_of
from tests.backoffice.reading import get_hidden_fields, messages_of, words
from tests.factories_centers import CenterFactory, MeetingRoomFactory
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    make_booking,
    make_room,
)
from tests.imports import Browser, build_csv, load
from tests.reservations.emails.helpers import get_event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

RESOLVE = reverse("admin:reservations_in_closures")
FORMER_ADDRESS = "The customer knows the former address."
SAVE_AGAIN = "Nothing is saved yet: save again to change it."


def page_of(row):
    return reverse(f"admin:centers_{row._meta.model_name}_change", args=[row.pk])


def list_of(model):
    return reverse(f"admin:centers_{model._meta.model_name}_changelist")


def get_alerts(now=NOW):
    return [each.title for each in find_alerts(AdministratorFactory(), now)]


def listed(office):
    page = office.get(RESOLVE)
    return {each["reservation"].pk: each["problems"] for each in page.context["bookings"]}


def save(office, row, **change):
    """Change fields of a page; a field is left out if it is None, as an empty checkbox."""
    typed = form_of(office.get(page_of(row))) | change
    return office.post(
        page_of(row), {key: value for key, value in typed.items() if value is not None}
    )


def link_to(booking):
    return f"Reservation {booking.pk}</a> (Boardroom, Wed 2027-03-03 09:00"


@pytest.fixture
def booking(clock):
    """A meeting of four on Wednesday from 9 to 12, in a room for eight that opens from 8 to 18."""
    booking = make_booking(room=make_room())
    Reservation.objects.filter(pk=booking.pk).update(number_of_attendees=4)
    clock.move_to(NOW + HOUR)
    return booking


def get_row(booking, kind):
    return booking.room if kind == "room" else booking.room.center


# --- The page -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "change", "text", "problem"),
    [
        ("room", {"is_active": None}, "could not take place", "The room is not active."),
        ("room", {"is_blocked": "on"}, "could not take place", "The room is blocked by staff."),
        ("room", {"capacity": "3"}, "too small", "The room holds 3 people, and 4 are expected."),
        ("center", {"is_active": None}, "could not take place", "The center is not active."),
        ("center", {"street1": "9 New St"}, "former address", FORMER_ADDRESS),
        ("center", {"postal_code": "80299"}, "former address", FORMER_ADDRESS),
        ("center", {"country": "CA", "state": "ON"}, "former address", FORMER_ADDRESS),
    ],
)
def test_touched_bookings_are_listed_on_the_page_and_until_they_are_resolved(
    office, booking, kind, change, text, problem
):
    page = save(office, get_row(booking, kind), **change)

    assert link_to(booking) in page.text
    assert text in words(page)
    assert SAVE_AGAIN in words(page)
    assert get_alerts() == []
    saved = office.post(page_of(get_row(booking, kind)), form_of(page))
    assert saved.status_code == 302, errors_of(saved)
    assert get_alerts() == ["1 booking to resolve"]
    assert listed(office) == {booking.pk: [problem]}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("room", {"capacity": "4"}),
        ("room", {"name": "Aspen", "turnaround_minutes": "30"}),
        ("center", {"rank": "7", "tax_rate": "9"}),
        ("center", {"state": "Colorado"}),  # is stored as CO
        ("center", {"is_after_hours_support_enabled": "on"}),
    ],
)
def test_other_changes_are_saved_at_once(office, booking, kind, change):
    saved = save(office, get_row(booking, kind), **change)
    assert saved.status_code == 302, errors_of(saved)
    assert get_alerts() == []


def test_bookings_that_are_over_or_cancelled_are_not_touched(office, booking, clock):
    Reservation.objects.filter(pk=booking.pk).update(
        status=Status.CANCELLED, holds_slot=False, cancelled_at=NOW
    )
    clock.move_to(START + HOUR)
    make_booking(room=booking.room, start=START + 24 * HOUR, now=START)
    clock.move_to(START + 24 * HOUR)
    office.force_login(AdministratorFactory())  # The session has ended.
    assert save(office, booking.room, is_active=None).status_code == 302
    assert not MeetingRoom.objects.get(pk=booking.room_id).is_active


def test_hours_touch_bookings_until_they_are_open_again(office, booking, clock):
    center = booking.room.center
    allowed = make_booking(room=MeetingRoomFactory(center=center))
    Reservation.objects.filter(pk=allowed.pk).update(hours_override_reason="Partner.")
    clock.move_to(NOW + 2 * HOUR)
    rows = build_csv({"id": center.pk, "wed": "10:00-20:00", "thu": "closed"})
    load("centers", rows)
    assert listed(office) == {booking.pk: ["It is outside the opening hours."]}
    assert save(office, center, is_after_hours_support_enabled="on").status_code == 302
    assert get_alerts() == []
    page = save(office, center, is_after_hours_support_enabled=None)
    assert "would be outside the opening hours" in words(page)
    assert office.post(page_of(center), form_of(page)).status_code == 302
    assert get_alerts() == ["1 booking to resolve"]
    load("centers", build_csv({"id": center.pk, "wed": "23:00-22:00"}))
    assert get_alerts() == ["1 booking to resolve"]
    load("centers", build_csv({"id": center.pk, "wed": "08:00-02:00"}))
    assert get_alerts() == []


@pytest.mark.parametrize("place", ["list", "tab"])
def test_rooms_of_a_list_are_saved_after_the_bookings_were_displayed(office, booking, place):
    room = booking.room
    address, prefix = list_of(room), "form-0"
    if place == "tab":
        address, prefix = f"{page_of(room.center)}?tab=meetingroom", "rooms-0"
    typed = form_of(office.get(address)) | {f"{prefix}-capacity": "2", "_save": "Save"}

    page = office.post(address, typed)

    assert link_to(booking) in page.text
    assert MeetingRoom.objects.get().capacity == 8
    office.post(address, form_of(page) | {"_save": "Save"})
    assert MeetingRoom.objects.get().capacity == 2
    assert get_alerts() == ["1 booking to resolve"]


def test_room_taken_out_of_service_by_the_action_warns_and_stays_at_its_center(office, booking):
    action = {"action": "take_out_of_service", "_selected_action": [booking.room_id]}
    answer = office.post(list_of(booking.room), action)
    [(level, text), _] = messages_of(answer)
    assert (level, link_to(booking) in text) == ("warning", True)
    center = booking.room.center
    save(office, booking.room, center=str(CenterFactory().pk), rate="")
    assert MeetingRoom.objects.get().center == center


# --- The import -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("room", {"is_active": "false"}),
        ("room", {"is_blocked": "true"}),
        ("room", {"capacity": "3"}),
        ("center", {"is_active": "false"}),
        ("center", {"city": "Boulder"}),
        ("center", {"wed": "10:00-20:00"}),
        ("closure", {"starts_at": "2027-03-03T08:00", "ends_at": "2027-03-03T10:00"}),
    ],
)
def test_preview_of_an_import_lists_touched_bookings(office, booking, kind, cells):
    row, model = {"id": get_row(booking, kind).pk}, get_row(booking, kind)
    if kind == "closure":
        row, model = {"center_id": booking.room.center_id}, Closure
    browser = Browser(office, list_of(model))

    page = browser.upload(build_csv(row | cells))

    assert link_to(booking) in page
    assert f"<code>{next(iter(cells))}</code>: " in page
    browser.confirm()
    assert get_alerts() == ["1 booking to resolve"]


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("room", {"capacity": "4", "is_active": "true", "is_blocked": "false"}),
        ("room", {"capacity": "12", "provider": "Acme"}),
        ("center", {"promo_text": "New", "state": "Colorado"}),
    ],
)
def test_preview_of_harmless_changes_lists_nothing(office, booking, kind, cells):
    row = get_row(booking, kind)
    page = Browser(office, list_of(row)).upload(build_csv({"id": row.pk, **cells}))
    assert "Check these" not in page


def test_harmless_changes_of_other_centers_do_not_use_up_the_notes(office, booking, monkeypatch):
    monkeypatch.setattr(resources, "MAX_ROWS_WITH_NOTES", 1)
    other, center = CenterFactory(name="Annex"), booking.room.center
    rows = [
        {"id": other.pk, "promo_text": "New", "city": other.city},
        {"id": center.pk, "promo_text": center.promo_text, "city": "Boulder"},
    ]
    assert link_to(booking) in Browser(office, list_of(center)).upload(build_csv(*rows))


# --- Bookings to resolve --------------------------------------------------------------------------


def test_email_with_the_new_address_resolves_a_booking(office, booking, clock):
    load("centers", build_csv({"id": booking.room.center_id, "street1": "9 New St"}))
    clock.move_to(NOW + 2 * HOUR)
    selected = {"do": "resend", "_selected_action": booking.pk}

    assert "E-mail to: " in words(office.post(RESOLVE, selected))
    office.post(RESOLVE, selected | {"confirmed": "yes"})

    assert get_alerts() == []
    email = OutboxMessage.objects.last()
    assert (email.kind, "9 New St" in email.text) == ("moved", True)
    assert get_event(email)["SEQUENCE"] == 2


def test_email_about_a_cancelled_booking_is_resent_as_it_was(booking, clock):
    clock.move_to(NOW + 2 * HOUR)
    cancellation.cancel(Act(booking.user, NOW + HOUR, is_staff=True), booking.pk)
    Center.objects.update(address_changed_at=NOW + 2 * HOUR)
    with pytest.raises(ReservationNotOpen, match="already waiting to be sent"):
        resending.resend_last_email(Act(booking.user, NOW + 2 * HOUR, is_staff=True), booking.pk)
    assert OutboxMessage.objects.last().kind == "cancelled"


def test_booking_of_more_people_is_moved_to_a_room_that_holds_them(office, booking):
    center, rate = booking.room.center, booking.room.rate
    MeetingRoom.objects.update(capacity=3)
    MeetingRoomFactory(center=center, rate=rate, name="Small", capacity=3)
    large = MeetingRoomFactory(center=center, rate=rate, name="Large", capacity=4)
    selected = {"do": "move", "_selected_action": booking.pk}
    office.post(RESOLVE, get_hidden_fields(office.post(RESOLVE, selected)))
    booking.refresh_from_db()
    assert booking.room == large
    assert get_alerts() == []
