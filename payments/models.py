"""What is kept of money: every attempt to pay, what was given back, and each account's saved card.

Never a card number or a security code: only what a receipt shows.
"""

import calendar
import uuid
from datetime import UTC, datetime
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from payments.cards import CardBrand

# Registered here, where Django looks for models.
from payments.gateways.sandbox_models import (  # noqa: F401
    SandboxCard,
    SandboxFault,
    SandboxPayment,
    SandboxRefund,
)
from payments.gateways.stripe_models import StripeCustomer, StripePayment  # noqa: F401
from roombook.address import Address
from roombook.db.prepared_writes import prepared_writes
from roombook.money import MoneyField


class SavedCard(Address):
    """The one card that an account keeps at the gateway; its address is the billing address."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_card")
    gateway = models.CharField(max_length=20)
    reference = models.CharField(max_length=255)
    brand = models.CharField(max_length=20, choices=CardBrand.choices)
    last4 = models.CharField("last four digits", max_length=4)
    exp_year = models.PositiveSmallIntegerField("year of expiry")
    exp_month = models.PositiveSmallIntegerField("month of expiry")
    first_name = models.CharField(max_length=255)
    last_name = models.CharField(max_length=255)
    company_name = models.CharField(max_length=255, blank=True)
    has_cvv = models.BooleanField("security code was given", default=False)
    created_at = models.DateTimeField(editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(exp_month__range=(1, 12)), name="saved_card_month_is_a_month"
            ),
            models.CheckConstraint(
                condition=Q(brand__in=CardBrand.values), name="saved_card_brand_is_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.brand} {self.last4}"

    @property
    def expiration_date(self) -> datetime:
        """Midnight UTC on the last day of its month, which is how clients see it (B5.1)."""
        last_day = calendar.monthrange(self.exp_year, self.exp_month)[1]
        return datetime(self.exp_year, self.exp_month, last_day, tzinfo=UTC)

    def has_expired(self, now: datetime) -> bool:
        return (self.exp_year, self.exp_month) < (now.year, now.month)


class PaymentState(models.TextChoices):
    STARTED = "started"
    AUTHORIZED = "authorized"
    CAPTURED = "captured"
    DECLINED = "declined"
    VOIDED = "voided"
    REFUNDED = "refunded"


# A reservation has at most one payment in one of these: nobody can be charged twice for it.
OPEN_PAYMENT_STATES = (PaymentState.STARTED, PaymentState.AUTHORIZED, PaymentState.CAPTURED)

TRANSITIONS = {
    PaymentState.STARTED: {
        PaymentState.AUTHORIZED,
        PaymentState.CAPTURED,
        PaymentState.DECLINED,
        PaymentState.VOIDED,
        PaymentState.REFUNDED,
    },
    PaymentState.AUTHORIZED: {
        PaymentState.CAPTURED,
        PaymentState.VOIDED,
        PaymentState.REFUNDED,
    },
    PaymentState.CAPTURED: {PaymentState.REFUNDED},
    PaymentState.DECLINED: set(),
    PaymentState.VOIDED: set(),
    # The bank sent a refund back.
    PaymentState.REFUNDED: {PaymentState.CAPTURED},
}


class InvalidPaymentTransition(Exception):
    """A payment cannot become what it was told to: a defect, or the gateway's books differ."""


class PaymentQuerySet(models.QuerySet["Payment"]):
    def open(self) -> Self:
        """Those that hold, have taken or may yet take money."""
        return self.filter(state__in=OPEN_PAYMENT_STATES)

    def in_doubt(self, now: datetime) -> Self:
        """Started, and whoever started them is taken for dead."""
        return self.filter(state=PaymentState.STARTED, lease_until__lte=now)

    def authorized(self) -> Self:
        return self.filter(state=PaymentState.AUTHORIZED)

    def captured(self) -> Self:
        return self.filter(state=PaymentState.CAPTURED)


