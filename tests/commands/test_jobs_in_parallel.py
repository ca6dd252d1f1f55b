"""The regular commands run on several machines at once: everything is done once."""

from collections import Counter
from io import StringIO

import pytest
import time_machine
from django.core import mail
from django.core.management import call_command

from accounts.act import Act
from accounts.models import OutboxMessage
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, PaymentState, Refund, RefundState
from reservations.booking import cancellation, integrity
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.deliveries import DeliveryState
from roombook.jobs import JOB_INTERVALS
from roombook.models import JobRun
from tests.concurrency import run_concurrently
from tests.factories_reservations import HOUR, NOW, START, make_booking, make_draft
from tests.gateway_faults import FaultKind, add_fault, clear_faults

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]

MACHINES = 4
OF_EACH = 3


def make_work():
    """Payments in doubt, due captures, due refunds, overdue drafts, and e-mails about all that."""
    refunded = [make_booking() for _ in range(OF_EACH)]
    for operation, kind in (
        ("authorize", FaultKind.TIMEOUT_AFTER),
        ("capture", FaultKind.TIMEOUT_BEFORE),
    ):
        add_fault(operation=operation, kind=kind)
        for _ in range(OF_EACH):
            make_booking()
        clear_faults()
    add_fault(operation="refund", kind=FaultKind.TIMEOUT_BEFORE)
    for reservation in refunded:
        cancellation.cancel(Act(reservation.user, NOW), reservation.pk)
    clear_faults()
    for _ in range(OF_EACH):
        make_draft()


def run_on_all_machines(command):
    def run():
        call_command(command, stdout=StringIO())

    run_concurrently([run] * MACHINES)


def test_regular_commands_on_several_machines_do_everything_once():
    make_work()
    assert Payment.objects.filter(state=PaymentState.STARTED).count() == OF_EACH
    assert Payment.objects.authorized().count() == OF_EACH
    assert Refund.objects.filter(state=RefundState.STARTED).count() == OF_EACH

    with time_machine.travel(NOW + HOUR, tick=False):
        run_on_all_machines("reconcile_payments")
    with time_machine.travel(START + 4 * HOUR, tick=False):
        for command in JOB_INTERVALS:
            run_on_all_machines(command)
        problems = [*integrity.find_problems(now=START + 4 * HOUR)]

    assert problems == []
    assert Counter(Payment.objects.values_list("state", flat=True)) == {
        PaymentState.CAPTURED: 2 * OF_EACH,
        PaymentState.REFUNDED: OF_EACH,
    }
    assert {row.captures for row in SandboxPayment.objects.all()} == {1}
    assert set(Refund.objects.values_list("state", flat=True)) == {RefundState.DONE}
    assert Counter(Reservation.objects.values_list("status", flat=True)) == {
        Status.COMPLETED: 2 * OF_EACH,
        Status.CANCELLED: OF_EACH,
        Status.EXPIRED: OF_EACH,
    }
    messages = OutboxMessage.objects.all()
    assert set(messages.values_list("state", flat=True)) == {DeliveryState.SENT}
    sent = Counter(email.extra_headers["Message-ID"] for email in mail.outbox)
    assert len(sent) == messages.count() == sent.total()
    assert set(JobRun.objects.values_list("command", flat=True)) == set(JOB_INTERVALS)
    assert {run.succeeded_at for run in JobRun.objects.all()} == {START + 4 * HOUR}
