"""A center gets another time zone: what its bookings keep, and who is told."""

import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.db.models import Sum
from django.urls import reverse

from accounts.act import Act
from accounts.models import CalendarAddress, OutboxMessage
from centers.models import Center, Closure
from payments.ledger.accounts import EventKind
from payments.ledger.posting import find_unposted, post
from payments.models import LedgerLine
from reservations.booking import cancellation, time_zones
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.backoffice.models import AuditEntry
from tests.admin_forms import errors_of, form_of
from tests.backoffice.reading import messages_of, words
from tests.factories_centers import MeetingRoomFactory
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
from tests.imports import Browser, build_csv
from tests.reservations.emails.helpers import get_email, get_event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

LIST = reverse("admin:centers_center_changelist")
CHICAGO, DENVER = ZoneInfo("America/Chicago"), ZoneInfo("America/Denver")


def page_of(center):
    return reverse("admin:centers_center_change", args=[center.pk])


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
        return Browser(office, LIST).upload(build_csv({"id": center.pk, "time_zone": zone}))

    for zone in ("Factory", "localtime", "posixrules", "right/UTC", "denver"):
        page = office.post(page_of(center), open_form(office, center, zone))
        assert 'Enter a time zone such as "America/Denver".' in errors_of(page)["time_zone_id"]
        assert "Enter a time zone such as" in upload(zone)
    for zone in ("America/New_York", "America/Denver"):
        is_refused = "Change it on the page of the center" in upload(zone)
        assert is_refused == (zone != center.time_zone_id)