@prepared_writes
class Payment(models.Model):
    """One attempt to pay for a reservation.

    `key` is what the gateway knows it by. It is random and not the row's id: after a failover to
    a standby that missed the row, the same id could be handed out again, and the gateway would
    answer with another customer's payment.
    """

    reservation = models.ForeignKey(
        "reservations.Reservation", models.PROTECT, related_name="payments"
    )
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    gateway = models.CharField(max_length=20)
    is_live = models.BooleanField("real money", default=False)
    amount = MoneyField()
    currency = models.CharField(max_length=3)
    state = models.CharField(
        max_length=10, choices=PaymentState.choices, default=PaymentState.STARTED
    )
    reference = models.CharField(max_length=255, blank=True)
    card_brand = models.CharField(max_length=20, blank=True)
    card_last4 = models.CharField("last four digits", max_length=4, blank=True)
    message = models.CharField(max_length=255, blank=True)
    # Until then the request that started it is still at work; after that anybody may settle it.
    lease_until = models.DateTimeField()
    # The gateway had not heard of it when somebody settled it, and so it is being fenced off there:
    # whatever the request that started it may hear yet, no room is booked on it any more.
    is_called_off = models.BooleanField("called off", default=False, editable=False)
    created_at = models.DateTimeField(editable=False)
    authorized_at = models.DateTimeField(null=True, blank=True)
    authorized_until = models.DateTimeField(
        null=True, blank=True, help_text="When reserved money goes back by itself, if it does."
    )
    captured_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(
        "closed at", null=True, blank=True, help_text="Declined, voided or wholly refunded."
    )

    objects = models.Manager.from_queryset(PaymentQuerySet)()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["reservation"],
                condition=Q(state__in=["started", "authorized", "captured"]),
                name="payment_one_open_per_reservation",
            ),
            models.CheckConstraint(condition=Q(amount__gt=0), name="payment_amount_is_above_zero"),
            models.CheckConstraint(
                condition=Q(state__in=PaymentState.values), name="payment_state_is_known"
            ),
            models.CheckConstraint(
                condition=~Q(state="captured") | Q(captured_at__isnull=False),
                name="payment_captured_has_its_time",
            ),
            models.CheckConstraint(
                condition=~Q(state="authorized") | Q(authorized_at__isnull=False),
                name="payment_authorized_has_its_time",
            ),
        ]
        indexes = [
            # The few that a reconciler has to look at, however many payments there are.
            models.Index(
                fields=["lease_until"], condition=Q(state="started"), name="payment_in_doubt"
            ),
            models.Index(
                fields=["authorized_until"],
                condition=Q(state="authorized"),
                name="payment_reserved",
            ),
            # Of these each is asked whether it belongs to a booking; with its id, by index alone.
            models.Index(
                fields=["reservation", "id"], condition=Q(state="voided"), name="payment_void"
            ),
            # The back office's list, and what a gateway's dashboard calls a payment.
            models.Index(fields=["-created_at", "-id"], name="payment_by_time"),
            models.Index(
                fields=["reference"], condition=~Q(reference=""), name="payment_by_reference"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} ({self.state})"

    def transition_to(self, state: PaymentState, *, now: datetime) -> None:
        """Change the state, or raise; does not save. The row must be locked."""
        if state not in TRANSITIONS[PaymentState(self.state)]:
            raise InvalidPaymentTransition(
                f"Payment {self.key} is {self.state} and cannot become {state}."
            )
        self.state = state
        if state == PaymentState.AUTHORIZED:
            self.authorized_at = now
        elif state == PaymentState.CAPTURED:
            self.captured_at = self.captured_at or now
            self.settled_at = None
        else:
            self.settled_at = now


class RefundState(models.TextChoices):
    STARTED = "started"
    DONE = "done"
    REFUSED = "refused"
    # The gateway could not, so staff gave it back another way: by bank transfer, in cash.
    OUTSIDE = "outside", "settled outside"


# Given back for good; a payment of which all is in these is refunded.
COMPLETED_REFUND_STATES = (RefundState.DONE, RefundState.OUTSIDE)


class Refund(models.Model):
    """Money given back of one payment; the sum never exceeds what was taken."""

    payment = models.ForeignKey(Payment, models.PROTECT, related_name="refunds")
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    amount = MoneyField()
    state = models.CharField(
        max_length=10, choices=RefundState.choices, default=RefundState.STARTED
    )
    reason = models.CharField(max_length=255, blank=True)
    created_at = models.DateTimeField(editable=False)
    done_at = models.DateTimeField(null=True, blank=True)
    # One to one: a refused refund is tried again once, and then the new one is, if it has to be.
    again = models.OneToOneField(
        "self",
        models.PROTECT,
        null=True,
        blank=True,
        editable=False,
        related_name="retry",
        verbose_name="tried again after",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="refund_amount_is_above_zero"),
            models.CheckConstraint(
                condition=Q(state__in=RefundState.values), name="refund_state_is_known"
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["done", "outside"])
                | Q(done_at__isnull=False, done_at__gte=F("created_at")),
                name="refund_done_has_its_time",
            ),
        ]
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="refund_by_time"),
            models.Index(fields=["state", "-created_at"], name="refund_by_state"),
        ]

    def __str__(self) -> str:
        return f"{self.amount} of payment {self.payment_id} ({self.state})"

    def close(self, state: RefundState, *, now: datetime) -> None:
        """End it; does not save. It never ends before it began, whatever the clocks say."""
        self.state = state
        self.done_at = max(now, self.created_at)


class Dispute(models.Model):
    """A customer who asks their bank for the money back; answered in the gateway's dashboard.

    Recorded as the gateway tells it: whether the money is gone is for the bank to say.
    """

    payment = models.ForeignKey(Payment, models.PROTECT, related_name="disputes")
    reference = models.CharField(max_length=255, unique=True)
    amount = MoneyField()
    currency = models.CharField(max_length=3)
    reason = models.CharField(max_length=100, blank=True)
    status = models.CharField(
        max_length=100, help_text="In the gateway's words: needs_response, won, lost, ..."
    )
    opened_at = models.DateTimeField(editable=False)
    respond_by = models.DateTimeField("answer until", null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            # Open ones first: PostgreSQL has nothing before everything where it counts down.
            models.Index(fields=["-closed_at", "respond_by", "id"], name="dispute_open_first"),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} ({self.status})"


class GatewayEvent(models.Model):
    """A message of the gateway's that was dealt with: told again, it is only acknowledged."""

    reference = models.CharField(max_length=255, unique=True)
    type = models.CharField(max_length=100)
    received_at = models.DateTimeField(db_index=True, editable=False)

    def __str__(self) -> str:
        return f"{self.type} {self.reference}"
