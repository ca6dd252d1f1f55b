"""The calendar files of e-mails to customers."""

import datetime as dt
from email.utils import parseaddr
from zoneinfo import ZoneInfo

import pytest
from icalendar import Calendar

from reservations.booking import approval, cancellation
from reservations.notifications import calendar
from tests.factories_people import UserFactory
from tests.factories_reservations import HOUR, NOW, START, make_booking, make_pending_booking
from tests.reservations.emails.helpers import (
    DAY,
    book_across_dst_change,
    get_email,
    get_emails,
    get_event,
)

pytestmark = pytest.mark.django_db


# --- Time zones ----------------------------------------------------------------------------------


def test_calendar_event_across_dst_change_has_exact_times():
    reservation = book_across_dst_change()
    event = get_event(get_email(reservation, "confirmed"))

    assert event["DTSTART"].dt.astimezone(dt.UTC) == reservation.start.astimezone(dt.UTC)
    assert event["DTEND"].dt.astimezone(dt.UTC) == reservation.end.astimezone(dt.UTC)
    assert (event["DTSTART"].dt.hour, event["DTEND"].dt.hour) == (12, 12)


# --- The calendar --------------------------------------------------------------------------------


def test_calendar_event_has_all_properties():
    reservation = make_booking(UserFactory(email="ada@example.com"))
    message = get_email(reservation, "confirmed")
    event = get_event(message)

    # The text is exactly what the library generates.
    assert Calendar.from_ical(message.calendar).to_ical().decode() == message.calendar
    assert event["UID"] == str(reservation.uid)
    assert event["SUMMARY"] == "Boardroom at Glenarm"
    assert event["LOCATION"] == ("Glenarm, 1600 Glenarm Place, Denver, CO 80202, United States")
    assert event["STATUS"] == "CONFIRMED"
    assert event["DTSTAMP"].dt == NOW
    assert event["DTSTART"].dt == START
    assert event["DTEND"].dt == START + 3 * HOUR
    assert event["DTSTART"].params["TZID"] == "America/Denver"
    assert event["ORGANIZER"] == "mailto:rooms@example.com"
    assert event["ORGANIZER"].params["CN"] == "Rooms & Desks"
    # There is one attendee: several would be parsed as a list.
    assert event["ATTENDEE"] == "mailto:ada@example.com"
    assert event["ATTENDEE"].params["CN"] == "Ada Lovelace"


def test_calendar_includes_its_time_zone():
    parsed = Calendar.from_ical(get_email(make_booking(), "confirmed").calendar)

    [zone] = parsed.walk("VTIMEZONE")
    assert zone["TZID"] == "America/Denver"
    assert parsed.get_missing_tzids() == set()


@pytest.mark.parametrize(
    "name",
    [
        *("America/Denver", "Africa/Casablanca", "Australia/Lord_Howe", "Europe/Dublin"),
        *("Asia/Kathmandu", "America/Sao_Paulo", "Pacific/Chatham", "UTC"),
    ],
)
def test_calendar_time_zone_matches_zoneinfo(name):
    zone, first, last = ZoneInfo(name), START - 400 * DAY, START + 400 * DAY
    # By RFC 5545, DTSTART of an observance is local time with the previous offset.
    changes = sorted(
        (
            (each["DTSTART"].dt - each["TZOFFSETFROM"].td).replace(tzinfo=dt.UTC),
            each["TZOFFSETTO"].td,
        )
        for each in calendar.build_timezone(zone, first, last).subcomponents
    )

    at = first
    while at <= last:
        in_force = [offset for since, offset in changes if since <= at][-1]
        assert in_force == at.astimezone(zone).utcoffset(), at
        at += HOUR


def test_calendar_event_of_request_is_tentative_until_approved():
    reservation = make_pending_booking()
    approval.approve(reservation.pk, now=NOW + HOUR)
    received, approved = map(get_event, get_emails(reservation))

    assert (received["STATUS"], approved["STATUS"]) == ("TENTATIVE", "CONFIRMED")
    assert received["UID"] == approved["UID"]
    assert received["SEQUENCE"] < approved["SEQUENCE"]


@pytest.mark.parametrize("end", ["cancel", "decline", "expire"])
def test_calendar_event_of_closed_reservation_is_cancelled(end):
    if end == "cancel":
        reservation = make_booking()
        cancellation.cancel(reservation.pk, now=NOW)
    elif end == "decline":
        reservation = make_pending_booking()
        approval.decline(reservation.pk, now=NOW)
    else:
        reservation = make_pending_booking(start=START + 7 * DAY)
        list(approval.close_overdue(now=NOW + 3 * DAY))
    first, last = get_emails(reservation)
    begun, ended = get_event(first), get_event(last)

    assert (first.calendar_method, last.calendar_method) == ("REQUEST", "CANCEL")
    assert (ended["STATUS"], ended["UID"]) == ("CANCELLED", begun["UID"])
    assert ended["SEQUENCE"] > begun["SEQUENCE"]
    for name in ("DTSTART", "DTEND", "ORGANIZER", "ATTENDEE"):
        assert ended[name].to_ical() == begun[name].to_ical()


def test_calendar_organizer_is_the_sender_of_the_email(settings):
    settings.DEFAULT_FROM_EMAIL = "plain@example.com"
    event = get_event(get_email(make_booking(), "confirmed"))

    assert event["ORGANIZER"] == f"mailto:{parseaddr(settings.DEFAULT_FROM_EMAIL)[1]}"
    assert event["ORGANIZER"].params["CN"] == "plain@example.com"
