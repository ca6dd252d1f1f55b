"""The service with its guards off, for negative controls only: tests that find nothing wrong here
would find nothing anywhere.

What stays on is each check by itself: it is the lock around it, and the database's own word behind
it, that are gone.
"""

import functools
import time
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from payments.models import Payment
from reservations import availability
from reservations.models import PromoCode, PromoRedemption, Reservation
from reservations.models.constraints import NO_OVERLAP
from reservations.pricing import allowances, promo_codes

# Between looking and acting, where a rival comes in.
GAP = 0.1

# By table: what refuses the second of two.
DATABASE_GUARDS: dict[Any, tuple[str, ...]] = {
    Reservation: (NO_OVERLAP,),
    PromoCode: ("promo_code_uses_within_limit", "promo_code_spent_within_budget"),
}
UNIQUE_GUARDS: dict[Any, tuple[str, ...]] = {
    Payment: ("payment_one_open_per_reservation",),
    PromoRedemption: ("promo_redemption_one_open_per_reservation",),
}


def disable_locks() -> None:
    """No row lock but the gateway's own, and time between each check and what follows from it."""
    locked = QuerySet.select_for_update

    def unlocked(rows: Any, *args: Any, **kwargs: Any) -> Any:
        if rows.model.__name__.startswith("Sandbox"):
            return locked(rows, *args, **kwargs)
        return rows.all()

    QuerySet.select_for_update = unlocked
    for module, name in (
        (availability, "of"),
        (promo_codes, "require_usable"),
        (allowances, "get_available"),
    ):
        setattr(module, name, add_delay(getattr(module, name)))


def add_delay(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        time.sleep(GAP)
        return result

    return wrapper


def drop_database_guards() -> None:
    """Drop the constraints that stand behind the locks; of the connected database only."""
    with connection.cursor() as cursor:
        for model, names in DATABASE_GUARDS.items():
            for name in names:
                cursor.execute(f"ALTER TABLE {model._meta.db_table} DROP CONSTRAINT {name}")
        for names in UNIQUE_GUARDS.values():
            for name in names:
                cursor.execute(f"DROP INDEX {name}")
