"""Reservations, read and made."""

import uuid
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast
from zoneinfo import ZoneInfo

from centers.span import Span
from reservations.models import Allowance
from reservations.pricing import quote as pricing
from reservations.pricing.allowances import AvailableAllowance
from tests.bench.raw.database import (
    Refused,
    Row,
    Told,
    User,
    cursor,
    many,
    rows,
    signed_in,
    transaction,
)
from tests.bench.raw.rooms import Room, extras_of, is_free, room_of, span_of
from tests.bench.raw.told import CENTER, FAVORITE, RATE, CenterParts, room_told, service_told, told

HOLD = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class AllowanceRow:
    pk: int
    description: str
    kind: str
    hours: int
    valid_until: date | None
    is_automatic: bool
    entered: int

    Kind = Allowance.Kind

    def get_last_day(self, day: date) -> date:
        return Allowance.get_last_day(cast("Allowance", self), day)

    def get_period(self, day: date) -> date | None:
        return Allowance.get_period(cast("Allowance", self), day)


def offers_for(cur: Any, user_id: int, room: Any, day: date) -> list[AvailableAllowance]:
    found = rows(
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
    valid = [AllowanceRow(*row) for row in found]
    valid.sort(key=lambda each: (each.get_last_day(day), each.kind != "monthly", each.pk))
    return [
        AvailableAllowance(each, each.get_period(day), max(0, each.hours + each.entered))
        for each in valid
    ]


def get_reservation(data: Told, root: str, now: datetime) -> Told:
    cur = cursor()
    user = signed_in(cur, data, now)
    return {"Reservation": reservation_told(cur, user, data["Id"], root)}


def reservation_told(cur: Any, user: User, pk: int, root: str) -> Told:
    found = rows(
        cur,
        f"""SELECT v.start, v."end", v.status, v.number_of_attendees, v.total_cost,
                   v.billable_hours, p.code, r.resource_type_id, {CENTER}, {FAVORITE},
                   r.center_id, r.id, r.name, r.capacity, r.is_live_inventory, r.provider,
                   r.picture, r.picture_thumbnail, {RATE}
            FROM reservations_reservation v
              JOIN centers_meetingroom r ON r.id = v.room_id
              JOIN centers_center c ON c.id = r.center_id
              LEFT JOIN centers_rate t ON t.id = r.rate_id
              LEFT JOIN reservations_promocode p ON p.id = v.promo_code_id
            WHERE v.id = %s AND v.user_id = %s""",
        (user.pk, pk, user.pk),
    )
    if not found:
        raise Refused("404 Not Found", "NotFound")
    row = found[0]
    start, end, status, heads, total, billable, promo, resource_type = row[:8]
    center, favorite, room = row[8:25], row[25], row[26:]
    zone = ZoneInfo(center[11])
    parts = CenterParts(cur, [center[0]], root)
    lines = rows(
        cur,
        """SELECT amount, description, total, type, rate, service_id, allowance_id
           FROM reservations_lineitem WHERE reservation_id = %s ORDER BY position""",
        (pk,),
    )
    attendees = rows(
        cur,
        """SELECT id, name, email_address, company_name, is_creator FROM reservations_attendee
           WHERE reservation_id = %s ORDER BY id""",
        (pk,),
    )
    chosen = rows(
        cur,
        """SELECT s.id, s.name, s.needs_duration, s.needs_quantity, s.position,
                  o.duration_hours, o.quantity
           FROM reservations_chosenservice o JOIN centers_service s ON s.id = o.service_id
           WHERE o.reservation_id = %s""",
        (pk,),
    )
    uses = rows(
        cur,
        """SELECT a.id, a.description, o.hours, o.discount FROM reservations_allowanceuse o
             JOIN reservations_allowance a ON a.id = o.allowance_id
           WHERE o.reservation_id = %s AND o.hours > 0""",
        (pk,),
    )
    here = SimpleNamespace(center_id=center[0], resource_type_id=resource_type)
    offers = offers_for(cur, user.pk, here, start.astimezone(zone).date())
    brief = {
        "Id": pk,
        "Start": start.astimezone(zone).isoformat(),
        "End": end.astimezone(zone).isoformat(),
        "Status": status,
    }
    room_cost = sum((line[2] for line in lines if line[3] == "Room"), Decimal(0))
    used = [usage_told(brief, *use, in_use=True) for use in uses]
    in_use = {use[0] for use in uses}
    usable = []
    for offer in offers:
        hours_left = min(offer.hours_left, int(billable)) if room_cost else 0
        if offer.allowance.pk not in in_use and offer.hours_left:
            discount = pricing.get_allowance_discount(room_cost, hours_left, billable)
            words = (offer.allowance.pk, offer.allowance.description)
            usable.append(usage_told(brief, *words, hours_left, discount, in_use=False))
    services = [service_told(each) for each in parts.services[center[0]]]
    return told(
        {
            **brief,
            "Center": parts.told(center, favorite=favorite),
            "MeetingRoom": room_told(room, services, root),
            "Services": options_told(parts.services[center[0]], chosen),
            "Attendees": [
                told(
                    {
                        "Id": attendee,
                        "Name": name,
                        "EmailAddress": email,
                        "CompanyName": company,
                        "IsCreator": is_creator,
                    }
                )
                for attendee, name, email, company, is_creator in attendees
            ],
            "TotalCost": float(total),
            "LineItems": [
                told(
                    {
                        "Amount": amount,
                        "Description": description,
                        "Total": float(line_total),
                        "Type": kind,
                        "Rate": rate,
                        "ServiceId": service,
                        "AllowanceId": allowance,
                    }
                )
                for amount, description, line_total, kind, rate, service, allowance in lines
            ],
            "NumberOfAttendees": heads,
            "Allowances": used,
            "CanApplyAllowances": status == "New" and bool(usable),
            "UsableAllowances": usable,
            "RoomCost": float(room_cost),
            "Promotion": promo,
        }
    )


def usage_told(
    brief: Told, pk: int, description: str, count: int, discount: Decimal, *, in_use: bool
) -> Told:
    return {
        "Reservation": brief,
        "Allowance": {"Description": description, "Id": pk},
        "NumberOfHours": count,
        "DiscountApplied": float(discount),
        "InUse": in_use,
    }


def options_told(offered: list[Row], chosen: list[Row]) -> list[Told]:
    """What was chosen and what else there is, in the services' order."""
    options = {row[1]: (place, row[2], row[6], row[7]) for place, row in enumerate(offered)}
    picked = {row[0]: row[5:] for row in chosen}
    for pk, name, needs_duration, needs_quantity, position, *_ in chosen:
        options.setdefault(pk, (position, name, needs_duration, needs_quantity))
    listed = []
    for pk, (_, name, needs_duration, needs_quantity) in sorted(
        options.items(), key=lambda item: item[1][0]
    ):
        duration, quantity = picked.get(pk, (None, None))
        listed.append(
            told(
                {
                    "ServiceId": pk,
                    "ServiceName": name,
                    "Selected": pk in picked,
                    "NeedsDuration": needs_duration,
                    "NeedsQuantity": needs_quantity,
                    "DurationHours": None if duration is None else float(duration),
                    "Quantity": quantity,
                }
            )
        )
    return listed


def create(data: Told, root: str, now: datetime) -> Told:
    user = signed_in(cursor(), data, now)
    with transaction() as cur:
        pk = draft(cur, user, data, now)
    return {"Reservation": reservation_told(cursor(), user, pk, root)}


RELEASE = "UPDATE reservations_reservation SET holds_slot = false, hold_until = NULL WHERE "


def make_way(cur: Any, room: Room, span: Span, *, user: User, now: datetime, but: int = 0) -> None:
    margin = timedelta(minutes=room.turnaround_minutes)
    cur.execute(
        RELEASE
        + "room_id = %s AND status = 'New' AND holds_slot AND hold_until <= %s;"
        + RELEASE
        + """room_id = %s AND user_id = %s AND status = 'New' AND holds_slot AND id <> %s
             AND ((start < %s AND "end" > %s) OR (occupied_from < %s AND occupied_until > %s))""",
        (
            *(room.pk, now, room.pk, user.pk, but, span.end + margin, span.start - margin),
            *(span.end, span.start),
        ),
    )


def draft(cur: Any, user: User, data: Told, now: datetime) -> int:
    room = room_of(cur, data["MeetingRoomId"], lock=True)
    span = span_of(room, data)
    guests = [
        (each.get("Name", ""), each.get("EmailAddress", ""), each.get("CompanyName", ""))
        for each in data.get("Attendees") or []
    ]
    if not any(guest[1].lower() == user.email.lower() for guest in guests):
        name = f"{user.first_name} {user.last_name}".strip()
        guests.insert(0, (name, user.email, user.company_name))
    heads = data.get("NumberOfAttendees", len(guests))
    if not len(guests) <= heads <= room.capacity:
        raise Refused("400 Bad Request", "InvalidRequest")
    wanted = extras_of(cur, room, data)
    make_way(cur, room, span, user=user, now=now)
    if not is_free(cur, room, span, user=user, now=now):
        raise Refused("409 Conflict", "SlotUnavailable")
    cur.execute(
        f"""{RELEASE} id IN (SELECT id FROM reservations_reservation
              WHERE user_id = %s AND status = 'New' AND holds_slot AND hold_until > %s
                AND created_by_id IS NULL ORDER BY created_at DESC, id DESC OFFSET 9)""",
        (user.pk, now),
    )
    day = span.start.astimezone(room.zone).date()
    offers = [each for each in offers_for(cur, user.pk, room, day) if each.allowance.is_automatic]
    quote = pricing.calculate_quote(room, span, services=wanted, allowances=offers)
    margin = timedelta(minutes=room.turnaround_minutes)
    [(pk,)] = rows(
        cur,
        """INSERT INTO reservations_reservation (user_id, room_id, start, "end",
             turnaround_minutes, occupied_from, occupied_until, status, holds_slot, hold_until,
             number_of_attendees, currency, total_cost, billable_hours, allowances_by_hand,
             is_live, uid, calendar_sequence, cancellation_notice_hours,
             cancellation_grace_minutes, created_at, reduced_by,
             hours_override_reason)
           VALUES (%s, %s, %s, %s, %s, %s, %s, 'New', true, %s, %s, 'USD', %s, %s, false, false,
             %s, 0, 24, 15, %s, 0, '') RETURNING id""",
        (
            *(user.pk, room.pk, span.start, span.end, room.turnaround_minutes),
            *(span.start - margin, span.end + margin, now + HOLD, heads, quote.total),
            *(quote.room.billable_hours, uuid.uuid4(), now),
        ),
    )
    many(
        cur,
        "reservations_chosenservice (reservation_id, service_id, duration_hours, quantity)",
        [(pk, each.service.pk, each.duration_hours, each.quantity) for each in wanted],
    )
    many(
        cur,
        "reservations_attendee (reservation_id, name, email_address, company_name, is_creator)",
        [(pk, *guest, guest[1].lower() == user.email.lower()) for guest in guests],
    )
    many(
        cur,
        "reservations_lineitem (reservation_id, position, type, description, amount, rate,"
        " total, service_id, allowance_id)",
        [
            (
                *(pk, place, str(line.type), line.description, line.amount, line.rate),
                *(line.total, line.service_id, line.allowance_id),
            )
            for place, line in enumerate(quote.lines, start=1)
        ],
    )
    many(
        cur,
        "reservations_allowanceuse (reservation_id, allowance_id, hours, discount)",
        [
            (pk, each.allowance_id, each.hours, each.discount)
            for each in quote.applied_allowances
            if each.hours
        ],
    )
    return int(pk)
