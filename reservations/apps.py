from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db.models.signals import post_migrate


class ReservationsConfig(AppConfig):
    name = "reservations"

    def ready(self) -> None:
        from reservations import resources
        from reservations.models import Allowance, Partner, PromoCode, Reservation
        from roombook.backoffice import audit_log
        from roombook.imports.resources import register

        register(resources.PromoCodeResource, resources.AllowanceResource)
        post_migrate.connect(create_triggers, sender=self)
        checks.register(checks.Tags.database)(check_triggers)
        bound = ("centers", "room_types")
        # What a promo code has given is told by its ledger.
        audit_log.register(PromoCode, excluded_fields=("uses", "spent"), many_to_many_fields=bound)
        audit_log.register(Allowance, many_to_many_fields=bound, named_by_id=True)
        audit_log.register(Partner)
        # reservations/booking/history.py records these.
        audit_log.register(Reservation, by_signals=False)


def create_triggers(using: str, **kwargs: Any) -> None:
    from reservations.models import constraints

    constraints.create_triggers(using)


def check_triggers(
    databases: Sequence[str] | None = None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """SQLite must have the triggers that refuse a double booking."""
    from reservations.models import constraints

    return [
        checks.Error(
            f"The trigger {name} is missing: SQLite would accept a double booking.",
            hint="Run manage.py migrate, which lays it again.",
            id="reservations.E001",
        )
        for using in databases or []
        for name in constraints.get_missing_triggers(using)
    ]
