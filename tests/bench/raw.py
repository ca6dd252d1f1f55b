"""The reference: the same answers from a bare WSGI function, psycopg2 and hand-written SQL.

What Django and DRF can at best approach. It asks the same questions of the same tables under the
same locks, and answers the same JSON; `make bench` compares the answers before it times them. Rules
that need no framework (prices, hours, words for money) are roombook's own: they cost both the same.

    gunicorn -k sync -w 2 tests.bench.raw
"""

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple, cast
from zoneinfo import ZoneInfo

import django
import psycopg2
import psycopg2.extras

django.setup()

from centers import geo, hours, rates  # noqa: E402 (they read settings)
from centers.span import Span  # noqa: E402
from reservations import confirmation, pricing  # noqa: E402
from reservations.allowances import Offer  # noqa: E402
from reservations.models import Allowance  # noqa: E402
from roombook import money  # noqa: E402

psycopg2.extras.register_uuid()

Row = tuple[Any, ...]
Told = dict[str, Any]
HOLD = timedelta(minutes=15)
HOLDING = "('Processing', 'Pending', 'Confirmed')"


class Refused(Exception):
    """Told to the client with a status and a code."""

    def __init__(self, status: str, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


# --- The database --------------------------------------------------------------------------------

_connection: Any = None


def cursor() -> Any:
    """One connection a process, kept."""
    global _connection
    if _connection is None:
        _connection = psycopg2.connect(os.environ["DATABASE_URL"])
        _connection.autocommit = True
    return _connection.cursor()


class transaction:  # noqa: N801 (reads as a statement)
    def __enter__(self) -> Any:
        self.cursor = cursor()
        self.cursor.execute("BEGIN")
        return self.cursor

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self.cursor.execute("COMMIT" if kind is None else "ROLLBACK")


def rows(cur: Any, sql: str, values: Sequence[Any] = ()) -> list[Row]:
    cur.execute(sql, values)
    return cur.fetchall()


# --- Who asks ------------------------------------------------------------------------------------


class User(NamedTuple):
    pk: int
    email: str
    first_name: str
    last_name: str
    company_name: str


def signed_in(cur: Any, data: Told, now: datetime) -> User:
    found = rows(
        cur,
        """SELECT t.id, t.created_at, t.expires_at,
                  u.id, u.email, u.first_name, u.last_name, u.company_name
           FROM accounts_apitoken t JOIN accounts_user u ON u.id = t.user_id
           WHERE t.digest = %s AND t.expires_at > %s AND u.is_active""",
        (digest(data), now),
    )
    if not found:
        raise Refused("401 Unauthorized", "NotSignedIn")
    token, created_at, expires_at, *user = found[0]
    renew(cur, token, created_at, expires_at, now)
    return User(*user)


def digest(data: Told) -> str:
    token = data.get("Token")
    if not isinstance(token, str) or not token.isascii() or not 0 < len(token) <= 128:
        raise Refused("401 Unauthorized", "NotSignedIn")
    return hashlib.sha256(token.encode()).hexdigest()


def renew(cur: Any, token: int, created_at: datetime, expires_at: datetime, now: datetime) -> None:
    until = min(now + timedelta(days=30), created_at + timedelta(days=180))
    if until - expires_at >= timedelta(days=1):
        cur.execute(
            "UPDATE accounts_apitoken SET expires_at = %s WHERE id = %s AND expires_at = %s",
            (until, token, expires_at),
        )


# --- What is told --------------------------------------------------------------------------------


def told(fields: Told) -> Told:
    return {name: value for name, value in fields.items() if value not in (None, "", {})}


class RateRow(NamedTuple):
    is_flat_rate: bool
    flat_rate: Decimal | None
    hourly: Decimal | None
    half_day: Decimal | None
    full_day: Decimal | None
    setup_fee: Decimal | None
    bill_in_blocks: bool
    description: str


RATE = (
    "t.is_flat_rate, t.flat_rate, t.hourly, t.half_day, t.full_day, t.setup_fee,"
    " t.bill_in_blocks, t.description"
)
USABLE = (
    "((t.is_flat_rate AND t.flat_rate IS NOT NULL) OR (NOT t.is_flat_rate AND"
    " (t.hourly IS NOT NULL OR t.half_day IS NOT NULL OR t.full_day IS NOT NULL)))"
)


@lru_cache(maxsize=4096)
def rate_told(rate: RateRow) -> tuple[Told, str]:
    tiers = {
        "FlatRate": rate.flat_rate,
        "Hourly": rate.hourly,
        "HalfDay": rate.half_day,
        "FullDay": rate.full_day,
        "SetupFee": rate.setup_fee,
    }
    info = {
        "IsFlatRate": rate.is_flat_rate,
        **{name: float(amount) for name, amount in tiers.items() if amount is not None},
        "BillInBlocks": rate.bill_in_blocks,
        "Description": rate.description or rates.describe(rate),
    }
    return info, rates.entry_price(rate)


def rate_of(row: Row) -> RateRow | None:
    return None if row[0] is None else RateRow(*row)


def picture(root: str, image: str, thumbnail: str) -> Told:
    return told(
        {
            "ThumbnailUrl": thumbnail and f"{root}{thumbnail}",
            "FullUrl": image and f"{root}{image}",
        }
    )


CENTER = (
    "c.id, c.name, c.street1, c.street2, c.street3, c.city, c.state, c.postal_code, c.country,"
    " c.latitude, c.longitude, c.time_zone_id, c.promo_text, c.is_after_hours_support_enabled,"
    " c.parking_information, c.is_new_location, c.is_new_low_price"
)
FAVORITE = "EXISTS (SELECT FROM centers_favorite f WHERE f.user_id = %s AND f.center_id = c.id)"


class CenterParts:
    """Everything that answers show of some centers: five statements, however many there are."""

    def __init__(self, cur: Any, ids: list[int], root: str) -> None:
        self.root = root
        self.services: dict[int, list[Row]] = {pk: [] for pk in ids}
        self.rooms: dict[int, list[Row]] = {pk: [] for pk in ids}
        self.hours: dict[int, list[Any]] = {pk: [] for pk in ids}
        self.images: dict[int, list[Told]] = {pk: [] for pk in ids}
        self.landmarks: dict[int, list[Told]] = {pk: [] for pk in ids}
        for row in rows(
            cur,
            f"""SELECT s.center_id, s.id, s.name, s.description, s.bill_at_center,
                       s.minimum_booking, s.needs_duration, s.needs_quantity, {RATE}
                FROM centers_service s LEFT JOIN centers_rate t ON t.id = s.rate_id
                WHERE s.center_id = ANY (%s) AND s.is_active ORDER BY s.position, s.name, s.id""",
            (ids,),
        ):
            self.services[row[0]].append(row)
        for row in rows(
            cur,
            f"""SELECT r.center_id, r.id, r.name, r.capacity, r.is_live_inventory, r.provider,
                       r.picture, r.picture_thumbnail, {RATE}
                FROM centers_meetingroom r JOIN centers_rate t ON t.id = r.rate_id
                WHERE r.center_id = ANY (%s) AND r.is_active AND {USABLE} ORDER BY r.name, r.id""",
            (ids,),
        ):
            self.rooms[row[0]].append(row)
        for center, *stretch in rows(
            cur,
            """SELECT center_id, weekday, opens, closes FROM centers_openinghours
               WHERE center_id = ANY (%s)""",
            (ids,),
        ):
            self.hours[center].append(HoursRow(*stretch))
        for center, image, thumbnail in rows(
            cur,
            """SELECT center_id, image, thumbnail FROM centers_centerimage
               WHERE center_id = ANY (%s) ORDER BY position, id""",
            (ids,),
        ):
            self.images[center].append(picture(root, image, thumbnail))
        for center, name, description, kind in rows(
            cur,
            """SELECT center_id, name, description, type FROM centers_landmark
               WHERE center_id = ANY (%s) ORDER BY name, id""",
            (ids,),
        ):
            self.landmarks[center].append(
                told({"Name": name, "Description": description, "Type": kind})
            )

    def told(self, row: Row, *, favorite: bool, distance: float | None = None) -> Told:
        """A CenterInfoFull of a row of the columns CENTER."""
        (pk, name, street1, street2, street3, city, state, postal_code, country) = row[:9]
        (latitude, longitude, zone, promo, after_hours, parking, new, low_price) = row[9:17]
        services = [service_told(each) for each in self.services[pk]]
        week = hours.runs(self.hours[pk])
        images = self.images[pk]
        on_offer = self.rooms[pk]
        region = " ".join(filter(None, (state, postal_code)))
        return told(
            {
                "Id": pk,
                "Name": name,
                "Address": told(
                    {
                        "Street1": street1,
                        "Street2": street2,
                        "Street3": street3,
                        "City": city,
                        "State": state,
                        "PostalCode": postal_code,
                        "Country": country,
                        "Latitude": latitude,
                        "Longitude": longitude,
                        "TimeZoneId": zone,
                        "HasStreet2": bool(street2),
                        "CityStatePostalCode": ", ".join(filter(None, (city, region))),
                    }
                ),
                "Image": images[0] if images else None,
                "CenterHours": [{"Value": a, "DisplayValue": b} for a, b in week],
                "CenterHoursConcatenated": "; ".join(b for _, b in week),
                "DistanceFromQuery": distance,
                "LowestRate": str(rates.lowest_entry(RateRow(*r[8:]) for r in on_offer) or ""),
                "PromoText": promo,
                "IsFavorite": favorite,
                "IsLiveInventory": any(room[4] for room in on_offer),
                "IsAfterHoursSupportEnabled": after_hours,
                "IsNotFavorite": not favorite,
                "MeetingRooms": [room_told(room, services, self.root) for room in on_offer],
                "Landmarks": self.landmarks[pk],
                "Images": images,
                "ParkingInformation": parking,
                "IsNewLocation": new,
                "IsNewLowPrice": low_price,
            }
        )


class HoursRow(NamedTuple):
    weekday: int
    opens: time
    closes: time


def service_told(row: Row) -> Told:
    _, pk, name, description, at_center, minimum, needs_duration, needs_quantity, *rate = row
    info, text = rate_told(RateRow(*rate)) if rate[0] is not None else (None, "")
    return told(
        {
            "Id": pk,
            "Name": name,
            "Description": description,
            "Rate": info,
            "RateDescription": text,
            "BillAtCenter": at_center,
            "MinimumBooking": minimum,
            "NeedsDuration": needs_duration,
            "NeedsQuantity": needs_quantity,
        }
    )


def room_told(row: Row, services: list[Told], root: str) -> Told:
    _, pk, name, capacity, is_live, provider, image, thumbnail, *rate = row
    info, text = rate_told(RateRow(*rate)) if rate[0] is not None else (None, "")
    return told(
        {
            "Id": pk,
            "Name": name,
            "AvailableServices": services,
            "Rate": info,
            "LowestRate": text,
            "Capacity": capacity,
            "IsLiveInventory": is_live,
            "Picture": picture(root, image, thumbnail),
            "Provider": provider,
        }
    )


# --- Search --------------------------------------------------------------------------------------


def search(data: Told, root: str, now: datetime) -> Told:
    cur = cursor()
    user = signed_in(cur, data, now)
    place = geo.Place(data["Latitude"], data["Longitude"])
    miles = data.get("RadiusInMiles", 25)
    box = geo.box_around(place, miles)
    x, y, z = place.vector
    chord = "((c.x - %s) * (c.x - %s) + (c.y - %s) * (c.y - %s) + (c.z - %s) * (c.z - %s))"
    vector = (x, x, y, y, z, z)
    longitudes = " OR ".join(["c.longitude BETWEEN %s AND %s"] * len(box.longitudes))
    found = rows(
        cur,
        f"""SELECT {CENTER}, {FAVORITE}, {chord} AS chord, c.neighborhood_id
            FROM centers_center c
            WHERE c.is_active AND c.latitude BETWEEN %s AND %s AND ({longitudes})
              AND {chord} <= %s AND EXISTS
                (SELECT FROM centers_meetingroom r JOIN centers_rate t ON t.id = r.rate_id
                 WHERE r.center_id = c.id AND r.is_active AND {USABLE})
            ORDER BY chord, c.rank, c.name_folded, c.id""",
        (
            *(user.pk, *vector, box.south, box.north),
            *(degrees for bounds in box.longitudes for degrees in bounds),
            *(*vector, geo.squared_chord(miles)),
        ),
    )
    ids = [row[0] for row in found]
    parts = CenterParts(cur, ids[:50], root)
    centers = [
        parts.told(row, favorite=row[17], distance=round(geo.miles_of(row[18]), 2))
        for row in found[:50]
    ]
    types = rows(
        cur,
        f"""SELECT id, name, is_service, position FROM centers_resourcetype
            WHERE NOT internal AND id IN
              (SELECT r.resource_type_id FROM centers_meetingroom r
                 JOIN centers_rate t ON t.id = r.rate_id
               WHERE r.center_id = ANY (%s) AND r.is_active AND {USABLE}
               UNION SELECT resource_type_id FROM centers_service
               WHERE center_id = ANY (%s) AND is_active)
            ORDER BY position, name, id""",
        (ids, ids),
    )
    neighborhoods = rows(
        cur,
        """SELECT id, original_name, name, city, state, custom_title, landing_page_content,
                  coworking_landing_page_content
           FROM centers_neighborhood WHERE id = ANY (%s) ORDER BY name, id""",
        ([pk for pk in {row[19] for row in found} if pk is not None],),
    )
    return {
        "Centers": centers,
        "FilterOptions": {
            "RoomTypes": [type_told(row) for row in types if not row[2]],
            "Services": [type_told(row) for row in types if row[2]],
            "Neighborhoods": [
                told(
                    dict(
                        zip(
                            (
                                *("Id", "OriginalName", "Name", "City", "State", "CustomTitle"),
                                *("LandingPageContent", "CoworkingLandingPageContent"),
                            ),
                            row,
                            strict=True,
                        )
                    )
                )
                for row in neighborhoods
            ],
        },
    }


def type_told(row: Row) -> Told:
    pk, name, is_service, position = row
    return {
        "Id": pk,
        "Name": name,
        "IsService": is_service,
        "Position": position,
        "Internal": False,
    }


# --- Availability and cost -----------------------------------------------------------------------

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
        """As prices want it."""
        return SimpleNamespace(zone=self.zone, tax_rate=self.tax_rate)


def room_from(row: Row) -> Room:
    return Room._make([*row[:13], ZoneInfo(row[13]), *row[14:17], rate_of(row[17:25])])


def room_of(cur: Any, pk: int, *, lock: bool = False) -> Room:
    found = rows(
        cur,
        f"""SELECT {ROOM} FROM centers_meetingroom r JOIN centers_center c ON c.id = r.center_id
              LEFT JOIN centers_rate t ON t.id = r.rate_id
            WHERE r.id = %s {"FOR NO KEY UPDATE OF r" if lock else ""}""",
        (pk,),
    )
    if not found:
        raise Refused("404 Not Found", "NotFound")
    return room_from(found[0])


def span_of(room: Room, data: Told) -> Span:
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


def is_free(cur: Any, room: Room, span: Span, *, user: User, now: datetime, but: int = 0) -> bool:
    """Every question of B11, the two about rows in one statement."""
    if not (room.center_is_active and room.is_active) or room.is_blocked or span.start < now:
        return False
    days = 365 if room.booking_window_days is None else room.booking_window_days
    start, end = (moment.astimezone(room.zone) for moment in (span.start, span.end))
    if start.date() > now.astimezone(room.zone).date() + timedelta(days=days):
        return False
    grid = room.grid_minutes or 15
    for moment in (start, end):
        if moment.second or moment.microsecond or (moment.hour * 60 + moment.minute) % grid:
            return False
    minutes = span.duration.total_seconds() / 60
    least = 30 if room.minimum_minutes is None else room.minimum_minutes
    most = 14 * 1440 if room.maximum_minutes is None else room.maximum_minutes
    if not least <= minutes <= most:
        return False
    margin = timedelta(minutes=room.turnaround_minutes)
    [(closed, taken, week)] = rows(
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
            *(room.pk, now, user.pk, but, span.end + margin, span.start - margin),
            *(span.end, span.start, room.center_id),
        ),
    )
    if closed or taken:
        return False
    return room.after_hours or hours.is_open(span, stretches(week), room.zone)


