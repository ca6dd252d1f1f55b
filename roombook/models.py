"""The tables of the regular jobs and of saved responses."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Self

from django.conf import settings
from django.db import models

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
# Turns are whole intervals after this time: those of daily jobs are at night in most places.
FIRST_TURN = datetime(1970, 1, 1, 3, 7, tzinfo=UTC)


class JobRunQuerySet(models.QuerySet["JobRun"]):
    def take_turns(
        self, intervals: Mapping[str, timedelta], *, now: datetime
    ) -> tuple[list[str], datetime]:
        """Take the turns of the commands that are due, so that nobody else does.

        Returns these commands, and when the next one is due. A command that is new is due.
        """
        due_at = dict(self.values_list("command", "due_at"))
        new = [self.model(command=each, ended_at=NEVER) for each in intervals.keys() - due_at]
        self.bulk_create(new, ignore_conflicts=True)
        taken = []
        for command, interval in intervals.items():
            if due_at.get(command, NEVER) <= now:
                due_at[command] = now + interval - (now - FIRST_TURN) % interval
                due = self.filter(command=command, due_at__lte=now)
                if due.update(due_at=due_at[command]):
                    taken.append(command)
        return taken, min((due_at[each] for each in intervals), default=now + timedelta(days=1))

    def return_turns(self, commands: Iterable[str]) -> None:
        """Let commands be due that did not finish their run."""
        self.filter(command__in=commands).update(due_at=NEVER)

    def record(self, command: str, *, now: datetime, has_succeeded: bool) -> None:
        """Store that a command has ended. One statement, so that machines do not conflict."""
        run = self.model(command=command, ended_at=now, succeeded_at=now if has_succeeded else None)
        changed = ["ended_at", *(["succeeded_at"] if has_succeeded else [])]
        self.bulk_create(
            [run], update_conflicts=True, unique_fields=["command"], update_fields=changed
        )

    def by_command(self) -> dict[str, "JobRun"]:
        return {run.command: run for run in self.all()}


class JobRun(models.Model):
    """When a regular command last ended, and when it is due, on whatever machine (jobs.py)."""

    command = models.CharField(max_length=60, unique=True)
    ended_at = models.DateTimeField()
    succeeded_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(default=NEVER)

    objects = models.Manager.from_queryset(JobRunQuerySet)()

    def __str__(self) -> str:
        return self.command


class SavedResponseQuerySet(models.QuerySet["SavedResponse"]):
    def expired(self, now: datetime) -> Self:
        return self.filter(created_at__lte=now - SavedResponse.LIFETIME)


class SavedResponse(models.Model):
    """The response to a request with an Idempotency-Key (roombook/api/idempotency.py).

    Key and body are stored as hashes only: a client may send a card number as its key.
    """

    LIFETIME = timedelta(hours=24)

    id = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    operation = models.CharField(max_length=100)
    key_digest = models.CharField(max_length=64)
    body_digest = models.CharField(max_length=64)
    # The fields of the response as JSON, in their order, which JSONField would lose on PostgreSQL.
    # Empty only while the request is processed, which no other transaction sees.
    content = models.TextField()
    created_at = models.DateTimeField(db_index=True)

    objects = models.Manager.from_queryset(SavedResponseQuerySet)()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "operation", "key_digest"],
                name="saved_response_is_one_a_user_operation_and_key",
            ),
        ]

    def __str__(self) -> str:
        return f"response {self.pk} of {self.operation}"
