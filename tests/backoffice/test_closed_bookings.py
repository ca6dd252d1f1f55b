"""The page of bookings in closures, and its alert."""

import datetime as dt
from decimal import Decimal

import pytest
from django.urls import reverse

from accounts.models import OutboxMessage
from centers.models import Closure
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Refund
from reservations.desk.dashboard.alerts import find_alerts
from reservations.models import RefundOverride
from reservations.models.status import Status
from tests.backoffice.reading import get_hidden_fields, messages_of, words
from tests.factories_centers import MeetingRoomFactory, make_center_with_room
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    get_current_status,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

PAGE = reverse("admin:reservations_in_closures")
LATE = START - HOUR
CANCEL = {
    "do": "cancel",
    "everything": "on",
    "reason": "No heating.",
    "message": "We are <sorry>.",
}
MOVE = {"do": "move"}


def close(center, room=None, *, start=START, end=START + 3 * HOUR):
    return Closure.objects.create(
        center=center, room=room, starts_at=start, ends_at=end, reason="Repairs"
    )


def listed(page):
    return [each["reservation"] for each in page.context["bookings"]]


def select(*bookings):
    return {"_selected_action": [each.pk for each in bookings]}


def get_alert_titles(user, now=NOW):
    return [each.title for each in find_alerts(user, now) if "to resolve" in each.title]


def test_closed_bookings_lists_bookings_to_come_in_closures(office, clock):
    room = make_room()
    aspen = MeetingRoomFactory(center=room.center, name="Aspen")
    booking, pending = make_booking(room=room), make_pending_booking(room=aspen)
    make_draft(room=MeetingRoomFactory(center=room.center, name="Birch"))
    make_booking(room=room, start=START + 3 * HOUR)
    elsewhere = make_booking()
    close(room.center)
    close(elsewhere.room.center, MeetingRoomFactory(center=elsewhere.room.center, name="Cedar"))

    page = office.get(PAGE)

    assert listed(page) == [booking, pending]
    assert "Repairs, Wed 2027-03-03 09:00 - 12:00 $75.00" in words(page)
    assert listed(office.get(PAGE, {"center": elsewhere.room.center_id})) == []
    user = AdministratorFactory()
    assert get_alert_titles(user) == ["2 bookings to resolve"]
    clock.move_to(START)
    assert get_alert_titles(user, now=START) == []


def test_selected_bookings_are_cancelled_once_with_full_refund_and_message(client, staff, clock):
    room = make_room()
    rooms = [room, *(MeetingRoomFactory(center=room.center, name=name) for name in ("A", "B"))]
    first, second, left = (make_booking(room=each) for each in rooms)
    close(room.center)
    clock.move_to(LATE)  # the policy refunds nothing
    manager = staff("Manager", room.center)
    client.force_login(manager)

    preview = client.post(PAGE, {**CANCEL, **select(first, second)})

    assert words(preview).count("Refund: $75.00") == 2
    assert "We are &lt;sorry&gt;." in preview.text
    assert get_current_status(first) == Status.CONFIRMED
    confirmed = get_hidden_fields(preview)
    done = client.post(PAGE, confirmed)
    again = client.post(PAGE, confirmed)

    assert [level for level, _ in messages_of(done)] == ["success", "success"]
    assert "2 selected bookings are resolved already" in messages_of(again)[-1][1]
    assert {get_current_status(each) for each in (first, second)} == {Status.CANCELLED}
    assert get_current_status(left) == Status.CONFIRMED
    assert [each.amount for each in Refund.objects.all()] == [Decimal(75)] * 2
    assert sum(each.refunded for each in SandboxPayment.objects.all()) == 150
    assert RefundOverride.objects.filter(reason="No heating.", by=manager).count() == 2
    texts = [each.text for each in OutboxMessage.objects.filter(kind="cancelled")]
    assert len(texts) == 2
    assert all("We are <sorry>." in each for each in texts)
    assert listed(client.get(PAGE)) == [left]
    assert get_alert_titles(manager, LATE) == ["1 booking to resolve"]