def stretches(week: list[list[Any]] | None) -> Iterable[HoursRow]:
    return [
        HoursRow(day, time.fromisoformat(opens), time.fromisoformat(closes))
        for day, opens, closes in week or []
    ]


def check_availability(data: Told, root: str, now: datetime) -> Told:
    """Token, room and rate are one statement, as anybody would write it who counts them."""
    cur = cursor()
    user, room = user_and_room(cur, data, data["RoomId"], now)
    if data.get("CenterId") not in (None, room.center_id):
        raise Refused("404 Not Found", "NotFound")
    return {"IsAvailable": is_free(cur, room, span_of(room, data), user=user, now=now)}


def user_and_room(cur: Any, data: Told, room_id: int, now: datetime) -> tuple[User, Room]:
    found = rows(
        cur,
        f"""SELECT k.id, k.created_at, k.expires_at,
                   u.id, u.email, u.first_name, u.last_name, u.company_name, {ROOM}
            FROM accounts_apitoken k JOIN accounts_user u ON u.id = k.user_id
              LEFT JOIN centers_meetingroom r ON r.id = %s
              LEFT JOIN centers_center c ON c.id = r.center_id
              LEFT JOIN centers_rate t ON t.id = r.rate_id
            WHERE k.digest = %s AND k.expires_at > %s AND u.is_active""",
        (room_id, digest(data), now),
    )
    if not found:
        raise Refused("401 Unauthorized", "NotSignedIn")
    row = found[0]
    renew(cur, row[0], row[1], row[2], now)
    if row[8] is None:
        raise Refused("404 Not Found", "NotFound")
    return User(*row[3:8]), room_from(row[8:])


