"""GET /calendar/<secret>.ics: the meetings of an account, for calendar programs (B24)."""

import datetime as dt

import pytest
import time_machine
import vobject
from django.db import DatabaseError, OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from icalendar import Calendar

from accounts.act import Act
from accounts.limits import CALENDAR_FEED
from accounts.models import AttemptWindow, CalendarAddress
from accounts.models.outbox_message import collapse_whitespace
from reservations.booking import approval, cancellation
from reservations.models.status import Status
from reservations.notifications import calendar
from reservations.notifications.calendar import MeetingStatus
from reservations.views import calendar_feed
from roombook.logging import JsonLogFormatter, PlainLogFormatter
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    DAY,
    HOUR,
    NOW,
    START,
    ReservationFactory,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
)
from tests.reservations.emails.helpers import get_emails, get_event
from tests.reservations.rescheduling_helpers import adjust, reschedule

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _clock(settings):
    settings.DEFAULT_FROM_EMAIL = "Rooms & Desks <rooms@example.com>"
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def ada(db):
    return UserFactory(email="ada@example.com")


def get_path(user):
    return reverse("calendar", args=[CalendarAddress.get_secret(user)])


def get_events(client, user, now=NOW):
    """Return the events of the feed by UID, after two parsers have read them alike."""
    with time_machine.travel(now, tick=False):
        text = client.get(get_path(user)).content.decode()
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    first, second = Calendar.from_ical(text), vobject.readOne(text)
    assert first.to_ical().decode() == text
    assert first.get_missing_tzids() == set()
    assert second.validate(raiseException=True)
    others = {each.uid.value: each for each in second.contents.get("vevent", [])}
    events = {str(each["UID"]): each for each in first.walk("VEVENT")}
    assert events.keys() == others.keys()
    for uid, event in events.items():
        assert not event.errors
        assert others[uid].status.value == event["STATUS"]
        for mine, theirs in (("DTSTART", others[uid].dtstart), ("DTEND", others[uid].dtend)):
            assert theirs.value.astimezone(dt.UTC) == event[mine].dt.astimezone(dt.UTC)
    return events


# --- Content --------------------------------------------------------------------------------------


def test_feed_contains_what_was_ever_booked_with_its_status(client, ada):
    room = make_room()
    fields = {"user": ada, "room": room, "booked_at": NOW}
    expected = {}
    for number, (status, shown) in enumerate(
        {
            Status.PENDING: "TENTATIVE",
            Status.CONFIRMED: "CONFIRMED",
            Status.COMPLETED: "CONFIRMED",
            Status.NO_SHOW: "CONFIRMED",
            Status.CANCELLED: "CANCELLED",
            Status.DECLINED: "CANCELLED",
            Status.EXPIRED: "CANCELLED",
        }.items()
    ):
        row = ReservationFactory(**fields, status=status, start=START + number * DAY)
        expected[str(row.uid)] = shown
    oldest = ReservationFactory(**fields, status=Status.COMPLETED, start=NOW - 90 * DAY)
    expected[str(oldest.uid)] = "CONFIRMED"
    # None of these: too old, never booked, somebody else's.
    ReservationFactory(**fields, status=Status.COMPLETED, start=NOW - 90 * DAY - 3 * HOUR)
    make_draft(ada, room, start=START + 20 * DAY)
    cancellation.cancel(Act(None, NOW), make_draft(ada, room, start=START + 21 * DAY).pk)
    ReservationFactory(**fields | {"booked_at": None}, status=Status.PROCESSING, start=NOW + DAY)
    make_booking(room=room, start=START + 22 * DAY)

    events = get_events(client, ada)

    assert {uid: event["STATUS"] for uid, event in events.items()} == expected


def test_feed_follows_each_change_as_the_emails_do(client, ada):
    """UID, SEQUENCE, time and status are those of the last e-mail's file."""
    staff = AdministratorFactory()
    reservation = make_pending_booking(ada)
    room = make_room(is_live_inventory=False)
    tags = set()

    def check(now):
        [event] = get_events(client, ada, now + HOUR).values()
        sent = get_event(get_emails(reservation)[-1])
        for name in ("UID", "SEQUENCE", "STATUS", "DTSTART", "DTEND", "SUMMARY", "LOCATION"):
            assert event[name] == sent[name], name
        for name in ("ORGANIZER", "DESCRIPTION", "DTSTAMP", "LAST-MODIFIED"):
            assert event[name].to_ical() == sent[name].to_ical()
        assert event["DTSTAMP"].dt == event["LAST-MODIFIED"].dt == now
        assert "ATTENDEE" not in event
        tags.add(client.get(get_path(ada))["ETag"])

    check(NOW)
    approval.approve(Act(None, NOW + HOUR), reservation.pk)
    check(NOW + HOUR)
    adjust(reservation, staff, -5, now=NOW + 2 * HOUR)
    check(NOW + 2 * HOUR)
    reschedule(reservation, staff, room=room, start=START + DAY, now=NOW + 3 * HOUR)
    check(NOW + 3 * HOUR)
    cancellation.cancel(Act(None, NOW + 4 * HOUR), reservation.pk)
    check(NOW + 4 * HOUR)
    assert len(tags) == 5


