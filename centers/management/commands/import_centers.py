import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.models import User, canonicalize_email
from roombook.imports.checking import Check
from roombook.imports.files import InvalidFile
from roombook.imports.plan import Checked, Origin, Plan
from roombook.imports.sheet import EVERYWHERE, RESOURCES
from roombook.imports.writing import ImportRefused, write

MOST_ERRORS = 100


class Command(BaseCommand):
    help = (
        "Import centers, or with --what their rooms, rates and so on, from a CSV or XLSX file: all"
        " rows or, if one is wrong, none; what stands there already is left alone, so that it is"
        " safe to run twice; exits with 1 on errors, which are told by row and column."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="The file; - is standard input.")
        parser.add_argument(
            "--what", choices=list(RESOURCES), default="centers", help="Default: centers."
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Check and tell, and write nothing."
        )
        parser.add_argument(
            "--as",
            dest="email",
            metavar="EMAIL",
            help="Who does it, for the history, and by whose"
            " roles; default: nobody in particular, everywhere.",
        )

    def handle(
        self, *, file: str, what: str, dry_run: bool, email: str | None, **options: Any
    ) -> None:
        sheet_class = RESOURCES[what]
        actor = get_staff(email)
        allowed = sheet_class.allowed_for(actor) if actor else EVERYWHERE
        if actor and not allowed.may_import:
            raise CommandError(f"{actor.email} may not import {what}.")
        sheet = sheet_class(allowed)
        try:
            plan = self._checked(Check(sheet, read_file(file)))
        except InvalidFile as error:
            raise CommandError(str(error)) from error
        if plan.has_errors:
            self._tell_errors(plan)
            raise CommandError(f"Nothing was written. {told(plan)}.")
        self._tell_notes(plan)
        if dry_run:
            self.stdout.write(f"Nothing was written: --dry-run. {told(plan)}.")
            return
        if plan.changes_something:
            try:
                write(sheet, plan, Origin(file=Path(file).name, at=timezone.now(), actor=actor))
            except ImportRefused as refused:
                raise CommandError(f"Nothing was written. {refused}") from refused
        self.stdout.write(f"Imported {sheet_class.plural()}: {told(plan)}.")

    def _checked(self, check: Check) -> Plan:
        for done, of in check.steps():
            if done and done % 1000 == 0:
                self.stdout.write(f"{done:,} of {of:,} rows checked")
        return check.plan

    def _tell_errors(self, plan: Plan) -> None:
        rows = plan.of(Checked.ERROR)
        for row in rows[:MOST_ERRORS]:
            for column, text in row.errors:
                where = f"Row {row.number}, {column}" if column else f"Row {row.number}"
                self.stderr.write(f"{where}: {text}")
        if len(rows) > MOST_ERRORS:
            self.stderr.write(f"and {len(rows) - MOST_ERRORS:,} more rows")

    def _tell_notes(self, plan: Plan) -> None:
        for row in plan.rows:
            for column, text in row.notes:
                self.stdout.write(f"Row {row.number}, {column}: {text}")


def read_file(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}.") from error


def get_staff(email: str | None) -> User | None:
    if email is None:
        return None
    user = User.objects.filter(
        email=canonicalize_email(email), is_staff=True, is_active=True
    ).first()
    if user is None:
        raise CommandError(f"There is no member of staff {email}.")
    return user


def told(plan: Plan) -> str:
    counts = plan.counts
    words = (("new", "new"), ("changed", "changed"), ("unchanged", "unchanged"))
    text = ", ".join(f"{counts[kind]:,} {word}" for kind, word in words)
    return f"{text}, {counts['error']:,} with errors" if counts["error"] else text
