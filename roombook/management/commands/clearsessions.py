from django.contrib.sessions.management.commands import clearsessions

from roombook.jobs import RegularJob


class Command(RegularJob, clearsessions.Command):
    """Django's command, which also stores when it last ran."""
