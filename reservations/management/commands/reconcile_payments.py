import datetime as dt
import logging
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from django.core.management.base import CommandError
from django.db.models import Q, QuerySet
from django.utils import timezone

from payments import fees, gateway_events, gateways, one_time_cards, setups, unknown_payments
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.models import (
    InvalidPaymentTransition,
    Payment,
    PaymentSetup,
    PaymentState,
    Refund,
    RefundState,
    UnknownPayment,
)
from reservations.booking import alerts, charging
from reservations.booking.charging import CAPTURE_DUE_STATUSES
from reservations.management.command_line import format_count
from reservations.models.status import BOOKED_STATUSES, Status
from reservations.receipts.issuing import issue_credit_notes
from roombook import dates
from roombook.jobs import RegularJob

logger = logging.getLogger(__name__)

NO_ANSWER = "no answer"
SKIPPED = "skipped"
# After this many calls in a row without an answer, this run does not call the gateway again.
MAX_UNANSWERED = 2
# The most payments whose fees one run fetches, and the seconds after which it begins no other one:
# a slow gateway must not delay the next run.
MAX_FEES, MAX_FEE_SECONDS = 100, 20
# After a restore there can be hundreds of problems, and cron sends the lines of every run.
MAX_LINES = 50


class Command(RegularJob):
    help = (
        "Resolve payments whose outcome is unknown after a crash or a gateway failure, and execute"
        " captures, voids and refunds that are due; run it every minute, exits with 1 if something"
        " needs attention."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--since",
            type=dt.datetime.fromisoformat,
            metavar="TIME",
            help="After a restore, the time of the backup (2027-03-01T09:00 is UTC): compare all"
            " payments since then with the gateway. Other runs begin where the last one ended.",
        )
        parser.add_argument(
            "--release",
            action="store_true",
            help="Void or refund the gateway's payments that are for no booking in the database.",
        )

    def handle(self, *, since: dt.datetime | None, release: bool, **options: object) -> None:
        now = timezone.now()
        if since is not None and since.tzinfo is None:
            since = since.replace(tzinfo=dt.UTC)
        if since is not None and since > now:
            raise CommandError("--since is in the future.")
        self.counts: Counter[str] = Counter()
        self.problems: dict[int, str] = {}
        self.other_problems: list[str] = []
        self.unanswered = 0  # Number of calls in a row without an answer.
        # First, because it finds the intents of payments that a restored backup does not know.
        is_compared = self._compare_with_gateway(since, now)
        # Without the comparison, a payment whose intent the database has lost would be taken for
        # one that the gateway does not have.
        if is_compared:
            self._process("unknown", Payment.objects.stale(now), charging.resolve_payment)
        # Their customers may have confirmed them at the bank, and nobody has said so. Or they were
        # called off, and the gateway has not answered yet.
        waiting = Payment.objects.resolvable(now).filter(lease_until__gt=now)
        self._process("waiting", waiting, charging.resolve_payment)
        # This query follows the first step, because that can leave a payment authorized.
        due = Payment.objects.authorized().exclude(
            ~Q(reservation__status__in=CAPTURE_DUE_STATUSES), counts=True
        )
        self._process("due", due, charging.settle_payment)
        # A refund that the gateway refused is not tried again, but reported below.
        orphaned = alerts.get_orphaned(Payment.objects.all()).exclude(
            refunds__state=RefundState.REFUSED
        )
        self._process("without booking", orphaned, charging.settle_payment)
        refunds = Payment.objects.filter(refunds__in=Refund.objects.due()).distinct()
        self._process("to refund", refunds, charging.settle_payment)
        self._end_payment_setups()
        self._issue_credit_notes()
        self._discard_one_time_cards()
        self._report_alerts(now)
        for_no_booking = self._process_unknown_payments(
            is_complete=since is not None, release=release
        )
        # Last, because nothing waits for them.
        self._fetch_fees(Payment.objects.with_fees_due(now)[:MAX_FEES])
        self._print_summary(for_no_booking)

    def _end_payment_setups(self) -> None:
        """End the payment setups whose time is over, or save the card that no app has completed."""
        for setup in PaymentSetup.objects.open().filter(expires_at__lte=timezone.now()):
            resolve = partial(setups.resolve_setup, now=timezone.now(), keeps_newer_card=True)
            self._try(setup, resolve)

    def _fetch_fees(self, payments: Iterable[Payment]) -> None:
        """Fetch what the gateways charge. A later run fetches what is not known yet."""
        end = time.monotonic() + MAX_FEE_SECONDS
        for payment in payments:
            if time.monotonic() < end:
                self._try(payment, partial(fees.fetch_fees, now=timezone.now()))

    def _issue_credit_notes(self) -> None:
        count, failed = issue_credit_notes(now=timezone.now())
        self.other_problems += [
            f"Reservation {pk}: its credit notes could not be issued, see the log." for pk in failed
        ]
        if count:
            self.stdout.write(f"{format_count(count, 'credit note')} issued.")

    def _discard_one_time_cards(self) -> None:
        """Delete the cards of payment links that have paid, or will not pay any more (B26.7)."""
        is_over = ~Q(reservation__status=Status.NEW) | Q(expires_at__lte=timezone.now())
        cards = one_time_cards.get_kept().exclude(reservation__status=Status.PROCESSING)
        for setup in cards.filter(is_over):
            one_time_cards.discard(setup)

    def _process(
        self, label: str, payments: QuerySet[Payment], process: Callable[..., object]
    ) -> None:
        """Process each payment. If one fails, the others are still processed."""
        # Read all rows first: processing takes long, and no payment may be processed twice.
        rows = list(payments.select_related("reservation").order_by("pk"))
        for number, payment in enumerate(rows, start=1):
            outcome, problem = self._try(payment, partial(self._process_one, process=process))
            self.counts[outcome] += 1
            if problem:
                self.problems[payment.pk] = f"{_describe(payment)}: {problem}"
            if outcome in {SKIPPED, NO_ANSWER}:
                self._report_if_overdue(payment)
            if outcome != SKIPPED:
                self.stdout.write(f"[{label} {number}/{len(rows)}] {_describe(payment)}: {outcome}")

    def _process_one(self, payment: Payment, process: Callable[..., object]) -> str:
        refund_count = payment.refunds.count()
        # Use the current time for each payment, because a run can be long.
        process(payment, now=timezone.now())
        payment.refresh_from_db(fields=["state", "reservation"])
        self._report_unknown_change(payment, has_new_refund=payment.refunds.count() > refund_count)
        return payment.state

    def _try(self, row: Any, process: Callable[[Any], object]) -> tuple[str, str]:
        """Return what processing returns, and what went wrong: the others are still processed."""
        if self.unanswered >= MAX_UNANSWERED:
            return SKIPPED, ""
        try:
            outcome, problem = str(process(row)), ""
        except GatewayUnavailable:
            self.unanswered += 1
            return NO_ANSWER, ""
        except (GatewayRefused, InvalidPaymentTransition) as error:
            # For payment setups and fees, which are tried again, nothing else says it.
            logger.warning("%s was refused: %s", _describe(row), error)
            outcome, problem = "refused", str(error)
        except Exception as error:
            logger.exception("%s could not be processed.", _describe(row))
            outcome, problem = "failed", f"{type(error).__name__}, see the log."
        self.unanswered = 0
        return outcome, problem

    def _report_unknown_change(self, payment: Payment, *, has_new_refund: bool) -> None:
        """Report a booking whose payment the gateway had refunded or captured before this run.

        It was probably cancelled or approved, and a restored backup does not know that.
        """
        status = payment.reservation.status
        change = ""
        if has_new_refund and status in BOOKED_STATUSES and payment.counts:
            is_part = payment.state != PaymentState.REFUNDED
            change = "refunded in part" if is_part else "refunded"
        elif payment.state == PaymentState.CAPTURED and status == Status.PENDING:
            change = "captured"
        if change:
            self.problems[payment.pk] = (
                f"{_describe(payment)}: it was {change} at the gateway, and the reservation is"
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

    def _report_alerts(self, now: dt.datetime) -> None:
        """Report problems, of this run or an earlier one, that no further attempt can fix."""
        payments = Payment.objects.all()
        problems = [*alerts.find_lost_authorizations(payments)]
        if self.unanswered < MAX_UNANSWERED:
            problems += alerts.find_captured_without_booking(payments)
        problems += alerts.find_refused_refunds(payments)
        for payment, problem in problems:
            # An answer of the gateway in this run is more specific.
            self.problems.setdefault(payment.pk, f"{_describe(payment)}: {problem}")
        for payment, problem in alerts.find_expiring_authorizations(payments, now=now):
            self.problems[payment.pk] = f"{_describe(payment)}: {problem}"

    # --- Payments that only the gateway knows ----------------------------------------------------

    def _compare_with_gateway(self, since: dt.datetime | None, now: dt.datetime) -> bool:
        """Return whether the gateway has listed its payments."""
        gateway = gateways.get_current_gateway()
        start = unknown_payments.get_comparison_start(gateway, now=now)
        if since is not None:
            # A backup may lack what was stored shortly before its time.
            start = min(start, since - unknown_payments.OVERLAP)
        try:
            changed = unknown_payments.compare(gateway, since=start, now=now)
        except GatewayRefused as error:
            self.other_problems.append(f"The gateway refused to list its payments: {error}")
            return False
        except GatewayUnavailable:
            self.unanswered += 1
            if since is not None or now - start > 2 * alerts.GATEWAY_PATIENCE:
                self.other_problems.append(
                    "The gateway does not answer: its payments were not compared with ours."
                )
            return False
        if since is not None:
            changed |= unknown_payments.get_recently_captured(gateway, since=since)
        self._process("changed", changed, gateway_events.refresh_with_refunds)
        if not (self.counts[SKIPPED] or self.counts[NO_ANSWER]):
            unknown_payments.finish_comparison(gateway, now=now)
        return True

    def _process_unknown_payments(
        self, *, is_complete: bool, release: bool
    ) -> QuerySet[UnknownPayment]:
        """Ask the gateway for them again, or only for those that are new from a webhook."""
        unresolved = unknown_payments.get_unresolved()
        rows = list(unresolved if is_complete or release else unresolved.filter(currency=""))
        failed: list[int] = []
        for number, unknown in enumerate(rows, start=1):
            refresh = partial(
                unknown_payments.refresh_unknown_payment, release=release, now=timezone.now()
            )
            outcome, problem = self._try(unknown, refresh)
            if outcome == SKIPPED:
                break
            text = f"{outcome}. {problem}" if problem else outcome
            self.stdout.write(f"[no booking {number}/{len(rows)}] {unknown}: {text}")
            if problem:
                failed.append(unknown.pk)
                self.other_problems.append(f"{unknown}: for no booking here; {text}")
            if outcome in {"voided", "refunded"}:
                logger.warning("Payment %s was for no booking and is %s.", unknown, outcome)
                self.other_problems.append(f"{unknown}: for no booking here; {outcome}.")
        # A late webhook about a payment that holds no money is no problem, so ask before reporting.
        return unresolved.exclude(currency="").exclude(pk__in=failed)

    def _print_summary(self, unknown: QuerySet[UnknownPayment]) -> None:
        skipped = self.counts.pop(SKIPPED, 0)
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.counts.items()))
        summary = f"{format_count(self.counts.total(), 'payment')} processed"
        self.stdout.write(f"{summary}: {outcomes}." if outcomes else f"{summary}.")
        if skipped:
            self.stdout.write(
                f"The gateway does not answer: {format_count(skipped, 'payment')} left for the next"
                " run."
            )
        lines = [*self.other_problems, *(self.problems[pk] for pk in sorted(self.problems))]
        lines += [_describe_unknown(payment) for payment in unknown]
        if lines:
            verb = "needs" if len(lines) == 1 else "need"
            shown = [f"  {line}" for line in lines[:MAX_LINES]]
            if len(lines) > MAX_LINES:
                shown.append(f"  and {len(lines) - MAX_LINES} more")
            count = format_count(len(lines), "problem")
            raise CommandError("\n".join([f"{count} {verb} attention:", *shown]))


def _describe_unknown(payment: UnknownPayment) -> str:
    details = [payment.description] if payment.description else []
    if payment.created_at:
        details.insert(0, dates.format_datetime(payment.created_at, dt.UTC))
    suffix = f" ({', '.join(details)})" if details else ""
    return f"{payment}{suffix}: for no booking here."


def _describe(row: Payment | PaymentSetup | UnknownPayment) -> str:
    if not isinstance(row, Payment):
        return str(row)
    return f"Payment {row.pk} of reservation {row.reservation_id}, {row.formatted_amount}"
