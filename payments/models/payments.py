"""Payments."""

import uuid
from datetime import datetime
from decimal import Decimal
from typing import Self

from django.conf import settings
from django.contrib import admin
from django.db import models
from django.db.models import Q

from payments.gateways.manual import ACCOUNT, CASH, MANUAL_GATEWAYS, TERMINAL
from roombook.money import MoneyField, format_amount
from roombook.texts import LineField


class FormattedAmountMixin:
    """The amount of a row as every page shows it."""

    amount: Decimal
    currency: str

    @property
    @admin.display(description="amount")
    def formatted_amount(self) -> str:
        """`$175.00`, in the currency of the payment."""
        return format_amount(self.amount, self.currency)


class PaymentState(models.TextChoices):
    STARTED = "started"
    AUTHORIZED = "authorized"
    CAPTURED = "captured"
    DECLINED = "declined"
    VOIDED = "voided"
    REFUNDED = "refunded"


class PaymentPurpose(models.TextChoices):
    """What a payment pays for: the booking itself, or a later change that costs more (B27)."""

    BOOKING = "booking"
    CHANGE = "change"


# A reservation is booked by at most one payment in these states, so nobody is charged twice.
OPEN_PAYMENT_STATES = (PaymentState.STARTED, PaymentState.AUTHORIZED, PaymentState.CAPTURED)

CAPTURED_STATES = (PaymentState.CAPTURED, PaymentState.REFUNDED)
CLOSED_STATES = (PaymentState.DECLINED, PaymentState.REFUNDED, PaymentState.VOIDED)

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
    # If the bank returns a refund.
    PaymentState.REFUNDED: {PaymentState.CAPTURED},
}


class InvalidPaymentTransition(Exception):
    """The payment or refund cannot enter the state: a defect, or the gateway contradicts us."""


class PaymentQuerySet(models.QuerySet["Payment"]):
    def open(self) -> Self:
        """Payments that hold money, have captured it, or may still do so."""
        return self.filter(state__in=OPEN_PAYMENT_STATES)

    def stale(self, now: datetime) -> Self:
        """Started payments whose lease has expired: their worker has probably died."""
        return self.filter(state=PaymentState.STARTED, lease_until__lte=now)

    def waiting(self) -> Self:
        """Started payments that wait until the customer has confirmed them at the bank (B21.3)."""
        return self.filter(
            state=PaymentState.STARTED, action_until__isnull=False, is_called_off=False
        )

    def resolvable(self, now: datetime) -> Self:
        """Started payments that anybody may resolve: no worker waits for their outcome."""
        return self.filter(
            Q(lease_until__lte=now) | Q(action_until__isnull=False), state=PaymentState.STARTED
        )

    def authorized(self) -> Self:
        return self.filter(state=PaymentState.AUTHORIZED)

    def captured(self) -> Self:
        return self.filter(state=PaymentState.CAPTURED)

    def with_fees_due(self, now: datetime) -> Self:
        """Payments whose fees are to be fetched, those that wait longest first."""
        due = self.filter(fees_due_at__lte=now, captured_at__isnull=False)
        return due.order_by("fees_due_at")

    def receivable(self) -> Self:
        """Payments on account whose money has not come in yet (B26.4)."""
        return self.captured().filter(gateway=ACCOUNT.name, received_at__isnull=True)


