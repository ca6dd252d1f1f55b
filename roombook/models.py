"""The table of the regular jobs."""

from datetime import datetime

from django.db import models


class JobRunQuerySet(models.QuerySet["JobRun"]):
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
    """When a regular command last ended, on whatever machine (roombook/jobs.py)."""

    command = models.CharField(max_length=60, unique=True)
    ended_at = models.DateTimeField()
    succeeded_at = models.DateTimeField(null=True)

    objects = models.Manager.from_queryset(JobRunQuerySet)()

    def __str__(self) -> str:
        return self.command
