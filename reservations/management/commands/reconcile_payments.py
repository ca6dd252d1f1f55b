import datetime as dt
import logging
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from payments.actions import lapsing
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import (
    IllegalMove,
    Payment,
    PaymentQuerySet,
    PaymentState,
    Refund,
    RefundState,
)
from reservations import checkout
from reservations.checkout import CAPTURE_OWED, VOID_OWED
from reservations.management.shell import counted
from reservations.status import Status

logger = logging.getLogger(__name__)

LOST = "let go before it was captured, and the reservation is"
OWNERLESS = "the money was taken, and the reservation is"


class Command(BaseCommand):
    help = (
        "Settle what a crash or a silent gateway left behind: payments in doubt, money still to be"
        " taken, let go or paid back; run it every minute, exits 1 when a person has to look."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than",
            type=int,
            default=0,
            metavar="SECONDS",
            help="Leave payments that were begun more recently alone.",
        )

    def handle(self, *, older_than: int, **options: Any) -> None:
        if older_than < 0:
            raise CommandError("--older-than is a number of seconds, 0 or more.")
        now = timezone.now()
        self.counts: Counter[str] = Counter()
        self.problems: dict[int, str] = {}
        payments = Payment.objects.filter(created_at__lte=now - dt.timedelta(seconds=older_than))
        in_doubt = payments & Payment.objects.in_doubt(now)
        self._each("in doubt", in_doubt, lambda payment: checkout.settle(payment, now=now))
        # Asked after the first round: what it could settle only half is among these.
        owed = payments.authorized().filter(reservation__status__in=CAPTURE_OWED | VOID_OWED)
        self._each("owed", owed, lambda payment: checkout.settle_dues(payment, now=now))
        unpaid = payments.filter(refunds__state=RefundState.STARTED).distinct()
        self._each("to pay back", unpaid, lambda payment: checkout.settle_dues(payment, now=now))
        self._look_at_what_stays(payments)
        self._look_at_what_lapses(payments & lapsing(now))
        self._report()

    def _each(
        self, kind: str, payments: PaymentQuerySet, settle: Callable[[Payment], Payment]
    ) -> None:
        """Settle one after the other; one that fails does not keep the others waiting."""
        # Read first: each is settled in its own time, and none of them twice.
        rows = list(payments.order_by("pk"))
        for number, payment in enumerate(rows, start=1):
            outcome = self._settled(payment, settle)
            self.counts[outcome] += 1
            self.stdout.write(f"[{kind} {number}/{len(rows)}] {_named(payment)}: {outcome}")

    def _settled(self, payment: Payment, settle: Callable[[Payment], Payment]) -> str:
        try:
            settle(payment)
        except GatewayUnavailable:
            self.problems[payment.pk] = f"{_named(payment)}: the gateway does not answer."
            return "no answer"
        except (GatewayRefused, IllegalMove) as error:
            self.problems[payment.pk] = f"{_named(payment)}: {error}"
            return "refused"
        except Exception as error:
            logger.exception("Payment %s could not be settled.", payment.key)
            self.problems[payment.pk] = f"{_named(payment)}: {type(error).__name__}, see the log."
            return "failed"
        return self._as_it_ended(payment)

    def _as_it_ended(self, before: Payment) -> str:
        """The state that the payment came to; told to a person where its reservation disagrees."""
        payment = Payment.objects.select_related("reservation").get(pk=before.pk)
        if before.state in {PaymentState.STARTED, PaymentState.AUTHORIZED}:
            status = payment.reservation.status
            if payment.state == PaymentState.VOIDED and status in CAPTURE_OWED:
                self.problems[payment.pk] = f"{_named(payment)}: {LOST} {status}."
            elif payment.state == PaymentState.CAPTURED and status in VOID_OWED:
                self.problems[payment.pk] = f"{_named(payment)}: {OWNERLESS} {status}."
        return payment.state

    def _look_at_what_stays(self, payments: PaymentQuerySet) -> None:
        """What no further try mends, whoever met it first: told until a person has seen to it."""
        lost = payments.filter(
            state=PaymentState.VOIDED,
            reservation__status=Status.CONFIRMED,
            reservation__total_cost__gt=0,
        ).exclude(reservation__payments__in=Payment.objects.open())
        for payment in lost.order_by("pk"):
            self.problems[payment.pk] = f"{_named(payment)}: {LOST} {Status.CONFIRMED}."
        # What was taken of a cancelled one may rightly be kept: its fee.
        ownerless = payments.captured().filter(
            reservation__status__in=VOID_OWED - {Status.CANCELLED}
        )
        for payment in ownerless.select_related("reservation").order_by("pk"):
            status = payment.reservation.status
            self.problems[payment.pk] = f"{_named(payment)}: {OWNERLESS} {status}."
        # One that was followed by another refund of the payment has been seen to.
        refused = Refund.objects.filter(payment__in=payments, state=RefundState.REFUSED)
        for refund in refused.select_related("payment").order_by("pk"):
            if not refund.payment.refunds.filter(pk__gt=refund.pk).exists():
                self.problems[refund.payment_id] = (
                    f"{_named(refund.payment)}: the gateway refused to pay {refund.amount} back."
                )

    def _look_at_what_lapses(self, payments: PaymentQuerySet) -> None:
        """Money of requests that nobody has answered, about to be given back by the bank."""
        waiting = payments.filter(reservation__status=Status.PENDING)
        for payment in waiting.order_by("pk"):
            self.problems[payment.pk] = (
                f"{_named(payment)}: reserved until {payment.authorized_until:%Y-%m-%d %H:%M} UTC"
                " only, and the request is not answered."
            )

    def _report(self) -> None:
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.counts.items()))
        self.stdout.write(
            f"{counted(self.counts.total(), 'payment')} looked at" + (f": {told}." if told else ".")
        )
        if self.problems:
            lines = "\n".join(f"  {self.problems[pk]}" for pk in sorted(self.problems))
            needs = "needs" if len(self.problems) == 1 else "need"
            raise CommandError(
                f"{counted(len(self.problems), 'payment')} {needs} a person:\n{lines}"
            )


def _named(payment: Payment) -> str:
    return (
        f"Payment {payment.pk} of reservation {payment.reservation_id},"
        f" {payment.amount} {payment.currency}"
    )
