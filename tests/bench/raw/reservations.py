"""Reading and creating reservations."""

import json
import uuid
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

from centers.span import Span
from reservations.models import Allowance
from reservations.pricing import quote as pricing
from reservations.pricing.allowances import AvailableAllowance
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
from tests.bench.raw.rendering import (
    CENTER,
    FAVORITE,
    RATE,
    CenterParts,
    name_fields,
    render_room,
    render_service,
)
from tests.bench.raw.rooms import Room, get_services, is_available, lock_room, parse_span
from tests.factories_reservations import DEFAULT_TERMS

HOLD = timedelta(minutes=15)
LINE_NAMES = "Amount Description Total Type Rate ServiceId AllowanceId"
ATTENDEE_NAMES = "Id Name EmailAddress CompanyName IsCreator"
OPTION_NAMES = "ServiceId ServiceName Selected NeedsDuration NeedsQuantity DurationHours Quantity"
RESERVATION_NAMES = (
    "Id Start End Status Center MeetingRoom Services Attendees TotalCost LineItems"
    " NumberOfAttendees Allowances CanApplyAllowances UsableAllowances RoomCost Promotion"
)


TERMS = json.dumps(DEFAULT_TERMS)


def get_available_allowances(
    cur: Any, user_id: int, room: Any, day: date
) -> list[AvailableAllowance]:
    found = fetch_all(
        cur,
        """SELECT a.id, a.description, a.kind, a.hours, a.valid_until, a.is_automatic,
             (SELECT coalesce(sum(e.hours), 0) FROM reservations_allowanceentry e
              WHERE e.allowance_id = a.id AND e.period IS NOT DISTINCT FROM
                CASE WHEN a.kind = 'monthly' THEN %s::date END)
           FROM reservations_allowance a WHERE a.user_id = %s AND a.is_active
             AND (a.valid_from IS NULL OR a.valid_from <= %s)
             AND (a.valid_until IS NULL OR a.valid_until >= %s)
             AND (EXISTS (SELECT FROM reservations_allowance_centers b
                          WHERE b.allowance_id = a.id AND b.center_id = %s)
                  OR NOT EXISTS (SELECT FROM reservations_allowance_centers b
                                 WHERE b.allowance_id = a.id))
             AND (EXISTS (SELECT FROM reservations_allowance_room_types b
                          WHERE b.allowance_id = a.id AND b.resourcetype_id = %s)
                  OR NOT EXISTS (SELECT FROM reservations_allowance_room_types b
                                 WHERE b.allowance_id = a.id))""",
        (day.replace(day=1), user_id, day, day, room.center_id, room.resource_type_id),
    )
    valid = [(build_allowance(row), row[-1]) for row in found]
    valid.sort(key=lambda each: (each[0].get_last_day(day), each[0].kind != "monthly", each[0].pk))
    return [
        AvailableAllowance(each, each.get_period(day), max(0, each.hours + entered))
        for each, entered in valid
    ]


def build_allowance(row: Row) -> Any:
    pk, description, kind, hours, valid_until, is_automatic, _ = row
    allowance = SimpleNamespace(
        pk=pk, description=description, kind=kind, hours=hours, valid_until=valid_until
    )
    allowance.is_automatic, allowance.Kind = is_automatic, Allowance.Kind
    for name in ("get_last_day", "get_period"):
        setattr(allowance, name, partial(getattr(Allowance, name), allowance))
    return allowance


def get_reservation(data: JSONDict, root: str, now: datetime) -> JSONDict:
    cur = get_cursor()
    user, _ = authenticate(cur, data, now)
    return {"Reservation": render_reservation(cur, user, data["Id"], root)}


