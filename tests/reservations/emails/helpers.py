"""Reads the e-mails of a reservation."""

import datetime as dt
from html import unescape
from zoneinfo import ZoneInfo

from icalendar import Calendar

from accounts.models import OutboxMessage
from reservations.notifications import emails
from tests.factories_reservations import make_booking, make_room

DENVER = ZoneInfo("America/Denver")


def get_emails(reservation):
    return list(OutboxMessage.objects.about(emails.get_subject_key(reservation.pk)))


def get_email(reservation, kind):
    [message] = [each for each in get_emails(reservation) if each.kind == kind]
    return message


def get_event(message):
    parsed = Calendar.from_ical(message.calendar)
    [event] = parsed.walk("VEVENT")
    assert parsed["METHOD"] == message.calendar_method
    assert not event.errors
    return event


def get_visible_text(html):
    """Return the visible text of an HTML e-mail in one line."""
    import re

    return " ".join(unescape(re.sub(r"<style.*?</style>|<[^>]+>", " ", html, flags=re.S)).split())


def book_across_dst_change():
    """Book from Saturday noon to Sunday noon: 23 hours, because of the DST change."""
    room = make_room()
    room.center.is_after_hours_support_enabled = True
    room.center.save()
    start = dt.datetime(2027, 3, 13, 12, tzinfo=DENVER).astimezone(dt.UTC)
    return make_booking(room=room, start=start, hours=23)