def cost(data: Told, root: str, now: datetime) -> Told:
    cur = cursor()
    _, room = user_and_room(cur, data, data["MeetingRoomId"], now)
    span = span_of(room, data)
    wanted = extras_of(cur, room, data)
    return {"Total": float(pricing.quote(room, span, extras=wanted).total)}


class ServiceRow(NamedTuple):
    pk: int
    name: str
    bill_at_center: bool
    minimum_booking: int
    needs_duration: bool
    needs_quantity: bool
    rate: RateRow | None


def extras_of(cur: Any, room: Room, data: Told) -> list[pricing.Extra]:
    asked = {each["ServiceId"]: each for each in data.get("ServiceOptions") or []}
    if not asked:
        return []
    found = rows(
        cur,
        f"""SELECT s.id, s.name, s.bill_at_center, s.minimum_booking, s.needs_duration,
                   s.needs_quantity, {RATE}
            FROM centers_service s LEFT JOIN centers_rate t ON t.id = s.rate_id
            WHERE s.center_id = %s AND s.is_active AND s.id = ANY (%s)
            ORDER BY s.position, s.id""",
        (room.center_id, list(asked)),
    )
    if len(found) < len(asked):
        raise Refused("400 Bad Request", "InvalidRequest")
    extras = []
    for row in found:
        service = ServiceRow._make([*row[:6], rate_of(row[6:])])
        option = asked[service.pk]
        quantity = option.get("Quantity") if service.needs_quantity else None
        if service.needs_quantity and not quantity:
            raise Refused("400 Bad Request", "InvalidRequest")
        duration = option.get("DurationHours") if service.needs_duration else None
        extras.append(
            pricing.Extra(service, None if duration is None else Decimal(str(duration)), quantity)
        )
    return extras


