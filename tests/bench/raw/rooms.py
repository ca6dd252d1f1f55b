"""Availability and prices of rooms."""

from datetime import datetime, time, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from centers import hours
from centers.span import Span
from reservations.pricing import quote
from tests.bench.raw.database import (
    JSONDict,
    Refused,
    Row,
    User,
    extend_token,
    fetch_all,
    get_cursor,
    hash_token,
)
from tests.bench.raw.rendering import RATE, HoursRow, RateRow, get_rate

HOLDING = "('Processing', 'Pending', 'Confirmed')"


ROOM = (
    "r.id, r.name, r.capacity, r.is_active, r.is_blocked, r.is_live_inventory,"
    " r.turnaround_minutes, r.grid_minutes, r.minimum_minutes, r.maximum_minutes,"
    " r.booking_window_days, r.resource_type_id, c.id, c.time_zone_id, c.is_active,"
    f" c.is_after_hours_support_enabled, c.tax_rate, {RATE}"
)


class Room(NamedTuple):
    pk: int
    name: str
    capacity: int
    is_active: bool
    is_blocked: bool
    is_live_inventory: bool
    turnaround_minutes: int
    grid_minutes: int | None
    minimum_minutes: int | None
    maximum_minutes: int | None
    booking_window_days: int | None
    resource_type_id: int
    center_id: int
    zone: ZoneInfo
    center_is_active: bool
    after_hours: bool
    tax_rate: Decimal
    rate: RateRow | None

    @property
    def center(self) -> Any:
        """The center as the quote expects it."""
        return SimpleNamespace(zone=self.zone, tax_rate=self.tax_rate)


def build_room(row: Row) -> Room:
    return Room._make([*row[:13], ZoneInfo(row[13]), *row[14:17], get_rate(row[17:25])])


def get_room(cur: Any, pk: int, *, lock: bool = False) -> Room:
    found = fetch_all(
        cur,
        f"""SELECT {ROOM} FROM centers_meetingroom r JOIN centers_center c ON c.id = r.center_id
              LEFT JOIN centers_rate t ON t.id = r.rate_id
            WHERE r.id = %s {"FOR NO KEY UPDATE OF r" if lock else ""}""",
        (pk,),
    )
    if not found:
        raise Refused("404 Not Found", "NotFound")
    return build_room(found[0])


def parse_span(room: Room, data: JSONDict) -> Span:
    try:
        start, end = (
            hours.localize(datetime.fromisoformat(data[name]), room.zone)
            for name in ("StartDate", "EndDate")
        )
        span = Span(start, end)
    except (KeyError, ValueError):
        raise Refused("400 Bad Request", "InvalidRequest") from None
    if span.duration > timedelta(days=31):
        raise Refused("400 Bad Request", "InvalidRequest")
    return span


def is_available(
    cur: Any, room: Room, span: Span, *, user: User, now: datetime, exclude: int = 0
) -> bool:
    """All rules of B11. One statement reads closures, reservations and opening hours."""
    if not (room.center_is_active and room.is_active) or room.is_blocked or span.start < now:
        return False
    days = 365 if room.booking_window_days is None else room.booking_window_days
    start, end = (time_of_day.astimezone(room.zone) for time_of_day in (span.start, span.end))
    if start.date() > now.astimezone(room.zone).date() + timedelta(days=days):
        return False
    grid = room.grid_minutes or 15
    for time_of_day in (start, end):
        if (
            time_of_day.second
            or time_of_day.microsecond
            or (time_of_day.hour * 60 + time_of_day.minute) % grid
        ):
            return False
    minutes = span.duration.total_seconds() / 60
    least = 30 if room.minimum_minutes is None else room.minimum_minutes
    most = 14 * 1440 if room.maximum_minutes is None else room.maximum_minutes
    if not least <= minutes <= most:
        return False
    margin = timedelta(minutes=room.turnaround_minutes)
    [(closed, taken, week)] = fetch_all(
        cur,
        f"""SELECT
              EXISTS (SELECT FROM centers_closure WHERE center_id = %s
                AND (room_id IS NULL OR room_id = %s) AND starts_at < %s AND ends_at > %s),
              EXISTS (SELECT FROM reservations_reservation WHERE room_id = %s AND holds_slot
                AND (status IN {HOLDING} OR (status = 'New' AND hold_until > %s))
                AND NOT (user_id = %s AND status = 'New') AND id <> %s
                AND ((start < %s AND "end" > %s) OR (occupied_from < %s AND occupied_until > %s))),
              (SELECT json_agg(json_build_array(weekday, opens, closes))
               FROM centers_openinghours WHERE center_id = %s)""",
        (
            *(room.center_id, room.pk, span.end, span.start),
            *(room.pk, now, user.pk, exclude, span.end + margin, span.start - margin),
            *(span.end, span.start, room.center_id),
        ),
    )
    if closed or taken:
        return False
    return room.after_hours or hours.is_open(span, parse_hours(week), room.zone)