def test_reservation_from_before_changes_were_dated_has_its_last_known_change(client, ada):
    booked = ReservationFactory(user=ada, booked_at=NOW - DAY)
    cancelled = ReservationFactory(
        user=ada, booked_at=NOW - DAY, cancelled_at=NOW - HOUR, status=Status.CANCELLED
    )

    events = get_events(client, ada)

    assert events[str(booked.uid)]["DTSTAMP"].dt == NOW - DAY
    assert events[str(cancelled.uid)]["DTSTAMP"].dt == NOW - HOUR


def test_feed_of_an_account_without_meetings_is_valid(client, ada):
    assert get_events(client, ada) == {}


def test_feed_is_rendered_as_the_format_wants_it(client, ada):
    ReservationFactory(
        user=ada,
        room=make_room(time_zone_id="UTC"),
        booked_at=NOW,
        pk=17,
        uid="6f1c1a5e-3b7d-4b5e-9a43-0c8f5e0f4a11",
    )

    assert client.get(get_path(ada)).content.decode().split("\r\n") == [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//roombook//reservations//EN",
        "METHOD:PUBLISH",
        "X-WR-CALNAME:Rooms & Desks",
        "REFRESH-INTERVAL;VALUE=DURATION:PT1H",
        "X-PUBLISHED-TTL:PT1H",
        "BEGIN:VTIMEZONE",
        "TZID:UTC",
        "BEGIN:STANDARD",
        "DTSTART:20260101T000000",
        "TZNAME:UTC",
        "TZOFFSETFROM:+0000",
        "TZOFFSETTO:+0000",
        "END:STANDARD",
        "END:VTIMEZONE",
        "BEGIN:VEVENT",
        "SUMMARY:Boardroom at Glenarm",
        "DTSTART:20270303T160000Z",
        "DTEND:20270303T190000Z",
        "DTSTAMP:20270301T160000Z",
        "UID:6f1c1a5e-3b7d-4b5e-9a43-0c8f5e0f4a11",
        "SEQUENCE:0",
        "DESCRIPTION:Reservation 17\\, Rooms & Desks",
        "LAST-MODIFIED:20270301T160000Z",
        "LOCATION:Glenarm\\, 1600 Glenarm Place\\, Denver\\, CO 80202\\, United States",
        'ORGANIZER;CN="Rooms & Desks":mailto:rooms@example.com',
        "STATUS:CONFIRMED",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]


# --- HTTP -----------------------------------------------------------------------------------------


def test_feed_is_answered_with_304_until_the_calendar_changes(client, ada):
    path = get_path(ada)
    reservation = make_booking(ada)
    first = client.get(path)
    known = {"If-None-Match": first["ETag"]}

    assert first.status_code == 200
    assert first["Content-Type"] == "text/calendar; charset=utf-8"
    unchanged = client.get(path, headers=known)
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert client.get(path, headers={"If-None-Match": f"W/{first['ETag']}"}).status_code == 304
    with time_machine.travel(NOW + DAY, tick=False):
        assert client.get(path, headers=known).status_code == 304
    head = client.head(path)
    assert (head.status_code, head.content, head["ETag"]) == (200, b"", first["ETag"])
    for response in (first, unchanged, head):
        assert response["Cache-Control"] == "private, no-cache"
        assert response["Referrer-Policy"] == "no-referrer"
        assert response["X-Content-Type-Options"] == "nosniff"

    reservation.room.center.name = "Larimer"
    reservation.room.center.save()
    changed = client.get(path, headers=known)
    assert changed.status_code == 200
    assert b"Boardroom at Larimer" in changed.content


def test_wrong_addresses_are_not_found(client, ada):
    path = get_path(ada)
    revoked = path
    path = reverse("calendar", args=[CalendarAddress.get_secret(ada, is_revoked=True)])
    unknown = reverse("calendar", args=["0" * 64])
    ada.is_active = False
    ada.save()
    damaged = (path[:-1], path.upper(), path[:-5] + ".ics", f"{path}/", "/calendar/.ics")

    for each in (path, revoked, unknown, *damaged):
        for response in (client.get(each), client.head(each)):
            assert response.status_code == 404, each
    ada.is_active = True
    ada.save()
    assert client.get(path).status_code == 200


