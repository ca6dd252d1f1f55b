"""Reads the e-mails of a reservation."""

from html import unescape

from icalendar import Calendar

from accounts.models import OutboxMessage
from reservations.notifications import emails


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
