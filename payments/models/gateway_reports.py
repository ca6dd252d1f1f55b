"""What the gateway reports, how far it was read, and the payments that only the gateway knows."""

from django.db import models

from payments.models.payments import FormattedAmountMixin
from roombook.money import MoneyField


class GatewayEvent(models.Model):
    """An event that was processed. If the gateway repeats it, it is only acknowledged.

    A refused attempt to save a card has a row too, because several events and the app report it.
    """

    reference = models.CharField(max_length=255, unique=True)
    type = models.CharField(max_length=100)
    received_at = models.DateTimeField(db_index=True, editable=False)

    def __str__(self) -> str:
        return f"{self.type} {self.reference}"


class GatewayCheckpoint(models.Model):
    """The time up to which the payments of a gateway were compared with ours.

    A restored backup sets it back, so the next comparison covers everything that the backup lacks.
    """

    gateway = models.CharField(max_length=20, unique=True)
    compared_until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.gateway} {self.compared_until}"


class UnknownPayment(FormattedAmountMixin, models.Model):
    """Money that the gateway holds under one of our keys, for no booking that we know.

    The payment was made after the backup from which the database was restored.
    """

    gateway = models.CharField(max_length=20)
    key = models.UUIDField(unique=True)
    reference = models.CharField(max_length=255, blank=True)
    description = models.CharField(max_length=255, blank=True)
    # Authorized, or captured and not refunded. 0 until the gateway has answered.
    amount = MoneyField(default=0)
    currency = models.CharField(max_length=3, blank=True)
    created_at = models.DateTimeField(null=True, help_text="When it was made at the gateway.")
    found_at = models.DateTimeField(editable=False)
    resolved_at = models.DateTimeField(null=True, db_index=True)
    resolution = models.CharField(max_length=20, blank=True, help_text="voided, refunded, kept ...")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(amount__gte=0), name="unknown_payment_is_not_negative"
            ),
        ]

    def __str__(self) -> str:
        amount = self.formatted_amount if self.currency else "an unknown amount"
        return f"{self.reference or self.key} at {self.gateway}, {amount}"
