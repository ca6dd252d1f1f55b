"""A reservation."""

import datetime as dt
import uuid
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from django.conf import settings
from django.contrib.postgres.fields import RangeBoundary, RangeOperators
from django.db import DatabaseError, models
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from accounts.models import OutboxMessage
from centers.span import Span
from payments.models import Payment, PaymentPurpose, PaymentState
from reservations.models import history
from reservations.models.changes import BookingChange, ChangeState
from reservations.models.constraints import (
    NO_OVERLAP,
    NO_OVERLAP_BEFORE,
    PostgresExclusion,
    TimestampRange,
    is_overlap_error,
)
from reservations.models.querysets import LATE_PAYMENT, BookingManager, ReservationQuerySet
from reservations.models.status import (
    BOOKED_STATUSES,
    HOLDING_STATUSES,
    InvalidStatusTransition,
    Status,
    can_transition,
)
from roombook.db.compiled_queries import compiled_query, int_param
from roombook.errors import NotFound, SlotUnavailable
from roombook.money import MoneyField
from roombook.texts import LineField

if TYPE_CHECKING:
    from accounts.act import Act
    from accounts.models import User
    from reservations.models.codes import Partner

# A check-in before this is of another time: the booking has been rescheduled since.
CHECK_IN_OPENS_BEFORE = dt.timedelta(hours=12)
IS_CHECKED_IN = Q(checked_in_at__gte=F("start") - CHECK_IN_OPENS_BEFORE)
PAID_STATES = {PaymentState.AUTHORIZED, PaymentState.CAPTURED, PaymentState.REFUNDED}


class TransitionColumns(TypedDict, total=False):
    """The columns that can be saved together with the status."""

    partner: "Partner | None"
    price_held_until: dt.datetime | None
    booked_at: dt.datetime
    cancelled_at: dt.datetime
    is_live: bool
    calendar_sequence: int
    calendar_changed_at: dt.datetime


