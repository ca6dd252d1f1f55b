"""Arguments of the management commands about bookings, and the texts that they print."""

import datetime as dt
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.core.management.base import CommandError

from centers.models import MeetingRoom
from centers.requested_span import resolve_span
from centers.span import Span
from reservations.free_times import find_next_bookings
from reservations.models import LineItem
from reservations.models.booking_fields import ServiceInput
from reservations.pricing.quote import QuoteLine
from roombook import money
from roombook.errors import DomainError, InvalidRequest


def parse_service(text: str) -> ServiceInput:
    """Parse `12`, `12:8` (pieces) or `12::1.5` (hours)."""
    number, quantity, hours = [*text.split(":"), "", ""][:3]
    return {
        "service_id": int(number),
        "quantity": int(quantity) if quantity else None,
        "duration_hours": Decimal(hours) if hours else None,
    }


def add_booking_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for room, time and services."""
    parser.add_argument("--room", type=int, metavar="ID")
    for name in ("--start", "--end"):
        time = "2027-03-01T09:00 at the center, or with an offset. Default: the next free hour."
        parser.add_argument(name, type=dt.datetime.fromisoformat, metavar="TIME", help=time)
    service = "12, 12:8 (eight pieces) or 12::1.5 (an hour and a half); may be given again."
    parser.add_argument(
        "--service", type=parse_service, action="append", default=[], metavar="ID", help=service
    )


def read_booking(options: dict[str, Any], *, now: dt.datetime) -> tuple[MeetingRoom, Span]:
    """Return the room and the time of `add_booking_arguments`."""
    with domain_errors_as_command_errors():
        rooms = MeetingRoom.objects.with_booking_details().prefetch_related("center__opening_hours")
        room = rooms.get(pk=options["room"])
        if options["start"] and options["end"]:
            return room, resolve_span(room.center, options["start"], options["end"])
    for _, span in find_next_bookings([room], user=None, now=now):
        return room, span
    raise CommandError("The room is not free in the next three weeks. Give --start and --end.")


@contextmanager
def domain_errors_as_command_errors() -> Iterator[None]:
    """Turn errors of the domain into CommandErrors with the same texts."""
    try:
        yield
    except ObjectDoesNotExist as error:
        raise CommandError(str(error)) from error
    except DomainError as error:
        fields = error.fields if isinstance(error, InvalidRequest) else {}
        problems = [f"  {field}: {problem}" for field, problem in fields.items()]
        raise CommandError("\n".join([error.message, *problems, *error.details])) from error


def render_bill(lines: Iterable[LineItem | QuoteLine], total: Decimal) -> str:
    """Render a bill, with the total last."""
    rows = [f"  {line.type}: {line.description}, {line.amount}" for line in lines]
    return "\n".join([*rows, f"  Total: {money.format_amount(total)}"])


def format_count(count: int, one: str, many: str = "") -> str:
    """Return `1 payment`, `2 payments`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
