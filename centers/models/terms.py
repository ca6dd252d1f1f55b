"""Terms of cancellation that a center offers (B15.4)."""

import re
from itertools import pairwise
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from centers.models.catalog import UniqueNameMixin
from roombook.texts import LineField

MAX_STEPS = 6
MAX_HOURS = 10_000
STEP = re.compile(r"(\d{1,5})\s*:\s*(\d{1,3})(?:\s*%)?", re.ASCII)


def parse_steps(text: str) -> tuple[tuple[int, int], ...]:
    """Return hours before the start, each with the percentage that comes back until then.

    Raises ValidationError.
    """
    steps = []
    for part in filter(None, map(str.strip, text.split(";"))):
        match = STEP.fullmatch(part)
        if match is None:
            raise ValidationError("Write steps as hours and percent, such as 168: 100; 48: 50.")
        steps.append((int(match[1]), int(match[2])))
    if len(steps) > MAX_STEPS:
        raise ValidationError(f"There are at most {MAX_STEPS} steps.")
    if any(hours > MAX_HOURS for hours, _ in steps):
        raise ValidationError(f"A step ends at most {MAX_HOURS} hours before the start.")
    if not all(1 <= percent <= 100 for _, percent in steps):
        raise ValidationError("A step gives 1 to 100 percent back. After the last one, nothing.")
    for column in zip(*steps, strict=True):
        if any(earlier <= later for earlier, later in pairwise(column)):
            raise ValidationError(
                "From step to step, there are fewer hours left and fewer percent come back."
            )
    return tuple(steps)


class StepsField(models.CharField):
    """Steps as text: `168: 100; 48: 50`. Empty if nothing ever comes back."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"max_length": 100, "blank": True, **kwargs})

    def to_python(self, value: Any) -> str:
        return "; ".join(f"{hours}: {percent}" for hours, percent in parse_steps(value or ""))


class Terms(UniqueNameMixin):
    """How much of the price comes back if a booking is cancelled, and when."""

    center = models.ForeignKey("centers.Center", models.CASCADE, related_name="all_terms")
    name = LineField(max_length=100, help_text="Customers read it: Flexible.")
    steps = StepsField(help_text="After the last one, nothing comes back.")
    grace_minutes = models.PositiveIntegerField(
        "grace (minutes)",
        default=0,
        validators=[MaxValueValidator(MAX_HOURS)],
        help_text="After booking, in which all comes back, but not after the start.",
    )
    no_show_percent = models.PositiveIntegerField(
        "no-show costs (%)", default=100, validators=[MaxValueValidator(100)]
    )
    change_hours = models.PositiveIntegerField(
        "changes until (hours)",
        null=True,
        blank=True,
        validators=[MaxValueValidator(MAX_HOURS)],
        help_text="Before the start, by customers. Leave empty for as long as cancelling is free.",
    )

    name_scope = ("center_id",)

    class Meta:
        verbose_name = "terms of cancellation"
        verbose_name_plural = "terms of cancellation"
        constraints = [
            models.UniqueConstraint(
                "center",
                Lower("name"),
                name="terms_name_unique_in_center",
                violation_error_message="This center already has terms with this name.",
            ),
            models.CheckConstraint(
                condition=Q(no_show_percent__range=(0, 100)),
                name="terms_no_show_is_a_percentage",
                violation_error_message="A no-show costs 0 to 100 percent.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.steps or 'nothing comes back'})"
