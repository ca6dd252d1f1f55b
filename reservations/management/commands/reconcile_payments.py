import datetime as dt
import logging
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable

from django.core.management.base import BaseCommand, CommandError
from django.db.models import QuerySet
from django.utils import timezone

from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import InvalidPaymentTransition, Payment, PaymentState, RefundState
from reservations.booking import alerts, payment_recovery
from reservations.booking.payment_recovery import CAPTURE_DUE_STATUSES, VOID_DUE_STATUSES
from reservations.management.command_line import format_count
from reservations.models.status import BOOKED_STATUSES

logger = logging.getLogger(__name__)

NO_ANSWER = "no answer"
SKIPPED = "skipped"
# After this many calls in a row without an answer, this run does not call the gateway again.
MAX_UNANSWERED = 2


class Command(BaseCommand):
    help = (
        "Resolve payments whose outcome is unknown after a crash or a gateway failure, and execute"
        " captures, voids and refunds that are due; run it every minute, exits with 1 if something"
        " needs attention."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than",
            type=int,
            default=0,
            metavar="SECONDS",
            help="Skip payments that were created more recently.",
        )

    def handle(self, *, older_than: int, **options: object) -> None:
        if older_than < 0:
            raise CommandError("--older-than is a number of seconds, 0 or more.")
        now = timezone.now()
        self.counts: Counter[str] = Counter()
        self.problems: dict[int, str] = {}
        self.unanswered = 0  # Number of calls in a row without an answer.
        payments = Payment.objects.filter(created_at__lte=now - dt.timedelta(seconds=older_than))
        unknown = payments & Payment.objects.stale(now)
        self._process("unknown", unknown, payment_recovery.resolve_payment)
        # This query follows the first step, because that can leave a payment authorized.
        due = payments.authorized().filter(
            reservation__status__in=CAPTURE_DUE_STATUSES | VOID_DUE_STATUSES
        )
        self._process("due", due, payment_recovery.fulfil_obligations)
        # A refund that the gateway refused is not tried again, but reported below.
        orphaned = alerts.get_orphaned(payments).exclude(refunds__state=RefundState.REFUSED)
        self._process("without booking", orphaned, payment_recovery.fulfil_obligations)
        refunds = payments.filter(refunds__state=RefundState.STARTED).distinct()
        self._process("to refund", refunds, payment_recovery.fulfil_obligations)
        self._report_alerts(payments, now)
        self._print_summary()

    def _process(
        self, label: str, payments: QuerySet[Payment], process: Callable[..., object]
    ) -> None:
        """Process each payment. If one fails, the others are still processed."""
        # Read all rows first: processing takes long, and no payment may be processed twice.
        rows = list(payments.select_related("reservation").order_by("pk"))
        for number, payment in enumerate(rows, start=1):
            if self.unanswered >= MAX_UNANSWERED:
                self.counts[SKIPPED] += 1
                self._report_if_overdue(payment)
                continue
            outcome = self._try(payment, process)
            self.counts[outcome] += 1
            self.unanswered = self.unanswered + 1 if outcome == NO_ANSWER else 0
            self.stdout.write(f"[{label} {number}/{len(rows)}] {_describe(payment)}: {outcome}")

    def _try(self, payment: Payment, process: Callable[..., object]) -> str:
        was_captured = payment.state == PaymentState.CAPTURED
        try:
            # Use the current time for each payment, because a run can be long.
            process(payment, now=timezone.now())
        except GatewayUnavailable:
            self._report_if_overdue(payment)
            return NO_ANSWER
        except (GatewayRefused, InvalidPaymentTransition) as error:
            self.problems[payment.pk] = f"{_describe(payment)}: {error}"
            return "refused"
        except Exception as error:
            logger.exception("Payment %s could not be processed.", payment.key)
            problem = f"{type(error).__name__}, see the log."
            self.problems[payment.pk] = f"{_describe(payment)}: {problem}"
            return "failed"
        payment.refresh_from_db(fields=["state", "reservation"])
        if payment.state == PaymentState.REFUNDED and not was_captured:
            self._report_booking_refunded_at_gateway(payment)
        return payment.state

    def _report_booking_refunded_at_gateway(self, payment: Payment) -> None:
        """Report a booking whose payment the gateway had refunded before this run.

        It was probably cancelled, and a restored backup does not know that.
        """
        status = payment.reservation.status
        if status in BOOKED_STATUSES:
            self.problems[payment.pk] = (
                f"{_describe(payment)}: it was refunded at the gateway, and the reservation is"
                f" {status}."
            )

    def _report_if_overdue(self, payment: Payment) -> None:
        """Report a payment for which the gateway has not answered for a long time.

        An authorized payment has been due since its last recorded event.
        """
        if payment.state == PaymentState.STARTED:
            since = payment.lease_until
        else:
            refunds = payment.refunds.filter(state=RefundState.STARTED).order_by("created_at")
            refund_due = refunds.values_list("created_at", flat=True).first()
            events = (payment.authorized_at, payment.captured_at, payment.reservation.cancelled_at)
            since = refund_due or max(filter(None, events), default=payment.created_at)
        if timezone.now() - since > alerts.GATEWAY_PATIENCE:
            self.problems[payment.pk] = f"{_describe(payment)}: the gateway does not answer."

    def _report_alerts(self, payments: QuerySet[Payment], now: dt.datetime) -> None:
        """Report problems, of this run or an earlier one, that no further attempt can fix."""
        problems = [*alerts.find_lost_authorizations(payments)]
        if self.unanswered < MAX_UNANSWERED:
            problems += alerts.find_captured_without_booking(payments)
        problems += alerts.find_unmet_refund_promises(payments)
        problems += alerts.find_unmet_reductions(payments)
        for payment, problem in problems:
            # An answer of the gateway in this run is more specific.
            self.problems.setdefault(payment.pk, f"{_describe(payment)}: {problem}")
        for payment, problem in alerts.find_expiring_authorizations(payments, now=now):
            self.problems[payment.pk] = f"{_describe(payment)}: {problem}"

    def _print_summary(self) -> None:
        skipped = self.counts.pop(SKIPPED, 0)
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.counts.items()))
        summary = f"{format_count(self.counts.total(), 'payment')} processed"
        self.stdout.write(f"{summary}: {outcomes}." if outcomes else f"{summary}.")
        if skipped:
            self.stdout.write(
                f"The gateway does not answer: {format_count(skipped, 'payment')} left for the next"
                " run."
            )
        if self.problems:
            lines = "\n".join(f"  {self.problems[pk]}" for pk in sorted(self.problems))
            verb = "needs" if len(self.problems) == 1 else "need"
            count = format_count(len(self.problems), "payment")
            raise CommandError(f"{count} {verb} attention:\n{lines}")


def _describe(payment: Payment) -> str:
    return (
        f"Payment {payment.pk} of reservation {payment.reservation_id},"
        f" {payment.amount} {payment.currency}"
    )