# --- Reservations --------------------------------------------------------------------------------


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

    def expires_on(self, day: date) -> date:
        return Allowance.expires_on(cast("Allowance", self), day)

    def period_of(self, day: date) -> date | None:
        return Allowance.period_of(cast("Allowance", self), day)


def offers_for(cur: Any, user_id: int, room: Any, day: date) -> list[Offer]:
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
    valid.sort(key=lambda each: (each.expires_on(day), each.kind != "monthly", each.pk))
    return [Offer(each, each.period_of(day), max(0, each.hours + each.entered)) for each in valid]


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
            discount = pricing.share(room_cost, hours_left, billable)
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
    quote = pricing.quote(room, span, extras=wanted, offers=offers)
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
            for each in quote.hours_used
            if each.hours
        ],
    )
    return int(pk)


def many(cur: Any, table: str, values: list[Row]) -> None:
    if values:
        psycopg2.extras.execute_values(cur, f"INSERT INTO {table} VALUES %s", values)


# --- Checkout ------------------------------------------------------------------------------------

MAIL = (
    "<!DOCTYPE html><html><head><title>Your room is booked</title></head><body>{text}"
    + "<p style='margin:0;padding:0'>&nbsp;</p>" * 100
    + "</body></html>"
)
CALENDAR = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nUID:{uid}\r\n"
    "DTSTART:{start:%Y%m%dT%H%M%SZ}\r\nDTEND:{end:%Y%m%dT%H%M%SZ}\r\nSUMMARY:{text}\r\n"
    "END:VEVENT\r\nEND:VCALENDAR\r\n"
)
AUDIT = (
    "INSERT INTO auditlog_logentry (content_type_id, object_pk, object_id, object_repr, action,"
    " changes_text, changes, actor_id, actor_email, timestamp) VALUES"
    " ((SELECT id FROM django_content_type WHERE app_label = 'reservations'"
    " AND model = 'reservation'), %s, %s, %s, 1, '', %s, %s, %s, %s)"
)


