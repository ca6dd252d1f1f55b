"""A reservation as a meeting in its customer's calendar (iCalendar, RFC 5545 and 5546)."""

import datetime as dt
from enum import StrEnum

from babel import Locale
from django.conf import settings
from icalendar import Calendar, Event, vCalAddress

from accounts.mail import service_name
from accounts.outbox import one_line, sender_address
from centers.models import Center
from reservations.models import Reservation


class Method(StrEnum):
    REQUEST = "REQUEST"
    CANCEL = "CANCEL"


class MeetingStatus(StrEnum):
    TENTATIVE = "TENTATIVE"  # asked for; the center has yet to agree
    CONFIRMED = "CONFIRMED"
    CANCELLED = "CANCELLED"


def invitation(reservation: Reservation, status: MeetingStatus, *, now: dt.datetime) -> str:
    """The meeting as an .ics file.

    Calendars know it by the UID, which never changes, and take of two files about it the one with
    the higher SEQUENCE: raise `calendar_sequence` before. `reservation.room.center` is at hand.
    """
    center = reservation.room.center
    event = Event()
    event.add("uid", str(reservation.uid))
    event.add("sequence", reservation.calendar_sequence)
    event.add("dtstamp", now.astimezone(dt.UTC))
    event.add("dtstart", reservation.start.astimezone(center.zone))
    event.add("dtend", reservation.end.astimezone(center.zone))
    event.add("status", status)
    event.add("summary", one_line(f"{reservation.room.name} at {center.name}"))
    event.add("location", f"{one_line(center.name)}, {postal_address(center)}")
    event.add("description", f"Reservation {reservation.pk}, {service_name()}")
    event.add("organizer", _person(sender_address(), service_name()))
    customer = _person(reservation.user.email, reservation.user.get_full_name())
    # They booked it themselves: there is nothing to answer.
    customer.params["PARTSTAT"] = "ACCEPTED"
    event.add("attendee", customer)
    calendar = Calendar()
    calendar.add("prodid", "-//roombook//reservations//EN")
    calendar.add("version", "2.0")
    calendar.add("method", method_of(status))
    calendar.add_component(event)
    # Of the zone's past and future only what can concern this meeting.
    year = reservation.start.year
    calendar.add_missing_timezones(dt.date(year - 1, 1, 1), dt.date(year + 2, 1, 1))
    return calendar.to_ical().decode()


def method_of(status: MeetingStatus) -> Method:
    return Method.CANCEL if status == MeetingStatus.CANCELLED else Method.REQUEST


def postal_address(center: Center) -> str:
    """Where to go, in one line."""
    country = str(Locale.parse(settings.LOCALE).territories.get(center.country, center.country))
    streets = (center.street1, center.street2, center.street3)
    parts = (one_line(part) for part in (*streets, center.city_state_postal_code, country))
    return ", ".join(part for part in parts if part)


def _person(address: str, name: str) -> vCalAddress:
    person = vCalAddress(f"mailto:{address}")
    person.params["CN"] = one_line(name) or address
    return person
