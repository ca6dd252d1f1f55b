"""Notes of staff."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from reservations.models.reservation import Reservation
from roombook.texts import ParagraphsField

MAX_LENGTH = 2000


class Note(models.Model):
    """What staff wrote down about a reservation or about a customer (B18.2).

    Customers never see it. Notes are added and deleted, and never changed.
    """

    reservation = models.ForeignKey(
        Reservation, models.CASCADE, null=True, blank=True, related_name="notes"
    )
    customer = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="notes"
    )
    text = ParagraphsField(max_length=MAX_LENGTH)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        default_permissions = ("view", "add", "delete")
        constraints = [
            models.CheckConstraint(
                name="note_is_about_a_reservation_or_a_customer",
                condition=Q(reservation__isnull=True, customer__isnull=False)
                | Q(reservation__isnull=False, customer__isnull=True),
            ),
            models.CheckConstraint(name="note_is_not_empty", condition=~Q(text="")),
        ]

    def __str__(self) -> str:
        return f"Note {self.pk}"
