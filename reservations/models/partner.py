from typing import Any

from django.db import models

from reservations.models.codes import normalize_code


class Partner(models.Model):
    """A company that brings customers; its code at checkout credits the booking to it."""

    code = models.CharField(max_length=50, unique=True, help_text="Any case; kept in capitals.")
    name = models.CharField(max_length=255)
    is_active = models.BooleanField(default=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.code})"

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.clean()
        super().save(*args, **kwargs)

    def clean(self) -> None:
        self.code = normalize_code(self.code)