def test_feed_costs_the_same_statements_for_one_meeting_as_for_two_hundred(client, ada):
    path, room = get_path(ada), make_room()

    def count_statements(**headers):
        with CaptureQueriesContext(
            connection,
        ) as captured:
            response = client.get(path, headers=headers)
        return response, len(captured)

    ReservationFactory(user=ada, room=room, booked_at=NOW)
    _, few = count_statements()
    for number in range(1, 200):
        ReservationFactory(user=ada, room=room, booked_at=NOW, start=START + number * DAY)
    full, many = count_statements()
    unchanged, fewest = count_statements(**{"If-None-Match": full["ETag"]})

    assert full.content.count(b"BEGIN:VEVENT") == 200
    # The address, the meetings and the limit; the limit counts no response without a calendar.
    assert (few, many, fewest) == (3, 3, 2)
    assert unchanged.status_code == 304
    assert AttemptWindow.objects.get(scope=CALENDAR_FEED.scope).count == 2


def test_too_many_full_responses_are_429_and_304_goes_on(client, ada):
    path = get_path(ada)
    known = {"If-None-Match": client.get(path)["ETag"]}
    AttemptWindow.objects.filter(key=ada.pk).update(count=CALENDAR_FEED.maximum)

    refused = client.get(path)

    assert (refused.status_code, refused["Retry-After"]) == (429, "3600")
    assert client.get(path, headers=known).status_code == 304
    assert client.get(get_path(UserFactory())).status_code == 200
    with time_machine.travel(NOW + HOUR, tick=False):
        assert client.get(path).status_code == 200


@pytest.mark.parametrize("error", [None, OperationalError, DatabaseError])
def test_secret_of_a_feed_is_in_no_log(client, ada, monkeypatch, caplog, error):
    path = get_path(ada)
    secret = path.split("/")[-1].removesuffix(".ics")
    client.raise_request_exception = False
    if error:

        def fail(*args, **kwargs):
            raise error(f"canceling statement of {path}")

        monkeypatch.setattr(calendar_feed.CalendarAddress, "find_account", fail)
    caplog.set_level("DEBUG")

    status = client.get(path).status_code
    client.post(path)
    client.get(f"{path[:-4]}")
    lines = [
        formatter.format(record)
        for record in caplog.records
        for formatter in (PlainLogFormatter(), JsonLogFormatter())
    ]

    assert status == {None: 200, OperationalError: 503, DatabaseError: 500}[error]
    assert sum("/calendar/..." in line for line in lines) >= 6
    assert not [line for line in lines if secret[:16] in line]


# --- Calendar files with names of any characters: nothing of a name leaves its property -----------


PROPERTIES = {
    *("UID", "SEQUENCE", "DTSTAMP", "LAST-MODIFIED", "DTSTART", "DTEND", "STATUS"),
    *("SUMMARY", "LOCATION", "DESCRIPTION", "ORGANIZER"),
}
HOSTILE_TEXT = st.text(
    st.one_of(
        st.sampled_from('\r\n\t ,;:\\"^=\x00\x0b\x0c\x1c\x1e\x85\u2028\u2029\u200b\ufeff\x7f'),
        st.characters(),
    ),
    max_size=90,
) | st.sampled_from(
    ["\r\nATTENDEE:mailto:eve@example.com", "\\nEND:VEVENT\\n", '"\r\n BEGIN:VALARM', "é" * 80]
)


@pytest.mark.django_db
@pytest.mark.parametrize("is_invitation", [False, True])
def test_names_of_any_characters_stay_texts_of_their_properties(is_invitation):
    reservation = ReservationFactory(room=make_room(), booked_at=NOW)
    room, center = reservation.room, reservation.room.center

    @hypothesis_settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(*[HOSTILE_TEXT] * 4)
    def check(room_name, center_name, street, person):
        room.name, center.name, center.street1 = room_name, center_name, street
        reservation.user.first_name = person
        if is_invitation:
            text = calendar.render_invitation(reservation, MeetingStatus.CONFIRMED, now=NOW)
        else:
            text = calendar.render_feed([reservation])

        [event] = Calendar.from_ical(text).walk("VEVENT")
        [other] = vobject.readOne(text).contents["vevent"]
        expected = PROPERTIES | ({"ATTENDEE"} if is_invitation else set())
        assert event.keys() == {name.upper() for name in other.contents} == expected
        assert not event.subcomponents
        summary = collapse_whitespace(f"{room_name} at {center_name}")
        assert event["SUMMARY"] == other.summary.value == summary
        assert event["LOCATION"] == other.location.value
        assert event["LOCATION"].startswith(f"{collapse_whitespace(center_name)}, ")
        assert event["DESCRIPTION"] == other.description.value
        lines = text.split("\r\n")
        assert all(len(line.encode()) <= 75 for line in lines)
        assert not any(char in line for line in lines for char in "\r\n")

    check()
