"""Settings and time zones list the bookings that they touch, on pages and in imports."""

import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.db.models import Sum
from django.urls import reverse

from accounts.act import Act
from accounts.models import CalendarAddress, OutboxMessage
from centers.models import Center, Closure, MeetingRoom
from payments.ledger.accounts import EventKind
from payments.ledger.posting import find_unposted, post
from payments.models import LedgerLine
from reservations.booking import cancellation, time_zones
from reservations.desk.dashboard.alerts import find_alerts
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.backoffice.models import AuditEntry
from tests.admin_forms import errors_of, form_of
from tests.backoffice.reading import get_hidden_fields, messages_of, words
from tests.factories_centers import CenterFactory, MeetingRoomFactory
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    ReservationFactory,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
)
from tests.imports import Browser, build_csv, load
from tests.reservations.emails.helpers import get_email, get_event

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


@pytest.mark.parametrize(
    ("kind", "change", "text", "problem"),
    [
        ("room", {"is_active": None}, "could not take place", "The room is not active."),
        ("room", {"is_blocked": "on"}, "could not take place", "The room is blocked by staff."),
        ("room", {"capacity": "3"}, "too small", "The room holds 3 people, and 4 are expected."),
        ("center", {"is_active": None}, "could not take place", "The center is not active."),
        ("center", {"street1": "9 New St"}, "former address", FORMER_ADDRESS),
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


def test_other_changes_are_saved_at_once(office, booking):
    for kind, change in (
        ("room", {"capacity": "4", "turnaround_minutes": "30"}),
        ("center", {"state": "Colorado", "tax_rate": "9"}),  # is stored as CO
    ):
        saved = save(office, get_row(booking, kind), **change)
        assert saved.status_code == 302, errors_of(saved)
    assert get_alerts() == []


def test_bookings_that_are_over_or_cancelled_are_not_touched(office, booking):
    Reservation.objects.filter(pk=booking.pk).update(
        status=Status.CANCELLED, holds_slot=False, cancelled_at=NOW
    )
    ReservationFactory(room=booking.room, start=NOW - HOUR, end=NOW + HOUR)
    assert save(office, booking.room, is_active=None).status_code == 302


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
    load("centers", build_csv({"id": center.pk, "wed": "08:00-02:00"}))
    assert get_alerts() == []


def test_rooms_of_a_list_are_saved_after_the_bookings_were_displayed(office, booking):
    address = f"{page_of(booking.room.center)}?tab=meetingroom"
    typed = form_of(office.get(address)) | {"rooms-0-capacity": "2", "_save": "Save"}

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
    assert AuditEntry.objects.get(note="Taken out of service.").object_id == booking.room_id
    center = booking.room.center
    save(office, booking.room, center=str(CenterFactory().pk), rate="")
    assert MeetingRoom.objects.get().center == center


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("room", {"capacity": "3"}),
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


CHICAGO, DENVER = ZoneInfo("America/Chicago"), ZoneInfo("America/Denver")


def open_form(office, center, zone, **fields):
    """The form of the center with another zone."""
    return form_of(office.get(page_of(center))) | {"time_zone_id": zone} | fields


def change_zone(office, center, zone, **fields):
    """Save it twice: the first time lists what is touched."""
    page = office.post(page_of(center), open_form(office, center, zone, **fields))
    assert page.status_code == 200, "it was saved at once"
    assert "Choose whether they keep their local times or their instants." in words(page)
    return office.post(page_of(center), form_of(page))


@pytest.mark.parametrize("keeps_instants", ["", "instants"])
def test_bookings_keep_local_time_or_instant_and_customers_are_told(
    office, clock, client, keeps_instants
):
    booking, pending = make_booking(), make_pending_booking()
    center = booking.room.center
    Reservation.objects.filter(pk=pending.pk).update(room=MeetingRoomFactory(center=center))
    draft = make_draft(room=MeetingRoomFactory(center=center))
    clock.move_to(NOW + 5 * MINUTE)

    change_zone(office, center, "America/Chicago", keeps_instants=keeps_instants)

    center.refresh_from_db()
    assert center.time_zone_id == "America/Chicago"
    start = START if keeps_instants else START - HOUR
    for row in (booking, pending, draft):
        row.refresh_from_db()
        assert (row.start, row.end, row.occupied_from) == (start, start + 3 * HOUR, start)
    for row in (booking, pending):
        email = get_email(row, "moved")
        assert "March 3, 2027, 9:00 AM - 12:00 PM (Mountain Standard Time)" in email.text
        hour = "10:00 AM - 1:00 PM" if keeps_instants else "9:00 AM - 12:00 PM"
        assert f"March 3, 2027, {hour} (Central Standard Time)" in email.text
        assert get_event(email)["SEQUENCE"] == row.calendar_sequence == 2
    assert not OutboxMessage.objects.filter(about=f"reservation {draft.pk}").exists()
    feed = client.get(reverse("calendar", args=[CalendarAddress.get_secret(booking.user)])).text
    assert "SEQUENCE:2" in feed
    entries = AuditEntry.objects.filter(changes__has_key="time_zone").order_by("object_id")
    assert [each.unpublished_event["Type"] for each in entries] == ["reservation.rescheduled"] * 3
    assert entries[0].unpublished_event["Changed"][0] == "Start"


@pytest.mark.parametrize("at", [NOW + HOUR, START + 24 * HOUR])
@pytest.mark.parametrize("keeps_instants", [False, True])
def test_ledger_follows_what_is_to_come_to_its_new_day_and_keeps_the_past(at, keeps_instants):
    booking = make_booking()
    cancelled = make_booking(room=MeetingRoomFactory(center=booking.room.center))
    staff, center = AdministratorFactory(), booking.room.center
    decision = cancellation.RefundDecision(Decimal(5), "Late")
    cancellation.cancel(Act(staff, NOW, is_staff=True), cancelled.pk, decision=decision)
    center.time_zone_id = "Asia/Tokyo"  # where it is the next day
    center.save()

    time_zones.keep_times(
        Center,
        center=center,
        former_zone="America/Denver",
        keeps_instants=keeps_instants,
        by=staff,
        now=at,
    )

    lines = LedgerLine.objects.filter(reservation=booking.pk, meeting_day__isnull=False)
    income = dict(lines.order_by().values_list("meeting_day").annotate(Sum("room")))
    is_moved = keeps_instants and at < START
    day, next_day = dt.date(2027, 3, 3), dt.date(2027, 3, 4)
    assert income == ({day: 0, next_day: -7500} if is_moved else {day: -7500})
    for row in (booking, cancelled):
        post(row.pk, EventKind.RETURNED, now=at)
        [(_, _, unposted)] = find_unposted([row.pk], now=at)
        assert unposted == {}
    assert not LedgerLine.objects.filter(kind=EventKind.CORRECTED).exists()


@pytest.mark.parametrize("zone", ["America/Chicago", "America/Los_Angeles"])
def test_bookings_that_follow_each_other_move_in_the_order_that_keeps_them_apart(office, zone):
    room = make_room()
    rows = [make_booking(room=room, start=START + 3 * n * HOUR) for n in range(3)]
    change_zone(office, room.center, zone)
    for n, row in enumerate(rows):
        row.refresh_from_db()
        assert row.start.astimezone(ZoneInfo(zone)).hour == 9 + 3 * n


def test_closures_keep_their_local_times_unless_the_clock_skips_them(office):
    center = make_booking().room.center
    day = {"starts_at": START - 9 * HOUR, "ends_at": START + 15 * HOUR}
    closure = Closure.objects.create(center=center, **day)
    past = Closure.objects.create(center=center, starts_at=NOW - 9 * HOUR, ends_at=NOW)
    change_zone(office, center, "America/Chicago")
    closure.refresh_from_db()
    assert closure.starts_at == dt.datetime(2027, 3, 3, tzinfo=CHICAGO)
    assert closure.ends_at == dt.datetime(2027, 3, 4, tzinfo=CHICAGO)
    assert Closure.objects.get(pk=past.pk).ends_at == NOW

    center = make_room(time_zone_id="America/Phoenix").center
    night = dt.datetime(2027, 3, 14, 9, tzinfo=dt.UTC)  # 2:00, and in Denver that hour is skipped
    closure = Closure.objects.create(center=center, starts_at=night, ends_at=night + HOUR)
    refused = office.post(page_of(center), open_form(office, center, "America/Denver"))
    assert "cannot keep its local time" in messages_of(refused)[-1][1]
    assert Closure.objects.get(center__time_zone_id="America/Phoenix") == closure


def test_only_bookings_whose_times_differ_are_touched(office, clock):
    room = make_room(time_zone_id="America/Phoenix")  # like Denver in winter, not in summer
    winter = make_booking(room=room)
    summer = make_booking(room=room, start=START + 120 * 24 * HOUR)
    over = ReservationFactory(room=room, start=NOW - HOUR, end=NOW + HOUR, status=Status.CONFIRMED)
    gone = ReservationFactory(room=room, start=START + 130 * 24 * HOUR, status=Status.CANCELLED)
    change_zone(office, room.center, "America/Denver")
    moved = OutboxMessage.objects.filter(kind="moved")
    assert [each.about for each in moved] == [f"reservation {summer.pk}"]
    for row in (winter, over, gone):
        assert Reservation.objects.get(pk=row.pk).start == row.start
    assert Reservation.objects.get(pk=summer.pk).start == summer.start - HOUR
    # A zone with the same times is saved at once.
    saved = office.post(page_of(room.center), open_form(office, room.center, "America/Boise"))
    assert saved.status_code == 302, errors_of(saved)
    assert moved.count() == 1


def test_booking_that_the_clock_skips_stands_in_the_way_and_nothing_changes(office):
    room = make_room(time_zone_id="America/Phoenix", grid_minutes=15)
    start = dt.datetime(2027, 3, 14, 2, 30, tzinfo=room.center.zone).astimezone(dt.UTC)
    night = ReservationFactory(
        room=room, start=start, end=start + HOUR, status=Status.CONFIRMED, booked_at=NOW
    )
    later = make_booking(room=room, start=START + 30 * 24 * HOUR)
    answer = change_zone(office, room.center, "America/Denver")
    assert f"{night} cannot keep its local time" in messages_of(answer)[0][1]
    assert Center.objects.get().time_zone_id == "America/Phoenix"
    assert Reservation.objects.get(pk=later.pk).start == later.start
    change_zone(office, room.center, "America/Denver", keeps_instants="instants")
    assert Center.objects.get().time_zone_id == "America/Denver"


def test_zones_of_no_place_and_another_zone_in_an_import_are_refused(office):
    center = make_room().center

    def upload(zone):
        return Browser(office, list_of(center)).upload(
            build_csv({"id": center.pk, "time_zone": zone})
        )

    for zone in ("Factory", "denver"):
        page = office.post(page_of(center), open_form(office, center, zone))
        assert 'Enter a time zone such as "America/Denver".' in errors_of(page)["time_zone_id"]
        assert "Enter a time zone such as" in upload(zone)
    for zone in ("America/New_York", "America/Denver"):
        is_refused = "Change it on the page of the center" in upload(zone)
        assert is_refused == (zone != center.time_zone_id)
