"""Counted attempts, and the networks that accounts signed in from (accounts/limits.py)."""

from datetime import datetime

from django.conf import settings
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


# --- Networks from which accounts signed in ------------------------------------------------------


class KnownNetwork(models.Model):
    """A network from which an account signed in. Only a keyed hash of its address is stored."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="known_networks"
    )
    digest = models.CharField(max_length=64)
    last_sign_in_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "digest"], name="known_network_is_one_a_user_and_digest"
            ),
        ]

    def __str__(self) -> str:
        return f"network {self.pk} of account {self.user_id}"

    @staticmethod
    def record(user_id: int, digest: str, *, now: datetime) -> None:
        KnownNetwork.objects.bulk_create(
            [KnownNetwork(user_id=user_id, digest=digest, last_sign_in_at=now)],
            update_conflicts=True,
            unique_fields=["user", "digest"],
            update_fields=["last_sign_in_at"],
        )