def parse_hours(week: list[list[Any]] | None) -> list[HoursRow]:
    return [
        HoursRow(day, time.fromisoformat(opens), time.fromisoformat(closes))
        for day, opens, closes in week or []
    ]


def check_availability(data: JSONDict, root: str, now: datetime) -> JSONDict:
    """One statement reads the Token, the room and its rate."""
    cur = get_cursor()
    user, room = authenticate_and_get_room(cur, data, data["RoomId"], now)
    if data.get("CenterId") not in (None, room.center_id):
        raise Refused("404 Not Found", "NotFound")
    return {"IsAvailable": is_available(cur, room, parse_span(room, data), user=user, now=now)}


def authenticate_and_get_room(
    cur: Any, data: JSONDict, room_id: int, now: datetime
) -> tuple[User, Room]:
    found = fetch_all(
        cur,
        f"""SELECT k.id, k.created_at, k.expires_at,
                   u.id, u.email, u.first_name, u.last_name, u.company_name, {ROOM}
            FROM accounts_apitoken k JOIN accounts_user u ON u.id = k.user_id
              LEFT JOIN centers_meetingroom r ON r.id = %s
              LEFT JOIN centers_center c ON c.id = r.center_id
              LEFT JOIN centers_rate t ON t.id = r.rate_id
            WHERE k.digest = %s AND k.expires_at > %s AND u.is_active""",
        (room_id, hash_token(data), now),
    )
    if not found:
        raise Refused("401 Unauthorized", "NotSignedIn")
    row = found[0]
    extend_token(cur, row[0], row[1], row[2], now)
    if row[8] is None:
        raise Refused("404 Not Found", "NotFound")
    return User(*row[3:8]), build_room(row[8:])


def cost(data: JSONDict, root: str, now: datetime) -> JSONDict:
    cur = get_cursor()
    _, room = authenticate_and_get_room(cur, data, data["MeetingRoomId"], now)
    span = parse_span(room, data)
    services = get_services(cur, room, data)
    return {"Total": float(quote.calculate_quote(room, span, services=services).total)}


class ServiceRow(NamedTuple):
    pk: int
    name: str
    bill_at_center: bool
    minimum_booking: int
    needs_duration: bool
    needs_quantity: bool
    rate: RateRow | None


def get_services(cur: Any, room: Room, data: JSONDict) -> list[quote.ServiceSelection]:
    options = {each["ServiceId"]: each for each in data.get("ServiceOptions") or []}
    if not options:
        return []
    found = fetch_all(
        cur,
        f"""SELECT s.id, s.name, s.bill_at_center, s.minimum_booking, s.needs_duration,
                   s.needs_quantity, {RATE}
            FROM centers_service s LEFT JOIN centers_rate t ON t.id = s.rate_id
            WHERE s.center_id = %s AND s.is_active AND s.id = ANY (%s)
            ORDER BY s.position, s.id""",
        (room.center_id, list(options)),
    )
    if len(found) < len(options):
        raise Refused("400 Bad Request", "InvalidRequest")
    extras = []
    for row in found:
        service = ServiceRow._make([*row[:6], get_rate(row[6:])])
        option = options[service.pk]
        quantity = option.get("Quantity") if service.needs_quantity else None
        if service.needs_quantity and not quantity:
            raise Refused("400 Bad Request", "InvalidRequest")
        duration = option.get("DurationHours") if service.needs_duration else None
        extras.append(
            quote.ServiceSelection(
                service, None if duration is None else Decimal(str(duration)), quantity
            )
        )
    return extras
