"""Rates, rooms and services that are not saved, for tests of prices."""

from datetime import UTC, datetime
from decimal import Decimal

from centers.models import Center, MeetingRoom, Rate, Service
from reservations.models import Allowance, LineItemType, PromoCode
from reservations.pricing.allowances import AvailableAllowance

# 9 in the morning in Denver.
NINE = datetime(2027, 3, 3, 16, tzinfo=UTC)
ROOM, FEE, SERVICE = LineItemType.ROOM, LineItemType.SETUP_FEE, LineItemType.SERVICE
ALLOWANCE, PROMOTION = LineItemType.ALLOWANCE, LineItemType.PROMOTION


def money(value):
    return None if value is None else Decimal(value)


def rate(hourly=None, half_day=None, full_day=None, setup_fee=None, *, blocks=False):
    return Rate(
        hourly=money(hourly),
        half_day=money(half_day),
        full_day=money(full_day),
        setup_fee=money(setup_fee),
        bill_in_blocks=blocks,
    )


def flat(price, setup_fee=None):
    return Rate(is_flat_rate=True, flat_rate=money(price), setup_fee=money(setup_fee))


FULL = rate(25, 90, 160)


def room(some_rate=FULL, tax=0):
    center = Center(name="Glenarm", time_zone_id="America/Denver", tax_rate=Decimal(tax))
    return MeetingRoom(name="Boardroom", center=center, rate=some_rate)


def service(some_rate, **fields):
    return Service(pk=7, name="Coffee", rate=some_rate, **fields)


def offer(hours_left, pk=1):
    return AvailableAllowance(
        Allowance(pk=pk, description=f"Plan {pk}", hours=hours_left), None, hours_left
    )


def percent(number):
    return PromoCode(code="TEN", percent=Decimal(number))


def amount_off(number):
    return PromoCode(code="OFF", amount=Decimal(number))
