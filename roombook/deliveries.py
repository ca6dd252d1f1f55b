"""What e-mails (accounts/outbox.py) and events for webhooks (reservations/integrations/) share.

A process leases a row with one conditional UPDATE, delivers it, and records the result. No
transaction is open and no lock is held meanwhile, so several processes may run at once. A process
that dies leaves the row to be delivered again once the lease has ended: at least once.
"""

from datetime import datetime, timedelta
from typing import Self, TypeVar

from django.db import models
from django.db.models import F, Q, QuerySet


class DeliveryState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    SENT = "sent", "Sent"
    FAILED = "failed", "Failed"


DeliveryT = TypeVar("DeliveryT", bound="Delivery")


class DeliveryQuerySet(models.QuerySet[DeliveryT]):
    def waiting(self) -> Self:
        return self.filter(state=DeliveryState.WAITING)

    def due(self, now: datetime) -> Self:
        """Return what is waiting for an attempt that is due; the longest waiting come first."""
        return self.waiting().filter(next_attempt_at__lte=now).order_by("next_attempt_at", "pk")


class Delivery(models.Model):
    """Something on its way to a receiver, until it is sent or has failed for good."""

    state = models.CharField(
        max_length=10, choices=DeliveryState.choices, default=DeliveryState.WAITING
    )
    attempts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField("next attempt", null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=DeliveryState.values), name="%(class)s_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(state="waiting", next_attempt_at__isnull=False)
                | (~Q(state="waiting") & Q(next_attempt_at__isnull=True)),
                name="%(class)s_waits_for_its_next_attempt",
            ),
            models.CheckConstraint(
                condition=Q(state="sent", sent_at__isnull=False)
                | (~Q(state="sent") & Q(sent_at__isnull=True)),
                name="%(class)s_sent_has_its_time",
            ),
        ]
        indexes = [
            # Few have failed. They need attention.
            models.Index(
                fields=["created_at"], condition=Q(state="failed"), name="%(class)s_failed"
            ),
        ]

    def lease(self, rows: QuerySet[Self], *, period: timedelta, now: datetime) -> bool:
        """Lease a waiting row to this process; False if it is not among `rows` any more.

        That is so if another process was faster. The attempt counts from now on.
        """
        unchanged = rows.filter(
            pk=self.pk, attempts=self.attempts, next_attempt_at=self.next_attempt_at
        )
        leased = unchanged.update(attempts=F("attempts") + 1, next_attempt_at=now + period)
        self.attempts += 1
        return bool(leased)

    def record_success(self, *, now: datetime, **columns: object) -> None:
        """It is sent, whatever another process has recorded in the meantime."""
        rows = type(self)._base_manager.exclude(state=DeliveryState.SENT)
        self._record(rows, state=DeliveryState.SENT, sent_at=now, next_attempt_at=None, **columns)

    def record_failure(self, *, retry_at: datetime | None, **columns: object) -> None:
        """Plan the next attempt, or without one, let it fail for good.

        Nothing is stored if another process has leased it in the meantime.
        """
        if retry_at is None:
            columns["state"] = DeliveryState.FAILED
        rows = type(self)._base_manager.filter(state=DeliveryState.WAITING, attempts=self.attempts)
        self._record(rows, next_attempt_at=retry_at, **columns)

    def _record(self, rows: QuerySet[Self], **columns: object) -> None:
        """Store the result of an attempt if the row is among `rows`, and in the instance anyway."""
        rows.filter(pk=self.pk).update(**columns)
        for name, value in columns.items():
            setattr(self, name, value)

    def queue_again(self, *, now: datetime, **columns: object) -> bool:
        """Let it be sent once more; False if it is waiting anyway, or is changed meanwhile."""
        if self.state == DeliveryState.WAITING:
            return False
        rows = type(self)._base_manager.filter(pk=self.pk, state=self.state)
        reset = {"state": DeliveryState.WAITING, "attempts": 0, "sent_at": None}
        return bool(rows.update(**reset, next_attempt_at=now, **columns))
