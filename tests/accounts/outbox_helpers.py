"""Writes and sends e-mails, and mail servers that fail."""

import time
from datetime import UTC, datetime

from django.core.mail.backends.locmem import EmailBackend
from django.db import transaction

from accounts import outbox
from accounts.models import OutboxMessage
from tests.factories_people import UserFactory

NOW = datetime(2027, 3, 1, 16, tzinfo=UTC)
ICS = "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"


class Refusing(EmailBackend):
    """A server that accepts no e-mail."""

    def send_messages(self, messages):
        raise OSError("450 not\nnow\x00")


class Unreachable(EmailBackend):
    """No server."""

    def open(self):
        raise ConnectionRefusedError("nobody there")


class Slow(EmailBackend):
    """A slow server."""

    def send_messages(self, messages):
        time.sleep(0.02)
        return super().send_messages(messages)


def through(settings, backend):
    settings.EMAIL_BACKEND = f"{backend.__module__}.{backend.__name__}"


def write(user=None, **fields):
    fields = {"kind": "news", "subject": "News", "text": "Text\n", "now": NOW} | fields
    with transaction.atomic():
        user = user or UserFactory()
        return OutboxMessage.enqueue(user_id=user.pk, to=user.email, **fields)


def send(now=NOW, **how):
    return list(outbox.send_due_messages(clock=lambda: now, **how))


def roll_back_after(act):
    with transaction.atomic():
        act()
        transaction.set_rollback(True)
