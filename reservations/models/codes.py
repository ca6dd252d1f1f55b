"""Codes that customers enter: promo codes, with the ledger of their uses, and partner codes."""

from decimal import Decimal

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q

from roombook.money import MoneyField
from roombook.texts import LineField, fold_name

MAX_PERCENT = 100


def normalize_code(text: str) -> str:
    """Return the code in the format in which it is stored: one for all keyboards, in capitals.

    İndirim and INDIRIM are one code, because languages differ in the capital letter of an i.
    """
    return fold_name(text).upper()


class TypedCodeField(LineField):
    """A code that customers type."""

    clean_value = staticmethod(normalize_code)


class PromoCode(models.Model):
    """A code that takes a percentage or an amount off a booking.

    `uses` and `spent` are totals of the ledger, so that a database constraint can limit the uses.
    `verify_integrity` compares them with the ledger.
    """

    code = TypedCodeField(
        max_length=50,
        unique=True,
        help_text="Stored in capitals; customers can type it in any case.",
    )
    description = LineField(max_length=255, blank=True)
    is_active = models.BooleanField("active", default=True)
    percent = models.DecimalField(
        max_digits=5,
        decimal_places=2,
        null=True,
        blank=True,
        help_text="Or an amount, but not both.",
    )
    amount = MoneyField(null=True, blank=True)
    valid_from = models.DateTimeField("booked from", null=True, blank=True)
    valid_until = models.DateTimeField("booked until", null=True, blank=True)
    meeting_from = models.DateField("meeting from", null=True, blank=True)
    meeting_until = models.DateField("meeting until", null=True, blank=True)
    max_uses = models.PositiveIntegerField("maximum uses", null=True, blank=True)
    max_uses_per_account = models.PositiveIntegerField(
        "maximum uses per account", null=True, blank=True
    )
    budget = MoneyField("maximum total discount", null=True, blank=True)
    minimum_spend = MoneyField(null=True, blank=True)
    centers = models.ManyToManyField(
        "centers.Center", blank=True, related_name="+", help_text="None: valid at every center."
    )
    room_types = models.ManyToManyField(
        "centers.ResourceType", blank=True, related_name="+", help_text="None: for every room type."
    )
    uses = models.PositiveIntegerField(default=0, editable=False)
    spent = MoneyField("discounts given", default=Decimal(0), editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="promo_code_is_percent_or_amount",
                violation_error_message="A percentage of 0 to 100, or an amount above 0.",
                # NULL is excluded explicitly, because a comparison with NULL passes a SQL check.
                condition=Q(
                    amount__isnull=True, percent__isnull=False, percent__gt=0, percent__lte=100
                )
                | Q(percent__isnull=True, amount__isnull=False, amount__gt=0),
            ),
            models.CheckConstraint(
                name="promo_code_uses_within_limit",
                violation_error_message="It has been used more often than that already.",
                condition=Q(max_uses__isnull=True) | Q(uses__lte=F("max_uses")),
            ),
            models.CheckConstraint(
                name="promo_code_spent_within_budget",
                violation_error_message="It has given more discount than that already.",
                condition=Q(spent__gte=0) & (Q(budget__isnull=True) | Q(spent__lte=F("budget"))),
            ),
            models.CheckConstraint(
                name="promo_code_minimum_spend_not_negative",
                violation_error_message="The minimum spend must not be negative.",
                condition=Q(minimum_spend__isnull=True) | Q(minimum_spend__gte=0),
            ),
        ]

    def __str__(self) -> str:
        return self.code

    def clean(self) -> None:
        errors = {}
        if self.percent is None and self.amount is None:
            errors["percent"] = "Enter a percentage or an amount."
        elif self.percent is not None and self.amount is not None:
            errors["percent"] = errors["amount"] = "Enter a percentage or an amount, not both."
        elif self.percent is not None and not 0 < self.percent <= MAX_PERCENT:
            errors["percent"] = "Enter a percentage above 0, and 100 at most."
        elif self.amount is not None and self.amount <= 0:
            errors["amount"] = "Enter an amount above 0."
        if self.minimum_spend is not None and self.minimum_spend < 0:
            errors["minimum_spend"] = "The minimum spend must not be negative."
        if self.max_uses is not None and self.max_uses < self.uses:
            errors["max_uses"] = f"It has been used {self.uses} times already."
        if self.budget is not None and self.budget < self.spent:
            errors["budget"] = f"It has given discounts of {self.spent} already."
        if self.valid_from and self.valid_until and self.valid_from >= self.valid_until:
            errors["valid_until"] = "The end must be after the start."
        if self.meeting_from and self.meeting_until and self.meeting_from > self.meeting_until:
            errors["meeting_until"] = "The end must be after the start."
        if errors:
            raise ValidationError(errors)


class PromoRedemption(models.Model):
    """One use of a promo code by one reservation. It is marked as returned, not deleted."""

    promo_code = models.ForeignKey(PromoCode, models.PROTECT, related_name="redemptions")
    reservation = models.ForeignKey(
        "reservations.Reservation", models.PROTECT, related_name="promo_redemptions"
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    amount = MoneyField()
    taken_at = models.DateTimeField()
    given_back_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["reservation"],
                condition=Q(given_back_at__isnull=True),
                name="promo_redemption_one_open_per_reservation",
            ),
            models.CheckConstraint(
                name="promo_redemption_amount_not_negative", condition=Q(amount__gte=0)
            ),
        ]
        indexes = [
            models.Index(
                fields=["promo_code", "user"],
                condition=Q(given_back_at__isnull=True),
                name="promo_redemption_open_by_user",
            )
        ]

    def __str__(self) -> str:
        return f"{self.promo_code} for reservation {self.reservation_id}"


class Partner(models.Model):
    """A company that refers customers. Its code at checkout credits the booking to it."""

    code = TypedCodeField(
        max_length=50,
        unique=True,
        help_text="Stored in capitals; customers can type it in any case.",
    )
    name = LineField(max_length=255)
    is_active = models.BooleanField("active", default=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.code})"
