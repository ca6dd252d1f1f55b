"""What happens to a payment after its capture: refunds and disputes."""

import uuid
from datetime import datetime
from typing import Self

from django.contrib import admin
from django.db import models
from django.db.models import F, Q

from payments.gateways.manual import MANUAL_GATEWAYS
from payments.models.payments import FormattedAmountMixin, Payment
from roombook.money import MoneyField, format_amount
from roombook.texts import LineField


class RefundState(models.TextChoices):
    STARTED = "started"
    DONE = "done"
    REFUSED = "refused"
    # The gateway could not refund, so staff returned the money by bank transfer or in cash.
    OUTSIDE = "outside", "refunded manually"


# The customer has the money back. A payment whose refunds in these states add up is refunded.
COMPLETED_REFUND_STATES = (RefundState.DONE, RefundState.OUTSIDE)


# Of the keys of refunds that were made in the gateway's dashboard (`refunds.get_refund_key`).
REPORTED_KEY_VERSION = 5


class RefundQuerySet(models.QuerySet["Refund"]):
    def not_refused(self) -> Self:
        """Refunds that were paid in any way, or that are due."""
        return self.exclude(state=RefundState.REFUSED)

    def due(self) -> Self:
        """Refunds that must still be made at a gateway."""
        started = self.filter(state=RefundState.STARTED)
        return started.exclude(payment__gateway__in=MANUAL_GATEWAYS)

    def due_by_hand(self) -> Self:
        """Refunds that wait until staff confirm that they have returned the money (B26.5)."""
        return self.filter(state=RefundState.STARTED, payment__gateway__in=MANUAL_GATEWAYS)


class Refund(models.Model):
    """A refund of a payment. The refunds of a payment never exceed its captured amount."""

    payment = models.ForeignKey(Payment, models.PROTECT, related_name="refunds")
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    amount = MoneyField()
    state = models.CharField(
        max_length=10, choices=RefundState.choices, default=RefundState.STARTED
    )
    reason = LineField(max_length=255, blank=True)
    # Only of payments without a gateway: the receipt or slip of the money that staff returned.
    reference = LineField(max_length=255, blank=True, default="")
    fee = MoneyField(
        null=True,
        blank=True,
        help_text="What the gateway charges for the refund. Empty: not known yet, or no gateway.",
    )
    created_at = models.DateTimeField(editable=False)
    done_at = models.DateTimeField(null=True, blank=True)
    # One to one: a refused refund is retried once. If the retry is refused, the retry is retried.
    again = models.OneToOneField(
        "self",
        models.PROTECT,
        null=True,
        blank=True,
        editable=False,
        related_name="retry",
        verbose_name="retry of",
    )

    objects = models.Manager.from_queryset(RefundQuerySet)()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="refund_amount_is_above_zero"),
            models.CheckConstraint(
                condition=Q(state__in=RefundState.values), name="refund_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(state="started", done_at__isnull=True)
                | Q(~Q(state="started"), done_at__isnull=False, done_at__gte=F("created_at")),
                name="refund_done_has_its_time",
            ),
            models.CheckConstraint(
                condition=(Q(fee__isnull=True) | Q(fee__gte=0))
                & (Q(again__isnull=True) | ~Q(again=F("id"))),
                name="refund_fee_and_retry_are_possible",
            ),
        ]
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="refund_by_time"),
            models.Index(fields=["state", "-created_at"], name="refund_by_state"),
        ]

    def __str__(self) -> str:
        return f"{self.formatted_amount} of payment {self.payment_id} ({self.state})"

    @property
    @admin.display(description="amount")
    def formatted_amount(self) -> str:
        return format_amount(self.amount, self.payment.currency)

    @property
    def is_promised(self) -> bool:
        """Whether we have made it, or it replaces one that we made: not a gift in the dashboard."""
        return self.key.version != REPORTED_KEY_VERSION or self.again_id is not None

    def close(self, state: RefundState, *, now: datetime) -> None:
        """Set the final state; does not save. Clocks may differ: never done before created."""
        self.state = state
        self.done_at = max(now, self.created_at)


# The status of a dispute that the customer has won. Stripe's word, which the sandbox uses too.
LOST = "lost"


class Dispute(FormattedAmountMixin, models.Model):
    """A dispute: a customer contests a payment at their bank.

    Staff respond in the gateway's dashboard, and the bank decides. This row only mirrors it.
    """

    payment = models.ForeignKey(Payment, models.PROTECT, related_name="disputes")
    reference = LineField(max_length=255, unique=True)
    amount = MoneyField()
    currency = models.CharField(max_length=3)
    fee = MoneyField(
        null=True,
        blank=True,
        help_text="What the gateway charges for the dispute. Empty: it has not withdrawn money.",
    )
    reason = LineField(max_length=100, blank=True)
    status = models.CharField(
        max_length=100, help_text="The gateway's own status: needs_response, won, lost, ..."
    )
    opened_at = models.DateTimeField(editable=False)
    respond_by = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(amount__gt=0) & (Q(fee__isnull=True) | Q(fee__gte=0)),
                name="dispute_amounts_are_not_negative",
            ),
            models.CheckConstraint(
                condition=~Q(status=LOST) | Q(closed_at__isnull=False),
                name="dispute_lost_is_closed",
            ),
        ]
        indexes = [
            # Open disputes first: PostgreSQL sorts NULL before all values in descending order.
            models.Index(fields=["-closed_at", "respond_by", "id"], name="dispute_open_first"),
        ]

    def __str__(self) -> str:
        return f"{self.formatted_amount} ({self.status_words.lower()})"

    @property
    def reason_words(self) -> str:
        """The gateway's code in words: ``product_not_received`` is "Product not received"."""
        return self.reason.replace("_", " ").capitalize()

    @property
    def status_words(self) -> str:
        return self.status.replace("_", " ").capitalize()
