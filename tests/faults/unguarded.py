"""The service without locks and constraints, for negative controls: a test that finds no problem
here would never find one.

The checks themselves stay. What is missing are the locks around them and the constraints of the
database behind them.
"""

import functools
import time
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from accounts.limits import RateLimit
from payments.models import Payment
from reservations import availability
from reservations.booking import amendments, holds
from reservations.models import PromoCode, PromoRedemption, Reservation
from reservations.models.constraints import NO_OVERLAP, NO_OVERLAP_BEFORE
from reservations.pricing import allowances, promo_codes

# Seconds between a check and what follows from it, in which another request interferes.
GAP = 0.25

# The constraints that refuse the second of two rows.
DATABASE_GUARDS: dict[Any, tuple[str, ...]] = {
    Reservation: (NO_OVERLAP, NO_OVERLAP_BEFORE),
    PromoCode: ("promo_code_uses_within_limit", "promo_code_spent_within_budget"),
}
UNIQUE_GUARDS: dict[Any, tuple[str, ...]] = {
    Payment: (
        *("payment_one_open_for_booking", "payment_one_open_for_change"),
        "payment_one_counts_for_booking",
    ),
    PromoRedemption: ("promo_redemption_one_open_per_reservation",),
}


def disable_locks() -> None:
    """Lock no rows but the gateway's own, and wait after each check."""
    locked = QuerySet.select_for_update

    def unlocked(rows: Any, *args: Any, **kwargs: Any) -> Any:
        if rows.model.__name__.startswith("Sandbox"):
            return locked(rows, *args, **kwargs)
        return rows.all()

    QuerySet.select_for_update = unlocked
    # Without their rows, limits neither refuse anything nor let requests wait for each other.
    RateLimit._add = lambda *_, **__: True
    holds.release_conflicting_holds = add_delay(holds.release_conflicting_holds)
    # It writes to the payments of other requests, which would wait for each other.
    amendments.call_off_changes = lambda *_, **__: []
    availability.evaluate = add_delay(availability.evaluate)
    promo_codes.require_usable = add_delay(promo_codes.require_usable)
    allowances.get_available = add_delay(allowances.get_available)


def add_delay(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        time.sleep(GAP)
        return result

    return wrapper


def drop_database_guards() -> None:
    """Drop the constraints behind the locks in the connected database."""
    with connection.cursor() as cursor:
        for model, names in DATABASE_GUARDS.items():
            for name in names:
                cursor.execute(f"ALTER TABLE {model._meta.db_table} DROP CONSTRAINT {name}")
        for names in UNIQUE_GUARDS.values():
            for name in names:
                cursor.execute(f"DROP INDEX {name}")
