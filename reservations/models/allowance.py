"""Included room hours of an account, and the ledger of their use."""

import calendar
import datetime as dt
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q

from roombook.texts import LineField


class HoursField(models.DecimalField):
    """Hours in quarters. Whole ones are read as an int, as if there were no quarters."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"max_digits": 8, "decimal_places": 2, **kwargs})

    def from_db_value(self, value: Decimal | None, *args: object) -> Decimal | int | None:
        if value is None:
            return None
        return int(value) if value == int(value) else value.normalize()


class Allowance(models.Model):
    """Room hours that an account can use without paying.

    One-off hours are used once between `valid_from` and `valid_until`. Monthly hours are granted
    again each calendar month of the meeting, and unused hours expire. The balance is not stored: it
    is the hours granted plus the sum of the ledger's entries (AllowanceEntry).
    """

    class Kind(models.TextChoices):
        ONE_OFF = "one-off", "One-off"
        MONTHLY = "monthly", "Every month"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="allowances")
    description = LineField(max_length=255)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.ONE_OFF)
    hours = models.PositiveIntegerField(help_text="Whole hours: in total, or each month.")
    valid_from = models.DateField(null=True, blank=True, help_text="First day of a meeting.")
    valid_until = models.DateField(null=True, blank=True, help_text="Last day of a meeting.")
    centers = models.ManyToManyField(
        "centers.Center", blank=True, related_name="+", help_text="None: valid at every center."
    )
    room_types = models.ManyToManyField(
        "centers.ResourceType", blank=True, related_name="+", help_text="None: for every room type."
    )
    is_automatic = models.BooleanField(
        "apply automatically", default=True, help_text="Off: only if the customer selects it."
    )
    is_active = models.BooleanField("active", default=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="allowance_begins_before_it_ends",
                violation_error_message="The end must not be before the start.",
                condition=Q(valid_from__isnull=True)
                | Q(valid_until__isnull=True)
                | Q(valid_from__lte=F("valid_until")),
            ),
            models.CheckConstraint(
                name="allowance_kind_is_known", condition=Q(kind__in=["one-off", "monthly"])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.description} ({self.user})"

    def clean(self) -> None:
        if self.valid_from and self.valid_until and self.valid_from > self.valid_until:
            raise ValidationError({"valid_until": "The end must not be before the start."})
        if not self._state.adding and self.hours < (used := self.get_peak_usage()):
            # The ledger must not be overdrawn.
            raise ValidationError(
                {"hours": f"{used} hours are used already. Switch this one off and add another."}
            )

    # Imports set it, because they read it for many rows at once.
    peak_usage_from_query: int | None = None

    def get_peak_usage(self) -> int:
        """Return the hours used in the period with the highest usage."""
        if self.peak_usage_from_query is not None:
            return self.peak_usage_from_query
        sums = self.entries.values("period").annotate(entered=models.Sum("hours")).order_by()
        return max((-entered for entered in sums.values_list("entered", flat=True)), default=0)

    def get_period(self, day: dt.date) -> dt.date | None:
        """Return the period that a meeting on a day counts to: a month's first day, or None."""
        return day.replace(day=1) if self.kind == self.Kind.MONTHLY else None

    def get_last_day(self, day: dt.date) -> dt.date:
        """Return the last day on which the hours for a meeting on `day` can be used."""
        last = self.valid_until or dt.date.max
        if self.kind == self.Kind.MONTHLY:
            last = min(last, day.replace(day=calendar.monthrange(day.year, day.month)[1]))
        return last


class AllowanceEntry(models.Model):
    """A line of an allowance's ledger: hours used (negative), or returned (positive).

    Entries are never changed or deleted.
    """

    allowance = models.ForeignKey(Allowance, models.PROTECT, related_name="entries")
    reservation = models.ForeignKey(
        "reservations.Reservation", models.PROTECT, related_name="allowance_entries"
    )
    period = models.DateField(
        null=True, blank=True, help_text="First day of the month; empty for one-off hours."
    )
    hours = HoursField()
    reason = LineField(max_length=255)
    at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "allowance entries"
        constraints = [
            models.CheckConstraint(name="allowance_entry_is_not_zero", condition=~Q(hours=0)),
            models.CheckConstraint(
                name="allowance_entry_period_is_a_month",
                condition=Q(period__isnull=True) | Q(period__day=1),
            ),
        ]
        indexes = [models.Index(fields=["allowance", "period"], name="allowance_entry_by_period")]

    def __str__(self) -> str:
        return f"{self.hours:+g} h: {self.reason}"
