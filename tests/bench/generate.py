"""Generates data for measurements in an empty database, for `make bench`.

It writes rows directly instead of calling the domain's functions, which is faster. Its test checks
them with the integrity checks, and their prices come from reservations.pricing.quote.
"""

import datetime as dt
import hashlib
import os
import sys
import uuid
from argparse import ArgumentParser
from collections import defaultdict
from decimal import Decimal
from io import StringIO
from operator import attrgetter
from random import Random
from typing import Any

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "roombook.settings")
    django.setup()

from django.conf import settings
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from accounts.models import ApiToken, User
from accounts.models.api_token import hash_token_secret
from accounts.models.search_text import build_search_text
from centers.hours import localize
from centers.models import (
    Center,
    CenterImage,
    Closure,
    Landmark,
    MeetingRoom,
    Neighborhood,
    OpeningHours,
    Rate,
    ResourceType,
    Service,
)
from centers.span import Span
from payments.models import Payment, PaymentState, SandboxCard, SandboxPayment, SavedCard
from reservations.models import Allowance, Attendee, ChosenService, LineItem, Reservation
from reservations.models.status import HOLDING_STATUSES, Status
from reservations.pricing.quote import ServiceSelection, calculate_quote
from roombook import places

# Rows that are written together, of all tables.
BATCH_SIZE = 50_000
RESERVATIONS_PER_CUSTOMER = 20

# City, state, country, latitude, longitude, and the population in thousands.
METROS: tuple[tuple[str, str, str, float, float, int], ...] = (
    ("Tokyo", "", "JP", 35.6762, 139.6503, 37100),
    ("São Paulo", "SP", "BR", -23.5505, -46.6333, 22400),
    ("New York", "NY", "US", 40.7128, -74.0060, 19500),
    ("London", "England", "GB", 51.5074, -0.1278, 14900),
    ("Johannesburg", "", "ZA", -26.2041, 28.0473, 10200),
    ("Sydney", "NSW", "AU", -33.8688, 151.2093, 5300),
    ("Denver", "CO", "US", 39.7392, -104.9903, 3010),
    ("Zürich", "ZH", "CH", 47.3769, 8.5417, 1400),
    ("Taveuni", "", "FJ", -16.98, 179.9, 20),
)
PARTS = ("Downtown", "Old Town", "Riverside", "West End")
LANDMARKS = ("Central Station", "City Hall", "Opera House", "Stadium")
FIRST_NAMES = ("Aisha", "Chen", "Diego", "Freya", "Karim", "Nora", "Priya", "Zoe")
LAST_NAMES = ("Adeyemi", "Berg", "Castillo", "Garcia", "Kim", "Nguyen", "Rossi", "Smith", "Tanaka")
WORDS = ("Harbor", "Summit", "Maple", "Lantern", "Quarry", "Meridian", "Cobalt", "Orchard", "Delta")
# The numbers of rooms of ten centers: fifty in all.
ROOM_COUNTS = (1, 2, 3, 3, 4, 4, 5, 6, 8, 14)
# Prices at level 1, which each center multiplies by its own level.
ROOM_RATES: dict[str, dict[str, Any]] = {
    "Board room": {"hourly": 45, "half_day": 160, "full_day": 280},
    "Meeting room": {"hourly": 25, "half_day": 90, "full_day": 160},
    "Training room": {"hourly": 60, "full_day": 380, "setup_fee": 40, "bill_in_blocks": True},
    "Day office": {"half_day": 50, "full_day": 85},
    "Event space": {"flat_rate": 450, "setup_fee": 75, "is_flat_rate": True},
}
# The price of each service, and what it needs.
SERVICES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Coffee and tea": ({"flat_rate": 4, "is_flat_rate": True}, {"needs_quantity": True}),
    "Projector": ({"hourly": 12}, {"needs_duration": True}),
    "Microphone": ({"hourly": 5}, {"needs_duration": True, "needs_quantity": True}),
    "Video conference": ({"flat_rate": 40, "is_flat_rate": True}, {}),
    "Parking": ({"flat_rate": 15, "is_flat_rate": True}, {"bill_at_center": True}),
}
PRICES = {"hourly", "half_day", "full_day", "flat_rate", "setup_fee"}
LEVELS = (Decimal("0.5"), Decimal("0.8"), Decimal(1), Decimal("1.3"), Decimal(2))
HOURS = (
    (range(5), dt.time(8, 30), dt.time(17)),
    (range(6), dt.time(7), dt.time(21)),
    (range(7), dt.time(0), dt.time(0)),
)
# Reservations are on 200 weekdays, at two times of the day. Their number has no common divisor
# with the step from one reservation of a room to the next.
DAYS_BACK, DAYS_AHEAD, SLOTS, SLOT_STEP = 200, 80, 400, 57