def checkout(data: Told, root: str, now: datetime) -> Told:
    """The same five transactions: take the slot, authorize, book, capture, write that down."""
    cur = cursor()
    user = signed_in(cur, data, now)
    pk = data["ReservationId"]
    found = rows(
        cur,
        """SELECT v.status, s.reference, s.exp_year, s.exp_month, x.outcome, x.brand, x.last4
           FROM reservations_reservation v
             LEFT JOIN payments_savedcard s ON s.user_id = v.user_id
             LEFT JOIN payments_sandboxcard x ON x.reference = s.reference
           WHERE v.id = %s AND v.user_id = %s""",
        (pk, user.pk),
    )
    if not found:
        raise Refused("404 Not Found", "NotFound")
    status, reference, year, month, outcome, brand, last4 = found[0]
    if status != "New":
        raise Refused("409 Conflict", "ReservationNotOpen")
    if reference is None or (year, month) < (now.year, now.month) or outcome != "succeeds":
        raise Refused("402 Payment Required", "CardDeclined")
    key = uuid.uuid4()
    with transaction() as cur:
        payment, amount = begin(cur, user, pk, key, now)
    with transaction() as cur:
        cur.execute(
            """INSERT INTO payments_sandboxpayment (key, state, amount, currency, refunded, brand,
                 last4, message, description, captures, created_at)
               VALUES (%s, 'authorized', %s, 'USD', 0, %s, %s, '', %s, 0, %s)""",
            (key, amount, brand, last4, f"Reservation {pk}", now),
        )
    with transaction() as cur:
        status, text = book(cur, user, pk, payment, (key, amount, brand, last4), now)
    if status == "Confirmed":
        with transaction() as cur:
            cur.execute("SELECT FROM payments_sandboxpayment WHERE key = %s FOR UPDATE", (key,))
            cur.execute(
                "UPDATE payments_sandboxpayment SET state = 'captured', captures = 1"
                " WHERE key = %s AND state = 'authorized'",
                (key,),
            )
        with transaction() as cur:
            cur.execute("SELECT FROM payments_payment WHERE id = %s FOR UPDATE", (payment,))
            cur.execute(
                "UPDATE payments_payment SET state = 'captured', captured_at = %s"
                " WHERE id = %s AND state = 'authorized'",
                (now, payment),
            )
    return {"ConfirmationMessage": text, "IsLive": False, "Status": status}


