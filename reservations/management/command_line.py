"""Arguments of the management commands, and the tables and texts that they print."""

import datetime as dt
import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation

from django.core.management.base import CommandError

from accounts.models import User, canonicalize_email
from centers.models import MeetingRoom
from reservations.free_times import find_next_bookings
from reservations.models import LineItem
from reservations.pricing.quote import QuoteLine
from reservations.pricing.services import MAX_DURATION_HOURS, MAX_QUANTITY, ServiceInput
from roombook import money
from roombook.errors import DomainError, InvalidRequest

# Maps the fields of the domain to the options that set them.
COMMAND_OPTIONS = {
    "start_date": "--start",
    "end_date": "--end",
    "service_options": "--service",
    "number_of_attendees": "--attendees",
}

# --- Input ---------------------------------------------------------------------------------------


def parse_datetime(text: str) -> dt.datetime:
    """Parse a time. Without an offset, it is in the center's local time."""
    try:
        parsed = dt.datetime.fromisoformat(text)
    except ValueError:
        parsed = None
    if parsed is None or not re.search(r"\d[T ]\d", text):
        raise ArgumentTypeError(f"{text!r} is not a time, such as 2027-03-01T09:00")
    return parsed


def parse_date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a day, such as 2027-03-01") from None


def parse_service_option(text: str) -> ServiceInput:
    """Parse `12`, `12:8` (pieces), `12:1.5h` (hours) or `12:2:1.5h` (both)."""
    number, *rest = text.split(":")
    hours = [part[:-1] for part in rest if part.endswith("h")]
    pieces = [part for part in rest if not part.endswith("h")]
    if max(len(hours), len(pieces)) > 1:
        raise ArgumentTypeError(f"{text!r}: pieces or hours are given twice")
    return {
        "service_id": _parse_integer(number, text),
        "duration_hours": _parse_hours(hours[0], text) if hours else None,
        "quantity": _parse_integer(pieces[0], text, maximum=MAX_QUANTITY) if pieces else None,
    }


def parse_id(text: str) -> int:
    return _parse_integer(text, text)


def _parse_integer(text: str, argument: str, maximum: int = 2**31 - 1) -> int:
    if not re.fullmatch(r"\d{1,10}", text, re.ASCII) or not 0 < int(text) <= maximum:
        raise ArgumentTypeError(f"{argument!r}: {text!r} is not a whole number from 1 to {maximum}")
    return int(text)


def _parse_hours(text: str, argument: str) -> Decimal:
    try:
        hours = Decimal(text)
    except InvalidOperation:
        hours = Decimal("NaN")
    if not hours.is_finite() or not 0 <= hours <= MAX_DURATION_HOURS or hours != round(hours, 2):
        raise ArgumentTypeError(
            f"{argument!r}: {text!r} is not a number of hours up to {MAX_DURATION_HOURS}"
        )
    return hours


def add_booking_arguments(parser: ArgumentParser, *, is_room_required: bool) -> None:
    """Add the arguments for room, time and services."""
    parser.add_argument("--room", type=parse_id, metavar="ID", required=is_room_required)
    for name in ("--start", "--end"):
        parser.add_argument(
            name,
            type=parse_datetime,
            metavar="TIME",
            help="2027-03-01T09:00 in the center's local time, or with an offset."
            " Default: the room's next free hour.",
        )
    parser.add_argument(
        "--service",
        type=parse_service_option,
        action="append",
        default=[],
        metavar="ID[:PIECES][:HOURSh]",
        help="12, 12:8 (eight pieces) or 12:1.5h (an hour and a half); may be given again.",
    )


def get_room(number: int) -> MeetingRoom:
    rooms = MeetingRoom.objects.with_booking_details().prefetch_related("center__opening_hours")
    room = rooms.filter(pk=number).first()
    if room is None:
        raise CommandError(f"There is no room {number}.")
    return room


def resolve_times(
    room: MeetingRoom,
    start: dt.datetime | None,
    end: dt.datetime | None,
    *,
    user: User | None,
    now: dt.datetime,
) -> tuple[dt.datetime, dt.datetime]:
    """Return both times, or those of the room's next free hour if both are None."""
    if start is not None and end is not None:
        return start, end
    if start is not None or end is not None:
        raise CommandError("Give both --start and --end, or neither.")
    for _, span in find_next_bookings([room], user=user, now=now):
        return span.start, span.end
    raise CommandError("The room is not free in the next three weeks. Give --start and --end.")


def get_account(email: str) -> User:
    user = User.objects.filter(email=canonicalize_email(email)).first()
    if user is None:
        raise CommandError(f"There is no account {email}.")
    if not user.is_active:
        raise CommandError(f"The account {user.email} is disabled.")
    return user


@contextmanager
def domain_errors_as_command_errors() -> Iterator[None]:
    """Turn errors of the domain into CommandErrors with the same texts."""
    try:
        yield
    except DomainError as error:
        raise CommandError("\n".join(_render_error(error))) from error


def _render_error(error: DomainError) -> list[str]:
    fields: Mapping[str, str] = error.fields if isinstance(error, InvalidRequest) else {}
    problems = [f"  {_get_option(path)}: {problem}" for path, problem in fields.items()]
    return [error.message, *problems, *(f"  {detail}" for detail in error.details)]


def _get_option(path: str) -> str:
    first, *rest = path.split(".")
    return " ".join([COMMAND_OPTIONS.get(first, first), *rest])


# --- Output --------------------------------------------------------------------------------------


def render_bill(lines: Iterable[LineItem | QuoteLine], total: Decimal) -> list[str]:
    """Render a bill as a table, with the total last."""
    rows = []
    for line in lines:
        rate = f" ({line.rate})" if line.rate else ""
        rows.append((str(line.type), f"{line.description}{rate}", line.amount))
    rows.append(("Total", "", money.format_amount(total)))
    first, second, third = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [f"  {kind:{first}}  {text:{second}}  {amount:>{third}}" for kind, text, amount in rows]


def format_count(count: int, one: str, many: str = "") -> str:
    """Return `1 payment`, `2 payments`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
