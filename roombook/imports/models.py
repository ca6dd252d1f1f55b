"""Files that staff uploaded and have not confirmed yet."""

import datetime as dt
from typing import Any

from django.conf import settings
from django.db import models
from import_export.tmp_storages import BaseStorage

from roombook.texts import LineField

MAX_AGE = dt.timedelta(days=1)


class Upload(models.Model):
    """A file between its preview and its confirmation.

    In the database, since another worker or machine may serve the next request; the library's
    storages are folders of one machine, the cache of one process, or public.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    sheet = models.CharField(max_length=50)
    file_name = LineField(max_length=255)
    content = models.BinaryField()
    created_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.sheet}: {self.file_name}"

    @classmethod
    def replace(cls, *, now: dt.datetime, **fields: Any) -> "Upload":
        """Keep a file for a day, or until its owner uploads another one for the same list."""
        outdated = models.Q(created_at__lt=now - MAX_AGE)
        replaced = models.Q(user=fields["user"], sheet=fields["sheet"])
        cls.objects.filter(outdated | replaced).delete()
        return cls.objects.create(created_at=now, **fields)


class UploadStorage(BaseStorage):
    """Gives the library the files; `name` is an id."""

    def read(self) -> bytes:
        return bytes(Upload.objects.get(pk=self.name).content)

    def remove(self) -> None:
        Upload.objects.filter(pk=self.name).delete()
