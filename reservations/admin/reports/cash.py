"""Movements of money: payments, refunds and lost disputes, by the day on which they happened.

This is the cash basis of accounting: a payment counts on the day on which it was captured (on
account: received), a refund on the day on which it was returned, and a dispute on the day on which
it was lost. A refund of what is not received is no money: it reduces what is to be received. The
fee of the gateway counts with its movement: that of a dispute when it is closed, also if it is won.
Days are local days of the center at which the booking was when the payment was captured. Its
refunds and disputes belong to the same center. So nothing of a closed month changes if the booking
moves to another center. Amounts are in the deployment's currency; those in another are left out, as
in the revenue report.
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import NamedTuple

from django.conf import settings
from django.db.models import Case, F, Model, Q, QuerySet, Value, When

from centers.span import Span
from payments.gateways import GATEWAY_CLASSES
from payments.gateways.manual import ACCOUNT, MANUAL_GATEWAYS
from payments.models import Dispute, Payment, PaymentState, Refund, RefundState
from reservations.admin.reports.aggregates import ZERO, SummableMixin
from reservations.admin.reports.revenue import is_superseded
from reservations.admin.reports.selection import MAX_GROUPS, ReportSelection, fetch_at_most
from reservations.booking.integrity.money import effective_refunds
from roombook import places
from roombook.money import MoneyField

MANUAL_REFUND = "manual"
WAYS_OF_PAYMENT = {
    "sandbox": "Card (sandbox)",
    "stripe": "Card (Stripe)",
    **{gateway.name: gateway.label for gateway in MANUAL_GATEWAYS.values()},
    MANUAL_REFUND: "Refunded manually",
}
TOO_MANY = "These are too many payments for one report. Choose fewer days, or some centers."
# Stripe's word, which the sandbox uses too.
LOST = "lost"


class MovementKind(StrEnum):
    PAYMENT = "payment"
    # A refund of a payment on account that the customer had not paid yet.
    CREDIT = "credit"
    REFUND = "refund"
    DISPUTE = "dispute"


class Movement(NamedTuple):
    """Money that came in or, if the amount is negative, went out.

    ``at`` is None if that has not happened yet: a capture or a refund is due, or a payment on
    account is not received. ``center`` is the one whose cash it is, ``booking_center`` the one at
    which the booking is now. ``is_superseded`` means that another payment paid for the reservation.
    ``fee`` is None if the gateway's fee is not known, or there is no gateway.
    """

    kind: MovementKind
    pk: int
    reservation: int
    center: int
    time_zone_id: str
    booking_center: int
    booking_time_zone_id: str
    start: dt.datetime
    way: str
    is_superseded: bool
    amount: Decimal
    fee: Decimal | None
    at: dt.datetime | None

    @property
    def is_fee_unknown(self) -> bool:
        """Whether the gateway charges a fee that is not known."""
        return self.fee is None and self.way in GATEWAY_CLASSES

    @property
    def day(self) -> dt.date:
        """The local day of the center of the cash on which the money moved."""
        assert self.at is not None
        return self.at.astimezone(places.get_time_zone(self.time_zone_id)).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class CashSums(SummableMixin):
    """The sums of some movements."""

    payments: int = 0
    received: Decimal = ZERO
    refunded: Decimal = ZERO
    disputed: Decimal = ZERO
    fees: Decimal = ZERO
    # The number of movements whose fee is not known.
    unknown_fees: int = 0

    @property
    def net(self) -> Decimal:
        return self.received - self.refunded - self.disputed - self.fees

    @classmethod
    def from_movement(cls, movement: Movement) -> "CashSums":
        amount, kind = movement.amount, movement.kind
        return cls(
            payments=int(kind == MovementKind.PAYMENT),
            received=amount if kind in {MovementKind.PAYMENT, MovementKind.CREDIT} else ZERO,
            refunded=-amount if kind == MovementKind.REFUND else ZERO,
            disputed=-amount if kind == MovementKind.DISPUTE else ZERO,
            fees=movement.fee or ZERO,
            unknown_fees=int(movement.is_fee_unknown),
        )


def fetch_movements(selection: ReportSelection) -> list[Movement]:
    """The movements of the period, and all those of meetings that start in it.

    Raises ReportTooLarge.
    """
    return [
        *_fetch(selection, _get_payments(), "", "captured_at", "received_at"),
        *_fetch(selection, _get_refunds(), "payment__", "done_at", "payment__received_at"),
        *_fetch(selection, _get_closed_disputes(), "payment__", "closed_at"),
    ]


def _get_payments() -> QuerySet[Payment]:
    """What was captured, and what is authorized: its capture may be due."""
    at = Case(When(gateway=ACCOUNT.name, then=F("received_at")), default=F("captured_at"))
    return Payment.objects.filter(
        Q(state=PaymentState.AUTHORIZED) | Q(captured_at__isnull=False)
    ).annotate(kind=Value(MovementKind.PAYMENT), way=F("gateway"), moved=F("amount"), at=at)


def _get_refunds() -> QuerySet[Refund]:
    """What was returned, and what is to be returned."""
    is_credit = Q(payment__gateway=ACCOUNT.name, state=RefundState.DONE) & (
        Q(payment__received_at=None) | Q(done_at__lte=F("payment__received_at"))
    )
    is_manual = Q(state=RefundState.OUTSIDE)
    return effective_refunds().annotate(
        kind=Case(
            When(is_credit, then=Value(MovementKind.CREDIT)), default=Value(MovementKind.REFUND)
        ),
        way=Case(When(is_manual, then=Value(MANUAL_REFUND)), default=F("payment__gateway")),
        moved=F("amount"),
        at=Case(When(is_credit, then=F("payment__received_at")), default=F("done_at")),
    )


def _get_closed_disputes() -> QuerySet[Dispute]:
    """Disputes that were lost, and the fees of the others."""
    return Dispute.objects.filter(Q(status=LOST) | Q(fee__gt=0), closed_at__isnull=False).annotate(
        kind=Value(MovementKind.DISPUTE),
        way=F("payment__gateway"),
        moved=Case(
            When(status=LOST, then=F("amount")), default=Value(ZERO), output_field=MoneyField()
        ),
        at=F("closed_at"),
    )


def _fetch(
    selection: ReportSelection, rows: QuerySet[Model], payment: str, *times: str
) -> list[Movement]:
    """Read rows as movements.

    ``payment`` is the path from a row to its payment. ``times`` are the columns that ``at`` is
    taken from.
    """
    span = selection.period.widest_span()
    path, center = f"{payment}reservation__", f"{payment}cash_center"
    booking_center = f"{path}room__center"
    rows = (
        rows.filter(**{f"{payment}currency": settings.CURRENCY})
        .annotate(center=F(f"{center}_id"), zone=F(f"{center}__time_zone_id"))
        .annotate(superseded=is_superseded(f"{payment}pk", f"{payment}reservation"))
        .order_by()
    )
    columns = (
        *("kind", "pk", f"{path}pk", "center", "zone"),
        *(f"{booking_center}_id", f"{booking_center}__time_zone_id", f"{path}start"),
        *("way", "superseded", "moved", "fee", "at"),
    )
    of_meetings = rows.filter(selection.filter_reservations(path)).values_list(*columns)
    of_period = rows.filter(
        selection.filter_centers("center"),
        selection.filter_room_types(f"{path}room__"),
        reduce(or_, (Q(**{f"{time}__gte": span.start, f"{time}__lt": span.end}) for time in times)),
    ).values_list(*columns)
    found = fetch_at_most(MAX_GROUPS, of_meetings.union(of_period), TOO_MANY)
    return [
        Movement._make((kind, *row, amount if kind == MovementKind.PAYMENT else -amount, fee, at))
        for kind, *row, amount, fee, at in found
    ]


def select_movements_of_period(
    movements: Iterable[Movement], selection: ReportSelection
) -> Iterator[Movement]:
    """The movements at the selected centers on the days of the period."""
    spans = get_spans(selection)
    for movement in movements:
        if not selection.has_center(movement.center):
            continue
        span = spans[movement.time_zone_id]
        if movement.at is not None and span.start <= movement.at < span.end:
            yield movement


def get_spans(selection: ReportSelection) -> dict[str, Span]:
    """The period in each time zone of the selected centers."""
    return {zone: selection.period.span(zone) for zone in selection.zones}
