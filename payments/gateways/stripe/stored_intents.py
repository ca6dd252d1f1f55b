"""Which PaymentIntent belongs to which of our keys, as our database knows it."""

from uuid import UUID

from django.db.models import Q

from payments.gateways.base import GatewayRefused, require_no_open_transaction
from payments.gateways.stripe_models import StripePayment


def get_payment_row(key: UUID) -> StripePayment:
    """The stored row of a key. Raises GatewayRefused if the key is unknown."""
    require_no_open_transaction()
    row = StripePayment.objects.filter(key=key).first()
    if row is None:
        raise GatewayRefused(f"There is no payment with the key {key}.")
    return row


def find_key(intent: str) -> UUID | None:
    """The key of the payment that the intent belongs to, None if it is not ours."""
    row = StripePayment.objects.filter(~Q(intent=""), intent=intent).first()
    return row.key if row else None


def store_intent(key: UUID, intent: str, *, is_live: bool) -> None:
    """Store the id of an intent that a restored backup lacks. The intent has been confirmed."""
    row, _ = StripePayment.objects.get_or_create(
        key=key, defaults={"intent": intent, "is_live": is_live}
    )
    # The key was voided because we did not know the intent. That did not void the intent.
    if not row.intent:
        StripePayment.objects.filter(pk=row.pk).update(intent=intent, is_live=is_live)
