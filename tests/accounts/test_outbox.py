"""E-mails are written in the transaction of their change, and sent at least once."""

import email
import email.policy
import itertools
import logging
import smtplib
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.db import connection, transaction
from django.urls import reverse

from accounts import outbox
from accounts.models import OutboxMessage, User
from accounts.models.outbox_message import PASSWORD_RESET_KIND
from accounts.outbox import MAX_ATTEMPTS, RETRY_DELAYS, SENDING_LEASE
from roombook.deliveries import DeliveryState
from tests.accounts.outbox_helpers import (
    ICS,
    NOW,
    Refusing,
    Slow,
    Unreachable,
    roll_back_after,
    send,
    through,
    write,
)
from tests.factories_people import UserFactory

pytestmark = pytest.mark.django_db


def as_sent(message):
    return email.message_from_bytes(message.message().as_bytes(), policy=email.policy.default)


# --- Writing -------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_enqueue_outside_a_transaction_raises():
    user = UserFactory()
    with pytest.raises(RuntimeError, match="transaction"):
        OutboxMessage.enqueue(user_id=user.pk, to="a@b.c", kind="x", subject="x", text="x", now=NOW)
    with pytest.raises(RuntimeError, match="transaction"), outbox.suppress_mail_errors("x"):
        pass


def test_message_is_rolled_back_with_its_transaction_and_none_is_sent_to_the_erased():
    roll_back_after(write)
    assert not OutboxMessage.objects.exists()
    write(UserFactory(email="7@erased.invalid"))
    assert send() == []
    assert not OutboxMessage.objects.exists()


def test_failure_to_write_a_message_does_not_fail_the_operation(caplog):
    with transaction.atomic():
        user = UserFactory()
        with outbox.suppress_mail_errors("account 1"):
            OutboxMessage.objects.create(to=None)  # the database refuses
        user.first_name = "Grace"
        user.save()

    assert User.objects.get().first_name == "Grace"
    assert "The e-mail about account 1 could not be written." in caplog.text


# --- What goes out -------------------------------------------------------------------------------


def test_message_has_text_html_and_calendar_parts(settings):
    settings.DEFAULT_FROM_EMAIL = "Rooms <rooms@example.com>"
    settings.SUPPORT_EMAIL = "help@example.com"
    calendar = ICS.replace("END", "X-NAME:Größe 日本\r\nEND", 1)
    message = write(
        text="Grüße\n", html="<p>Grüße</p>", calendar=calendar, calendar_method="CANCEL"
    )

    send()

    sent = as_sent(mail.outbox[0])
    assert sent["From"] == "Rooms <rooms@example.com>"
    assert sent["Reply-To"] == "help@example.com"
    assert sent["To"] == message.to
    assert sent["Message-ID"] == f"<{message.key}@example.com>"
    assert sent["Auto-Submitted"] == "auto-generated"
    body, file = sent.iter_parts()
    text, html, meeting = body.iter_parts()
    assert sent.get_content_type() == "multipart/mixed"
    assert body.get_content_type() == "multipart/alternative"
    assert (text.get_content_type(), text.get_content()) == ("text/plain", "Grüße\n")
    assert html.get_content_type() == "text/html"
    assert "<p>Grüße</p>" in html.get_content()
    assert meeting.get_content_type() == "text/calendar"
    assert meeting.get_param("method") == "CANCEL"
    assert meeting.get_content().split() == calendar.split()
    assert (file.get_content_type(), file.get_filename()) == ("application/ics", "invite.ics")
    assert file.get_content() == calendar.encode()


def test_message_without_html_is_plain_text_and_its_subject_adds_no_headers():
    message = write(subject="Room\r\nBcc: eve@example.com\x00\u2028 one" + "e" * 300)

    send()

    sent = as_sent(mail.outbox[0])
    assert sent.get_content_type() == "text/plain"
    assert sent["Bcc"] is None
    assert sent["Subject"].startswith("Room Bcc: eve@example.com onee")
    assert len(message.subject) == 200


def test_message_that_cannot_be_sent_does_not_stop_the_others():
    """Nor is anything sent to an address with a line break."""
    bad, empty = (write(now=NOW - SENDING_LEASE) for _ in range(2))
    write()
    OutboxMessage.objects.filter(pk=bad.pk).update(to="a@example.com\nBcc: eve@example.com")
    OutboxMessage.objects.filter(pk=empty.pk).update(to="")

    tried = send()

    assert [each.state for each in tried] == [*[DeliveryState.WAITING] * 2, DeliveryState.SENT]
    assert tried[0].last_error
    assert len(mail.outbox) == 1


# --- Sending -------------------------------------------------------------------------------------


def test_oldest_messages_are_sent_first_up_to_the_limit_and_once():
    newest, middle, oldest = (write(now=NOW - timedelta(minutes=each)) for each in range(3))

    tried = send(limit=2)

    assert [each.pk for each in tried] == [oldest.pk, middle.pk]
    rows = OutboxMessage.objects.exclude(pk=newest.pk)
    assert {(row.state, row.sent_at, row.attempts) for row in rows} == {("sent", NOW, 1)}
    assert [each.pk for each in send(NOW + timedelta(days=30))] == [newest.pk]
    assert len(mail.outbox) == 3


def test_message_that_expires_while_others_are_sent_is_deleted_and_not_sent():
    first = write(now=NOW - timedelta(minutes=1))
    write(expires_at=NOW + timedelta(minutes=2))
    sent_by_others = write(expires_at=NOW + timedelta(minutes=2))
    OutboxMessage.objects.filter(pk=sent_by_others.pk).update(
        attempts=1, next_attempt_at=NOW + SENDING_LEASE
    )
    minutes = itertools.count()

    # Each reading of the clock is a minute later.
    sent = outbox.send_due_messages(clock=lambda: NOW + timedelta(minutes=next(minutes)))

    assert [each.pk for each in sent] == [first.pk]
    assert {*OutboxMessage.objects.all()} == {first, sent_by_others}
    assert len(mail.outbox) == 1


