"""Checks that the ledger is what bills and payments say (docs/ledger.md)."""

import datetime as dt
from itertools import islice

from django.db.models import Exists, F, OuterRef, Q, Subquery, TextField, Value
from django.db.models.functions import Cast, Concat, TruncDate

from payments.gateways.manual import ACCOUNT
from payments.ledger.accounts import Account, EventKind
from payments.ledger.posting import find_unposted
from payments.models import COMPLETED_REFUND_STATES, LedgerLine, Payment, Refund
from reservations.booking.integrity.common import OVERDUE_AFTER, CheckList, Rows
from reservations.models import Reservation
from roombook.money import format_amount, from_hundredths

CHECKS = CheckList()
BATCH_SIZE = 1_000


@CHECKS.add("reservation {}: bill and payments differ from the ledger: {}")
def ledger_off_the_facts(now: dt.datetime) -> Rows:
    """Find reservations whose accounts do not hold what follows from their bill and payments."""
    ids = Reservation.objects.order_by("pk").values_list("pk", flat=True).iterator(BATCH_SIZE)
    while batch := list(islice(ids, BATCH_SIZE)):
        for pk, bill, lines in find_unposted(batch, now=now):
            differences = (
                f"{account.label} {format_amount(from_hundredths(line[account]), bill.currency)}"
                for line in lines.values()
                for account in Account
                if line[account]
            )
            if lines:
                yield pk, ", ".join(differences) or "bookings"


@CHECKS.add("reservation {}: line {} of the ledger corrects what no event has posted")
def corrected_lines(now: dt.datetime) -> Rows:
    """Find corrections: an event was not posted, or rows were changed by SQL."""
    return LedgerLine.objects.filter(kind=EventKind.CORRECTED).values_list("reservation", "pk")


@CHECKS.add("reservation {}: line {} of {:%Y-%m-%d %H:%M} UTC is of {} and in {}")
def lines_at_an_impossible_time(now: dt.datetime) -> Rows:
    """Find lines of a day on which they were not posted, or in another currency than the bill."""
    day = dt.timedelta(days=1)  # Time zones differ by less.
    wrong = Q(day__lt=TruncDate(F("at") - day)) | Q(day__gt=TruncDate(F("at") + day))
    rows = LedgerLine.objects.filter(wrong | ~Q(currency=F("reservation__currency")))
    return rows.values_list("reservation", "pk", "at", "day", "currency")


@CHECKS.add("payment {} was captured at {} and received at {}, by its line at {}")
def payments_off_their_line(now: dt.datetime) -> Rows:
    """Find payments that came in at another time than the ledger says."""
    lines = LedgerLine.objects.filter(reservation=OuterRef("reservation"), cause=OuterRef("cause"))
    came_in = lines.filter(kind__in=[EventKind.PAID, EventKind.RECEIVED]).order_by("pk")
    rows = Payment.objects.annotate(cause=Concat(Value("payment "), Cast("pk", TextField())))
    rows = rows.annotate(posted=Subquery(came_in.values("at")[:1])).filter(posted__isnull=False)
    at_once = Q(received_at=None) | ~Q(gateway=ACCOUNT.name)
    rows = rows.filter(
        Q(at_once, ~Q(captured_at=F("posted"))) | Q(~at_once, ~Q(received_at=F("posted")))
    )
    return rows.values_list("pk", "captured_at", "received_at", "posted")


@CHECKS.add(
    "refund {} of payment {} was done at {:%Y-%m-%d %H:%M}, and its line is of another time"
)
def refunds_off_their_line(now: dt.datetime) -> Rows:
    """Find refunds that were done at another time than the ledger says. Clocks can differ."""
    lines = LedgerLine.objects.filter(
        reservation=OuterRef("payment__reservation"), cause=OuterRef("cause")
    )
    near = (OuterRef("done_at") - OVERDUE_AFTER, OuterRef("done_at") + OVERDUE_AFTER)
    rows = Refund.objects.filter(state__in=COMPLETED_REFUND_STATES).annotate(
        cause=Concat(Value("refund "), Cast("pk", TextField()))
    )
    rows = rows.filter(Exists(lines), ~Exists(lines.filter(at__range=near)))
    return rows.values_list("pk", "payment", "done_at")
