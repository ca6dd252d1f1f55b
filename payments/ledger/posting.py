"""Posts to the ledger what each event changes, in the transaction of the event."""

import datetime as dt
import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from django.db.models import Sum

from accounts.models import User
from payments.gateways import get_current_gateway
from payments.ledger.accounts import BILL, CHANGES, MONEY_BY_WAY, Account, EventKind
from payments.ledger.balances import BOOKINGS, Balances, build_lines, calculate_balances
from payments.ledger.facts import Bill, get_bill_reader, read_movements
from payments.ledger.models import LedgerLine
from payments.models import Payment
from roombook import places
from roombook.money import to_hundredths

logger = logging.getLogger(__name__)


def post(
    reservation_id: int,
    kind: EventKind,
    *,
    by: User | None = None,
    cause: str = "",
    fee: Decimal | None = None,
    now: dt.datetime,
) -> None:
    """Post what has changed for the reservation. Call it last in the transaction that changes it.

    `fee` is that of its cancellation, in the event that cancels it: from then on, only the ledger
    knows it. Does nothing if nothing has changed.
    """
    [(_, bill, lines)] = find_unposted([reservation_id], fee=fee, locks=True, now=now)
    zones = {bill.center: bill.zone}
    if others := {center for center, _, _ in lines} - zones.keys():
        centers: Any = LedgerLine._meta.get_field("center").related_model
        zones |= dict(centers.objects.filter(pk__in=others).values_list("pk", "time_zone_id"))
    touched = {account for line in lines.values() for account in line}
    if unexpected := touched - CHANGES[kind] - {BOOKINGS}:
        logger.error(
            "Reservation %s: the event '%s' has found differences that no event has posted: %s",
            reservation_id,
            kind,
            ", ".join(sorted(unexpected)),
        )
        kind = EventKind.CORRECTED
    event = {"reservation_id": reservation_id, "kind": kind, "by": by, "cause": cause}
    _write(lines, zones, currency=bill.currency, at=now, **event)


def post_booking(
    reservation_id: int, *, is_test: bool, by: User | None = None, now: dt.datetime
) -> None:
    """Post the bill of a reservation whose bill was never posted, without reading the ledger.

    Its payment is posted by `post_payment`.
    """
    bill: Bill = get_bill_reader().read_bill(reservation_id)
    lines = build_lines(calculate_balances(bill, [], is_test=is_test), {})
    event = {"reservation_id": reservation_id, "kind": EventKind.BOOKED, "by": by}
    _write(lines, {bill.center: bill.zone}, currency=bill.currency, at=now, **event)


def post_payment(
    payment: Payment,
    *,
    center_id: int,
    time_zone_id: str,
    by: User | None = None,
    now: dt.datetime,
) -> None:
    """Post a payment that has just been captured, without reading the ledger.

    Nothing of it can be posted or refunded before. The center is the one at which the booking is.
    The caller holds the lock of the payment.
    """
    if payment.is_receivable:
        return  # Nothing has come in.
    cause = f"payment {payment.pk}"
    if center_id != payment.cash_center_id:
        post(payment.reservation_id, EventKind.PAID, by=by, cause=cause, now=now)
        return
    amount = to_hundredths(payment.amount)
    account = MONEY_BY_WAY.get(payment.gateway, Account.GATEWAY)
    other = Account.RECEIVABLES if payment.counts else Account.REFUNDS_PAYABLE
    lines: Balances = {
        (center_id, not payment.is_live, None): Counter({account: amount, other: -amount})
    }
    event = {"reservation_id": payment.reservation_id, "kind": EventKind.PAID, "by": by}
    zones = {center_id: time_zone_id}
    _write(lines, zones, currency=payment.currency, cause=cause, at=now, **event)


def find_unposted(
    reservations: Collection[int],
    *,
    fee: Decimal | None = None,
    locks: bool = False,
    now: dt.datetime,
) -> Iterator[tuple[int, Bill, Balances]]:
    """Yield the bill of each reservation, and what is to be posted: nothing if all is posted.

    The fee of a cancellation is the posted one, unless it is given.
    """
    # First, because it may lock.
    payments = read_movements(reservations, locks=locks)
    bills = get_bill_reader().read_bills(reservations)
    posted: dict[int, Balances] = {pk: defaultdict(Counter) for pk in reservations}
    is_test = dict.fromkeys(reservations, not get_current_gateway().is_live)
    columns = (*Account, BOOKINGS)
    rows = LedgerLine.objects.filter(reservation__in=reservations).order_by()
    keys = ("reservation", "center", "is_test", "meeting_day")
    sums = {f"sum_{column}": Sum(column) for column in columns}
    for pk, center, is_test[pk], meeting_day, *amounts in rows.values_list(*keys).annotate(**sums):
        for column, amount in zip(columns, amounts, strict=True):
            day = meeting_day if column in BILL or column == BOOKINGS else None
            posted[pk][center, is_test[pk], day][column] += int(amount or 0)
    for pk, bill in bills.items():
        bill = _keep_meeting_day(bill, posted[pk], now=now)
        cost = to_hundredths(fee) if fee is not None else _get_fee(posted[pk])
        balances = calculate_balances(bill, payments[pk], is_test=is_test[pk], fee=cost)
        yield pk, bill, build_lines(balances, posted[pk])


def _keep_meeting_day(bill: Bill, posted: Balances, *, now: dt.datetime) -> Bill:
    """Return the bill with the day that is posted, if the meeting has begun or is cancelled.

    Only another time zone of its center changes that day then, and that is no event.
    """
    days = [
        day
        for (center, _, day), line in posted.items()
        if center == bill.center and day is not None and any(line.values())
    ]
    is_to_come = bill.is_booked and bill.start > now
    return bill if is_to_come or len(days) != 1 else replace(bill, meeting_day=days[0])


def _get_fee(posted: Balances) -> int:
    """What a cancellation costs, including tax; 0 of a booking that is not cancelled."""
    net = -sum(line[Account.CANCELLATION] for line in posted.values())
    return net - sum(line[Account.TAX_PAYABLE] for line in posted.values()) if net else 0


def _write(lines: Balances, zones: Mapping[int, str], *, at: dt.datetime, **event: Any) -> None:
    LedgerLine.objects.bulk_create(
        LedgerLine(
            at=at,
            center_id=center,
            is_test=is_test,
            day=at.astimezone(places.get_time_zone(zones[center])).date(),
            meeting_day=meeting_day,
            **event,
            **line,
        )
        for (center, is_test, meeting_day), line in lines.items()
    )
