from collections.abc import Sequence

from django.apps import AppConfig
from django.core import checks
from django.db.models.signals import post_migrate


class ReservationsConfig(AppConfig):
    name = "reservations"

    def ready(self) -> None:
        from reservations import resources
        from reservations.booking import checkout, differences, time_zones  # noqa: F401 (register)
        from reservations.models import (
            Allowance,
            Note,
            Partner,
            PromoCode,
            Reservation,
            Seller,
            WebhookEndpoint,
        )
        from roombook.backoffice import audit_log
        from roombook.imports.resources import register

        register(resources.PromoCodeResource, resources.AllowanceResource)
        post_migrate.connect(create_triggers, sender=self)
        checks.register(checks.Tags.database)(check_triggers)
        restrictions = ("centers", "room_types")
        # The uses of a promo code are in its own ledger.
        audit_log.register(
            PromoCode, excluded_fields=("uses", "spent"), many_to_many_fields=restrictions
        )
        audit_log.register(Allowance, many_to_many_fields=restrictions, named_by_id=True)
        audit_log.register(Partner)
        audit_log.register(Note, hidden_fields=("text",), named_by_id=True)
        audit_log.register(Seller)
        audit_log.register(
            WebhookEndpoint,
            excluded_fields=("last_success_at", "created_at"),
            hidden_fields=("secret", "old_secret", "access_key_hash"),
        )
        # reservations/models/history.py records these.
        audit_log.register(Reservation, by_signals=False)


def create_triggers(using: str, **kwargs: object) -> None:
    from reservations.models import constraints

    constraints.create_triggers(using)


def check_triggers(
    databases: Sequence[str] | None = None, **kwargs: object
) -> list[checks.CheckMessage]:
    """Check that SQLite has the triggers that prevent double bookings."""
    from reservations.models import constraints

    return [
        checks.Error(
            f"The trigger {name} is missing: SQLite would accept double bookings.",
            hint="Run manage.py migrate, which creates it again.",
            id="reservations.E001",
        )
        for using in databases or []
        for name in constraints.get_missing_triggers(using)
    ]
