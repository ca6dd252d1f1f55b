"""The attendees and the services of a reservation."""

from django.db import models
from django.db.models import Q

from reservations.models.reservation import Reservation
from roombook.texts import LineField


class Attendee(models.Model):
    """A person who attends the meeting."""

    reservation = models.ForeignKey(Reservation, models.CASCADE, related_name="attendees")
    name = LineField(max_length=255, blank=True)
    email_address = LineField(max_length=254, blank=True)
    company_name = LineField(max_length=255, blank=True)
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
    """A service that was booked with a reservation."""

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
