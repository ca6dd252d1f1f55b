"""The command line of the data generator."""

import datetime as dt
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from time import perf_counter

from django.conf import settings
from django.db import IntegrityError, OperationalError, ProgrammingError
from django.utils import timezone

from tests.bench.generate import generator
from tests.bench.generate.people import PASSWORD, get_administrator_email


def main(arguments: Sequence[str] | None = None) -> None:
    options = get_parser().parse_args(arguments)
    if not settings.DEBUG:
        sys.exit("DEBUG is off. The passwords and Tokens of generated accounts are public.")
    if not (options.into_non_empty or generator.is_empty()):
        sys.exit("The database has accounts or centers. To add to them, use --into-non-empty.")
    started_at = perf_counter()

    def report(line: str) -> None:
        print(f"[{perf_counter() - started_at:5.0f} s] {line}", flush=True)  # noqa: T201

    try:
        rows = generator.generate(
            centers=options.centers,
            reservations=options.reservations,
            seed=options.seed,
            today=options.today or timezone.now().date(),
            report=report,
        )
    except IntegrityError as error:
        sys.exit(f"Nothing was generated. This seed was used before: {str(error).strip()}")
    except (OperationalError, ProgrammingError) as error:
        sys.exit(
            f"Nothing was generated: {str(error).strip()}. Run `manage.py migrate` first, and stop"
            " everything else that uses the database."
        )
    report(
        f"{rows:,} rows were generated. The password of all accounts is {PASSWORD};"
        f" the administrator is {get_administrator_email(options.seed)}."
    )


def get_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="python -m tests.bench.generate",
        description=(
            "Fill an empty database with generated centers, accounts and reservations for"
            " measurements. The same seed and day give the same data. All of it is written, or"
            " nothing. The passwords and Tokens of the accounts are public."
        ),
    )
    parser.add_argument("--centers", type=int, default=1000, metavar="N")
    parser.add_argument("--reservations", type=int, default=10_000, metavar="M")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument(
        "--today",
        type=dt.date.fromisoformat,
        metavar="DAY",
        help="the day before which reservations are past, such as 2027-03-01 (default: today)",
    )
    parser.add_argument(
        "--into-non-empty",
        action="store_true",
        help="add to a database with accounts or centers; its tables are locked meanwhile",
    )
    return parser
