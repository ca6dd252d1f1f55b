"""Rooms: availability, prices, and reservations."""

import json
import uuid
from collections import namedtuple
from datetime import datetime, time, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

from centers import hours
from centers.span import Span
from reservations.pricing import quote
from tests.bench.raw import centers
from tests.bench.raw.centers import CENTER, FAVORITE, RATE, HoursRow, get_rate, name_fields
from tests.bench.raw.database import (
    JSONDict,
    Row,
    User,
    authenticate,
    fetch_all,
    get_cursor,
    insert_rows,
    transaction,
)
from tests.factories_reservations import DEFAULT_TERMS

HOLDING = "('Processing', 'Pending', 'Confirmed')"


COLUMNS = (
    "r.id r.name r.capacity r.is_active r.is_blocked r.is_live_inventory r.turnaround_minutes"
    " r.grid_minutes r.minimum_minutes r.maximum_minutes r.booking_window_days"
    " r.center_id c.time_zone_id c.tax_rate c.prices_include_tax c.is_after_hours_support_enabled"
)
ROOM = f"{', '.join(COLUMNS.split())}, c.is_active AND r.is_active, {RATE}"
RELATED = "JOIN centers_center c ON c.id = r.center_id LEFT JOIN centers_rate t ON t.id = r.rate_id"
NAMES = [name.partition(".")[2] for name in COLUMNS.split()]


def build_room(row: Row) -> Any:
    """A room with its center and rate, as the quote expects them."""
    room = SimpleNamespace(**dict(zip(NAMES, row, strict=False)))
    room.is_active, room.rate = row[len(NAMES)], get_rate(row[len(NAMES) + 1 :])
    room.pk, room.zone = room.id, ZoneInfo(room.time_zone_id)
    room.center = room
    return room


def lock_room(cur: Any, pk: int) -> Any:
    [row] = fetch_all(
        cur,
        f"SELECT {ROOM} FROM centers_meetingroom r {RELATED} WHERE r.id = %s"
        " FOR NO KEY UPDATE OF r",
        (pk,),
    )
    return build_room(row)


def authenticate_and_get_room(
    cur: Any, data: JSONDict, room_id: int, now: datetime
) -> tuple[User, Any]:
    """One statement reads the Token, the room and its rate."""
    joins = f"JOIN centers_meetingroom r ON r.id = %s {RELATED}"
    user, row = authenticate(cur, data, now, columns=f", {ROOM}", joins=joins, pk=room_id)
    return user, build_room(row)


def parse_span(room: Any, data: JSONDict) -> Span:
    ends = (datetime.fromisoformat(data[name]) for name in ("StartDate", "EndDate"))
    return Span(*(hours.localize(each, room.zone) for each in ends))