LINE_COLUMNS = ("type", "description", "amount", "rate", "total", "service_id")


def get_token(number: int) -> str:
    """The Token of the customer with this number, from 1."""
    return hashlib.sha256(f"roombook {number}".encode()).hexdigest()


class Writer:
    """Gives ids to unsaved rows, and writes them in batches, with COPY on PostgreSQL.

    The `save` methods of the models do not run.
    """

    def __init__(self) -> None:
        self.last_ids: dict[type[Model], int] = {}
        self.pending: dict[type[Model], list[Model]] = defaultdict(list)

    def add(self, row: Any) -> Any:
        model = type(row)
        if model not in self.last_ids:
            self.last_ids[model] = 0
        self.last_ids[model] += 1
        row.pk = self.last_ids[model]
        self.pending[model].append(row)
        return row

    def flush(self, *, minimum: int = 0) -> None:
        if sum(map(len, self.pending.values())) < minimum:
            return
        with transaction.atomic():
            for model, rows in self.pending.items():
                if connection.vendor == "postgresql":
                    copy_rows(model, rows)
                else:
                    model._default_manager.bulk_create(rows)
        self.pending.clear()

    def finish(self) -> None:
        self.flush()
        with connection.cursor() as cursor:
            for sql in connection.ops.sequence_reset_sql(no_style(), list(self.last_ids)):
                cursor.execute(sql)


ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def copy_rows(model: type[Model], rows: list[Model]) -> None:
    fields = model._meta.concrete_fields
    get_values = attrgetter(*(field.attname for field in fields))
    columns = ", ".join(f'"{field.column}"' for field in fields)
    lines = [
        "\t".join(
            r"\N" if value is None else str(value).translate(ESCAPES) for value in get_values(row)
        )
        for row in rows
    ]
    with connection.cursor() as cursor:
        cursor.copy_expert(
            f'COPY "{model._meta.db_table}" ({columns}) FROM STDIN',
            StringIO("\n".join([*lines, ""])),
        )