class Payment(FormattedAmountMixin, models.Model):
    """One attempt to pay for a reservation.

    The gateway knows it by its `key`, which is random. The row's id would not do: after a failover
    to a standby without the row, the same id could be assigned again, and the gateway would answer
    with another customer's payment.
    """

    reservation = models.ForeignKey(
        "reservations.Reservation", models.PROTECT, related_name="payments"
    )
    # The center for which the money is taken, from the first request on: of a change, the one to
    # which the booking moves. Posting calculates the ledger from it, so the ledger cannot tell it:
    # `verify_integrity` would not find money that was posted at another center.
    cash_center = models.ForeignKey(
        "centers.Center",
        models.PROTECT,
        editable=False,
        related_name="+",
        # Reports read months of payments, and a center with payments is not deleted.
        db_index=False,
        verbose_name="cash counted at",
    )
    # The reservation's own uid, which never changes: `verify_integrity` finds a payment that was
    # attached to another reservation.
    reservation_uid = models.UUIDField(editable=False)
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    purpose = models.CharField(
        max_length=10,
        choices=PaymentPurpose.choices,
        default=PaymentPurpose.BOOKING,
    )
    # Whether it pays for the booking or for a change of it: set when the booking or the change is
    # made, and cleared when that ends before the capture. All money of another payment is returned.
    counts = models.BooleanField(default=False, editable=False)
    gateway = models.CharField(max_length=20)
    is_live = models.BooleanField("live", default=False)
    amount = MoneyField()
    currency = models.CharField(max_length=3)
    state = models.CharField(
        max_length=10, choices=PaymentState.choices, default=PaymentState.STARTED
    )
    reference = LineField(max_length=255, blank=True)
    card_brand = models.CharField(max_length=20, blank=True)
    card_last4 = models.CharField("last four digits", max_length=4, blank=True)
    message = models.CharField(max_length=255, blank=True)
    # Whether the card was entered on the page of a payment link (B26.7): that page shows no other.
    is_by_link = models.BooleanField(default=False, editable=False)
    # Until then the request that started the payment may be at work; afterwards anybody may
    # resolve the payment.
    lease_until = models.DateTimeField()
    # Until then the customer can confirm the payment at the bank (B21.3); then the lease ends, too.
    action_until = models.DateTimeField(null=True, blank=True, editable=False)
    # The bank has declined it while it waited, and no request has told the customer yet (B21.3).
    has_unreported_decline = models.BooleanField(default=False, editable=False)
    # Set when the payment shall end without a charge, before it is voided at the gateway: nothing
    # must be booked or changed on it any more, whatever its worker hears later.
    is_called_off = models.BooleanField("called off", default=False, editable=False)
    created_at = models.DateTimeField(editable=False)
    authorized_at = models.DateTimeField(null=True, blank=True)
    authorized_until = models.DateTimeField(
        null=True, blank=True, help_text="When the authorization expires, if it does."
    )
    captured_at = models.DateTimeField(null=True, blank=True)
    fee = MoneyField(
        null=True,
        blank=True,
        help_text="What the gateway charges for the payment. Empty: not known yet, or no gateway.",
    )
    # When to ask the gateway next for the fees of the payment and its refunds (payments/fees.py).
    # None if they are known, or not to be expected any more.
    fees_due_at = models.DateTimeField(null=True, editable=False)
    closed_at = models.DateTimeField(
        "closed at", null=True, blank=True, help_text="Declined, voided or fully refunded."
    )
    # Only of payments that staff took without a gateway: at the desk, or on account (B26).
    received_at = models.DateTimeField(
        null=True, blank=True, help_text="When the money came in. Empty: on account, still owed."
    )
    taken_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        # Nobody lists payments by it, and members of staff are not deleted.
        db_index=False,
    )

    objects = models.Manager.from_queryset(PaymentQuerySet)()

    class Meta:
        permissions = [
            ("take_on_account", "Take a payment on account"),
            ("mark_received", "Mark a payment on account as received"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["reservation"],
                condition=Q(purpose="booking", state__in=["started", "authorized", "captured"]),
                name="payment_one_open_for_booking",
            ),
            # Changes follow one another, so several of their payments can be captured.
            models.UniqueConstraint(
                fields=["reservation"],
                condition=Q(purpose="change", state__in=["started", "authorized"]),
                name="payment_one_open_for_change",
            ),
            models.UniqueConstraint(
                fields=["reservation"],
                condition=Q(purpose="booking", counts=True),
                name="payment_one_counts_for_booking",
            ),
            models.CheckConstraint(
                condition=Q(counts=False) | ~Q(state__in=["started", "declined"]),
                name="payment_that_counts_is_authorized",
            ),
            models.CheckConstraint(condition=Q(amount__gt=0), name="payment_amount_is_above_zero"),
            models.CheckConstraint(
                condition=Q(fee__isnull=True) | Q(fee__gte=0), name="payment_fee_is_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(state__in=PaymentState.values), name="payment_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(purpose__in=PaymentPurpose.values), name="payment_purpose_is_known"
            ),
            models.CheckConstraint(
                condition=~Q(state="authorized") | Q(authorized_at__isnull=False),
                name="payment_authorized_has_its_time",
            ),
            models.CheckConstraint(
                condition=Q(state__in=CAPTURED_STATES, captured_at__isnull=False)
                | (~Q(state__in=CAPTURED_STATES) & Q(captured_at__isnull=True)),
                name="payment_captured_has_its_time",
            ),
            models.CheckConstraint(
                condition=Q(state__in=CLOSED_STATES, closed_at__isnull=False)
                | (~Q(state__in=CLOSED_STATES) & Q(closed_at__isnull=True)),
                name="payment_closed_has_its_time",
            ),
            models.CheckConstraint(
                condition=Q(
                    gateway__in=[CASH.name, TERMINAL.name],
                    taken_by__isnull=False,
                    received_at__isnull=False,
                )
                | Q(gateway=ACCOUNT.name, taken_by__isnull=False)
                | (
                    ~Q(gateway__in=list(MANUAL_GATEWAYS))
                    & Q(taken_by__isnull=True, received_at__isnull=True)
                ),
                name="payment_without_a_gateway_was_taken_by_somebody",
            ),
        ]
        indexes = [
            # The few rows that reconcile_payments has to check.
            models.Index(
                fields=["lease_until"], condition=Q(state="started"), name="payment_in_doubt"
            ),
            models.Index(
                fields=["authorized_until"],
                condition=Q(state="authorized"),
                name="payment_reserved",
            ),
            # An index-only scan finds voided payments of reservations that are booked.
            models.Index(
                fields=["reservation", "id"], condition=Q(state="voided"), name="payment_void"
            ),
            # The few payments whose fees are not known yet.
            models.Index(
                fields=["fees_due_at"],
                condition=Q(fees_due_at__isnull=False),
                name="payment_by_fees_due",
            ),
            # The few payments that customers still owe.
            models.Index(
                fields=["reservation"],
                condition=Q(gateway="account", state="captured", received_at__isnull=True),
                name="payment_receivable",
            ),
            # The list in the back office, and its search by the gateway's reference.
            models.Index(fields=["-created_at", "-id"], name="payment_by_time"),
            models.Index(
                fields=["reference"], condition=~Q(reference=""), name="payment_by_reference"
            ),
            models.Index(
                fields=["card_last4"], condition=~Q(card_last4=""), name="payment_by_last4"
            ),
            models.Index(fields=["amount"], name="payment_by_amount"),
        ]

    def __str__(self) -> str:
        return f"{self.formatted_amount} ({self.state})"

    @property
    def is_manual(self) -> bool:
        """Whether staff took the payment without a gateway, and refund it manually (B26)."""
        return self.gateway in MANUAL_GATEWAYS

    @property
    def is_receivable(self) -> bool:
        """Whether the customer has yet to pay this payment on account."""
        is_captured = self.state == PaymentState.CAPTURED
        return is_captured and self.gateway == ACCOUNT.name and self.received_at is None

    def transition_to(self, state: PaymentState, *, now: datetime) -> None:
        """Change the state and its time; does not save. The row must be locked.

        Raises InvalidPaymentTransition.
        """
        if state not in TRANSITIONS[PaymentState(self.state)]:
            raise InvalidPaymentTransition(
                f"Payment {self.key} is {self.state} and cannot become {state}."
            )
        self.state = state
        if state == PaymentState.AUTHORIZED:
            self.authorized_at = now
        elif state == PaymentState.CAPTURED:
            self.captured_at = self.captured_at or now
            self.closed_at = None
        else:
            self.closed_at = now
            if state == PaymentState.REFUNDED:
                # The gateway can report the refund of a payment before its capture.
                self.captured_at = self.captured_at or now
        if state in CAPTURED_STATES:
            self.request_fees(now)

    def request_fees(self, now: datetime) -> None:
        """Let `reconcile_payments` ask for the fees if there are any; does not save."""
        if not self.is_manual and self.captured_at is not None:
            self.fees_due_at = now