def is_available(
    cur: Any, room: Any, span: Span, *, user: User, now: datetime, exclude: int = 0
) -> bool:
    """All rules of B11. One statement reads closures, reservations and opening hours."""
    days = 365 if room.booking_window_days is None else room.booking_window_days
    least = 30 if room.minimum_minutes is None else room.minimum_minutes
    most = 14 * 1440 if room.maximum_minutes is None else room.maximum_minutes
    ends = [at.astimezone(room.zone) for at in (span.start, span.end)]
    if (
        not room.is_active
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
    intervals = [HoursRow(day, *map(time.fromisoformat, times)) for day, *times in week or []]
    is_open = room.is_after_hours_support_enabled or hours.is_open(span, intervals, room.zone)
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


ServiceRow = namedtuple(
    "ServiceRow", "pk name bill_at_center minimum_booking needs_duration needs_quantity rate"
)


def get_services(cur: Any, room: Any, data: JSONDict) -> list[quote.ServiceSelection]:
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


HOLD = timedelta(minutes=15)
LINE_NAMES = "Amount Description Total Type Rate ServiceId AllowanceId"
ATTENDEE_NAMES = "Id Name EmailAddress CompanyName IsCreator"
OPTION_NAMES = "ServiceId ServiceName Selected NeedsDuration NeedsQuantity DurationHours Quantity"
RESERVATION_NAMES = (
    "Id Start End Status Center MeetingRoom Services Attendees TotalCost LineItems"
    " NumberOfAttendees Allowances CanApplyAllowances UsableAllowances RoomCost Promotion"
)
TERMS = json.dumps(DEFAULT_TERMS)


def require_no_allowances(cur: Any, user: User) -> None:
    """Looks for allowances, of which the customers of the benchmark have none."""
    allowances = "SELECT id FROM reservations_allowance WHERE user_id = %s AND is_active"
    assert not fetch_all(cur, allowances, (user.pk,))


def get_reservation(data: JSONDict, root: str, now: datetime) -> JSONDict:
    cur = get_cursor()
    user, _ = authenticate(cur, data, now)
    return {"Reservation": render_reservation(cur, user, data["Id"], root)}


def render_reservation(cur: Any, user: User, pk: int, root: str) -> JSONDict:
    [row] = fetch_all(
        cur,
        f"""SELECT v.start, v."end", v.status, v.number_of_attendees, v.total_cost,
                   p.code, {CENTER}, {FAVORITE},
                   r.id, r.name, r.capacity, r.is_live_inventory, r.provider,
                   r.picture, r.picture_thumbnail, {RATE}
            FROM reservations_reservation v
              JOIN centers_meetingroom r ON r.id = v.room_id
              JOIN centers_center c ON c.id = r.center_id
              LEFT JOIN centers_rate t ON t.id = r.rate_id
              LEFT JOIN reservations_promocode p ON p.id = v.promo_code_id
            WHERE v.id = %s AND v.user_id = %s""",
        (user.pk, pk, user.pk),
    )
    start, end, status, attendee_count, total, promo = row[:6]
    center, favorite, room = row[6:23], row[23], row[24:]
    zone = ZoneInfo(center[11])
    parts = centers.CenterParts(cur, [center[0]], root)
    lines = fetch_all(
        cur,
        """SELECT amount, description, total, type, rate, service_id, allowance_id
           FROM reservations_lineitem WHERE reservation_id = %s ORDER BY position""",
        (pk,),
    )
    attendees = fetch_all(
        cur,
        """SELECT id, name, email_address, company_name, is_creator FROM reservations_attendee
           WHERE reservation_id = %s ORDER BY id""",
        (pk,),
    )
    chosen = fetch_all(
        cur,
        """SELECT s.id, s.name, s.needs_duration, s.needs_quantity, s.position,
                  o.duration_hours, o.quantity
           FROM reservations_chosenservice o JOIN centers_service s ON s.id = o.service_id
           WHERE o.reservation_id = %s""",
        (pk,),
    )
    uses = fetch_all(
        cur,
        """SELECT a.id, a.description, o.hours, o.discount FROM reservations_allowanceuse o
             JOIN reservations_allowance a ON a.id = o.allowance_id
           WHERE o.reservation_id = %s AND o.hours > 0""",
        (pk,),
    )
    # The bookings of the benchmark have none.
    assert [*chosen, *uses] == []
    times = [each.astimezone(zone).isoformat() for each in (start, end)]
    require_no_allowances(cur, user)
    room_cost = sum(line[2] for line in lines if line[3] == "Room")
    services = [centers.render_service(each) for each in parts.services[center[0]]]
    values = (
        *(pk, *times, status, parts.render_center(center, favorite=favorite)),
        centers.render_room(room, services, root),
        [
            name_fields(OPTION_NAMES, (*row[:2], False, *row[5:7], None, None))
            for row in parts.services[center[0]]
        ],
        [name_fields(ATTENDEE_NAMES, each) for each in attendees],
        float(total),
        [name_fields(LINE_NAMES, (*row[:2], float(row[2]), *row[3:])) for row in lines],
        *(attendee_count, [], False, [], float(room_cost), promo),
    )
    return name_fields(RESERVATION_NAMES, values)


def create(data: JSONDict, root: str, now: datetime) -> JSONDict:
    user, _ = authenticate(get_cursor(), data, now)
    with transaction() as cur:
        pk = create_draft(cur, user, data, now)
    return {"Reservation": render_reservation(get_cursor(), user, pk, root)}


RELEASE = "UPDATE reservations_reservation SET holds_slot = false, hold_until = NULL WHERE "


def release_conflicting_holds(
    cur: Any, room: Any, span: Span, *, user: User, now: datetime, exclude: int = 0
) -> None:
    margin = timedelta(minutes=room.turnaround_minutes)
    cur.execute(
        RELEASE
        + "room_id = %s AND status = 'New' AND holds_slot AND hold_until <= %s;"
        + RELEASE
        + """room_id = %s AND user_id = %s AND status = 'New' AND holds_slot AND id <> %s
             AND ((start < %s AND "end" > %s) OR (occupied_from < %s AND occupied_until > %s))""",
        (
            *(room.pk, now, room.pk, user.pk, exclude, span.end + margin, span.start - margin),
            *(span.end, span.start),
        ),
    )


def create_draft(cur: Any, user: User, data: JSONDict, now: datetime) -> int:
    cur.execute(
        """INSERT INTO accounts_attemptwindow (scope, key, count, since)
           VALUES ('create', %s, 1, %s) ON CONFLICT (scope, key) DO UPDATE
           SET count = accounts_attemptwindow.count + 1""",
        (str(user.pk), now),
    )
    room = lock_room(cur, data["MeetingRoomId"])
    span = parse_span(room, data)
    release_conflicting_holds(cur, room, span, user=user, now=now)
    assert is_available(cur, room, span, user=user, now=now)
    cur.execute(
        f"""{RELEASE} id IN (SELECT id FROM reservations_reservation
              WHERE user_id = %s AND status = 'New' AND holds_slot AND hold_until > %s
                AND created_by_id IS NULL ORDER BY created_at DESC, id DESC OFFSET 9)""",
        (user.pk, now),
    )
    require_no_allowances(cur, user)
    quoted = quote.calculate_quote(room, span)
    margin = timedelta(minutes=room.turnaround_minutes)
    [(pk,)] = fetch_all(
        cur,
        """INSERT INTO reservations_reservation (user_id, room_id, start, "end",
             turnaround_minutes, occupied_from, occupied_until, status, holds_slot, hold_until,
             number_of_attendees, currency, total_cost, billable_hours, allowances_by_hand,
             is_live, uid, version, calendar_sequence, cancellation_terms, created_at,
             hours_override_reason, payment_link_number)
           VALUES (%s, %s, %s, %s, %s, %s, %s, 'New', true, %s, %s, 'USD', %s, %s, false, false,
             %s, 0, 0, %s, %s, '', 0) RETURNING id""",
        (
            *(user.pk, room.pk, span.start, span.end, room.turnaround_minutes),
            *(span.start - margin, span.end + margin, now + HOLD, 1, quoted.total),
            *(quoted.room.billable_hours, uuid.uuid4(), TERMS, now),
        ),
    )
    insert_rows(
        cur,
        "reservations_attendee (reservation_id, name, email_address, company_name, is_creator)",
        [(pk, f"{user.first_name} {user.last_name}".strip(), user.email, user.company_name, True)],
    )
    insert_rows(
        cur,
        "reservations_lineitem (reservation_id, position, type, description, amount, rate,"
        " total, contained_tax, tax_label, service_id, allowance_id)",
        [
            (
                *(pk, place, str(line.type), line.description, line.amount, line.rate),
                *(line.total, line.contained_tax, line.tax_label),
                *(line.service_id, line.allowance_id),
            )
            for place, line in enumerate(quoted.lines, start=1)
        ],
    )
    return int(pk)
