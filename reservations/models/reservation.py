"""A reservation and the rows that make it up."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.postgres.fields import RangeBoundary, RangeOperators
from django.db import DatabaseError, models
from django.db.models import F, Q

from centers.span import Span
from reservations.booking import history
from reservations.models.constraints import (
    NO_OVERLAP,
    PostgresExclusion,
    TimestampRange,
    is_overlap_error,
)
from reservations.models.querysets import ReservationQuerySet
from reservations.models.status import (
    HOLDING_STATUSES,
    InvalidStatusTransition,
    Status,
    can_transition,
)
from roombook.db.prepared_writes import prepared_writes
from roombook.errors import SlotUnavailable
from roombook.money import MoneyField

if TYPE_CHECKING:
    from accounts.models import User


@prepared_writes
class Reservation(models.Model):
    """A room for a customer for a time span, from draft to done.

    `holds_slot` says whether it keeps others out; `hold_until` is set only on a New one, whose
    hold then lapses by itself. `occupied_from` and `occupied_until` are the span with its
    turnaround minutes on either side.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        related_name="reservations",
        verbose_name="customer",
        # Here and below: an index of several columns that begins with it does as well.
        db_index=False,
    )
    room = models.ForeignKey(
        "centers.MeetingRoom", models.PROTECT, related_name="reservations", db_index=False
    )
    start = models.DateTimeField()
    end = models.DateTimeField()
    turnaround_minutes = models.PositiveIntegerField(default=0)
    occupied_from = models.DateTimeField(editable=False)
    occupied_until = models.DateTimeField(editable=False)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.NEW)
    holds_slot = models.BooleanField(default=False, editable=False)
    hold_until = models.DateTimeField(null=True, blank=True)
    number_of_attendees = models.PositiveIntegerField(default=1)
    currency = models.CharField(max_length=3)
    total_cost = MoneyField(default=Decimal(0))
    billable_hours = models.DecimalField(
        max_digits=7, decimal_places=2, default=Decimal(0), help_text="Of the room, as priced."
    )
    promo_code = models.ForeignKey(
        "reservations.PromoCode",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="reservations",
    )
    allowances_by_hand = models.BooleanField(
        default=False, help_text="The customer chose the allowances; none is applied by itself."
    )
    partner = models.ForeignKey(
        "reservations.Partner", models.PROTECT, null=True, blank=True, related_name="reservations"
    )
    is_live = models.BooleanField(
        default=False, help_text="A real booking in live inventory, charged by a live gateway."
    )
    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    calendar_sequence = models.PositiveIntegerField(
        default=0, editable=False, help_text="Of the last calendar file that was mailed."
    )
    cancellation_notice_hours = models.PositiveIntegerField(
        help_text="Cancelled earlier than this before its start: all is refunded."
    )
    cancellation_grace_minutes = models.PositiveIntegerField(
        help_text="Cancelled within this after booking: all is refunded."
    )
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="The member of staff who made it; empty where the customer did.",
    )
    hours_override_reason = models.CharField(
        "booked outside opening hours",
        max_length=255,
        blank=True,
        default="",
        help_text="Why a manager allowed it; for this time only.",
    )
    booked_at = models.DateTimeField(null=True, blank=True)
    cancelled_at = models.DateTimeField(null=True, blank=True)
    refund_promised = MoneyField(
        null=True, blank=True, help_text="What comes back, as the customer was told by cancelling."
    )
    reduced_by = MoneyField(
        "cheaper by",
        default=Decimal(0),
        editable=False,
        help_text="By how much it became cheaper once it was paid: so much went back.",
    )
    reminded_at = models.DateTimeField(
        null=True, blank=True, help_text="When the customer was told that the hold is to lapse."
    )

    objects = ReservationQuerySet.as_manager()

    class Meta:
        permissions = [
            ("adjust_price", "Can change the price of a reservation"),
            ("override_opening_hours", "Can book outside the opening hours"),
            ("see_reports", "Can see reports"),
        ]
        constraints = [
            models.CheckConstraint(
                name="reservation_starts_before_it_ends", condition=Q(start__lt=F("end"))
            ),
            models.CheckConstraint(
                name="reservation_turnaround_is_around_it",
                condition=Q(occupied_from__lte=F("start"), occupied_until__gte=F("end")),
            ),
            models.CheckConstraint(
                name="reservation_total_is_not_negative", condition=Q(total_cost__gte=0)
            ),
            models.CheckConstraint(
                name="reservation_reduction_is_not_negative", condition=Q(reduced_by__gte=0)
            ),
            models.CheckConstraint(
                name="reservation_status_is_known", condition=Q(status__in=Status.values)
            ),
            models.CheckConstraint(
                name="reservation_holds_as_its_status_says",
                condition=Q(
                    status__in=sorted(HOLDING_STATUSES), holds_slot=True, hold_until__isnull=True
                )
                | Q(status=Status.NEW, holds_slot=True, hold_until__isnull=False)
                | (
                    ~Q(status__in=sorted(HOLDING_STATUSES))
                    & Q(holds_slot=False, hold_until__isnull=True)
                ),
            ),
            PostgresExclusion(
                name=NO_OVERLAP,
                index_type="gist",
                condition=Q(holds_slot=True),
                expressions=[
                    ("room", RangeOperators.EQUAL),
                    (
                        TimestampRange("start", "occupied_until", RangeBoundary()),
                        RangeOperators.OVERLAPS,
                    ),
                ],
            ),
        ]
        indexes = [
            models.Index(fields=["user", "start"], name="reservation_by_user"),
            models.Index(fields=["room", "start"], name="reservation_by_room"),
            models.Index(fields=["status", "start", "id"], name="reservation_by_status"),
            # The back office's list, and the days of all centers.
            models.Index(fields=["-start", "-id"], name="reservation_by_start"),
            # The few of which `reconcile_payments` asks whether the difference went back.
            models.Index(
                fields=["start"],
                condition=Q(reduced_by__gt=0),
                name="reservation_became_cheaper",
            ),
            # And the few of which it asks whether what was promised went back.
            models.Index(
                fields=["start", "id"],
                condition=Q(status=Status.CANCELLED, refund_promised__gt=0),
                name="reservation_promised_back",
            ),
            # Requests, the longest waiting first.
            models.Index(
                fields=["booked_at", "id"],
                condition=Q(status=Status.PENDING),
                name="reservation_waiting",
            ),
        ]

    def __str__(self) -> str:
        return f"Reservation {self.pk}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        turnaround = dt.timedelta(minutes=self.turnaround_minutes)
        self.occupied_from = self.start - turnaround
        self.occupied_until = self.end + turnaround
        try:
            super().save(*args, **kwargs)
        except DatabaseError as error:
            # The evaluator refuses first; should it ever miss a rival, the answer is the same.
            if is_overlap_error(error):
                raise SlotUnavailable from error
            raise

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def is_new(self) -> bool:
        return self.status == Status.NEW

    @property
    def is_outside_hours(self) -> bool:
        """Whether a manager has allowed it at a time at which the center is closed."""
        return bool(self.hours_override_reason)

    def is_held_at(self, now: dt.datetime) -> bool:
        """Whether it keeps others out; a draft's hold lapses by itself."""
        return self.holds_slot and (self.hold_until is None or self.hold_until > now)

    @property
    def free_cancellation_until(self) -> dt.datetime:
        """Until then cancelling costs nothing (B15.4)."""
        free = self.start - dt.timedelta(hours=self.cancellation_notice_hours)
        if self.booked_at is not None:
            grace = dt.timedelta(minutes=self.cancellation_grace_minutes)
            free = max(free, self.booked_at + grace)
        return min(free, self.start)

    @property
    def room_cost(self) -> Decimal:
        """The room's line before discounts."""
        lines = self.line_items.all()
        return sum((line.total for line in lines if line.type == LineItemType.ROOM), Decimal(0))

    def transition_to(
        self,
        status: Status,
        *,
        by: "User | None",
        now: dt.datetime,
        hold_until: dt.datetime | None = None,
        **also: Any,
    ) -> None:
        """The one door for a status: check the move, set the hold that goes with it, save, and
        write it into the history.

        `by` is who asked for it, None where time or a command did. `also` are other columns that
        change in the same step. The caller holds the row's lock.
        """
        if not can_transition(self.status, status):
            raise InvalidStatusTransition(
                f"A reservation that is {self.status} cannot become {status}."
            )
        old = self.status
        self.status = status
        self.holds_slot = status in HOLDING_STATUSES or hold_until is not None
        self.hold_until = hold_until
        for name, value in also.items():
            setattr(self, name, value)
        self.save(update_fields=["status", "holds_slot", "hold_until", *also])
        promised = also.get("refund_promised")
        changes = {"status": (old, status), "refund_promised": (None, promised)}
        history.record_changes(self, changes, by=by, now=now)