def lock_reservation(cur: Any, pk: int) -> tuple[Room, Row]:
    [(room_id,)] = rows(cur, "SELECT room_id FROM reservations_reservation WHERE id = %s", (pk,))
    room = room_of(cur, room_id, lock=True)
    [row] = rows(
        cur,
        """SELECT status, start, "end", total_cost, uid, calendar_sequence
           FROM reservations_reservation WHERE id = %s FOR NO KEY UPDATE""",
        (pk,),
    )
    return room, row


def begin(cur: Any, user: User, pk: int, key: uuid.UUID, now: datetime) -> tuple[int, Decimal]:
    room, (status, start, end, amount, *_) = lock_reservation(cur, pk)
    if status != "New" or start <= now:
        raise Refused("409 Conflict", "ReservationNotOpen")
    span = Span(start, end)
    make_way(cur, room, span, user=user, now=now, but=pk)
    if not is_free(cur, room, span, user=user, now=now, but=pk):
        raise Refused("409 Conflict", "SlotUnavailable")
    [(uses, promotions)] = rows(
        cur,
        """SELECT (SELECT json_agg(json_build_array(allowance_id, hours))
                   FROM reservations_allowanceuse WHERE reservation_id = %s AND hours > 0),
                  (SELECT count(*) FROM reservations_lineitem
                   WHERE reservation_id = %s AND type = 'Promotion')""",
        (pk, pk),
    )
    if promotions:
        raise Refused("501 Not Implemented", "PromoCode")
    if uses:
        take_hours(cur, user, room, span, pk, uses, now)
    cur.execute(
        """INSERT INTO accounts_attemptwindow (scope, key, count, since)
           VALUES ('card-declined', %s, 1, %s) ON CONFLICT (scope, key) DO UPDATE
           SET count = accounts_attemptwindow.count + 1""",
        (str(user.pk), now),
    )
    cur.execute(
        """UPDATE reservations_reservation SET status = 'Processing', holds_slot = true,
             hold_until = NULL WHERE id = %s""",
        (pk,),
    )
    audit(cur, user, pk, ["New", "Processing"], now)
    [(payment,)] = rows(
        cur,
        """INSERT INTO payments_payment (reservation_id, key, gateway, is_live, amount, currency,
             state, reference, card_brand, card_last4, message, lease_until, is_called_off,
             created_at)
           VALUES (%s, %s, 'sandbox', false, %s, 'USD', 'started', '', '', '', '', %s, false, %s)
           RETURNING id""",
        (pk, key, amount, now + timedelta(seconds=60), now),
    )
    return payment, amount


