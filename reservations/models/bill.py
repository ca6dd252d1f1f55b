"""The bill of a reservation: its lines, the included hours it uses, and staff's adjustments."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from roombook.money import MoneyField
from roombook.texts import LineField


class LineItemType(models.TextChoices):
    """The contract's LineItemType."""

    ROOM = "Room"
    SETUP_FEE = "SetupFee", "Set-up fee"
    SERVICE = "Service"
    ALLOWANCE = "Allowance"
    PROMOTION = "Promotion"
    EXTRA = "Extra"
    ADJUSTMENT = "Adjustment"
    TAX = "Tax"


# The types of lines that can reduce a bill below the list price.
DEDUCTION_TYPES = (LineItemType.ALLOWANCE, LineItemType.PROMOTION, LineItemType.ADJUSTMENT)


class LineItem(models.Model):
    """A line of the bill as it was priced. `amount` and `rate` are texts for the customer."""

    reservation = models.ForeignKey(
        "reservations.Reservation",
        models.CASCADE,
        related_name="line_items",
        db_index=False,  # No index here and below: a composite index begins with this column.
    )
    position = models.PositiveIntegerField()
    type = models.CharField(max_length=10, choices=LineItemType.choices)
    description = LineField(max_length=500)
    amount = models.CharField(max_length=100)
    rate = models.CharField(max_length=100, blank=True)
    total = MoneyField()
    contained_tax = MoneyField(
        default=0, help_text="Of the total, at a center whose prices contain the tax."
    )
    tax_label = models.CharField(
        max_length=50, blank=True, help_text="The tax of the line; empty if it is not taxed."
    )
    service = models.ForeignKey(
        "centers.Service", models.PROTECT, null=True, blank=True, related_name="+"
    )
    allowance = models.ForeignKey(
        "reservations.Allowance", models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["reservation", "position"], name="line_item_position_once"
            ),
            models.CheckConstraint(
                condition=Q(type__in=DEDUCTION_TYPES, total__lte=0)
                | Q(type__in=sorted({*LineItemType} - {*DEDUCTION_TYPES}), total__gte=0),
                name="line_item_adds_or_takes_off_as_its_type_says",
            ),
            models.CheckConstraint(
                condition=(
                    Q(type=LineItemType.SERVICE, service__isnull=False)
                    | Q(type=LineItemType.SETUP_FEE)
                    | (
                        ~Q(type__in=[LineItemType.SERVICE, LineItemType.SETUP_FEE])
                        & Q(service__isnull=True)
                    )
                )
                & (
                    Q(type=LineItemType.ALLOWANCE, allowance__isnull=False)
                    | (~Q(type=LineItemType.ALLOWANCE) & Q(allowance__isnull=True))
                ),
                name="line_item_has_its_service_or_allowance",
            ),
        ]
        indexes = [
            # For the sums of taxes and discounts in reports.
            models.Index(
                fields=["reservation", "total"],
                condition=Q(type=LineItemType.TAX),
                name="line_item_tax",
            ),
            models.Index(
                fields=["reservation", "type", "total"],
                condition=Q(type__in=DEDUCTION_TYPES),
                name="line_item_taking_off",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.description}: {self.amount}"


class AllowanceUse(models.Model):
    """An allowance that a reservation uses: the hours, and the discount for them.

    On a draft, the hours are only planned; checkout enters them in the ledger. A row with 0 hours
    is an allowance that the customer selected, but that the booking does not need.
    """

    reservation = models.ForeignKey(
        "reservations.Reservation",
        models.CASCADE,
        related_name="allowance_uses",
        db_index=False,
    )
    allowance = models.ForeignKey("reservations.Allowance", models.PROTECT, related_name="uses")
    hours = models.PositiveIntegerField()
    discount = MoneyField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["reservation", "allowance"], name="allowance_use_once_per_reservation"
            )
        ]

    def __str__(self) -> str:
        return f"{self.hours} h of {self.allowance_id}"


class PriceAdjustment(models.Model):
    """A change of the price by staff, with its reason. It is applied at every repricing.

    A positive amount is an extra, whose line has the reason as its text.
    """

    reservation = models.ForeignKey(
        "reservations.Reservation", models.CASCADE, related_name="price_adjustments"
    )
    amount = MoneyField(help_text="Added to the price; a negative amount reduces it.")
    reason = LineField(max_length=255)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    at = models.DateTimeField()
    is_waiver = models.BooleanField(
        "waives a difference",
        default=False,
        editable=False,
        help_text="Waives the difference when a booking is moved to a more expensive room or time."
        " The next move prices the booking without it.",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="price_adjustment_is_not_zero",
                condition=~Q(amount=0),
                violation_error_message="The amount must not be 0.",
            ),
            models.CheckConstraint(
                name="price_adjustment_has_a_reason",
                condition=~Q(reason=""),
                violation_error_message="A change of the price needs a reason.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount}: {self.reason}"


class RefundOverride(models.Model):
    """Another refund than the policy's, which staff have chosen for a cancellation.

    Both amounts are the same if only included hours or the promo code come back by the decision.
    """

    reservation = models.OneToOneField(
        "reservations.Reservation", models.CASCADE, related_name="refund_override"
    )
    policy_refund = MoneyField(help_text="What the policy gave at that time.")
    refund = MoneyField(help_text="What was promised instead.")
    reason = LineField(max_length=255)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="refund_override_is_not_negative",
                condition=Q(refund__gte=0, policy_refund__gte=0),
            ),
            models.CheckConstraint(name="refund_override_has_a_reason", condition=~Q(reason="")),
        ]

    def __str__(self) -> str:
        return f"{self.refund} instead of {self.policy_refund}: {self.reason}"
