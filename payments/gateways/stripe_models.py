"""The Stripe objects of our payments and accounts.

Stripe cannot find an object by our key immediately: its search lags behind by a minute and
sometimes by an hour, and idempotency keys expire after a day. So the ids are stored here.
Only gateways/stripe/ writes these tables.
"""

from django.db import models
from django.db.models import Q


class StripePayment(models.Model):
    """A key and its PaymentIntent, stored before the intent is confirmed.

    Without an intent, the key was voided before it was used, and can never be authorized.
    """

    key = models.UUIDField(unique=True)
    intent = models.CharField(max_length=255, blank=True)
    # Whether the intent exists in live mode or in test mode, which have different secret keys.
    is_live = models.BooleanField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["intent"], condition=~Q(intent=""), name="stripe_intent_has_one_key"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.intent or 'voided'}"


class StripeCustomer(models.Model):
    """The Customer that has the stored cards of an account."""

    account = models.CharField(max_length=64)
    reference = models.CharField(max_length=255)
    is_live = models.BooleanField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["account", "is_live"], name="stripe_one_customer_per_account"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.account} {self.reference}"
