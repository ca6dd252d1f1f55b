"""Meetings around one morning and their payments, for the dashboard and the page "Today"."""

import datetime as dt
from decimal import Decimal

from payments.models import PaymentState
from reservations.models.status import Status
from tests.factories_reservations import HOUR, PaymentFactory, ReservationFactory, post_sale

DAY = 24 * HOUR
# Monday the 15th, 09:00 in Denver.
NOW = dt.datetime(2027, 3, 15, 15, tzinfo=dt.UTC)


def meeting(room, start, hours=1, status=Status.CONFIRMED, **fields):
    reservation = ReservationFactory(
        **{
            "room": room,
            "start": start,
            "end": start + hours * HOUR,
            "status": status,
            "created_at": NOW - DAY,
            "total_cost": Decimal("75.00"),
            **fields,
        }
    )
    return post_sale(reservation, now=NOW)


def paid(row, state=PaymentState.CAPTURED, **fields):
    return PaymentFactory(reservation=row, state=state, at=NOW, **fields)
