from django.core.management.base import BaseCommand, CommandParser

from roombook import startup
from roombook.jobs import JOB_INTERVALS, JobRunner


class Command(BaseCommand):
    help = (
        "Run all regular commands, each at its interval, until SIGTERM or Ctrl-C. It may run on"
        " several machines: one of them runs each job."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--parent",
            type=int,
            metavar="PID",
            help="Stop when this process, which started the command, has ended.",
        )

    def handle(self, *, parent: int | None, verbosity: int, **_: object) -> None:
        startup.require_usable_database()
        JobRunner(JOB_INTERVALS, parent=parent, is_quiet=verbosity == 0).run()
