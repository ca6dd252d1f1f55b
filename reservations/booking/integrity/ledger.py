"""Checks that the ledger is what bills and payments say (docs/ledger.md)."""

import datetime as dt
from itertools import islice

from payments.ledger.accounts import Account, EventKind
from payments.ledger.posting import find_unposted
from payments.models import LedgerLine
from reservations.booking.integrity.common import CheckList, Rows
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
