"""The sandbox gateway's own books: what a real gateway would keep on its side of the wire.

No number and no code is kept here either, only the outcome that a test number stands for.
Nothing but gateways/sandbox.py reads or writes these tables.
"""

from django.db import models
from django.db.models import F, Q

from roombook.db.prepared_writes import prepared_writes


class SandboxCard(models.Model):
    """A kept card: what will happen when it is charged."""

    reference = models.CharField(max_length=64, unique=True)
    customer = models.CharField(max_length=64)
    outcome = models.CharField(max_length=30)
    brand = models.CharField(max_length=20)
    last4 = models.CharField(max_length=4)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.reference


@prepared_writes
class SandboxPayment(models.Model):
    """One key; its row is also the fence when the key was voided before anybody authorized it."""

    key = models.UUIDField(unique=True)
    state = models.CharField(max_length=10)
    amount = models.DecimalField(max_digits=15, decimal_places=3, default=0)
    currency = models.CharField(max_length=3, blank=True)
    refunded = models.DecimalField(max_digits=15, decimal_places=3, default=0)
    brand = models.CharField(max_length=20, blank=True)
    last4 = models.CharField(max_length=4, blank=True)
    message = models.CharField(max_length=255, blank=True)
    description = models.CharField(max_length=255, blank=True)
    # How often money was really taken: more than once would be a defect, and tests look at it.
    captures = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(refunded__lte=F("amount")), name="sandbox_refunds_within_amount"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.state}"


class SandboxRefund(models.Model):
    key = models.UUIDField(unique=True)
    payment = models.ForeignKey(SandboxPayment, models.CASCADE, related_name="refunds")
    amount = models.DecimalField(max_digits=15, decimal_places=3)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.key} {self.amount}"


class FaultKind(models.TextChoices):
    SLOW = "slow"  # answers after `seconds`
    TIMEOUT_BEFORE = "timeout_before"  # nothing was done, and nobody knows
    TIMEOUT_AFTER = "timeout_after"  # it was done, and nobody knows
    ERROR = "error"  # answers 500, nothing was done
    RESET = "reset"  # the connection breaks in the middle; it was done


class SandboxFault(models.Model):
    """A fault that tests switch on, in the database so that it reaches every process."""

    operation = models.CharField(max_length=20, help_text="authorize, capture, ... or * for all.")
    kind = models.CharField(max_length=20, choices=FaultKind.choices)
    seconds = models.FloatField(default=0)
    # How often it strikes yet; empty: until the row is deleted.
    times = models.PositiveIntegerField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.operation}: {self.kind}"
