"""Generates data for measurements in an empty PostgreSQL database, for `make bench`.

A few centers, with their customers and bookings, are made by the functions of the product. SQL then
copies all their rows to other places, with other ids.
"""

import datetime as dt
import sys
from random import Random
from typing import Any

import django

django.setup()

# ruff: noqa: E402 (models need settings)
from django.apps import apps
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Max, Model, UUIDField
from django.utils import timezone

from accounts.models import AttemptWindow, OutboxMessage
from centers.hours import localize
from centers.models import Center, CenterImage, MeetingRoom, Neighborhood, ResourceType
from reservations.booking import expiry
from roombook import places
from roombook.backoffice.models import AuditEntry
from tests import factories_centers as make
from tests.bench.cases import DAYS_AHEAD
from tests.factories_people import SavedCardFactory, UserFactory
from tests.factories_reservations import make_draft, pay

# At most so many centers are made; their number divides that of all centers.
MAX_ORIGINALS = 50
BOOKINGS_PER_CUSTOMER = 20
# City, state, country, latitude, longitude.
CITIES = (
    ("Tokyo", "", "JP", 35.6762, 139.6503),
    ("São Paulo", "SP", "BR", -23.5505, -46.6333),
    ("New York", "NY", "US", 40.7128, -74.0060),
    ("London", "England", "GB", 51.5074, -0.1278),
    ("Denver", "CO", "US", 39.7392, -104.9903),
    ("Suva", "", "FJ", -18.14, 178.44),
)
# A copy is at most so many degrees north, south, east or west of its original.
DEGREES = 1.5
ROOM_COUNTS = (1, 2, 3, 3, 4, 4, 5, 6, 8, 14)
PRICES: tuple[dict[str, Any], ...] = (
    {"hourly": 45, "half_day": 160, "full_day": 280},
    {"hourly": 60, "half_day": None, "full_day": 380, "setup_fee": 40, "bill_in_blocks": True},
    {"hourly": None, "half_day": 50, "full_day": 85},
    {"flat_rate": 450, "hourly": None, "half_day": None, "full_day": None, "is_flat_rate": True},
)
SERVICES: dict[str, dict[str, Any]] = {
    "Coffee and tea": {"needs_quantity": True},
    "Projector": {"needs_duration": True},
    "Microphone": {"needs_duration": True, "needs_quantity": True},
    "Video conference": {},
    "Parking": {"bill_at_center": True},
}
HOURS = (dt.time(7), dt.time(21)), (dt.time(8), dt.time(18)), (dt.time(0), dt.time(0))
# Bookings are on 200 weekdays, at two times of the day. The step from one of a room to its next has
# no common divisor with their number.
DAYS_BACK, SLOTS, SLOT_STEP = 200, 400, 57
PICTURE = "generated/1.jpg"
# Centers share them, so they are not copied.
SHARED = {ResourceType, Neighborhood}
APPS = {"accounts", "centers", "payments", "reservations"}


