"""Which of our payments and accounts is which object at Stripe.

Stripe finds nothing by our own keys at once: its search lags behind by a minute and at times by an
hour, and idempotency keys are forgotten after a day. So what we need to find again is kept here.
Nothing but gateways/stripe.py writes these tables.
"""

from django.db import models
from django.db.models import Q


class StripePayment(models.Model):
    """One key and its PaymentIntent, written down before the intent may touch a card.

    No intent: the key was fenced off before anybody used it, and stays so.
    """

    key = models.UUIDField(unique=True)
    intent = models.CharField(max_length=255, blank=True)
    # Whether it lives among Stripe's real objects or its test ones: another key opens each.
    is_live = models.BooleanField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["intent"], condition=~Q(intent=""), name="stripe_intent_has_one_key"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.intent or 'fenced off'}"


class StripeCustomer(models.Model):
    """The Customer that holds an account's cards."""

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
