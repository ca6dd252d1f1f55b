"""Availability and prices of rooms."""

from datetime import datetime, time, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from centers import hours
from centers.span import Span
from reservations.pricing import quote
from tests.bench.raw.database import JSONDict, Row, User, authenticate, fetch_all, get_cursor
from tests.bench.raw.rendering import RATE, HoursRow, RateRow

HOLDING = "('Processing', 'Pending', 'Confirmed')"


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
    prices_include_tax: bool
    rate: RateRow | None

    @property
    def center(self) -> Any:
        """The center as the quote expects it."""
        return SimpleNamespace(
            zone=self.zone, tax_rate=self.tax_rate, prices_include_tax=self.prices_include_tax
        )


ROOM = (
    "r.id, r.name, r.capacity, r.is_active, r.is_blocked, r.is_live_inventory,"
    " r.turnaround_minutes, r.grid_minutes, r.minimum_minutes, r.maximum_minutes,"
    " r.booking_window_days, r.resource_type_id, c.id, c.time_zone_id, c.is_active,"
    f" c.is_after_hours_support_enabled, c.tax_rate, c.prices_include_tax,"
    f" {RATE}"
)
RELATED = "JOIN centers_center c ON c.id = r.center_id LEFT JOIN centers_rate t ON t.id = r.rate_id"


def build_room(row: Row) -> Room:
    return Room._make((*row[:13], ZoneInfo(row[13]), *row[14:18], get_rate(row[18:])))


def get_rate(row: Row) -> RateRow | None:
    return None if row[0] is None else RateRow(*row)


def lock_room(cur: Any, pk: int) -> Room:
    [row] = fetch_all(
        cur,
        f"SELECT {ROOM} FROM centers_meetingroom r {RELATED} WHERE r.id = %s"
        " FOR NO KEY UPDATE OF r",
        (pk,),
    )
    return build_room(row)


def authenticate_and_get_room(
    cur: Any, data: JSONDict, room_id: int, now: datetime
) -> tuple[User, Room]:
    """One statement reads the Token, the room and its rate."""
    joins = f"JOIN centers_meetingroom r ON r.id = %s {RELATED}"
    user, row = authenticate(cur, data, now, columns=f", {ROOM}", joins=joins, pk=room_id)
    return user, build_room(row)


def parse_span(room: Room, data: JSONDict) -> Span:
    return Span(
        *(
            hours.localize(datetime.fromisoformat(data[name]), room.zone)
            for name in ("StartDate", "EndDate")
        )
    )


def is_available(
    cur: Any, room: Room, span: Span, *, user: User, now: datetime, exclude: int = 0
) -> bool:
    """All rules of B11. One statement reads closures, reservations and opening hours."""
    days = 365 if room.booking_window_days is None else room.booking_window_days
    least = 30 if room.minimum_minutes is None else room.minimum_minutes
    most = 14 * 1440 if room.maximum_minutes is None else room.maximum_minutes
    ends = [at.astimezone(room.zone) for at in (span.start, span.end)]
    if (
        not (room.center_is_active and room.is_active)
        or room.is_blocked
        or span.start < now
        or ends[0].date() > now.astimezone(room.zone).date() + timedelta(days=days)
        or any((at.hour * 60 + at.minute) % (room.grid_minutes or 15) for at in ends)
        or any(at.second or at.microsecond for at in ends)
        or not least <= span.duration.total_seconds() / 60 <= most
    ):
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
    intervals = [
        HoursRow(day, time.fromisoformat(opens), time.fromisoformat(closes))
        for day, opens, closes in week or []
    ]
    is_open = room.after_hours or hours.is_open(span, intervals, room.zone)
    return is_open and not (closed or taken)


def check_availability(data: JSONDict, root: str, now: datetime) -> JSONDict:
    cur = get_cursor()
    user, room = authenticate_and_get_room(cur, data, data["RoomId"], now)
    return {"IsAvailable": is_available(cur, room, parse_span(room, data), user=user, now=now)}


def cost(data: JSONDict, root: str, now: datetime) -> JSONDict:
    cur = get_cursor()
    _, room = authenticate_and_get_room(cur, data, data["MeetingRoomId"], now)
    services = get_services(cur, room, data)
    quoted = quote.calculate_quote(room, parse_span(room, data), services=services)
    return {"Total": float(quoted.total)}


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
    selections = []
    for row in found:
        service = ServiceRow._make((*row[:6], get_rate(row[6:])))
        hours_, quantity = (options[service.pk].get(name) for name in ("DurationHours", "Quantity"))
        duration = Decimal(str(hours_)) if service.needs_duration and hours_ is not None else None
        selections.append(
            quote.ServiceSelection(service, duration, quantity if service.needs_quantity else None)
        )
    return selections
