import datetime as dt
import logging
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import QuerySet
from django.utils import timezone

from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import (
    InvalidPaymentTransition,
    Payment,
    PaymentState,
    RefundState,
)
from reservations.booking import alerts, checkout
from reservations.booking.checkout import CAPTURE_DUE_STATUSES, VOID_DUE_STATUSES
from reservations.management.shell import format_count

logger = logging.getLogger(__name__)

NO_ANSWER = "no answer"
LEFT = "left"
# So often in a row the gateway is asked in vain.
MAX_UNANSWERED = 2


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
        self.silences = 0  # of the gateway, in a row
        payments = Payment.objects.filter(created_at__lte=now - dt.timedelta(seconds=older_than))
        in_doubt = payments & Payment.objects.stale(now)
        self._each("in doubt", in_doubt, checkout.resolve_payment)
        # Asked after the first round: what it could settle only half is among these.
        owed = payments.authorized().filter(
            reservation__status__in=CAPTURE_DUE_STATUSES | VOID_DUE_STATUSES
        )
        self._each("owed", owed, checkout.fulfil_obligations)
        # Not again where the gateway refused: that is told below.
        ownerless = alerts.get_orphaned(payments).exclude(refunds__state=RefundState.REFUSED)
        self._each("of no booking", ownerless, checkout.fulfil_obligations)
        unpaid = payments.filter(refunds__state=RefundState.STARTED).distinct()
        self._each("to pay back", unpaid, checkout.fulfil_obligations)
        self._look_at_what_stays(payments)
        for payment, what in alerts.find_expiring_authorizations(payments, now=now):
            self.problems[payment.pk] = f"{_named(payment)}: {what}"
        self._report()

    def _each(self, kind: str, payments: QuerySet[Payment], settle: Callable[..., Any]) -> None:
        """Settle one after the other; one that fails does not keep the others waiting.

        A gateway that is silent twice in a row is not asked again in this run.
        """
        # Read first: each is settled in its own time, and none of them twice.
        rows = list(payments.select_related("reservation").order_by("pk"))
        for number, payment in enumerate(rows, start=1):
            if self.silences >= MAX_UNANSWERED:
                self.counts[LEFT] += 1
                self._worry_if_old(payment)
                continue
            outcome = self._settled(payment, settle)
            self.counts[outcome] += 1
            self.silences = self.silences + 1 if outcome == NO_ANSWER else 0
            self.stdout.write(f"[{kind} {number}/{len(rows)}] {_named(payment)}: {outcome}")

    def _settled(self, payment: Payment, settle: Callable[..., Any]) -> str:
        try:
            # Its own moment: a run may be long, and what it writes down has an order.
            settle(payment, now=timezone.now())
        except GatewayUnavailable:
            self._worry_if_old(payment)
            return NO_ANSWER
        except (GatewayRefused, InvalidPaymentTransition) as error:
            self.problems[payment.pk] = f"{_named(payment)}: {error}"
            return "refused"
        except Exception as error:
            logger.exception("Payment %s could not be settled.", payment.key)
            self.problems[payment.pk] = f"{_named(payment)}: {type(error).__name__}, see the log."
            return "failed"
        payment.refresh_from_db(fields=["state"])
        return payment.state

    def _worry_if_old(self, payment: Payment) -> None:
        """A silent gateway mostly answers a few minutes later; only then it is a person's business.

        Money that waits for its capture or its letting go waits since the last that we know of.
        """
        if payment.state == PaymentState.STARTED:
            since = payment.lease_until
        else:
            refunds = payment.refunds.filter(state=RefundState.STARTED).order_by("created_at")
            begun = refunds.values_list("created_at", flat=True).first()
            known = (payment.authorized_at, payment.captured_at, payment.reservation.cancelled_at)
            since = begun or max(filter(None, known), default=payment.created_at)
        if timezone.now() - since > alerts.GATEWAY_PATIENCE:
            self.problems[payment.pk] = f"{_named(payment)}: the gateway does not answer."

    def _look_at_what_stays(self, payments: QuerySet[Payment]) -> None:
        """What no further try mends, whoever met it first: told until a person has seen to it."""
        for payment, what in alerts.find_lost_authorizations(payments):
            self._tell(payment, what)
        if self.silences < MAX_UNANSWERED:
            for payment, what in alerts.find_captured_without_booking(payments):
                self._tell(payment, what)
        for payment, what in alerts.find_unmet_refund_promises(payments):
            self._tell(payment, what)
        for payment, what in alerts.find_unmet_reductions(payments):
            self._tell(payment, what)

    def _tell(self, payment: Payment, what: str) -> None:
        """What the gateway said in this run says more."""
        self.problems.setdefault(payment.pk, f"{_named(payment)}: {what}")

    def _report(self) -> None:
        left = self.counts.pop(LEFT, 0)
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.counts.items()))
        self.stdout.write(
            f"{format_count(self.counts.total(), 'payment')} looked at"
            + (f": {told}." if told else ".")
        )
        if left:
            self.stdout.write(
                f"The gateway does not answer: {format_count(left, 'payment')} left for"
                " the next run."
            )
        if self.problems:
            lines = "\n".join(f"  {self.problems[pk]}" for pk in sorted(self.problems))
            needs = "needs" if len(self.problems) == 1 else "need"
            raise CommandError(
                f"{format_count(len(self.problems), 'payment')} {needs} a person:\n{lines}"
            )


def _named(payment: Payment) -> str:
    return (
        f"Payment {payment.pk} of reservation {payment.reservation_id},"
        f" {payment.amount} {payment.currency}"
    )