class Generator:
    """Generates accounts, then one center after another with its rooms and reservations."""

    def __init__(self, now: dt.datetime, reservations: int) -> None:
        self.now = now
        self.random = Random(1)
        self.writer = Writer()
        self.add = self.writer.add
        days = (now.date() + dt.timedelta(days=each) for each in range(-DAYS_BACK, DAYS_AHEAD))
        self.days = [day for day in days if day.weekday() < 5]
        self.types = {
            name: self.add(ResourceType(name=name, is_service=is_service, position=position))
            for names, is_service in ((ROOM_RATES, False), (SERVICES, True))
            for position, name in enumerate(names)
        }
        self.neighborhoods: dict[tuple[str, str], Neighborhood] = {}
        self.zones = {metro: places.find_time_zone(*metro[3:5]) for metro in METROS}
        count = max(20, reservations // RESERVATIONS_PER_CUSTOMER)
        self.customers = [self.add_customer(number) for number in range(1, count + 1)]

    def add_customer(self, number: int) -> User:
        """Two of five have a card, one of ten has an allowance."""
        user = User(
            email=f"customer{number}@bench.example",
            first_name=FIRST_NAMES[number % len(FIRST_NAMES)],
            last_name=LAST_NAMES[number % len(LAST_NAMES)],
            company_name=f"{WORDS[number % len(WORDS)]} Labs" if number % 3 else "",
            phone_number=f"+1 555 {number:07}",
            password="!",
            date_joined=self.now - dt.timedelta(days=500),
        )
        user.search_text = build_search_text(user)
        self.add(user)
        self.add(
            ApiToken(
                user=user,
                digest=hash_token_secret(get_token(number)),
                created_at=self.now,
                expires_at=self.now + dt.timedelta(days=30),
                last_used_at=self.now,
            )
        )
        if number % 10 == 9:
            self.add(Allowance(user=user, description="Plan", kind="monthly", hours=8))
        if number % 5 < 2:
            card = {"brand": "Visa", "last4": "4242", "created_at": self.now}
            reference = f"card_{number:024x}"
            self.add(SandboxCard(reference=reference, customer=user.pk, outcome="succeeds", **card))
            self.add(
                SavedCard(
                    **card,
                    user=user,
                    gateway="sandbox",
                    reference=reference,
                    exp_year=self.now.year + 3,
                    exp_month=12,
                    has_cvv=True,
                )
            )
        return user

    def add_center(self, number: int, reservations: int) -> None:
        random = self.random
        metro = random.choices(METROS, [each[5] for each in METROS])[0]
        city, state, country, latitude, longitude, _ = metro
        # Most centers are downtown, many in the suburbs, a few outside the city.
        degrees = random.choices((0.05, 0.15, 0.9), (50, 42, 8))[0]
        center = Center(
            name=f"{random.choice(WORDS)} Center {number}",
            street1=f"{random.randint(1, 2400)} {random.choice(WORDS)} Street",
            city=city,
            state=state,
            postal_code=f"{random.randint(10_000, 99_999)}",
            country=country,
            latitude=round(random.gauss(latitude, degrees), 6),
            longitude=round((random.gauss(longitude, degrees) + 180) % 360 - 180, 6),
            time_zone_id=self.zones[metro],
            neighborhood=self.get_neighborhood(metro) if number % 2 else None,
            is_active=number % 50 != 49,
            is_after_hours_support_enabled=number % 7 == 0,
            parking_information="Garage in the basement." if number % 2 else "",
            rank=random.randint(1, 1000),
            tax_rate=random.choice((Decimal(0), Decimal("8.25"), Decimal(19))),
        )
        landmarks = LANDMARKS[: number % 4]
        # Before it gets its id: with one, its landmarks would be read from the database.
        center.update_search_columns()
        center.search_text = "\n".join([center.search_text, *map(places.fold_text, landmarks)])
        self.add(center)
        for name in landmarks:
            self.add(Landmark(center=center, name=name, description="5 minutes.", type="Place"))
        for position in range(number % 3):
            self.add(CenterImage(center=center, position=position, **picture("image", number)))
        weekdays, opens, closes = HOURS[number % len(HOURS)]
        for weekday in weekdays:
            self.add(OpeningHours(center=center, weekday=weekday, opens=opens, closes=closes))
        holiday = localize(
            dt.datetime.combine(dt.date(self.now.year, 12, 25), dt.time()), center.zone
        )
        self.add(
            Closure(
                center=center,
                starts_at=holiday,
                ends_at=holiday + dt.timedelta(days=1),
                reason="Christmas Day",
            )
        )
        services, rooms = self.add_services_and_rooms(center, number)
        for place in range(reservations):
            room = rooms[place % len(rooms)]
            slot = (number * 37 + place // len(rooms) * SLOT_STEP) % SLOTS
            self.add_reservation(room, slot, services if place % 3 == 0 else [])

    def get_neighborhood(self, metro: tuple[Any, ...]) -> Neighborhood:
        name, (city, state) = self.random.choice(PARTS), metro[:2]
        if (name, city) not in self.neighborhoods:
            self.neighborhoods[name, city] = self.add(
                Neighborhood(name=name, original_name=name, city=city, state=state)
            )
        return self.neighborhoods[name, city]

    def add_services_and_rooms(
        self, center: Center, number: int
    ) -> tuple[list[Service], list[MeetingRoom]]:
        """Returns the services, and the rooms that customers can book."""
        random = self.random
        level = random.choice(LEVELS)

        def add_rate(name: str, prices: dict[str, Any]) -> Rate:
            scaled = {
                key: value * level if key in PRICES else value for key, value in prices.items()
            }
            return self.add(Rate(center=center, name=name, **scaled))

        services = [
            self.add(
                Service(
                    center=center,
                    resource_type=self.types[name],
                    name=name,
                    description=f"{name}, as much as the meeting needs.",
                    rate=add_rate(f"Service: {name}", prices),
                    position=position,
                    **needs,
                )
            )
            for position, (name, (prices, needs)) in enumerate(SERVICES.items())
            if random.random() < 0.8
        ]
        rates = {name: add_rate(name, prices) for name, prices in ROOM_RATES.items()}
        rooms = []
        for place in range(ROOM_COUNTS[number % len(ROOM_COUNTS)]):
            kind = random.choice(list(ROOM_RATES))
            room = MeetingRoom(
                center=center,
                name=f"{random.choice(WORDS)} {place + 1}",
                resource_type=self.types[kind],
                capacity=random.choice((4, 8, 12, 20)),
                rate=rates[kind],
                is_live_inventory=random.random() < 0.85,
                # The first room of each center can be booked.
                is_active=place == 0 or random.random() > 0.02,
                provider="Partner venues" if random.random() < 0.1 else "",
                turnaround_minutes=random.choices((0, 15, 30), (80, 12, 8))[0],
                **(picture("picture", place) if place % 3 else {}),
            )
            self.add(room)
            if room.is_active:
                rooms.append(room)
        return services, rooms

    def add_reservation(self, room: MeetingRoom, slot: int, services: list[Service]) -> None:
        random, customer = self.random, self.random.choice(self.customers)
        start = localize(
            dt.datetime.combine(self.days[slot // 2], dt.time((9, 13)[slot % 2])), room.center.zone
        )
        span = Span(start, start + dt.timedelta(hours=random.choice((1, 1, 2, 3))))
        created_at = min(start, self.now) - dt.timedelta(days=random.randint(3, 60))
        booked_at = created_at + dt.timedelta(minutes=5)
        if random.random() < 0.05:
            status = Status.EXPIRED
        elif start <= self.now:
            status = Status.COMPLETED
        else:
            status = Status.CONFIRMED if room.is_live_inventory else Status.PENDING
        extras = [
            ServiceSelection(
                each,
                Decimal(1) if each.needs_duration else None,
                4 if each.needs_quantity else None,
            )
            for each in services[:2]
        ]
        quote = calculate_quote(room, span, services=extras)
        turnaround = dt.timedelta(minutes=room.turnaround_minutes)
        reservation = self.add(
            Reservation(
                user=customer,
                room=room,
                start=span.start,
                end=span.end,
                turnaround_minutes=room.turnaround_minutes,
                occupied_from=span.start - turnaround,
                occupied_until=span.end + turnaround,
                status=status,
                holds_slot=status in HOLDING_STATUSES,
                uid=self.draw_uuid(),
                number_of_attendees=2,
                currency=settings.CURRENCY,
                total_cost=quote.total,
                billable_hours=quote.room.billable_hours,
                cancellation_notice_hours=settings.CANCELLATION_NOTICE_HOURS,
                cancellation_grace_minutes=settings.CANCELLATION_GRACE_MINUTES,
                created_at=created_at,
                booked_at=None if status == Status.EXPIRED else booked_at,
            )
        )
        for position, line in enumerate(quote.lines, start=1):
            columns = {name: getattr(line, name) for name in LINE_COLUMNS}
            self.add(LineItem(reservation=reservation, position=position, **columns))
        for is_creator, name in ((True, customer.get_full_name()), (False, "Mei Guest")):
            self.add(
                Attendee(
                    reservation=reservation,
                    is_creator=is_creator,
                    name=name,
                    email_address=customer.email if is_creator else "mei@guests.example",
                )
            )
        for extra in extras:
            self.add(
                ChosenService(
                    reservation=reservation,
                    service=extra.service,
                    duration_hours=extra.duration_hours,
                    quantity=extra.quantity,
                )
            )
        if status != Status.EXPIRED and quote.total:
            self.add_payment(reservation, booked_at)

    def draw_uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self.random.getrandbits(128), version=4)

    def add_payment(self, reservation: Reservation, at: dt.datetime) -> None:
        """Writes the payment, for the product and for the sandbox gateway."""
        is_captured = reservation.status != Status.PENDING
        key = self.draw_uuid()
        common = {
            "key": key,
            "state": PaymentState.CAPTURED if is_captured else PaymentState.AUTHORIZED,
            "amount": reservation.total_cost,
            "currency": reservation.currency,
            "created_at": at,
        }
        self.add(
            Payment(
                **common,
                reservation=reservation,
                cash_center_id=reservation.room.center_id,
                gateway="sandbox",
                reference=f"pay_{key.hex}",
                card_brand="Visa",
                card_last4="4242",
                lease_until=at + dt.timedelta(minutes=1),
                authorized_at=at,
                captured_at=at if is_captured else None,
            )
        )
        self.add(
            SandboxPayment(
                **common,
                refunded=0,
                brand="Visa",
                last4="4242",
                description=f"Reservation {reservation.pk}",
                captures=int(is_captured),
            )
        )


def picture(field: str, number: int) -> dict[str, str]:
    """The names of a picture and of its thumbnail. No page reads the files."""
    thumbnail = "thumbnail" if field == "image" else f"{field}_thumbnail"
    name = f"generated/{number % 12}"
    return {field: f"{name}.jpg", thumbnail: f"{name}-small.jpg"}


def generate(*, centers: int, reservations: int, now: dt.datetime) -> None:
    """Adds this many centers and reservations to an empty database."""
    generator = Generator(now, reservations)
    for number in range(centers):
        share = reservations * (number + 1) // centers - reservations * number // centers
        generator.add_center(number, share)
        generator.writer.flush(minimum=BATCH_SIZE)
    generator.writer.finish()


def main() -> None:
    parser = ArgumentParser(prog="python -m tests.bench.generate", description=__doc__)
    parser.add_argument("--centers", type=int, default=1000, metavar="N")
    parser.add_argument("--reservations", type=int, default=10_000, metavar="N")
    options = parser.parse_args()
    if not settings.DEBUG:
        sys.exit("DEBUG is off. The Tokens of generated accounts are public.")
    generate(centers=options.centers, reservations=options.reservations, now=timezone.now())


if __name__ == "__main__":
    main()