class Attendee(models.Model):
    """Somebody who comes to the meeting."""

    reservation = models.ForeignKey(Reservation, models.CASCADE, related_name="attendees")
    name = models.CharField(max_length=255, blank=True)
    email_address = models.CharField(max_length=254, blank=True)
    company_name = models.CharField(max_length=255, blank=True)
    is_creator = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["reservation"],
                condition=Q(is_creator=True),
                name="attendee_one_creator_per_reservation",
            )
        ]

    def __str__(self) -> str:
        return self.name or self.email_address or f"Attendee {self.pk}"


class ChosenService(models.Model):
    """An extra on a reservation, with what the customer said of it."""

    reservation = models.ForeignKey(
        Reservation, models.CASCADE, related_name="chosen_services", db_index=False
    )
    service = models.ForeignKey("centers.Service", models.PROTECT, related_name="+")
    duration_hours = models.DecimalField(max_digits=6, decimal_places=2, null=True, blank=True)
    quantity = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["reservation", "service"], name="chosen_service_once_per_reservation"
            )
        ]

    def __str__(self) -> str:
        return str(self.service)


class LineItemType(models.TextChoices):
    """The contract's LineItemType."""

    ROOM = "Room"
    SETUP_FEE = "SetupFee", "Set-up fee"
    SERVICE = "Service"
    ALLOWANCE = "Allowance"
    PROMOTION = "Promotion"
    ADJUSTMENT = "Adjustment"
    TAX = "Tax"


