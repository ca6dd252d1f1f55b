"""Webhooks for integrators (B25): endpoints, events and their deliveries.

An entry of a reservation's history carries its event (`reservations/models/history.py`), in the
same row and so in the same transaction. reservations/integrations/ publishes and sends it.
"""

import base64
import datetime as dt
import hashlib
import secrets
import uuid
from typing import Self

from django.db import models
from django.db.models import F, Q

from roombook.deliveries import Delivery, DeliveryQuerySet, DeliveryState
from roombook.naming import to_snake_case
from roombook.public_http import MAX_URL_LENGTH, validate_public_url
from roombook.texts import LineField

# How long deliveries are retried, and how long events are kept.
RETRY_PERIOD = dt.timedelta(days=3)
RETENTION = dt.timedelta(days=30)
# How long the old secret signs too after a rotation.
SECRET_OVERLAP = dt.timedelta(hours=24)
MAX_RESPONSE_LENGTH = 200
SECRET_PREFIX = "whsec_"
SECRET_BYTES = 32
ACCESS_KEY_PREFIX = "rbk_"


class EventType(models.TextChoices):
    """What a history entry reports; the value is the `type` of the payload."""

    PROCESSING = "reservation.processing", "Payment started"
    RETURNED = "reservation.new", "Returned to draft"
    PENDING = "reservation.pending", "Awaiting approval"
    CONFIRMED = "reservation.confirmed", "Confirmed"
    DECLINED = "reservation.declined", "Declined"
    CANCELLED = "reservation.cancelled", "Cancelled"
    EXPIRED = "reservation.expired", "Expired"
    COMPLETED = "reservation.completed", "Completed"
    NO_SHOW = "reservation.noshow", "No-show"
    RESCHEDULED = "reservation.rescheduled", "Room or time changed"
    UPDATED = "reservation.updated", "Anything else changed"


TEST_EVENT_TYPE = "webhook.test"