def test_booking_that_cannot_be_cancelled_as_previewed_stays_with_its_reason(office, clock):
    room = make_room()
    late, early = make_booking(room=room), make_booking(room=room, start=START + 30 * HOUR)
    close(room.center, end=START + 40 * HOUR)
    confirmed = get_hidden_fields(
        office.post(PAGE, {"do": "cancel", "message": "", **select(late, early)})
    )
    clock.move_to(LATE)
    office.force_login(AdministratorFactory())

    done = office.post(PAGE, confirmed)

    assert [level for level, _ in messages_of(done)] == ["error", "success"]
    assert "The refund has changed" in messages_of(done)[0][1]
    assert listed(office.get(PAGE)) == [late]


def test_selected_bookings_are_moved_to_free_rooms_and_the_rest_stays(office):
    room = make_room()
    aspen = MeetingRoomFactory(
        center=room.center, name="Aspen", capacity=room.capacity, rate=room.rate
    )
    MeetingRoomFactory(center=room.center, name="Small", capacity=room.capacity - 1, rate=room.rate)
    first = make_booking(room=room)
    second = make_booking(room=room, start=START + 4 * HOUR, hours=1)
    third = make_booking(room=room, start=START + 5 * HOUR, hours=1)
    make_booking(room=aspen, start=START + 5 * HOUR, hours=1)
    close(room.center, room, end=START + 6 * HOUR)

    preview = office.post(PAGE, {**MOVE, **select(first, second, third)})

    assert preview.context["possible"] == 2
    assert "To: Aspen at" in words(preview)
    assert "No room that is as large is available for the same price or less." in words(preview)
    confirmed = get_hidden_fields(preview)
    done = office.post(PAGE, confirmed)
    again = office.post(PAGE, confirmed)

    assert [level for level, _ in messages_of(done)] == ["success", "success"]
    assert messages_of(again)[-1][0] == "warning"
    for each in (first, second, third):
        each.refresh_from_db()
    assert (first.room, second.room, third.room) == (aspen, aspen, room)
    assert first.start == START
    assert OutboxMessage.objects.filter(kind="moved").count() == 2
    assert listed(office.get(PAGE)) == [third]


def test_bookings_are_moved_to_another_time_only_if_that_is_wanted(office):
    booking = make_booking()
    close(booking.room.center)

    refused = office.post(PAGE, {**MOVE, **select(booking)})
    preview = office.post(PAGE, {**MOVE, "move_to": "time", **select(booking)})
    fields = get_hidden_fields(preview)
    for forged in ("", "x", "1 2"):
        done = office.post(PAGE, {**fields, f"slot_{booking.pk}": forged})
        assert messages_of(done)[-1][0] == "error", forged
    booking.refresh_from_db()
    assert booking.start == START
    office.post(PAGE, fields)

    assert refused.context["possible"] == 0
    booking.refresh_from_db()
    assert booking.start != START
    assert abs(booking.start - START) <= dt.timedelta(hours=24)
    assert listed(office.get(PAGE)) == []


def test_closed_bookings_obey_roles_and_centers(client, staff, clock):
    booking = make_booking()
    here, other = booking.room.center, make_center_with_room()
    close(here)
    confirmed = {**CANCEL, **select(booking), "confirmed": "yes"}

    client.force_login(staff("Manager", other))
    assert listed(client.get(PAGE)) == []
    assert messages_of(client.post(PAGE, confirmed))[-1][0] == "warning"
    client.force_login(staff("Viewer", here))
    page = client.post(PAGE, confirmed)
    assert listed(page) == [booking]
    assert not page.context["can_change"]
    client.force_login(staff("Desk", here))
    assert list(client.post(PAGE, CANCEL | select(booking)).context["form"].fields) == ["message"]
    # Nor do managers without a selection or a reason for the refund that is proposed.
    clock.move_to(LATE)
    client.force_login(staff("Manager", here))
    for typed in ({"do": "cancel"}, {**CANCEL, "reason": ""}):
        page = client.post(PAGE, typed | select(booking))
        assert "A refund that the policy does not give needs a reason." in words(page)
        assert page.context["possible"] == 0
    assert "Select at least one booking." in messages_of(client.post(PAGE, CANCEL))[-1][1]
    assert get_current_status(booking) == Status.CONFIRMED
