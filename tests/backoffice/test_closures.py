"""Closures show the bookings in them before they are saved; then these wait to be resolved."""

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
from tests.admin_forms import form_of
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

ADD = reverse("admin:centers_closure_add")
HOLIDAYS = reverse("admin:centers_closure_holidays")
RESOLVE = reverse("admin:reservations_in_closures")
LATE = START - HOUR
CANCEL = {
    "do": "cancel",
    "everything": "on",
    "reason": "No heating.",
    "message": "We are <sorry>.",
}
MOVE = {"do": "move"}


def link_to(reservation):
    page = reverse("admin:reservations_reservation_change", args=[reservation.pk])
    return (
        f'<a class="underline" href="{page}">Reservation {reservation.pk}</a>'
        " (Boardroom, Wed 2027-03-03 09:00 - 12:00, Ada Lovelace, $75.00)"
    )


def closure_of(center):
    """The form of a closure from 8 to 10 on Wednesday."""
    day = {"starts_at_0": "2027-03-03", "ends_at_0": "2027-03-03"}
    times = {"starts_at_1": "08:00", "ends_at_1": "10:00"}
    return {"center": center.pk, "room": "", **day, **times, "reason": "Repairs"}


def test_closure_over_reservations_is_saved_after_all_were_displayed(office):
    reservation = make_booking()
    center = reservation.room.center

    page = office.post(ADD, closure_of(center))

    assert link_to(reservation) in page.text
    assert "Nothing is saved yet: save again to close." in words(page)
    assert not Closure.objects.exists()
    # It is displayed again with those that were booked since.
    other = make_booking(room=MeetingRoomFactory(center=center, name="Aspen"))
    page = office.post(ADD, form_of(page))
    assert f"Reservation {other.pk}</a> (Aspen" in page.text
    assert not Closure.objects.exists()
    saved = office.post(ADD, form_of(page))
    assert Closure.objects.get().reason == "Repairs"
    assert saved.url == f"{RESOLVE}?center={center.pk}"
    # Another reason concerns nobody.
    url = reverse("admin:centers_closure_change", args=[Closure.objects.get().pk])
    typed = form_of(office.get(url))
    office.post(url, {**typed, "reason": "Paint"})
    assert link_to(reservation) in office.post(url, {**typed, "ends_at_1": "11:30"}).text
    assert Closure.objects.get().reason == "Paint"


def test_closure_without_times_is_of_whole_days_and_proposes_the_only_center(client, staff):
    center = make_room().center
    client.force_login(staff("Manager", center))
    typed = form_of(client.get(ADD))
    assert typed["center"] == str(center.pk)

    client.post(ADD, typed | {"starts_at_0": "3/5/2027", "ends_at_0": "3/6/2027"})

    closure = Closure.objects.get()
    local = [at.astimezone(center.zone) for at in (closure.starts_at, closure.ends_at)]
    assert [f"{at:%Y-%m-%d %H:%M}" for at in local] == ["2027-03-05 00:00", "2027-03-07 00:00"]


@pytest.mark.parametrize("tab", ["closure", "openinghours"])
def test_tab_of_a_center_is_saved_after_the_reservations_were_displayed(office, tab):
    reservation = make_booking()
    center = reservation.room.center
    make_booking(room=reservation.room, start=START + dt.timedelta(days=1))
    url = reverse("admin:centers_center_change", args=[center.pk]) + f"?tab={tab}"
    typed = form_of(office.get(url))
    if tab == "closure":
        new = {f"closures-0-{name}": value for name, value in closure_of(center).items()}
        typed |= {**new, "closures-TOTAL_FORMS": "1"}
    else:
        wednesday = center.opening_hours.get(weekday=2)
        ids = {value: name for name, value in typed.items() if name.endswith("-id")}
        prefix = ids[f"{wednesday.pk}"].removesuffix("id")
        typed[f"{prefix}opens"] = "10:00"

    page = office.post(url, typed)

    assert link_to(reservation) in page.text
    assert page.text.count("Ada Lovelace, $75.00)") == 1
    assert "Nothing is saved yet: save again to " in words(page)
    assert not Closure.objects.exists()
    assert not center.opening_hours.filter(opens=dt.time(10)).exists()
    office.post(url, form_of(page))
    if tab == "closure":
        assert Closure.objects.get().center == center
    else:
        assert center.opening_hours.get(opens=dt.time(10)).weekday == 2
        # What was outside before is not named again.
        typed = form_of(office.get(url)) | {f"{prefix}opens": "10:30"}
        assert office.post(url, typed).status_code == 302


def test_holidays_preview_lists_reservations(office):
    reservation = make_booking()
    typed = {"centers": [reservation.room.center_id], "year": "2027", "do": "preview"}

    page = office.post(HOLIDAYS, {**typed, "lines": "2027-03-03 Founders Day"})

    assert link_to(reservation) in page.text


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


