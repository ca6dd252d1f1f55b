"""Files that staff have sent and not yet confirmed."""

import datetime as dt
from typing import Any

from django.conf import settings
from django.db import models

KEPT = dt.timedelta(days=1)


class Upload(models.Model):
    """A file between its preview and its confirmation: what is imported is what was previewed.

    In the database, since another worker or another machine may serve the next page.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    sheet = models.CharField(max_length=50)
    file_name = models.CharField(max_length=255)
    content = models.BinaryField()
    created_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.sheet}: {self.file_name}"

    @classmethod
    def keep(cls, *, now: dt.datetime, **fields: Any) -> "Upload":
        """Keep a file for a day, or until its owner sends another one for the same list."""
        old = models.Q(created_at__lt=now - KEPT)
        another = models.Q(user=fields["user"], sheet=fields["sheet"])
        cls.objects.filter(old | another).delete()
        return cls.objects.create(created_at=now, **fields)
