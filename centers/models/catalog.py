"""Neighborhoods, and types of rooms and services. Both are shared by all centers."""

from collections.abc import Collection
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import UniqueConstraint
from django.db.models.functions import Lower

from roombook.texts import LineField, ParagraphsField, fold_name


class UniqueNameMixin(models.Model):
    """Refuses a name that another row has, however it is typed: constraints ignore only case."""

    # Rows with equal values of these fields have different names.
    name_scope: ClassVar[tuple[str, ...]] = ()
    name: str | LineField

    class Meta:
        abstract = True

    def validate_unique(self, exclude: Collection[str] | None = None) -> None:
        super().validate_unique(exclude)
        scope = {field: getattr(self, field) for field in self.name_scope}
        others: Any = type(self)._default_manager.filter(**scope).exclude(pk=self.pk)
        names = others.values_list("name", flat=True) if "name" not in (exclude or ()) else ()
        if fold_name(self.name) in map(fold_name, names):
            unique = (each for each in self._meta.constraints if isinstance(each, UniqueConstraint))
            raise ValidationError({"name": next(unique).get_violation_error_message()})


class Neighborhood(UniqueNameMixin):
    """A part of a city that customers know by name."""

    original_name = LineField(
        max_length=255, blank=True, help_text="The name on maps, if it differs."
    )
    name = LineField(max_length=255)
    city = LineField(max_length=255, blank=True)
    state = LineField("state or province", max_length=255, blank=True)
    custom_title = LineField(max_length=255, blank=True)
    landing_page_content = ParagraphsField(blank=True)
    coworking_landing_page_content = ParagraphsField(blank=True)

    name_scope = ("city", "state")

    class Meta:
        constraints = [
            UniqueConstraint(
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


class ResourceType(UniqueNameMixin):
    """A type of room, or a type of service such as a projector."""

    name = LineField(max_length=255)
    is_service = models.BooleanField(
        "for services", default=False, help_text="A type of service, not of room."
    )
    position = models.PositiveIntegerField(
        default=0, help_text="Types with a lower position are listed first in filters."
    )
    internal = models.BooleanField(default=False, help_text="Customers cannot filter by this type.")

    class Meta:
        constraints = [
            UniqueConstraint(
                Lower("name"),
                name="resource_type_name_unique",
                violation_error_message="There is already a type with this name.",
            ),
        ]

    def __str__(self) -> str:
        return self.name
