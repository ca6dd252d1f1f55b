"""Special prices of a rate: for weekdays, a time of day, or a period of dates (B12.2)."""

import datetime as dt
from collections.abc import Collection
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Lower
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from centers.hours import MIDNIGHT, WEEKDAYS
from centers.models.catalog import UniqueNameMixin
from centers.models.room import Rate
from roombook.money import MoneyField
from roombook.texts import LineField

FIRST_YEAR = MinValueValidator(dt.date(1900, 1, 1))
LAST_YEAR = MaxValueValidator(dt.date(2999, 12, 31))
NOT_FLAT = "A flat rate has one price: it has no special prices."


class WeekdaysField(models.CharField):
    """Weekdays as text, in order: `mon,tue,sat`. Empty for every day."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"max_length": 27, "blank": True, **kwargs})

    def to_python(self, value: Any) -> str:
        names = {name.strip().lower() for name in (value or "").split(",")} - {""}
        if unknown := names.difference(WEEKDAYS):
            known = ", ".join(WEEKDAYS)
            raise ValidationError(f"{min(unknown)} is no weekday. There are: {known}.")
        ordered = [name for name in WEEKDAYS if name in names]
        return "" if len(ordered) == len(WEEKDAYS) else ",".join(ordered)


class PriceList(UniqueNameMixin):
    """Prices that hold at some times, instead of the standard prices of a rate."""

    rate = models.ForeignKey(Rate, models.CASCADE, related_name="price_lists")
    name = LineField(max_length=100, help_text="Customers read it on their bill: Evening.")
    weekdays = WeekdaysField(help_text="None for every day.")
    starts = models.TimeField("from", default=MIDNIGHT)
    ends = models.TimeField(
        "to", default=MIDNIGHT, help_text="00:00 is midnight at the end of the day."
    )
    valid_from = models.DateField(
        "first day", null=True, blank=True, validators=[FIRST_YEAR, LAST_YEAR]
    )
    valid_until = models.DateField(
        "last day", null=True, blank=True, validators=[FIRST_YEAR, LAST_YEAR]
    )
    is_yearly = models.BooleanField(
        "each year", default=False, help_text="Only the day and the month count."
    )
    hourly = MoneyField("per hour", null=True, blank=True)
    half_day = MoneyField("per half day", null=True, blank=True)
    full_day = MoneyField("per day", null=True, blank=True)

    name_scope = ("rate_id",)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "rate",
                Lower("name"),
                name="price_list_name_unique_in_rate",
                violation_error_message="This rate already has a price list with this name.",
            ),
            *(
                models.CheckConstraint(
                    condition=Q(**{f"{name}__isnull": True}) | Q(**{f"{name}__gte": 0}),
                    name=f"price_list_{name}_is_not_negative",
                    violation_error_message="A price must not be negative.",
                )
                for name in ("hourly", "half_day", "full_day")
            ),
            models.CheckConstraint(
                condition=Q(hourly__isnull=False)
                | Q(half_day__isnull=False)
                | Q(full_day__isnull=False),
                name="price_list_has_a_price",
                violation_error_message="Enter at least one price.",
            ),
            models.CheckConstraint(
                condition=Q(starts__lt=F("ends")) | Q(ends=MIDNIGHT),
                name="price_list_starts_before_it_ends",
                violation_error_message="Its time of day starts before it ends, at midnight at the"
                " latest.",
            ),
            models.CheckConstraint(
                condition=Q(is_yearly=True)
                | Q(valid_from__isnull=True)
                | Q(valid_until__isnull=True)
                | Q(valid_from__lte=F("valid_until")),
                name="price_list_first_day_not_after_last",
                violation_error_message="The first day must not be after the last.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def hours(self) -> tuple[dt.time, dt.time]:
        """From when until when it holds on a day; midnight twice is the whole day."""
        return self.starts, self.ends

    @hours.setter
    def hours(self, value: tuple[dt.time, dt.time]) -> None:
        self.starts, self.ends = value

    def clean(self) -> None:
        if any(at.second or at.microsecond for at in self.hours):
            raise ValidationError("Times are whole minutes.")
        if self.ends == dt.time(23, 59):
            raise ValidationError({"ends": "Enter 00:00 for midnight."})
        if self.rate_id and self.rate.is_flat_rate:
            raise ValidationError(NOT_FLAT)
        if self.rate_id and self.rate.services.exists():
            raise ValidationError("Special prices are for rooms, and services have this rate.")


# Not in `save` and `delete`, which are not called for each row of a queryset that is deleted.
@receiver([post_save, post_delete], sender=PriceList)
def note_special_prices(sender: object, *, instance: PriceList, **_: object) -> None:
    update_rates([instance.rate_id])


def lock_rates(ids: Collection[int]) -> None:
    """Let transactions that write lists of the same rates take turns.

    Its own statement: the next one sees what a transaction that it had to wait for has written.
    """
    rows = Rate.objects.select_for_update(no_key=True).filter(pk__in=ids)
    list(rows.order_by("pk").values_list("pk"))


@transaction.atomic
def update_rates(ids: Collection[int]) -> None:
    """Let rates know whether they have lists, so that most rates are priced without a query."""
    lock_rates(ids)
    has_lists = Exists(PriceList.objects.filter(rate=OuterRef("pk")))
    Rate.objects.filter(pk__in=ids).update(has_special_prices=has_lists)


def load_special_prices(rates: Collection[Rate]) -> None:
    """Read the price lists of several rates by one query; none is needed if no rate has any."""
    lists: dict[int, list[PriceList]] = {rate.pk: [] for rate in rates if rate.has_special_prices}
    if lists:
        for each in PriceList.objects.filter(rate__in=lists).order_by("pk"):
            lists[each.rate_id].append(each)
    for rate in rates:
        if rate.pk in lists:
            rate.special_prices = lists[rate.pk]
