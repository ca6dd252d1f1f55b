"""`manage.py send_outbox`."""

from datetime import timedelta

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.models import OutboxMessage
from accounts.outbox import MAX_ATTEMPTS
from roombook.deliveries import DeliveryState
from tests.accounts import outbox_helpers
from tests.accounts.outbox_helpers import Refusing, through

pytestmark = pytest.mark.django_db


def write(**fields):
    return outbox_helpers.write(**{"now": timezone.now()} | fields)


def run(capsys, *args):
    call_command("send_outbox", *args)
    return capsys.readouterr().out


def test_send_outbox_reports_results_and_respects_its_limit(capsys):
    message = write(about="reservation 17")
    later = write(now=timezone.now() + timedelta(hours=1))

    said = f"e-mail {message.pk} (news, reservation 17): sent\n1 sent, 1 waiting, 0 failed\n"
    assert run(capsys) == said
    assert run(capsys) == "0 sent, 1 waiting, 0 failed\n"
    assert later.state == DeliveryState.WAITING
    assert len(mail.outbox) == 1
    for _ in range(3):
        write()
    assert run(capsys, "--limit=2").endswith("2 sent, 2 waiting, 0 failed\n")
    with pytest.raises(CommandError, match="at least 1"):
        run(capsys, "--limit=0")


def test_send_outbox_exits_one_once_a_message_has_failed(capsys, settings):
    through(settings, Refusing)
    message = write()
    out = run(capsys)
    assert "UTC; OSError: 450 not now" in out
    assert out.endswith("0 sent, 1 waiting, 0 failed\n")

    OutboxMessage.objects.update(attempts=MAX_ATTEMPTS - 1, next_attempt_at=message.created_at)
    with pytest.raises(CommandError) as error:
        run(capsys)
    assert error.value.returncode == 1
    assert "0 sent, 0 waiting, 1 failed\n" in capsys.readouterr().out
    # It is reported once; after that it is in the list of e-mails.
    assert run(capsys) == "0 sent, 0 waiting, 0 failed\n"
