"""`manage.py send_outbox`."""

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts.models import OutboxMessage
from accounts.outbox import MAX_ATTEMPTS
from roombook.deliveries import DeliveryState
from tests.accounts import outbox_helpers
from tests.accounts.outbox_helpers import Refusing, through

ROOT = Path(__file__).parent.parent.parent


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


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_processes_send_each_message_once(tmp_path):
    keys = {str(write().key) for _ in range(20)}
    database = connection.settings_dict
    url = (
        f"postgres://{database['USER']}:{database['PASSWORD']}@{database['HOST']}:"
        f"{database['PORT']}/{database['NAME']}"
    )
    environment = os.environ | {"DATABASE_URL": url, "EMAIL_URL": f"filemail://{tmp_path}"}
    processes = [
        subprocess.Popen(
            [sys.executable, "manage.py", "send_outbox"],
            env=environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=60)[0] for process in processes]

    assert [process.returncode for process in processes] == [0, 0]
    assert sum(output.count(": sent\n") for output in outputs) == 20
    # The files' names tell seconds only: some hold several mails.
    sent = re.findall(
        r"^Message-ID: <(.+)@", "".join(map(Path.read_text, tmp_path.iterdir())), re.M
    )
    assert sorted(sent) == sorted(keys)
    assert OutboxMessage.objects.filter(state=DeliveryState.SENT, attempts=1).count() == 20
