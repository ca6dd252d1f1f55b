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


def write(**fields):
    return outbox_helpers.write(**{"now": timezone.now()} | fields)


def run(capsys, *args):
    call_command("send_outbox", *args)
    return capsys.readouterr().out


@pytest.mark.django_db
def test_send_outbox_reports_results(capsys):
    message = write(about="reservation 17")
    later = write(now=timezone.now() + timedelta(hours=1))

    assert (
        run(capsys)
        == f"e-mail {message.pk} (news, reservation 17): sent\n1 sent, 1 waiting, 0 failed\n"
    )
    assert run(capsys) == "0 sent, 1 waiting, 0 failed\n"
    assert later.state == DeliveryState.WAITING
    assert len(mail.outbox) == 1


@pytest.mark.django_db
def test_send_outbox_respects_limit(capsys):
    for _ in range(3):
        write()

    assert run(capsys, "--limit=2").endswith("2 sent, 1 waiting, 0 failed\n")


@pytest.mark.django_db
def test_send_outbox_exits_zero_if_message_will_be_retried(capsys, settings):
    through(settings, Refusing)
    write()

    out = run(capsys)

    assert "UTC; OSError: 450 not now" in out
    assert out.endswith("0 sent, 1 waiting, 0 failed\n")


@pytest.mark.django_db
def test_send_outbox_exits_one_if_message_failed(capsys, settings):
    through(settings, Refusing)
    message = write()
    OutboxMessage.objects.filter(pk=message.pk).update(attempts=MAX_ATTEMPTS - 1)

    with pytest.raises(CommandError) as error:
        run(capsys)

    assert error.value.returncode == 1
    assert "0 sent, 0 waiting, 1 failed\n" in capsys.readouterr().out
    # It is reported once; after that it is in the list of e-mails.
    assert run(capsys) == "0 sent, 0 waiting, 0 failed\n"


@pytest.mark.django_db
def test_send_outbox_refuses_limit_below_one():
    with pytest.raises(CommandError, match="at least 1"):
        call_command("send_outbox", "--limit=0")
