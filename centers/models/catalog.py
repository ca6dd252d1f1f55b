"""Neighborhoods, and types of rooms and services. Both are shared by all centers."""

from typing import Any

from django.db import models
from django.db.models.functions import Lower


class Neighborhood(models.Model):
    """A part of a city that customers know by name."""

    original_name = models.CharField(
        max_length=255, blank=True, help_text="The name on maps, if it differs."
    )
    name = models.CharField(max_length=255)
    city = models.CharField(max_length=255, blank=True)
    state = models.CharField("state or province", max_length=255, blank=True)
    custom_title = models.CharField(max_length=255, blank=True)
    landing_page_content = models.TextField(blank=True)
    coworking_landing_page_content = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                Lower("city"),
                Lower("state"),
                name="neighborhood_unique_in_city",
                violation_error_message="This city already has a neighborhood with this name.",
            ),
        ]

    def __str__(self) -> str:
        return ", ".join(part for part in (self.name, self.city, self.state) if part)

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self.original_name:
            self.original_name = self.name
        super().save(*args, **kwargs)


class ResourceType(models.Model):
    """A type of room, or a type of service such as a projector."""

    name = models.CharField(max_length=255)
    is_service = models.BooleanField(
        "for services", default=False, help_text="A type of service, not of room."
    )
    position = models.PositiveIntegerField(
        default=0, help_text="Types with a lower position are listed first in filters."
    )
    internal = models.BooleanField(default=False, help_text="Customers cannot filter by this type.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                name="resource_type_name_unique",
                violation_error_message="There is already a type with this name.",
            ),
        ]

    def __str__(self) -> str:
        return self.name
