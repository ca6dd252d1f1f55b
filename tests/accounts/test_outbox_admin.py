"""E-mails in the back office."""

import pytest
from django.urls import reverse

from accounts.models import OutboxMessage
from accounts.outbox import MAX_ATTEMPTS
from roombook.deliveries import DeliveryState
from tests.accounts.outbox_helpers import NOW, act, write

pytestmark = pytest.mark.django_db


def test_send_again_action_requeues_failed_and_copies_sent_messages(admin_client):
    failed, sent, waiting = write(), write(text="Hello"), write()
    OutboxMessage.objects.filter(pk=failed.pk).update(
        state=DeliveryState.FAILED, attempts=MAX_ATTEMPTS, next_attempt_at=None
    )
    OutboxMessage.objects.filter(pk=sent.pk).update(
        state=DeliveryState.SENT, sent_at=NOW, next_attempt_at=None
    )

    page = act(admin_client, failed, sent, waiting)

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


def test_message_pages_are_read_only(admin_client):
    message = write(about="reservation 17", text="What they read")

    listed = admin_client.get(
        reverse("admin:accounts_outboxmessage_changelist"),
        {"state__exact": "waiting", "q": "reservation 17"},
    )
    page = admin_client.get(reverse("admin:accounts_outboxmessage_change", args=[message.pk]))

    assert "reservation 17" in listed.content.decode()
    assert "What they read" in page.content.decode()
    assert 'name="_save"' not in page.content.decode()
