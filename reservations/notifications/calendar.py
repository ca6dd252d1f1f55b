"""Reservations as meetings in customers' calendars (iCalendar, RFC 5545 and 5546).

An e-mail has a file with one meeting. The feed of an account has all of its meetings, and describes
them in the same way, so that calendars recognize them (B24).
"""

import datetime as dt
import hashlib
from collections.abc import Sequence
from enum import StrEnum
from operator import attrgetter

from babel import Locale
from django.conf import settings
from icalendar import Calendar, Event, vCalAddress, vDuration

from accounts.emails import get_service_name
from accounts.models.outbox_message import collapse_whitespace, get_sender_address
from centers.models import Center
from reservations.models import Reservation
from reservations.models.status import Status

# How often a calendar program should read the feed.
FEED_INTERVAL = dt.timedelta(hours=1)
# What the feed shows of a reservation. Nothing else is read from the database.
FEED_COLUMNS = (
    *("id", "uid", "status", "start", "end", "calendar_sequence"),
    *("calendar_changed_at", "cancelled_at", "booked_at", "room.name", "room.center.name"),
    *(f"room.center.{name}" for name in ("street1", "street2", "street3", "city", "state")),
    *("room.center.postal_code", "room.center.country"),
)
# Increase it if the same reservations are rendered differently: the entity tag depends on it.
FEED_FORMAT = 2


class CalendarMethod(StrEnum):
    PUBLISH = "PUBLISH"  # a feed
    REQUEST = "REQUEST"
    CANCEL = "CANCEL"


class MeetingStatus(StrEnum):
    TENTATIVE = "TENTATIVE"  # requested; the center has to approve
    CONFIRMED = "CONFIRMED"
    CANCELLED = "CANCELLED"


MEETING_STATUSES = {
    Status.PENDING: MeetingStatus.TENTATIVE,
    Status.CONFIRMED: MeetingStatus.CONFIRMED,
    Status.DECLINED: MeetingStatus.CANCELLED,
    Status.CANCELLED: MeetingStatus.CANCELLED,
    Status.EXPIRED: MeetingStatus.CANCELLED,
}
FEED_STATUSES = {
    **MEETING_STATUSES,
    Status.COMPLETED: MeetingStatus.CONFIRMED,
    Status.NO_SHOW: MeetingStatus.CONFIRMED,
}


def get_meeting_status(reservation: Reservation) -> MeetingStatus | None:
    """Return the status for calendars; None for drafts and for meetings that are over."""
    return MEETING_STATUSES.get(Status(reservation.status))


def render_invitation(reservation: Reservation, status: MeetingStatus, *, now: dt.datetime) -> str:
    """Render the meeting as an .ics file.

    Calendars identify the meeting by its UID, which never changes, and use the file with the
    highest SEQUENCE. So the caller increases `calendar_sequence` first. The caller also loads
    `reservation.room.center`.
    """
    event = _build_event(reservation, status, stamp=now)
    customer = _build_person(reservation.user.email, reservation.user.get_full_name())
    # The customer made the booking, so the calendar does not request an answer.
    customer.params["PARTSTAT"] = "ACCEPTED"
    event.add("attendee", customer)
    calendar = _build_calendar(get_method(status))
    calendar.add_component(event)
    return calendar.to_ical().decode()


def get_entity_tag(reservations: Sequence[Reservation]) -> str:
    """Return the HTTP entity tag of the feed, without the cost of rendering it."""
    shown = [attrgetter(*FEED_COLUMNS)(each) for each in reservations]
    source = repr((FEED_FORMAT, settings.DEFAULT_FROM_EMAIL, settings.LOCALE, shown))
    return f'"{hashlib.sha256(source.encode()).hexdigest()}"'


def render_feed(reservations: Sequence[Reservation]) -> str:
    """Render all meetings of an account. The caller loads `FEED_COLUMNS`.

    Nobody is named: the feed can be read by everybody who knows its address.
    """
    calendar = _build_calendar(CalendarMethod.PUBLISH)
    calendar.add("x-wr-calname", get_service_name())
    calendar.add("refresh-interval", FEED_INTERVAL, parameters={"VALUE": "DURATION"})
    calendar.add("x-published-ttl", vDuration(FEED_INTERVAL))
    for each in reservations:
        changed_at = each.calendar_changed_at or each.cancelled_at or each.booked_at
        assert changed_at is not None  # because it was booked
        status = FEED_STATUSES[Status(each.status)]
        calendar.add_component(_build_event(each, status, stamp=changed_at))
    return calendar.to_ical().decode()


def _build_calendar(method: CalendarMethod) -> Calendar:
    calendar = Calendar()
    calendar.add("version", "2.0")
    calendar.add("prodid", "-//roombook//reservations//EN")
    calendar.add("method", method)
    return calendar


def _build_event(reservation: Reservation, status: MeetingStatus, *, stamp: dt.datetime) -> Event:
    """Build the meeting. `stamp` is the time of its last change."""
    center = reservation.room.center
    event = Event()
    event.add("uid", str(reservation.uid))
    event.add("sequence", reservation.calendar_sequence)
    event.add("dtstamp", stamp.astimezone(dt.UTC))
    event.add("last-modified", stamp.astimezone(dt.UTC))
    # In UTC, which needs no description of a time zone. Programs show their user's local time.
    event.add("dtstart", reservation.start.astimezone(dt.UTC))
    event.add("dtend", reservation.end.astimezone(dt.UTC))
    event.add("status", status)
    event.add("summary", collapse_whitespace(f"{reservation.room.name} at {center.name}"))
    event.add("location", f"{collapse_whitespace(center.name)}, {format_postal_address(center)}")
    event.add("description", f"Reservation {reservation.pk}, {get_service_name()}")
    event.add("organizer", _build_person(get_sender_address(), get_service_name()))
    return event


def get_method(status: MeetingStatus) -> CalendarMethod:
    return CalendarMethod.CANCEL if status == MeetingStatus.CANCELLED else CalendarMethod.REQUEST


def format_postal_address(center: Center) -> str:
    """Format the center's address in one line."""
    country = str(Locale.parse(settings.LOCALE).territories.get(center.country, center.country))
    streets = (center.street1, center.street2, center.street3)
    parts = (
        collapse_whitespace(part) for part in (*streets, center.city_state_postal_code, country)
    )
    return ", ".join(part for part in parts if part)


def _build_person(address: str, name: str) -> vCalAddress:
    person = vCalAddress(f"mailto:{address}")
    person.params["CN"] = collapse_whitespace(name) or address
    return person
