"""Reservations as meetings in customers' calendars (iCalendar, RFC 5545 and 5546).

An e-mail has a file with one meeting. The feed of an account has all of its meetings, and describes
them in the same way, so that calendars recognize them (B24).
"""

import datetime as dt
import functools
from collections.abc import Sequence
from enum import StrEnum
from zoneinfo import ZoneInfo

from babel import Locale
from django.conf import settings
from icalendar import (
    Calendar,
    Event,
    Timezone,
    TimezoneDaylight,
    TimezoneStandard,
    vCalAddress,
    vDuration,
)

from accounts.emails import get_service_name
from accounts.models.outbox_message import collapse_whitespace, get_sender_address
from centers.models import Center
from reservations.models import Reservation
from reservations.models.status import Status

SECOND = dt.timedelta(seconds=1)
# A clock does not change twice within a week.
WEEK = dt.timedelta(days=7)
CALENDAR_END = "END:VCALENDAR\r\n"
# How often a calendar program should read the feed.
FEED_INTERVAL = dt.timedelta(hours=1)


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
    return _render_calendar(calendar, [reservation], [event])


def render_feed(reservations: Sequence[Reservation]) -> str:
    """Render all meetings of an account.

    Nobody is named: the feed can be read by everybody who knows its address.
    """
    calendar = _build_calendar(CalendarMethod.PUBLISH)
    calendar.add("x-wr-calname", get_service_name())
    calendar.add("refresh-interval", FEED_INTERVAL, parameters={"VALUE": "DURATION"})
    calendar.add("x-published-ttl", vDuration(FEED_INTERVAL))
    events = []
    for each in reservations:
        changed_at = each.calendar_changed_at or each.cancelled_at or each.booked_at
        assert changed_at is not None  # because it was booked
        status = FEED_STATUSES[Status(each.status)]
        events.append(_build_event(each, status, stamp=changed_at))
    return _render_calendar(calendar, reservations, events)


def _build_calendar(method: CalendarMethod) -> Calendar:
    calendar = Calendar()
    calendar.add("version", "2.0")
    calendar.add("prodid", "-//roombook//reservations//EN")
    calendar.add("method", method)
    return calendar


def _render_calendar(
    calendar: Calendar, reservations: Sequence[Reservation], events: Sequence[Event]
) -> str:
    """Render a calendar with the events of these reservations, and with their time zones."""
    years: dict[ZoneInfo, list[int]] = {}
    for each in reservations:
        years.setdefault(each.room.center.zone, []).extend((each.start.year, each.end.year))
    # A calendar without any component is not valid.
    years = years or {ZoneInfo("UTC"): [2000]}
    return "".join(
        (
            calendar.to_ical().decode().removesuffix(CALENDAR_END),
            # Time zones are cached as text, which `Calendar` cannot contain.
            *(render_timezone(zone, min(own) - 1, max(own) + 1) for zone, own in years.items()),
            *(event.to_ical().decode() for event in events),
            CALENDAR_END,
        )
    )


def _build_event(reservation: Reservation, status: MeetingStatus, *, stamp: dt.datetime) -> Event:
    """Build the meeting. `stamp` is the time of its last change."""
    center = reservation.room.center
    event = Event()
    event.add("uid", str(reservation.uid))
    event.add("sequence", reservation.calendar_sequence)
    event.add("dtstamp", stamp.astimezone(dt.UTC))
    event.add("last-modified", stamp.astimezone(dt.UTC))
    event.add("dtstart", reservation.start.astimezone(center.zone))
    event.add("dtend", reservation.end.astimezone(center.zone))
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


@functools.lru_cache(1024)
def render_timezone(zone: ZoneInfo, first: int, last: int) -> str:
    """Render a time zone for whole years, so that the meetings of a year share the cached text."""
    begin, end = dt.datetime(first, 1, 1, tzinfo=dt.UTC), dt.datetime(last + 1, 1, 1, tzinfo=dt.UTC)
    return build_timezone(zone, begin, end).to_ical().decode()


def build_timezone(zone: ZoneInfo, first: dt.datetime, last: dt.datetime) -> Timezone:
    """Build a VTIMEZONE with every change of the clock between two points in time.

    icalendar's own function is not used: it places changes to summer time an hour late and misses
    some changes (Morocco's, around Ramadan).
    """
    timezone = Timezone()
    timezone.add("tzid", zone.key)
    first, last = first.astimezone(dt.UTC), last.astimezone(dt.UTC)
    timezone.add_component(_build_observance(first, _get_offset(zone, first), zone))
    while (change := _find_next_change(zone, first, last)) is not None:
        timezone.add_component(_build_observance(change, _get_offset(zone, first), zone))
        first = change
    return timezone


def _find_next_change(zone: ZoneInfo, after: dt.datetime, last: dt.datetime) -> dt.datetime | None:
    """Return the first time at which the clock has another offset, or None if there is none."""
    offset, low = _get_offset(zone, after), after
    while _get_offset(zone, low + WEEK) == offset:
        low += WEEK
        if low > last:
            return None
    high = low + WEEK
    while high - low > SECOND:
        middle = low + (high - low) // 2
        if _get_offset(zone, middle) == offset:
            low = middle
        else:
            high = middle
    # Clocks change on a full second, at this time or up to a second earlier.
    return high.replace(microsecond=0)


def _build_observance(
    since: dt.datetime, offset_before: dt.timedelta, zone: ZoneInfo
) -> TimezoneStandard | TimezoneDaylight:
    local = since.astimezone(zone)
    observance = TimezoneDaylight() if local.dst() else TimezoneStandard()
    # The format requires the start in the local time before the change.
    observance.add("dtstart", (since + offset_before).replace(tzinfo=None, microsecond=0))
    observance.add("tzoffsetfrom", offset_before)
    observance.add("tzoffsetto", _get_offset(zone, since))
    observance.add("tzname", local.tzname())
    return observance


def _get_offset(zone: ZoneInfo, at: dt.datetime) -> dt.timedelta:
    offset = at.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def _build_person(address: str, name: str) -> vCalAddress:
    person = vCalAddress(f"mailto:{address}")
    person.params["CN"] = collapse_whitespace(name) or address
    return person
