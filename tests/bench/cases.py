"""The requests of each operation, drawn from the data. Both servers get the same."""

import datetime as dt
import itertools
import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from centers import geo

# Distinct requests of an operation, which are repeated.
SAMPLES = 300
Body = dict[str, Any]
MAX_MILES = 500
# All generated bookings are within so many days.
DAYS_AHEAD = 80


class World:
    """Reads the data for requests from the database."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.random = Random(7)
        self.now = dt.datetime.now(dt.UTC)
        [[self.first_customer, self.last_customer]] = self.rows(
            "SELECT min(id), max(id) FROM accounts_user WHERE NOT is_staff"
        )
        [[self.last_reservation]] = self.rows("SELECT max(id) FROM reservations_reservation")
        self.rooms = self.rows(
            """SELECT r.id, r.center_id FROM centers_meetingroom r
                 JOIN centers_center c ON c.id = r.center_id
               WHERE r.is_active AND NOT r.is_blocked AND c.is_active AND r.rate_id IS NOT NULL
                 AND c.id IN (SELECT center_id FROM centers_openinghours WHERE weekday = 2
                              AND opens <= '09:00' AND (closes >= '12:00' OR closes = '00:00'))
               ORDER BY r.id"""
        )
        self.random.shuffle(self.rooms)

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall()

    def get_any_token(self) -> str:
        return get_token(self.random.randint(self.first_customer, self.last_customer))

    def wednesdays(self, days: int, weeks: int) -> list[dt.date]:
        """So many Wednesdays, the first of them in at least so many days."""
        first = self.now.date() + dt.timedelta(days=days)
        first += dt.timedelta(days=(2 - first.weekday()) % 7)
        return [first + dt.timedelta(weeks=week) for week in range(weeks)]

    def availability(self) -> Iterator[Body]:
        days = self.wednesdays(7, 8)
        for room, _ in self.rooms[:SAMPLES]:
            day = self.random.choice(days)
            yield {"Token": self.get_any_token(), "RoomId": room, **from_nine_to(day, 11)}

    def cost(self) -> Iterator[Body]:
        [day] = self.wednesdays(7, 1)
        for room, center in self.rooms[:SAMPLES]:
            yield {
                "Token": self.get_any_token(),
                "MeetingRoomId": room,
                **from_nine_to(day, self.random.choice((10, 12))),
                "ServiceOptions": self.options(center, self.random.choice((0, 1, 2))),
            }

    def options(self, center: int, limit: int) -> list[Body]:
        services = self.rows(
            """SELECT id, needs_quantity, needs_duration FROM centers_service
               WHERE center_id = %s AND rate_id IS NOT NULL ORDER BY position LIMIT %s""",
            (center, limit),
        )
        return [
            {
                "ServiceId": pk,
                **({"Quantity": 4} if needs_quantity else {}),
                **({"DurationHours": 1} if needs_duration else {}),
            }
            for pk, needs_quantity, needs_duration in services
        ]

    def reservation(self) -> Iterator[Body]:
        for pk, user in self.rows(
            "SELECT id, user_id FROM reservations_reservation ORDER BY md5(id::text) LIMIT %s",
            (SAMPLES,),
        ):
            yield {"Token": get_token(user), "Id": pk}

    def search(self) -> Iterator[Body]:
        """Searches with a radius that finds about 35 centers in data of every size."""
        places = self.rows(
            """SELECT latitude, longitude FROM centers_center WHERE is_active
               AND latitude BETWEEN -60 AND 60 ORDER BY id"""
        )
        for latitude, longitude in self.random.sample(places, min(SAMPLES // 3, len(places))):
            x, y, z = geo.Coordinates(latitude, longitude).vector
            [*_, (chord,)] = self.rows(
                """SELECT (x - %s)^2 + (y - %s)^2 + (z - %s)^2 FROM centers_center
                   WHERE is_active AND latitude BETWEEN %s AND %s ORDER BY 1 LIMIT 35""",
                (x, y, z, latitude - 7, latitude + 7),
            )
            yield {
                "Token": self.get_any_token(),
                "Latitude": latitude,
                "Longitude": longitude,
                "RadiusInMiles": min(MAX_MILES, math.ceil(geo.miles_from_squared_chord(chord))),
            }

    def drafts(self) -> Iterator[Body]:
        """Drafts for different rooms or days, behind all others. The customers take turns."""
        customers = itertools.cycle(range(self.first_customer, self.last_customer + 1))
        for day in self.wednesdays(DAYS_AHEAD, 38):
            for room, _ in self.rooms:
                token = get_token(next(customers))
                yield {"Token": token, "MeetingRoomId": room, **from_nine_to(day, 11)}

    def drafts_of_card_holders(self) -> Iterator[Body]:
        holders = self.rows("SELECT user_id FROM payments_savedcard ORDER BY user_id")
        for body, (user,) in zip(self.drafts(), itertools.cycle(holders), strict=False):
            yield body | {"Token": get_token(user)}

    def find_new_drafts(self) -> list[Body]:
        rows = self.rows(
            """SELECT id, user_id FROM reservations_reservation WHERE id > %s AND status = 'New'
               ORDER BY id""",
            (self.last_reservation,),
        )
        return [{"Token": get_token(user), "ReservationId": pk} for pk, user in rows]

    def clear(self) -> None:
        """Deletes what the benchmark created, so that every round has the same data."""
        new_ids = "(SELECT id FROM reservations_reservation WHERE id > %s)"
        of_new = f"WHERE reservation_id IN {new_ids}"
        with self.connection.cursor() as cursor:
            for table in ("lineitem", "attendee", "chosenservice", "allowanceuse"):
                cursor.execute(
                    f"DELETE FROM reservations_{table} {of_new}", (self.last_reservation,)
                )
            # Nothing else deletes lines of the ledger.
            for sql in (
                "ALTER TABLE payments_ledgerline DISABLE TRIGGER ledger_line_never_changes",
                f"DELETE FROM payments_ledgerline {of_new}",
                "ALTER TABLE payments_ledgerline ENABLE TRIGGER ledger_line_never_changes",
                f"""DELETE FROM payments_sandboxpayment WHERE key IN
                    (SELECT key FROM payments_payment {of_new})""",
                f"DELETE FROM payments_payment {of_new}",
                "DELETE FROM backoffice_auditentry WHERE object_id > %s",
                "DELETE FROM reservations_reservation WHERE id > %s",
            ):
                cursor.execute(sql, (self.last_reservation,) if "%s" in sql else None)
            cursor.execute("DELETE FROM accounts_outboxmessage; DELETE FROM accounts_attemptwindow")


def get_token(user: int) -> str:
    return f"{user:064}"


def from_nine_to(day: dt.date, hour: int) -> Body:
    return {"StartDate": f"{day}T09:00:00", "EndDate": f"{day}T{hour:02}:00:00"}


PATHS: dict[str, tuple[str, Callable[[World], Iterator[Body]]]] = {
    "availability": ("/api/meeting-rooms/check-availability", World.availability),
    "reservation": ("/api/account/reservation", World.reservation),
    "cost": ("/api/reservations/cost", World.cost),
    "search": ("/api/locations/search", World.search),
    "create": ("/api/reservations/create", World.drafts),
    "checkout": ("/api/reservations/checkout", World.drafts_of_card_holders),
}
READS = {"availability", "cost", "reservation", "search"}