def take_hours(
    cur: Any, user: User, room: Room, span: Span, pk: int, uses: list[list[int]], now: datetime
) -> None:
    cur.execute(
        "SELECT FROM reservations_allowance WHERE id = ANY (%s) ORDER BY id FOR NO KEY UPDATE",
        ([allowance for allowance, _ in uses],),
    )
    day = span.start.astimezone(room.zone).date()
    offers = {each.allowance.pk: each for each in offers_for(cur, user.pk, room, day)}
    for allowance, count in uses:
        if allowance not in offers or offers[allowance].hours_left < count:
            raise Refused("409 Conflict", "AllowanceExhausted")
    many(
        cur,
        "reservations_allowanceentry (allowance_id, reservation_id, period, hours, reason, at)",
        [
            (*(allowance, pk, offers[allowance].period, -count, f"Used for reservation {pk}"), now)
            for allowance, count in uses
        ],
    )


def book(
    cur: Any,
    user: User,
    pk: int,
    payment: int,
    paid: tuple[uuid.UUID, Decimal, str, str],
    now: datetime,
) -> tuple[str, str]:
    key, amount, brand, last4 = paid
    room, (status, start, end, _, uid, sequence) = lock_reservation(cur, pk)
    cur.execute("SELECT state FROM payments_payment WHERE id = %s FOR UPDATE", (payment,))
    if cur.fetchone() != ("started",) or status != "Processing":
        raise Refused("409 Conflict", "ReservationNotOpen")
    cur.execute(
        """UPDATE payments_payment SET state = 'authorized', reference = %s, card_brand = %s,
             card_last4 = %s, authorized_at = %s WHERE id = %s""",
        (f"pay_{key.hex}", brand, last4, now, payment),
    )
    status = "Confirmed" if room.is_live_inventory else "Pending"
    cur.execute(
        """UPDATE reservations_reservation SET status = %s, booked_at = %s, is_live = false,
             calendar_sequence = %s WHERE id = %s""",
        (status, now, sequence + (status == "Confirmed"), pk),
    )
    audit(cur, user, pk, ["Processing", status], now)
    [(center,)] = rows(cur, "SELECT name FROM centers_center WHERE id = %s", (room.center_id,))
    row = SimpleNamespace(
        pk=pk,
        start=start,
        end=end,
        reduced_by=None,
        room=SimpleNamespace(name=room.name, center=SimpleNamespace(name=center, zone=room.zone)),
    )
    what = confirmation.what(row)
    charged = SimpleNamespace(amount=amount, card_brand=brand, card_last4=last4)
    if status == "Confirmed":
        text = f"You have booked {what} (reservation {pk}). {confirmation.paid(row, charged)}"
    else:
        text = f"Your request for {what} is with the center (reservation {pk})."
        text += f" {money.display(amount)} is reserved on {confirmation.card(charged)} and charged"
        text += " only when the center agrees."
    lines = rows(
        cur,
        "SELECT description, amount FROM reservations_lineitem WHERE reservation_id = %s",
        (pk,),
    )
    bill = "\n".join(f"{description}: {line}" for description, line in lines)
    calendar = CALENDAR.format(uid=uid, start=start, end=end, text=text)
    cur.execute(
        """INSERT INTO accounts_outboxmessage (key, user_id, "to", kind, about, subject, text,
             html, calendar, calendar_method, state, attempts, created_at, next_attempt_at,
             last_error)
           VALUES (%s, %s, %s, 'confirmed', %s, %s, %s, %s, %s, %s, 'waiting', 0, %s, %s, '')""",
        (
            *(uuid.uuid4(), user.pk, user.email, f"reservation {pk}", text[:200]),
            *(f"{text}\n\n{bill}", MAIL.format(text=text), calendar, "REQUEST", now, now),
        ),
    )
    cur.execute(
        "UPDATE accounts_attemptwindow SET count = count - 1 WHERE count > 0 AND key = %s"
        " AND scope = 'card-declined'",
        (str(user.pk),),
    )
    return status, text


