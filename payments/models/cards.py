"""The saved card of an account, and how it can be saved without its number (B21).

No card number and no security code is ever stored, only what a receipt shows.
"""

import calendar
import uuid
from datetime import UTC, datetime
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from payments.cards import CardBrand
from roombook.address import Address
from roombook.texts import LineField


class SavedCard(Address):
    """The one card that an account stores at the gateway. Its address is the billing address."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_card")
    gateway = models.CharField(max_length=20)
    reference = models.CharField(max_length=255)
    brand = models.CharField(max_length=20, choices=CardBrand.choices)
    last4 = models.CharField("last four digits", max_length=4)
    exp_year = models.PositiveSmallIntegerField("year of expiry")
    exp_month = models.PositiveSmallIntegerField("month of expiry")
    first_name = LineField(max_length=255)
    last_name = LineField(max_length=255)
    company_name = LineField(max_length=255, blank=True)
    has_cvv = models.BooleanField("security code was given", default=False)
    saved_by_setup = models.BooleanField(
        "saved without its number",
        default=False,
        help_text="Collected by the gateway. The customer can confirm its payments at the bank.",
    )
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
    def description(self) -> str:
        """The card as on a receipt: `Visa ending 4242`."""
        return f"{self.brand} ending {self.last4}"

    @property
    def expiration_date(self) -> datetime:
        """Midnight UTC of the last day of the month, as the API returns it (B5.1)."""
        last_day = calendar.monthrange(self.exp_year, self.exp_month)[1]
        return datetime(self.exp_year, self.exp_month, last_day, tzinfo=UTC)

    def has_expired(self, now: datetime) -> bool:
        return (self.exp_year, self.exp_month) < (now.year, now.month)


class PaymentSetupState(models.TextChoices):
    OPEN = "open"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    EXPIRED = "expired"


class PaymentSetupQuerySet(models.QuerySet["PaymentSetup"]):
    def open(self) -> Self:
        return self.filter(state=PaymentSetupState.OPEN)


class PaymentSetup(models.Model):
    """One attempt of an account to save a card that only the gateway sees (B21).

    Its secrets are stored at the gateway only, and fetched from there for each response.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="payment_setups"
    )
    # The Id in the API, and the key of all calls to the gateway. It cannot be guessed.
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    gateway = models.CharField(max_length=20)
    # Empty until the gateway has answered.
    reference = models.CharField(max_length=255, blank=True)
    state = models.CharField(
        max_length=10, choices=PaymentSetupState.choices, default=PaymentSetupState.OPEN
    )
    return_url = models.CharField(max_length=2000, blank=True)
    message = models.CharField(max_length=255, blank=True, help_text="Why it failed.")
    # Only of a card that pays for this reservation, once, and is not saved with the account
    # (B26.7). The reference is that of the card, until it is deleted at the gateway.
    reservation = models.ForeignKey(
        "reservations.Reservation", models.CASCADE, null=True, db_index=False, related_name="+"
    )
    card_reference = models.CharField(max_length=255, blank=True, default="")
    created_at = models.DateTimeField(editable=False)
    expires_at = models.DateTimeField(editable=False)

    objects = models.Manager.from_queryset(PaymentSetupQuerySet)()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=PaymentSetupState.values), name="payment_setup_state_is_known"
            ),
        ]
        indexes = [
            # The few rows that reconcile_payments has to end.
            models.Index(
                fields=["expires_at"], condition=Q(state="open"), name="payment_setup_open"
            ),
            models.Index(
                fields=["reservation"],
                condition=Q(reservation__isnull=False),
                name="payment_setup_one_time",
            ),
        ]

    def __str__(self) -> str:
        return f"payment setup {self.pk} ({self.state})"