def test_failed_message_is_retried_with_growing_delays_then_marked_failed(settings, caplog):
    through(settings, Refusing)
    write()

    now, rests = NOW, []
    for _ in RETRY_DELAYS:
        [message] = send(now)
        assert message.state == DeliveryState.WAITING
        assert send(message.next_attempt_at - timedelta(seconds=1)) == []
        rests.append(message.next_attempt_at - now)
        now = message.next_attempt_at
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]
    [message] = send(now)

    assert rests == list(RETRY_DELAYS) == sorted(RETRY_DELAYS)
    row = OutboxMessage.objects.get()
    assert (row.state, row.attempts) == (DeliveryState.FAILED, MAX_ATTEMPTS)
    assert row.last_error == "OSError: 450 not now"
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == [
        f"{message} failed after 7 attempts: OSError: 450 not now"
    ]
    assert send(now + timedelta(days=30)) == []


class RefusingRecipients(EmailBackend):
    def send_messages(self, messages):
        raise smtplib.SMTPRecipientsRefused({messages[0].to[0].upper(): (550, b"unknown")})


def test_codes_and_addresses_are_not_kept_in_the_outbox(settings, caplog):
    secret = {"kind": PASSWORD_RESET_KIND, "text": "1234 5678", "html": "<b>1234 5678"}
    sent, failed = write(**secret), write(**secret)
    OutboxMessage.objects.filter(pk=failed.pk).update(
        attempts=MAX_ATTEMPTS - 1, next_attempt_at=NOW + timedelta(hours=1)
    )
    send()
    through(settings, RefusingRecipients)
    send(NOW + timedelta(hours=1))

    assert "1234 5678" in mail.outbox[0].body
    for message, state in ((sent, DeliveryState.SENT), (failed, DeliveryState.FAILED)):
        message.refresh_from_db()
        assert (message.state, message.text, message.html) == (state, "", "")
        assert not message.send_again(now=NOW)
    assert "<recipient>" in failed.last_error
    assert "<recipient>" in caplog.text
    assert failed.to not in (failed.last_error + caplog.text).lower()


def test_unreachable_server_is_tried_once_per_run(settings):
    through(settings, Unreachable)
    for _ in range(3):
        write()

    assert [each.last_error for each in send()] == ["ConnectionRefusedError: nobody there"]
    assert OutboxMessage.objects.due(NOW).count() == 2


def test_message_of_dead_process_is_sent_again_with_same_message_id(monkeypatch):
    message = write()

    def die(*args, **columns):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(OutboxMessage, "record_success", die)
        with pytest.raises(KeyboardInterrupt):
            send()
    assert send(NOW + SENDING_LEASE - timedelta(seconds=1)) == []
    send(NOW + SENDING_LEASE)

    first, second = (as_sent(each) for each in mail.outbox)
    assert first["Message-ID"] == second["Message-ID"] == f"<{message.key}@localhost>"
    assert OutboxMessage.objects.get().state == DeliveryState.SENT


def test_message_that_always_kills_its_process_is_marked_failed():
    message = write()
    OutboxMessage.objects.filter(pk=message.pk).update(attempts=MAX_ATTEMPTS)

    [tried] = send()

    assert tried.state == DeliveryState.FAILED
    assert (tried.last_error, mail.outbox) == ("The last attempt never ended.", [])


@pytest.mark.django_db(transaction=True)
def test_concurrent_senders_send_each_message_once(settings):
    through(settings, Slow)
    written = {str(write(UserFactory()).key) for _ in range(24)}

    def run(_):
        try:
            return len(send())
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(run, range(4)))

    assert sum(counts) == 24
    assert sum(1 for count in counts if count) > 1
    assert len(mail.outbox) == 24
    assert {each.extra_headers["Message-ID"][1:37] for each in mail.outbox} == written
    assert set(OutboxMessage.objects.values_list("state", "attempts")) == {("sent", 1)}


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_a_message_is_sent(monkeypatch):
    write()
    seen = []

    def look(self, messages):
        seen.append(connection.in_atomic_block)
        return len(messages)

    monkeypatch.setattr(EmailBackend, "send_messages", look)
    send()

    assert seen == [False]


# --- In the back office --------------------------------------------------------------------------


def test_send_again_action_requeues_failed_and_copies_sent_messages(admin_client):
    failed, sent, waiting = write(), write(text="Hello"), write()
    for message, columns in (
        (failed, {"state": "failed"}),
        (sent, {"state": "sent", "sent_at": NOW}),
    ):
        rows = OutboxMessage.objects.filter(pk=message.pk)
        rows.update(attempts=MAX_ATTEMPTS, next_attempt_at=None, **columns)

    page = admin_client.post(
        reverse("admin:accounts_outboxmessage_changelist"),
        {"action": "send_again", "_selected_action": [failed.pk, sent.pk, waiting.pk]},
        follow=True,
    )

    assert [str(each) for each in page.context["messages"]] == [
        "2 e-mails will be sent within a minute.",
        "1 are waiting to be sent anyway.",
    ]
    failed.refresh_from_db()
    sent.refresh_from_db()
    assert (failed.state, failed.attempts) == (DeliveryState.WAITING, 0)
    # The record of the first sending stays.
    assert sent.state == DeliveryState.SENT
    copy = OutboxMessage.objects.latest("pk")
    assert (copy.state, copy.attempts, copy.sent_at) == (DeliveryState.WAITING, 0, None)
    assert (copy.to, copy.text) == (sent.to, "Hello")
    assert copy.key != sent.key
