"""The audit log's table."""

from collections.abc import Sequence

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.models import Q
from django.utils import timezone

from roombook.texts import ParagraphsField

HIDDEN_VALUE = "(not kept)"


class AuditAction(models.IntegerChoices):
    CREATE = 0, "Created"
    UPDATE = 1, "Changed"
    DELETE = 2, "Deleted"
    VIEW = 3, "Viewed"


class AuditEntry(models.Model):
    """One change of a row, or one view of a customer's personal data (B18).

    Entries outlive the rows and accounts that they name.
    """

    timestamp = models.DateTimeField(default=timezone.now)  # noqa: TID251 (a signal has no `now`)
    action = models.PositiveSmallIntegerField(choices=AuditAction.choices)
    content_type = models.ForeignKey(
        ContentType, models.CASCADE, related_name="+", db_index=False, verbose_name="type"
    )
    object_id = models.BigIntegerField()
    object_name = models.CharField(max_length=250)
    changes = models.JSONField(default=dict, help_text="Field name to [old, new].")
    note = ParagraphsField(blank=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    actor_email = models.EmailField(max_length=254, blank=True, help_text="Of staff only.")
    network_address = models.GenericIPAddressField(null=True)
    # In the same row as the change, so that neither is stored without the other.
    unpublished_event = models.JSONField(
        null=True, editable=False, help_text="What webhooks have to report of it; then empty."
    )

    field_changes: Sequence[object] = ()

    class Meta:
        verbose_name = "audit log entry"
        verbose_name_plural = "audit log entries"
        indexes = [
            models.Index(fields=["content_type", "object_id"], name="audit_entry_by_object"),
            models.Index(fields=["timestamp"], name="audit_entry_by_time"),
            # Few entries are not published yet.
            models.Index(
                fields=["id"],
                condition=Q(unpublished_event__isnull=False),
                name="audit_entry_unpublished",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_action_display()}: {self.object_name}"

    @property
    def actor_name(self) -> str:
        """The actor's name, or the e-mail address of staff whose account was deleted."""
        if self.actor is None:
            return self.actor_email or "the service"
        name = self.actor.get_full_name() or f"account {self.actor_id}"
        return name if self.actor.is_staff else f"{name} (customer)"

    @property
    def summary(self) -> str:
        """The note and ``field_changes``, which ``audit_display`` loads."""
        return "; ".join(filter(None, [self.note, *map(str, self.field_changes)]))
