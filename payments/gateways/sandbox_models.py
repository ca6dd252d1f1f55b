"""The tables of the sandbox gateway: what a real gateway would store on its side.

No card number and no security code is stored here either, only the outcome of the test number.
Only the sandbox and tests use these tables.
"""

from django.db import models
from django.db.models import F, Q


class SandboxCard(models.Model):
    """A stored card, with the outcome of charging it."""

    reference = models.CharField(max_length=64, unique=True)
    customer = models.CharField(max_length=64)
    outcome = models.CharField(max_length=30)
    brand = models.CharField(max_length=20)
    last4 = models.CharField(max_length=4)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.reference


class SandboxSetup(models.Model):
    """A payment setup. Its page has the secret in its address."""

    key = models.UUIDField(unique=True)
    reference = models.CharField(max_length=64, unique=True)
    secret = models.CharField(max_length=64, unique=True)
    customer = models.CharField(max_length=64)
    return_url = models.CharField(max_length=2000, blank=True)
    state = models.CharField(max_length=10, default="open")
    message = models.CharField(max_length=255, blank=True)
    # No foreign key, which would make the deletion of every card look here.
    card_reference = models.CharField(max_length=64, blank=True)
    exp_year = models.PositiveSmallIntegerField(null=True)
    exp_month = models.PositiveSmallIntegerField(null=True)
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.key} {self.state}"


class SandboxPayment(models.Model):
    """A payment by its key. A key that was voided before it was authorized has a row too."""

    key = models.UUIDField(unique=True)
    state = models.CharField(max_length=15)
    amount = models.DecimalField(max_digits=15, decimal_places=3, default=0)
    currency = models.CharField(max_length=3, blank=True)
    refunded = models.DecimalField(max_digits=15, decimal_places=3, default=0)
    brand = models.CharField(max_length=20, blank=True)
    last4 = models.CharField(max_length=4, blank=True)
    message = models.CharField(max_length=255, blank=True)
    description = models.CharField(max_length=255, blank=True)
    # While the customer has to confirm it: the outcome after that, and the address of the page.
    outcome = models.CharField(max_length=30, blank=True, default="")
    secret = models.CharField(max_length=64, blank=True, default="")
    # How often the payment was captured. Tests check that it is never more than once.
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
