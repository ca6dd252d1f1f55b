"""Changes of bookings that cost more: what was requested, until they are paid (B27)."""

import datetime as dt
from decimal import Decimal

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q

from payments.models import Payment
from roombook.money import MoneyField

NOT_PAID_IN_TIME = "The payment link has ended."


class ChangeState(models.TextChoices):
    STARTED = "started"
    APPLIED = "applied"
    # The payment failed, or the change was no longer possible. The booking is as it was.
    ABANDONED = "abandoned"


class BookingChange(models.Model):
    """A change of a booking that costs more. It is applied when its difference is authorized.

    If the process dies in between, this row says what to do once the payment is resolved. Without a
    payment, it waits for one by a link (B27.7).
    """

    reservation = models.ForeignKey(
        "reservations.Reservation", models.PROTECT, related_name="changes"
    )
    # Each attempt to pay by a link is a change of its own, with its payment.
    payment = models.OneToOneField(Payment, models.PROTECT, null=True, related_name="change")
    link_until = models.DateTimeField(
        null=True, help_text="When the payment link ends that the customer got for it."
    )
    state = models.CharField(
        max_length=10, choices=ChangeState.choices, default=ChangeState.STARTED
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+"
    )
    is_by_staff = models.BooleanField("by staff", default=False)
    room = models.ForeignKey("centers.MeetingRoom", models.PROTECT, related_name="+")
    start = models.DateTimeField()
    end = models.DateTimeField()
    # What else it should be: BookingValues.
    values = models.JSONField(encoder=DjangoJSONEncoder, default=dict, blank=True)
    # Null once the change is applied or abandoned.
    personal_values = models.JSONField(encoder=DjangoJSONEncoder, null=True, blank=True)
    old_total = MoneyField()
    new_total = MoneyField()
    # Of the booking before the change: if it has another version now, it has changed meanwhile.
    version = models.PositiveIntegerField()
    message = models.CharField(
        max_length=255, blank=True, help_text="Why the change was not applied."
    )
    created_at = models.DateTimeField(editable=False)
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=ChangeState.values), name="change_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(state="started", resolved_at__isnull=True)
                | Q(~Q(state="started"), resolved_at__isnull=False, personal_values__isnull=True),
                name="change_resolved_has_its_time",
            ),
            models.CheckConstraint(
                condition=Q(payment__isnull=False, link_until__isnull=True)
                | Q(payment__isnull=True, link_until__isnull=False),
                name="change_has_a_payment_or_a_link",
            ),
            models.UniqueConstraint(
                fields=["reservation"],
                condition=Q(payment__isnull=True, state="started"),
                name="change_one_waits_for_a_link",
            ),
            models.CheckConstraint(
                condition=Q(new_total__gt=models.F("old_total")), name="change_costs_more"
            ),
        ]

    def __str__(self) -> str:
        return f"Change of reservation {self.reservation_id} ({self.state})"

    def resolve(self, state: ChangeState, *, message: str = "", now: dt.datetime) -> None:
        """Store that the change was applied or abandoned, and forget the personal values."""
        self.state = state
        self.message = message[:255]
        self.resolved_at = now
        self.personal_values = None
        self.save(update_fields=["state", "message", "resolved_at", "personal_values"])

    @property
    def difference(self) -> Decimal:
        return Decimal(self.new_total - self.old_total)
