"""Roles of staff at single centers."""

from django.conf import settings
from django.db import models


class CenterRole(models.Model):
    """A role of a member of staff at one center (B18).

    A role is a group. Members of the group itself have the role at every center.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="center_roles",
        verbose_name="member of staff",
    )
    center = models.ForeignKey("centers.Center", models.CASCADE, related_name="+")
    group = models.ForeignKey(
        "auth.Group", models.PROTECT, related_name="center_roles", verbose_name="role"
    )

    class Meta:
        verbose_name = "role at a center"
        verbose_name_plural = "roles at centers"
        constraints = [
            models.UniqueConstraint(
                fields=["user", "center", "group"],
                name="center_role_is_given_once",
                violation_error_message="This person already has this role at this center.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.group} at {self.center}"
