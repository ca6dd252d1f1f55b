"""When centers are open: their weekly opening hours, and their closures."""

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.utils import timezone

from centers import hours
from centers.models.center import Center
from centers.querysets import ClosureQuerySet
from centers.span import Span
from roombook.texts import LineField


class OpeningHours(models.Model):
    """One interval of opening hours, which begins on a weekday, in the center's local time."""

    class Weekday(models.IntegerChoices):
        MONDAY = 0
        TUESDAY = 1
        WEDNESDAY = 2
        THURSDAY = 3
        FRIDAY = 4
        SATURDAY = 5
        SUNDAY = 6

    center = models.ForeignKey(Center, models.CASCADE, related_name="opening_hours")
    weekday = models.PositiveSmallIntegerField(choices=Weekday)
    opens = models.TimeField()
    closes = models.TimeField(
        help_text="00:00 is midnight at the end of the day; before opening is on the next day."
    )

    class Meta:
        ordering = ["weekday", "opens"]
        verbose_name_plural = "opening hours"
        constraints = [
            models.CheckConstraint(
                condition=Q(weekday__range=(0, 6)),
                name="opening_hours_on_a_weekday",
                violation_error_message="A weekday is 0 (Monday) to 6 (Sunday).",
            ),
            models.CheckConstraint(
                condition=~Q(closes=F("opens")) | Q(closes=hours.MIDNIGHT),
                name="opening_hours_close_at_another_time",
                violation_error_message="Opening and closing differ; 24 hours are 00:00 to 00:00.",
            ),
            models.UniqueConstraint(
                fields=["center", "weekday", "opens"],
                name="opening_hours_once_a_start",
                violation_error_message="The center opens at this time of this day already.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_weekday_display()} {self.opens:%H:%M}-{self.closes:%H:%M}"


# Not in `delete`, which is not called for each row of a queryset that is deleted.
@receiver([post_save, post_delete], sender=OpeningHours)
def note_change_of_hours(sender: object, *, instance: OpeningHours, **_: object) -> None:
    """Remember that bookings made before may be outside the opening hours."""
    now = timezone.now()  # noqa: TID251 (signals have no `now`)
    Center.objects.filter(pk=instance.center_id).update(hours_changed_at=now)


class Closure(models.Model):
    """A time when a center or one of its rooms cannot be booked: a holiday, maintenance."""

    center = models.ForeignKey(Center, models.CASCADE, related_name="closures")
    room = models.ForeignKey(
        "centers.MeetingRoom",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="closures",
        help_text="Leave empty to close the whole center.",
    )
    starts_at = models.DateTimeField(help_text="In the center's local time.")
    ends_at = models.DateTimeField(help_text="In the center's local time.")
    reason = LineField(max_length=255, blank=True)

    objects = ClosureQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(starts_at__lt=F("ends_at")),
                name="closure_starts_before_it_ends",
                violation_error_message="A closure starts before it ends.",
            ),
        ]
        indexes = [
            models.Index(fields=["center", "ends_at"], name="closure_of_center"),
            models.Index(fields=["starts_at", "id"], name="closure_by_start"),
        ]

    def __str__(self) -> str:
        return self.reason or f"Closure {self.pk}"

    def clean(self) -> None:
        if self.room and self.center_id and self.room.center_id != self.center_id:
            raise ValidationError({"room": "This room belongs to another center."})

    @property
    def span(self) -> Span:
        return Span(self.starts_at, self.ends_at)
