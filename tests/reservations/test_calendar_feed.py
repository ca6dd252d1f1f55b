"""GET /calendar/<secret>.ics: the meetings of an account, for calendar programs (B24)."""

import datetime as dt

import pytest
import time_machine
import vobject
from django.db import DatabaseError
from django.urls import reverse
from icalendar import Calendar

from accounts.act import Act
from accounts.limits import CALENDAR_FEED
from accounts.models import AttemptWindow, CalendarAddress
from reservations.booking import approval, cancellation
from reservations.models.status import Status
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
    assert get_emails(reservation)[-1].calendar_method == "CANCEL"
    assert len(tags) == 5


# --- HTTP -----------------------------------------------------------------------------------------


def test_feed_is_answered_with_304_until_the_calendar_changes(client, ada):
    path = get_path(ada)
    reservation = make_booking(ada)
    first = client.get(path)
    known = {"If-None-Match": first["ETag"]}

    assert first.status_code == 200
    assert first["Content-Type"] == "text/calendar; charset=utf-8"
    assert b"X-WR-CALNAME:Rooms & Desks\r\nREFRESH-INTERVAL;VALUE=DURATION:PT1H" in first.content
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


def test_feed_costs_the_same_statements_for_one_meeting_as_for_many(
    client, ada, django_assert_num_queries
):
    path, room = get_path(ada), make_room()
    # The address, the meetings and the limit, which counts no response without a calendar.
    for number in range(20):
        ReservationFactory(user=ada, room=room, booked_at=NOW, start=START + number * DAY)
        if number in {0, 19}:
            with django_assert_num_queries(3):
                full = client.get(path)
    assert full.content.count(b"BEGIN:VEVENT") == 20
    with django_assert_num_queries(2):
        assert client.get(path, headers={"If-None-Match": full["ETag"]}).status_code == 304
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


@pytest.mark.parametrize("error", [None, DatabaseError])
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

    assert status == (500 if error else 200)
    assert sum("/calendar/..." in line for line in lines) >= 6
    assert not [line for line in lines if secret[:16] in line]