def create_secret() -> str:
    """Return a new random secret, in the form in which receivers configure it."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


class WebhookEndpointQuerySet(models.QuerySet["WebhookEndpoint"]):
    def active(self) -> Self:
        return self.filter(is_active=True)

    def disabled_automatically(self) -> Self:
        return self.filter(is_active=False).exclude(disabled_reason="")


class WebhookEndpoint(models.Model):
    """An address to which events are sent, and the credentials of its integrator.

    The secret is stored as it is, because it signs; the access key is stored as a hash.
    """

    description = LineField(max_length=200)
    url = LineField(
        "address",
        max_length=MAX_URL_LENGTH,
        validators=[validate_public_url],
        help_text="An https:// address on port 443 or 8443 that the public internet reaches.",
    )
    center = models.ForeignKey(
        "centers.Center",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="Only its reservations are reported. Empty: those of all centers.",
    )
    event_types = models.JSONField(
        "events", default=list, blank=True, help_text="Select none to get all events."
    )
    is_active = models.BooleanField(
        "active", default=True, help_text="An inactive address gets no new events."
    )
    disabled_reason = models.CharField(max_length=200, blank=True, editable=False)
    secret = models.CharField(max_length=120, default=create_secret, editable=False)
    old_secret = models.CharField(max_length=120, blank=True, editable=False)
    secret_rotated_at = models.DateTimeField(null=True, editable=False)
    access_key_hash = models.CharField(max_length=64, blank=True, editable=False)
    created_at = models.DateTimeField(editable=False)
    activated_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When it was made active again. Empty if it has been active since its creation.",
    )
    last_success_at = models.DateTimeField("last success", null=True, editable=False)

    objects = models.Manager.from_queryset(WebhookEndpointQuerySet)()

    class Meta:
        verbose_name = "webhook"

    def __str__(self) -> str:
        return self.description

    def wants(self, event: "WebhookEvent") -> bool:
        """Return whether an event is sent to this endpoint. Test events are sent to one only."""
        return (
            self.is_active
            and event.occurred_at >= (self.activated_at or self.created_at)
            and self.center_id in (None, event.center_id, event.former_center_id)
            and (not self.event_types or event.type in self.event_types)
        )

    def get_secrets(self, now: dt.datetime) -> list[str]:
        """Return the secrets that sign: for 24 hours after a rotation also the old one."""
        if self.secret_rotated_at and now < self.secret_rotated_at + SECRET_OVERLAP:
            return [self.secret, self.old_secret]
        return [self.secret]

    def rotate_secret(self, *, now: dt.datetime) -> None:
        """Create another secret. The current one signs too until the end of the overlap."""
        self.old_secret, self.secret, self.secret_rotated_at = self.secret, create_secret(), now
        self.save(update_fields=["old_secret", "secret", "secret_rotated_at"])

    def issue_access_key(self) -> str:
        """Create and return another access key, which is shown once; the old one ends."""
        access_key = ACCESS_KEY_PREFIX + secrets.token_hex(32)
        self.access_key_hash = hash_access_key(access_key)
        self.save(update_fields=["access_key_hash"])
        return access_key


def hash_access_key(access_key: str) -> str:
    """Return the digest that is stored. A fast hash is enough: 256 random bits."""
    return hashlib.sha256(access_key.encode("utf-8", "surrogatepass")).hexdigest()


class WebhookEventQuerySet(models.QuerySet["WebhookEvent"]):
    def for_endpoint(self, endpoint: WebhookEndpoint) -> Self:
        """Return what the endpoint may know of, in the order in which it was published."""
        events = self.exclude(type=TEST_EVENT_TYPE).filter(occurred_at__gte=endpoint.created_at)
        if endpoint.center_id is not None:
            events = events.filter(
                Q(center_id=endpoint.center_id) | Q(former_center_id=endpoint.center_id)
            )
        if endpoint.event_types:
            events = events.filter(type__in=endpoint.event_types)
        return events.order_by("pk")


class WebhookEvent(models.Model):
    """An event that has been published: what the payload says, without personal data.

    Ids increase in the order of commits, because one process at a time publishes.
    """

    id = models.BigAutoField(primary_key=True)
    key = models.UUIDField(default=uuid.uuid4, editable=False)
    type = models.CharField(max_length=40)
    occurred_at = models.DateTimeField()
    published_at = models.DateTimeField(db_index=True)
    # Plain numbers: events outlive the rows that they name.
    center_id = models.IntegerField(null=True)
    former_center_id = models.IntegerField(
        null=True, help_text="The center that the reservation has left; most events have none."
    )
    version = models.BigIntegerField(
        null=True, help_text="The number of the history entry; empty in a test event."
    )
    data = models.JSONField(default=dict)

    objects = models.Manager.from_queryset(WebhookEventQuerySet)()

    class Meta:
        verbose_name = "webhook event"
        constraints = [
            models.UniqueConstraint(fields=["version"], name="webhook_event_once_per_history_entry")
        ]
        indexes = [
            models.Index(fields=["center_id", "id"], name="webhook_event_by_center"),
            models.Index(
                fields=["former_center_id", "id"],
                condition=Q(former_center_id__isnull=False),
                name="webhook_event_by_former_center",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.message_id}"

    @property
    def message_id(self) -> str:
        """The `webhook-id`, by which a receiver recognizes a repetition."""
        return f"evt_{self.key.hex}"

    @property
    def change(self) -> dict[str, object]:
        """What the operation List changes returns: the data, by the names of its serializer."""
        fields = {to_snake_case(name): value for name, value in self.data.items()}
        for name in ("start", "end"):
            fields[name] = dt.datetime.fromisoformat(fields[name])
        event = {"event_id": self.message_id, "type": self.type, "timestamp": self.occurred_at}
        return fields | event


class WebhookDeliveryQuerySet(DeliveryQuerySet["WebhookDelivery"]):
    def fail_waiting(self) -> None:
        """Let what is waiting fail for good (B25.6)."""
        self.waiting().update(state=DeliveryState.FAILED, next_attempt_at=None)

    def to_active_endpoints(self) -> Self:
        return self.filter(endpoint__is_active=True)

    def due(self, now: dt.datetime) -> Self:
        return super().due(now).to_active_endpoints()


class WebhookDelivery(Delivery):
    """One event on its way to one endpoint, with the result of the last attempt."""

    id = models.BigAutoField(primary_key=True)
    endpoint = models.ForeignKey(
        WebhookEndpoint,
        models.CASCADE,
        related_name="deliveries",
        verbose_name="webhook",
        db_index=False,
    )
    event = models.ForeignKey(WebhookEvent, models.CASCADE, related_name="deliveries")
    retry_until = models.DateTimeField()
    status_code = models.PositiveSmallIntegerField(null=True)
    response = models.CharField(
        max_length=MAX_RESPONSE_LENGTH,
        blank=True,
        help_text="What went wrong, or the beginning of the response.",
    )

    objects = models.Manager.from_queryset(WebhookDeliveryQuerySet)()

    class Meta:
        verbose_name = "webhook delivery"
        verbose_name_plural = "webhook deliveries"
        constraints = [
            *Delivery.Meta.constraints,
            models.UniqueConstraint(
                fields=["endpoint", "event"], name="webhook_delivery_once_per_endpoint"
            ),
            models.CheckConstraint(
                condition=Q(retry_until__gte=F("created_at")),
                name="webhook_delivery_is_retried_after_it_was_made",
            ),
        ]
        indexes = [
            *Delivery.Meta.indexes,
            # Few deliveries are waiting, however many were made.
            models.Index(
                fields=["endpoint", "next_attempt_at"],
                condition=Q(state=DeliveryState.WAITING),
                name="webhook_delivery_due",
            ),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"

    def send_again(self, *, now: dt.datetime) -> bool:
        """Let it be sent once more, with the same id; False if it is waiting to be sent anyway."""
        return self.queue_again(now=now, retry_until=now + RETRY_PERIOD)
