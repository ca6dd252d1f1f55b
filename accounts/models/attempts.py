"""Counted attempts (accounts/limits.py)."""

from django.db import models


class AttemptWindow(models.Model):
    """The number of attempts since the window opened."""

    scope = models.CharField(max_length=40)
    key = models.CharField(max_length=128)
    count = models.PositiveIntegerField(default=0)
    since = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["scope", "key"], name="attempt_window_is_one_a_scope_and_key"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.key}: {self.count}"