def render_reservation(cur: Any, user: User, pk: int, root: str) -> JSONDict:
    [row] = fetch_all(
        cur,
        f"""SELECT v.start, v."end", v.status, v.number_of_attendees, v.total_cost,
                   v.billable_hours, p.code, r.resource_type_id, {CENTER}, {FAVORITE},
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
    start, end, status, attendee_count, total, billable, promo, resource_type = row[:8]
    center, favorite, room = row[8:25], row[25], row[26:]
    zone = ZoneInfo(center[11])
    parts = CenterParts(cur, [center[0]], root)
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
    here = SimpleNamespace(center_id=center[0], resource_type_id=resource_type)
    offers = get_available_allowances(cur, user.pk, here, start.astimezone(zone).date())
    times = (start.astimezone(zone).isoformat(), end.astimezone(zone).isoformat())
    brief = name_fields("Id Start End Status", (pk, *times, status))
    room_cost = sum((line[2] for line in lines if line[3] == "Room"), Decimal(0))
    used = [render_usage(brief, *use, in_use=True) for use in uses]
    in_use = {use[0] for use in uses}
    usable = []
    for offer in offers:
        hours_left = min(offer.hours_left, int(billable)) if room_cost else 0
        if offer.allowance.pk not in in_use and offer.hours_left:
            discount = pricing.get_allowance_discount(room_cost, hours_left, billable)
            words = (offer.allowance.pk, offer.allowance.description)
            usable.append(render_usage(brief, *words, hours_left, discount, in_use=False))
    services = [render_service(each) for each in parts.services[center[0]]]
    values = (
        *(pk, *times, status, parts.render_center(center, favorite=favorite)),
        render_room(room, services, root),
        render_options(parts.services[center[0]], chosen),
        [name_fields(ATTENDEE_NAMES, each) for each in attendees],
        float(total),
        [name_fields(LINE_NAMES, (*row[:2], float(row[2]), *row[3:])) for row in lines],
        *(attendee_count, used, status == "New" and bool(usable), usable),
        *(float(room_cost), promo),
    )
    return name_fields(RESERVATION_NAMES, values)


def render_usage(
    brief: JSONDict, pk: int, description: str, count: int, discount: Decimal, *, in_use: bool
) -> JSONDict:
    return {
        "Reservation": brief,
        "Allowance": {"Description": description, "Id": pk},
        "NumberOfHours": count,
        "DiscountApplied": float(discount),
        "InUse": in_use,
    }


def render_options(offered: list[Row], chosen: list[Row]) -> list[JSONDict]:
    """The chosen services and all others of the center, in the order of the services."""
    options = {row[0]: (place, row[1], *row[5:7]) for place, row in enumerate(offered)}
    picked = {row[0]: row[5:] for row in chosen}
    for pk, name, needs_duration, needs_quantity, position, *_ in chosen:
        options.setdefault(pk, (position, name, needs_duration, needs_quantity))
    listed = []
    for pk, (_, name, *needs) in sorted(options.items(), key=lambda item: item[1][0]):
        duration, quantity = picked.get(pk, (None, None))
        hours = None if duration is None else float(duration)
        values = (pk, name, pk in picked, *needs, hours, quantity)
        listed.append(name_fields(OPTION_NAMES, values))
    return listed


def create(data: JSONDict, root: str, now: datetime) -> JSONDict:
    user, _ = authenticate(get_cursor(), data, now)
    with transaction() as cur:
        pk = create_draft(cur, user, data, now)
    return {"Reservation": render_reservation(get_cursor(), user, pk, root)}


RELEASE = "UPDATE reservations_reservation SET holds_slot = false, hold_until = NULL WHERE "


def release_conflicting_holds(
    cur: Any, room: Room, span: Span, *, user: User, now: datetime, exclude: int = 0
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
    services = get_services(cur, room, data)
    release_conflicting_holds(cur, room, span, user=user, now=now)
    assert is_available(cur, room, span, user=user, now=now)
    cur.execute(
        f"""{RELEASE} id IN (SELECT id FROM reservations_reservation
              WHERE user_id = %s AND status = 'New' AND holds_slot AND hold_until > %s
                AND created_by_id IS NULL ORDER BY created_at DESC, id DESC OFFSET 9)""",
        (user.pk, now),
    )
    day = span.start.astimezone(room.zone).date()
    allowances = [
        each
        for each in get_available_allowances(cur, user.pk, room, day)
        if each.allowance.is_automatic
    ]
    quote = pricing.calculate_quote(room, span, services=services, allowances=allowances)
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
            *(span.start - margin, span.end + margin, now + HOLD, 1, quote.total),
            *(quote.room.billable_hours, uuid.uuid4(), TERMS, now),
        ),
    )
    insert_rows(
        cur,
        "reservations_chosenservice (reservation_id, service_id, duration_hours, quantity)",
        [(pk, each.service.pk, each.duration_hours, each.quantity) for each in services],
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
            for place, line in enumerate(quote.lines, start=1)
        ],
    )
    insert_rows(
        cur,
        "reservations_allowanceuse (reservation_id, allowance_id, hours, discount)",
        [
            (pk, each.allowance_id, each.hours, each.discount)
            for each in quote.applied_allowances
            if each.hours
        ],
    )
    return int(pk)
