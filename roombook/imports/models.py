"""Files that staff uploaded and have not confirmed yet, and checks of files that are running."""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, models, transaction
from import_export.tmp_storages import BaseStorage

from roombook.texts import LineField

MAX_AGE = dt.timedelta(days=1)
# A check that began longer ago ended with its process: see CHECK_SECONDS.
MAX_CHECK_DURATION = dt.timedelta(minutes=5)


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


class CheckIsRunning(Exception):
    """The user's previous file is still being checked."""

    def __init__(self) -> None:
        super().__init__("Another file of yours is being checked: wait until that is done.")


class RunningCheck(models.Model):
    """A file that is being checked: one at a time for each user, whichever worker does it."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="+"
    )
    started_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"account {self.pk}"

    @classmethod
    @contextmanager
    def run(cls, user: AbstractBaseUser | AnonymousUser, *, now: dt.datetime) -> Iterator[None]:
        """Raises CheckIsRunning if there is one already."""
        cls.objects.filter(pk=user.pk, started_at__lt=now - MAX_CHECK_DURATION).delete()
        try:
            with transaction.atomic():
                cls.objects.create(pk=user.pk, started_at=now)
        except IntegrityError as error:
            raise CheckIsRunning from error
        try:
            yield
        finally:
            cls.objects.filter(pk=user.pk, started_at=now).delete()