def test_bookings_to_come_in_closures_are_listed(office, clock):
    room = make_room()
    aspen = MeetingRoomFactory(center=room.center, name="Aspen")
    booking, pending = make_booking(room=room), make_pending_booking(room=aspen)
    make_draft(room=MeetingRoomFactory(center=room.center, name="Birch"))
    make_booking(room=room, start=START + 3 * HOUR)
    elsewhere = make_booking()
    close(room.center)
    close(elsewhere.room.center, MeetingRoomFactory(center=elsewhere.room.center, name="Cedar"))

    page = office.get(RESOLVE)

    assert listed(page) == [booking, pending]
    assert "Repairs, Wed 2027-03-03 09:00 - 12:00 $75.00" in words(page)
    assert listed(office.get(RESOLVE, {"center": elsewhere.room.center_id})) == []
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

    preview = client.post(RESOLVE, {**CANCEL, **select(first, second)})

    assert words(preview).count("Refund: $75.00") == 2
    assert "We are &lt;sorry&gt;." in preview.text
    assert get_current_status(first) == Status.CONFIRMED
    done, again = (client.post(RESOLVE, get_hidden_fields(preview)) for _ in range(2))

    assert [level for level, _ in messages_of(done)] == ["success", "success"]
    assert "2 selected bookings are resolved already" in messages_of(again)[-1][1]
    assert {get_current_status(each) for each in (first, second)} == {Status.CANCELLED}
    assert get_current_status(left) == Status.CONFIRMED
    assert [each.amount for each in Refund.objects.all()] == [Decimal(75)] * 2
    assert sum(each.refunded for each in SandboxPayment.objects.all()) == 150
    assert RefundOverride.objects.filter(reason="No heating.", by=manager).count() == 2
    texts = [each.text for each in OutboxMessage.objects.filter(kind="cancelled")]
    assert ["We are <sorry>." in each for each in texts] == [True, True]
    assert listed(client.get(RESOLVE)) == [left]
    assert get_alert_titles(manager, LATE) == ["1 booking to resolve"]


def test_selected_bookings_are_moved_to_free_rooms_and_the_rest_stays(office):
    room = make_room()
    as_large, smaller = (
        MeetingRoomFactory(center=room.center, name=name, capacity=capacity, rate=room.rate)
        for name, capacity in (("Aspen", room.capacity), ("Small", room.capacity - 1))
    )
    first = make_booking(room=room)
    second = make_booking(room=room, start=START + 4 * HOUR, hours=1)
    third = make_booking(room=room, start=START + 5 * HOUR, hours=1)
    make_booking(room=as_large, start=START + 5 * HOUR, hours=1)
    close(room.center, room, end=START + 6 * HOUR)

    preview = office.post(RESOLVE, {**MOVE, **select(first, second, third)})

    assert preview.context["possible"] == 2
    assert "To: Aspen at" in words(preview)
    assert "No room that is as large is available for the same price or less." in words(preview)
    done, again = (office.post(RESOLVE, get_hidden_fields(preview)) for _ in range(2))

    assert [level for level, _ in messages_of(done)] == ["success", "success"]
    assert messages_of(again)[-1][0] == "warning"
    for each in (first, second, third):
        each.refresh_from_db()
    assert (first.room, second.room, third.room) == (as_large, as_large, room)
    assert not smaller.reservations.exists()
    assert first.start == START
    assert OutboxMessage.objects.filter(kind="moved").count() == 2
    assert listed(office.get(RESOLVE)) == [third]


def test_bookings_are_moved_to_another_time_only_if_that_is_wanted(office):
    booking = make_booking()
    close(booking.room.center)

    assert office.post(RESOLVE, {**MOVE, **select(booking)}).context["possible"] == 0
    preview = office.post(RESOLVE, {**MOVE, "move_to": "time", **select(booking)})
    fields = get_hidden_fields(preview)
    for forged in ("", "x", "1 2"):
        done = office.post(RESOLVE, {**fields, f"slot_{booking.pk}": forged})
        assert messages_of(done)[-1][0] == "error", forged
    booking.refresh_from_db()
    assert booking.start == START
    office.post(RESOLVE, fields)

    booking.refresh_from_db()
    assert dt.timedelta(0) < abs(booking.start - START) <= dt.timedelta(hours=24)
    assert listed(office.get(RESOLVE)) == []


def test_bookings_to_resolve_obey_roles_and_centers(client, staff, clock):
    booking = make_booking()
    here, other = booking.room.center, make_center_with_room()
    close(here)
    confirmed = {**CANCEL, **select(booking), "confirmed": "yes"}

    client.force_login(staff("Manager", other))
    assert listed(client.get(RESOLVE)) == []
    assert messages_of(client.post(RESOLVE, confirmed))[-1][0] == "warning"
    client.force_login(staff("Viewer", here))
    page = client.post(RESOLVE, confirmed)
    assert (listed(page), page.context["can_change"]) == ([booking], False)
    client.force_login(staff("Desk", here))
    page = client.post(RESOLVE, CANCEL | select(booking))
    assert list(page.context["form"].fields) == ["message"]
    # Nor do managers without a selection or a reason for the refund that is proposed.
    clock.move_to(LATE)
    client.force_login(staff("Manager", here))
    for typed in ({"do": "cancel"}, {**CANCEL, "reason": ""}):
        page = client.post(RESOLVE, typed | select(booking))
        assert "A refund that the policy does not give needs a reason." in words(page)
        assert page.context["possible"] == 0
    assert "Select at least one booking." in messages_of(client.post(RESOLVE, CANCEL))[-1][1]
    assert get_current_status(booking) == Status.CONFIRMED