class Generator:
    """Makes accounts, then one center after the other with its rooms and bookings."""

    def __init__(self, now: dt.datetime, bookings: int) -> None:
        self.now, self.random = now, Random(1)
        days = (now.date() + dt.timedelta(days=each) for each in range(-DAYS_BACK, DAYS_AHEAD))
        self.days = [day for day in days if day.weekday() < 5]
        self.kinds = [make.ResourceTypeFactory() for _ in PRICES]
        self.service_kinds = {name: make.ServiceTypeFactory(name=name) for name in SERVICES}
        count = max(20, bookings // BOOKINGS_PER_CUSTOMER)
        self.customers = [UserFactory(password="!") for _ in range(count)]
        for customer in self.customers[::2]:
            SavedCardFactory(user=customer, exp_year=now.year + 3)

    def add_center(self, number: int, bookings: int) -> None:
        city, state, country, latitude, longitude = CITIES[number % len(CITIES)]
        center = make.CenterFactory(
            city=city,
            state=state,
            country=country,
            latitude=latitude,
            longitude=longitude,
            time_zone_id=places.find_time_zone(latitude, longitude),
            neighborhood=make.NeighborhoodFactory(city=city, state=state) if number % 2 else None,
            is_after_hours_support_enabled=number % 7 == 0,
            parking_information="Garage in the basement." if number % 2 else "",
            tax_rate=(0, "8.25", 19)[number % 3],
        )
        make.open_every_day(center, *HOURS[number % len(HOURS)])
        for _ in range(number % 4):
            make.LandmarkFactory(center=center, description="5 minutes.")
        CenterImage.objects.bulk_create(
            CenterImage(center_id=center.pk, position=position, image=PICTURE, thumbnail=PICTURE)
            for position in range(number % 3)
        )
        for position, (name, needs) in enumerate(SERVICES.items()):
            kind = self.service_kinds[name]
            make.ServiceFactory(
                center=center, name=name, resource_type=kind, position=position, **needs
            )
        rooms = [
            self.add_room(center, place) for place in range(ROOM_COUNTS[number % len(ROOM_COUNTS)])
        ]
        for place in range(bookings):
            room = rooms[place % len(rooms)]
            slot = (number * 37 + place // len(rooms) * SLOT_STEP) % SLOTS
            self.add_booking(room, slot)

    def add_room(self, center: Center, place: int) -> MeetingRoom:
        kind = (center.pk + place) % len(PRICES)
        room = make.MeetingRoomFactory(
            center=center,
            resource_type=self.kinds[kind],
            rate=make.RateFactory(center=center, **PRICES[kind]),
            capacity=(4, 8, 12, 20)[place % 4],
            turnaround_minutes=15 if place % 5 == 4 else 0,
        )
        if place % 3:
            room_again = MeetingRoom.objects.filter(pk=room.pk)
            room_again.update(picture=PICTURE, picture_thumbnail=PICTURE)
        return room

    def add_booking(self, room: MeetingRoom, slot: int) -> None:
        """Book as the product does, some days before; one of twenty is not paid, and expires."""
        day, hour = self.days[slot // 2], (9, 13)[slot % 2]
        start = localize(dt.datetime.combine(day, dt.time(hour)), room.center.zone)
        now = min(start, self.now) - dt.timedelta(days=self.random.randint(3, 60))
        draft = make_draft(
            self.random.choice(self.customers),
            room,
            start=start,
            hours=self.random.choice((1, 1, 2, 3)),
            now=now,
            attendees=[{"name": "Mei Guest", "email_address": "mei@guests.example"}],
        )
        if self.random.random() > 0.05:
            pay(draft, now=now)

    def finish(self) -> None:
        """Let time pass, and leave out what a service deletes after a while."""
        list(expiry.close_overdue(now=self.now))
        for model in (AuditEntry, AttemptWindow, OutboxMessage):
            model.objects.all().delete()


def copy_rows(copies: int) -> None:
    """Copy all rows so often. Copy n of a row has its id plus n times the largest id."""
    largest = {
        each: pk
        for each in apps.get_models(include_auto_created=True)
        if each._meta.app_label in APPS and each not in SHARED and not each._meta.proxy
        if (pk := each._base_manager.aggregate(pk=Max("pk"))["pk"]) is not None
    }

    def copy(field: Any, model: type[Model]) -> str:
        column = f'"{field.column}"'
        target = field.related_model or (model if field.primary_key else None)
        if target in largest:
            return f"{column} + n * {largest[target]}"
        if isinstance(field, UUIDField):
            # The same in all tables that have it.
            return f"md5({column}::text || n)::uuid"
        if field.column in {"email", "reference"}:
            return f"n || '-' || {column}"
        return column

    # Foreign keys are checked at the end of the transaction, so the order does not matter.
    with transaction.atomic(), connection.cursor() as cursor:
        for model in largest:
            fields = [field for field in model._meta.concrete_fields if not field.generated]
            columns = ", ".join(f'"{field.column}"' for field in fields)
            values = ", ".join(copy(field, model) for field in fields)
            table = f'"{model._meta.db_table}"'
            cursor.execute(
                f"INSERT INTO {table} ({columns}) SELECT {values} FROM {table},"
                f" generate_series(1, {copies}) AS n"
            )
        move_copies(cursor, largest[Center])
        for sql in connection.ops.sequence_reset_sql(no_style(), list(largest)):
            cursor.execute(sql)


def move_copies(cursor: Any, last_original: int) -> None:
    """Move the copies of centers to other places near their originals, always the same."""
    cursor.execute("SELECT setseed(0.5)")
    for values in (
        f"""latitude = latitude + {DEGREES} * (2 * random() - 1), rank = ceil(1000 * random()),
            longitude = longitude + {DEGREES} * (2 * random() - 1)""",
        """x = cos(radians(latitude)) * cos(radians(longitude)), z = sin(radians(latitude)),
           y = cos(radians(latitude)) * sin(radians(longitude))""",
    ):
        cursor.execute(f"UPDATE centers_center SET {values} WHERE id > {last_original}")


def generate(*, centers: int, reservations: int, now: dt.datetime) -> None:
    """Add this many centers and about as many reservations to an empty database."""
    count = next(each for each in range(min(MAX_ORIGINALS, centers), 0, -1) if centers % each == 0)
    generator = Generator(now, reservations * count // centers)
    for number in range(count):
        generator.add_center(number, reservations // centers)
    generator.finish()
    copy_rows(centers // count - 1)


if __name__ == "__main__":
    generate(centers=int(sys.argv[1]), reservations=int(sys.argv[2]), now=timezone.now())