def audit(cur: Any, user: User, pk: int, change: list[str], now: datetime) -> None:
    changes = json.dumps({"status": change})
    repr_ = f"Reservation {pk}"
    cur.execute(AUDIT, (str(pk), pk, repr_, changes, user.pk, user.email, now))


# --- The server ----------------------------------------------------------------------------------

OPERATIONS: dict[str, Callable[[Told, str, datetime], Told]] = {
    "/api/meeting-rooms/check-availability": check_availability,
    "/api/account/reservation": get_reservation,
    "/api/reservations/cost": cost,
    "/api/locations/search": search,
    "/api/reservations/create": create,
    "/api/reservations/checkout": checkout,
}


def application(environ: Told, start_response: Callable[..., Any]) -> list[bytes]:
    status = "200 OK"
    try:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        root = f"http://{environ['HTTP_HOST']}/media/"
        operation = OPERATIONS[environ["PATH_INFO"]]
        answer = {"Success": True, **operation(json.loads(body), root, datetime.now(UTC))}
    except Refused as refusal:
        status = refusal.status
        answer = {"Success": False, "Error": {"Summary": refusal.code}}
    written = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()
    start_response(
        status,
        [("Content-Type", "application/json"), ("Content-Length", str(len(written)))],
    )
    return [written]