class Reservation(models.Model):
    """A room for a customer for a span of time, from draft to completion.

    `holds_slot` says whether it prevents other bookings of the room. `hold_until` is set only if
    the status is New: the hold ends at that time, or has ended. `price_held_until` is the end of
    the hold before the first checkout, because a declined card sets another one. `occupied_from`
    and `occupied_until` are the span with its turnaround time on both sides.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        related_name="reservations",
        verbose_name="customer",
        db_index=False,  # No index here and below: a composite index begins with this column.
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
    hold_until = models.DateTimeField("held until", null=True, blank=True)
    price_held_until = models.DateTimeField(null=True, editable=False)
    # The end of the payment link that was sent last, unless it was cancelled. Links have the number
    # of their time: cancelling them increases it.
    payment_link_until = models.DateTimeField(null=True, editable=False)
    payment_link_number = models.PositiveIntegerField(default=0, editable=False)
    number_of_attendees = models.PositiveIntegerField(default=1)
    currency = models.CharField(max_length=3)
    total_cost = MoneyField("total", default=Decimal(0))
    billable_hours = models.DecimalField(
        max_digits=7,
        decimal_places=2,
        default=Decimal(0),
        help_text="Hours of the room, as priced.",
    )
    promo_code = models.ForeignKey(
        "reservations.PromoCode",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="reservations",
    )
    allowances_by_hand = models.BooleanField(
        default=False,
        help_text="The customer selected the allowances; none is applied automatically.",
    )
    partner = models.ForeignKey(
        "reservations.Partner", models.PROTECT, null=True, blank=True, related_name="reservations"
    )
    is_live = models.BooleanField(
        "live",
        default=False,
        help_text="A real booking in an instantly bookable room, charged by a live gateway.",
    )
    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    # Raised by each amendment and price adjustment: shows whether a page is stale.
    version = models.PositiveIntegerField(default=0, editable=False)
    calendar_sequence = models.PositiveIntegerField(
        default=0, editable=False, help_text="Number of the last calendar file that was sent."
    )
    calendar_changed_at = models.DateTimeField(null=True, editable=False)
    # A copy of the terms that were shown: RefundTerms of reservations/pricing/terms.py.
    cancellation_terms = models.JSONField(editable=False)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="The member of staff who created it; empty if the customer did.",
    )
    hours_override_reason = LineField(
        "booked outside opening hours",
        max_length=255,
        blank=True,
        default="",
        help_text="Why a manager allowed it. Applies to this time only.",
    )
    booked_at = models.DateTimeField(null=True, blank=True)
    cancelled_at = models.DateTimeField(null=True, blank=True)
    checked_in_at = models.DateTimeField(
        "checked in", null=True, blank=True, help_text="When the customer arrived at the center."
    )
    shown_total = MoneyField(
        null=True,
        editable=False,
        help_text="The total that the customer was shown last, if it has changed since.",
    )
    reminded_at = models.DateTimeField(
        null=True, blank=True, help_text="When the customer was reminded that the hold expires."
    )
    # Rescheduling makes another reminder due, so this is not the time of the reminder.
    reminded_of_start = models.DateTimeField(null=True, editable=False)
    # Set only if this row is no reservation, but holds the room for a change of that booking until
    # its payment link ends (B27.7). It is in the same table, so that the constraints apply to it.
    holds_for = models.ForeignKey(
        "self", models.CASCADE, null=True, editable=False, related_name="+", db_index=False
    )

    objects = BookingManager()
    # With the rows that only hold a room: for whatever asks whether a room is free.
    slots = ReservationQuerySet.as_manager()

    class Meta:
        permissions = [
            ("adjust_price", "Can change the price of a reservation"),
            ("bill_extra", "Can add an extra to a bill"),
            ("override_opening_hours", "Can book outside the opening hours"),
            ("override_refund", "Can refund another amount than the policy's"),
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
                name="reservation_status_is_known", condition=Q(status__in=Status.values)
            ),
            models.CheckConstraint(
                name="reservation_status_has_its_times",
                condition=(
                    Q(status__in=sorted(BOOKED_STATUSES), booked_at__isnull=False)
                    | Q(status__in=[Status.NEW, Status.PROCESSING], booked_at__isnull=True)
                    | Q(status__in=[Status.DECLINED, Status.CANCELLED, Status.EXPIRED])
                )
                & (
                    Q(status=Status.CANCELLED, cancelled_at__isnull=False)
                    | (~Q(status=Status.CANCELLED) & Q(cancelled_at__isnull=True))
                ),
            ),
            models.CheckConstraint(
                name="reservation_is_of_somebody_for_some_time",
                condition=Q(number_of_attendees__gte=1, billable_hours__gte=0),
            ),
            models.CheckConstraint(
                name="reservation_holds_as_its_status_says",
                condition=Q(
                    status__in=sorted(HOLDING_STATUSES), holds_slot=True, hold_until__isnull=True
                )
                | Q(status=Status.NEW, holds_slot=True, hold_until__isnull=False)
                | (
                    ~Q(status__in=sorted(HOLDING_STATUSES))
                    & Q(holds_slot=False)
                    & (Q(status=Status.NEW) | Q(hold_until__isnull=True))
                ),
            ),
            models.UniqueConstraint(
                fields=["holds_for"],
                condition=Q(holds_for__isnull=False),
                name="reservation_one_slot_held_for_change",
            ),
            PostgresExclusion(
                name=NO_OVERLAP,
                index_type="gist",
                condition=Q(holds_slot=True),
                expressions=[
                    ("room", RangeOperators.EQUAL),
                    (Coalesce("holds_for", "id"), RangeOperators.NOT_EQUAL),
                    (
                        TimestampRange("start", "occupied_until", RangeBoundary()),
                        RangeOperators.OVERLAPS,
                    ),
                ],
            ),
            PostgresExclusion(
                name=NO_OVERLAP_BEFORE,
                index_type="gist",
                condition=Q(holds_slot=True),
                expressions=[
                    ("room", RangeOperators.EQUAL),
                    (Coalesce("holds_for", "id"), RangeOperators.NOT_EQUAL),
                    (
                        TimestampRange("occupied_from", "end", RangeBoundary()),
                        RangeOperators.OVERLAPS,
                    ),
                ],
            ),
        ]
        indexes = [
            models.Index(fields=["user", "start"], name="reservation_by_user"),
            models.Index(fields=["room", "start"], name="reservation_by_room"),
            # For the list in the back office, and for the days of all centers.
            models.Index(fields=["-start", "-id"], name="reservation_by_start"),
            models.Index(fields=["status", "start", "id"], name="reservation_by_status"),
            # For pending requests, longest waiting first.
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
            # The availability evaluator should have prevented this; the database constraint did.
            if is_overlap_error(error):
                raise SlotUnavailable from error
            raise

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @cached_property
    def paid_payments(self) -> list[Payment]:
        """Return the payments that were authorized or captured, or refunded since; latest first.

        The last one is for the booking, the others are for its changes. Their amounts and cards
        never change. `transition_to` sets this, to save a query.
        """
        paid = self.payments.filter(counts=True, state__in=sorted(PAID_STATES))
        return list(paid.order_by("-pk"))

    @cached_property
    def waiting_payment(self) -> Payment | None:
        """Return the payment that waits until the customer confirms it at the bank (B21.3)."""
        if self.status != Status.PROCESSING:
            return None
        return Payment.objects.waiting().filter(reservation=self.pk).first()

    @property
    def is_new(self) -> bool:
        return self.status == Status.NEW

    @property
    def is_confirmed_or_completed(self) -> bool:
        """Return whether the meeting is to come, takes place, or has taken place."""
        return self.status in {Status.CONFIRMED, Status.COMPLETED}

    @property
    def has_unseen_price(self) -> bool:
        """Return whether the price of a draft has changed and the customer was not shown it."""
        return self.shown_total is not None and self.shown_total != self.total_cost

    @property
    def is_outside_hours(self) -> bool:
        """Return whether a manager has allowed it outside the opening hours."""
        return bool(self.hours_override_reason)

    @property
    def has_former_address(self) -> bool:
        """Return whether `HAS_FORMER_ADDRESS` holds of a booking or request."""
        if self.status not in {Status.PENDING, Status.CONFIRMED}:
            return False
        written_at = self.calendar_changed_at or self.booked_at
        changed_at = self.room.center.address_changed_at
        return bool(written_at and changed_at and changed_at > written_at)

    def is_held_at(self, now: dt.datetime) -> bool:
        """Return whether it prevents other bookings of the room now; a draft's hold expires."""
        return self.holds_slot and (self.hold_until is None or self.hold_until > now)

    @property
    def is_checked_in(self) -> bool:
        """Return whether the customer has arrived (B18.1); `IS_CHECKED_IN` is the same in SQL."""
        at = self.checked_in_at
        return at is not None and at >= self.start - CHECK_IN_OPENS_BEFORE

    @property
    def payable_until(self) -> dt.datetime:
        """Return until when it can be paid and approved (B26.10): later if staff made it."""
        if self.created_by_id is None:
            return self.start
        return min(self.end, max(self.start, self.created_at) + LATE_PAYMENT)

    @property
    def link_subject(self) -> str:
        """The subject of e-mails with payment links, in the outbox."""
        return f"payment link {self.pk}"

    @property
    def waiting_change(self) -> BookingChange | None:
        """Return the change that waits for its payment by a link; the link may have ended."""
        return self.changes.filter(payment=None, state=ChangeState.STARTED).first()

    @property
    def is_paying_for_change(self) -> bool:
        """Return whether the payment of a change is not resolved yet."""
        started = self.payments.filter(purpose=PaymentPurpose.CHANGE, state=PaymentState.STARTED)
        return started.exists()

    def end_waiting_change(
        self, state: ChangeState = ChangeState.ABANDONED, *, message: str = "", now: dt.datetime
    ) -> None:
        """End the change that waits for a link, if there is one, and release what it holds."""
        change = self.waiting_change
        if change is None:
            return
        change.resolve(state, message=message, now=now)
        Reservation.slots.filter(holds_for=self.pk).delete()
        # An e-mail that was not sent yet is not sent.
        OutboxMessage.objects.about(self.link_subject).waiting().update(expires_at=now)

    def advance_calendar(self, now: dt.datetime) -> TransitionColumns:
        """Number a change that calendars show; return the columns to be saved (B24.3)."""
        self.calendar_sequence += 1
        self.calendar_changed_at = now
        return {"calendar_sequence": self.calendar_sequence, "calendar_changed_at": now}

    def transition_to(
        self,
        status: Status,
        act: "Act",
        *,
        hold_until: dt.datetime | None = None,
        changes: Mapping[str, tuple[object, object]] | None = None,
        payment: Payment | None = None,
        **columns: Unpack[TransitionColumns],
    ) -> None:
        """Change the status and the hold that goes with it, save, and record the change.

        No other code sets the status. `columns` are saved in the same UPDATE, and other `changes`
        are recorded in the same entry of the history. `payment` is what pays for it from now on,
        which saves a query. The caller holds the row's lock.

        Raises InvalidStatusTransition, which is a defect in the calling code.
        """
        if not can_transition(self.status, status):
            raise InvalidStatusTransition(
                f"A reservation that is {self.status} cannot become {status}."
            )
        old = self.status
        self.status = status
        self.holds_slot = status in HOLDING_STATUSES or hold_until is not None
        self.hold_until = hold_until
        for name, value in columns.items():
            setattr(self, name, value)
        if payment is not None:
            self.paid_payments = [payment]
        self.save(update_fields=["status", "holds_slot", "hold_until", *columns])
        recorded = {
            "status": (old, status),
            **(changes or {}),
        }
        history.record_changes(self, recorded, act)


def get_own_reservation(reservation_id: int, user: "User") -> Reservation:
    """Return the user's reservation with its room and center, or raise NotFound."""
    reservation = own_reservation.first(user=user.pk, reservation=reservation_id)
    if reservation is None:
        raise NotFound
    reservation.user = user
    return reservation


@compiled_query(keep_plan=True)
def own_reservation() -> models.QuerySet[Reservation]:
    rows = Reservation.objects.select_related("room__center")
    return rows.filter(user=int_param("user"), pk=int_param("reservation"))