# What may make a bill cheaper than the list prices.
DEDUCTION_TYPES = (LineItemType.ALLOWANCE, LineItemType.PROMOTION, LineItemType.ADJUSTMENT)


class LineItem(models.Model):
    """A line of the bill as it was priced; `amount` and `rate` are the words the customer saw."""

    reservation = models.ForeignKey(
        Reservation, models.CASCADE, related_name="line_items", db_index=False
    )
    position = models.PositiveIntegerField()
    type = models.CharField(max_length=10, choices=LineItemType.choices)
    description = models.CharField(max_length=500)
    amount = models.CharField(max_length=100)
    rate = models.CharField(max_length=100, blank=True)
    total = MoneyField()
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
            )
        ]
        indexes = [
            # What reports add up of the bills: their tax, and what made them cheaper.
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
    """An allowance that a reservation uses: the hours, and what they take off.

    On a draft it is a plan; the hours are taken in the ledger at checkout. A row of no hours is
    an allowance that the customer chose and that the booking has no hour left for.
    """

    reservation = models.ForeignKey(
        Reservation, models.CASCADE, related_name="allowance_uses", db_index=False
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
    """A change of price by staff, with the reason; it stays through every new pricing."""

    reservation = models.ForeignKey(Reservation, models.CASCADE, related_name="price_adjustments")
    amount = MoneyField(help_text="Added to the price; negative takes off.")
    reason = models.CharField(max_length=255)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    at = models.DateTimeField()
    is_waiver = models.BooleanField(
        "waives a difference",
        default=False,
        editable=False,
        help_text="Made by a move to a dearer room or time, so that nothing more is to be paid:"
        " the next move prices the booking without it.",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="price_adjustment_is_not_zero",
                condition=~Q(amount=0),
                violation_error_message="The amount is what is added or taken off: not 0.",
            ),
            models.CheckConstraint(
                name="price_adjustment_has_a_reason",
                condition=~Q(reason=""),
                violation_error_message="A change of price needs a reason.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount}: {self.reason}"
