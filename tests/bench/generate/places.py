"""The generated centers: as dense as their cities, with everything that responses contain."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import cos, radians
from random import Random

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

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
from reservations.demo.data_files import read_picture
from roombook import images, places
from tests.bench.generate import catalog
from tests.bench.generate.loading import Loader
from tests.bench.generate.metros import METROS, Metro
from tests.bench.generate.names import CENTER_FIRST, CENTER_SECOND, ROOM_NAMES, STREETS

MILES_PER_DEGREE = 69.0
# The numbers of rooms of ten centers: fifty in all.
ROOMS = (1, 2, 3, 3, 4, 4, 5, 6, 8, 14)
CAPACITIES = {
    "Board room": (8, 10, 12, 16, 20),
    "Meeting room": (4, 6, 8, 10),
    "Training room": (16, 20, 24, 30, 40),
    "Day office": (1, 2, 4),
    "Interview room": (2, 3, 4),
    "Event space": (40, 60, 80, 120),
    "Focus booth": (1, 2),
}
ROOM_WEIGHTS = (14, 45, 10, 12, 8, 4, 7)
# Price levels. There are few, because companies have few price lists.
LEVELS = tuple(map(Decimal, ("0.5", "0.6", "0.8", "0.9", "1", "1.1", "1.3", "1.6", "2")))
TAXES = {
    "US": ("0", "4.5", "6.25", "7", "8.25", "8.81", "8.875", "10.25"),
    "CA": ("5", "13", "15"),
    "GB": ("20",),
    "DE": ("19",),
    "FR": ("20",),
    "JP": ("10",),
    "AU": ("10",),
    "CH": ("8.1",),
}
HOURS_WEIGHTS = {"office": 30, "long": 30, "every day": 15, "late": 10, "lunch break": 5}
ALWAYS_OPEN_WEIGHT = 10

PARTS = (
    *("Downtown", "Old Town", "Midtown", "Riverside", "Financial District", "West End"),
    *("University District", "Harbor District"),
)
SUBURBS = (
    *("Ashford", "Brookfield", "Cedar Park", "Eastgate", "Fairview", "Glenwood", "Lakewood"),
    *("Millbrook", "Northfield", "Oakdale", "Riverton", "Springfield", "Westbury", "Woodlawn"),
)
LANDMARKS = (
    *(("Central Station", "Station"), ("City Hall", "Public building"), ("Opera House", "Theater")),
    *(("Old Market", "Market"), ("Botanical Garden", "Park"), ("Stadium", "Sports")),
    *(("Convention Center", "Venue"), ("Art Museum", "Museum"), ("Ferry Terminal", "Port")),
)
PICTURES = 12


@dataclass(slots=True)
class Site:
    """A center with the data that its reservations need."""

    center: Center
    rooms: list[MeetingRoom]
    services: list[Service]
    # Intervals in which meetings take place, by weekday, in minutes of the day.
    meeting_hours: dict[int, list[tuple[int, int]]]
    closed_on: set[dt.date]


class SiteGenerator:
    """Generates one center after another."""

    def __init__(self, load: Loader, *, seed: int, today: dt.datetime) -> None:
        self.random = Random(f"{seed} centers")
        self.load = load
        self.today = today
        self.types = _get_resource_type_ids(load)
        self.images = _draw_pictures()
        self.neighborhoods = {
            (row.name, row.city, row.state): row for row in Neighborhood.objects.all()
        }
        self.add_neighborhood = load.get_instance_adder(Neighborhood)
        self.add_center = load.get_instance_adder(Center)
        self.add_room = load.get_instance_adder(MeetingRoom)
        self.add_rate = load.get_instance_adder(Rate)
        self.add_service = load.get_instance_adder(Service)
        self.add_hours = load.get_row_adder(OpeningHours, "center_id", "weekday", "opens", "closes")
        self.add_image = load.get_row_adder(
            CenterImage, "center_id", "image", "thumbnail", "position"
        )
        self.add_landmark = load.get_row_adder(Landmark, "center_id", "name", "description", "type")
        self.add_closure = load.get_row_adder(
            Closure, "center_id", "room_id", "starts_at", "ends_at", "reason"
        )
        self.zones = {metro: places.find_time_zone(*metro[3:5]) for metro in METROS}
        self.tiers = {
            metro: LEVELS.index(Decimal(1)) + (metro.thousands > 5000) - (metro.thousands < 1000)
            for metro in METROS
        }

    def generate(self, count: int) -> Iterator[Site]:
        random = self.random
        cities = random.choices(METROS, [metro.thousands for metro in METROS], k=count)
        rooms = [ROOMS[number % len(ROOMS)] for number in range(count)]
        random.shuffle(rooms)
        for metro, room_count in zip(cities, rooms, strict=True):
            yield self._generate_site(metro, room_count)

    def _generate_site(self, metro: Metro, room_count: int) -> Site:
        random = self.random
        center = self._generate_center(metro)
        level = LEVELS[self.tiers[metro] + random.choice((-2, -1, -1, 0, 0, 0, 1, 1, 2))]
        landmarks = random.sample(LANDMARKS, k=random.choice((0, 1, 1, 2, 3)))
        # Before it gets its id: with one, its landmarks would be read from the database.
        center.update_search_columns()
        names = [places.fold_text(name) for name, _ in landmarks]
        center.search_text = "\n".join([center.search_text, *names])
        self.add_center(center)
        pk = center.pk
        for name, kind in landmarks:
            self.add_landmark(pk, name, f"{random.randint(2, 20)} minutes on foot.", kind)
        for number in range(random.choice((0, 1, 1, 2, 3))):
            picture, thumbnail = random.choice(self.images)
            self.add_image(pk, picture, thumbnail, number)
        week = catalog.HOURS[
            random.choices(
                [*HOURS_WEIGHTS, "always"], [*HOURS_WEIGHTS.values(), ALWAYS_OPEN_WEIGHT]
            )[0]
        ]
        for weekday, intervals in week.items():
            for opens, closes in intervals:
                self.add_hours(pk, weekday, opens, closes)
        services = self._generate_services(center, level)
        rooms = self._generate_rooms(center, room_count, level)
        closed_on = self._generate_closures(center)
        return Site(center, rooms, services, _get_meeting_hours(week), closed_on)

    def _generate_center(self, metro: Metro) -> Center:
        random = self.random
        # Most centers are downtown, many in the suburbs, a few outside the city.
        miles_out = random.choices((2, 9, 60), (50, 42, 8))[0]
        spread = miles_out / MILES_PER_DEGREE * (0.4 + min(metro.thousands, 25_000) ** 0.5 / 80)
        latitude = max(-89.0, min(89.0, random.gauss(metro.latitude, spread)))
        wide = spread / max(0.1, cos(radians(metro.latitude)))
        longitude = (random.gauss(metro.longitude, wide) + 180) % 360 - 180
        is_downtown = miles_out == 2
        city = metro.city if is_downtown or random.random() < 0.5 else random.choice(SUBURBS)
        postal_code = f"{random.randint(10, 989):03}{random.randint(1, 99):02}"
        part = random.choice(PARTS) if is_downtown and random.random() < 0.9 else ""
        return Center(
            name=f"{random.choice(CENTER_FIRST)} {random.choice(CENTER_SECOND)}",
            street1=f"{random.randint(1, 2400)} {random.choice(CENTER_FIRST)}"
            f" {random.choice(STREETS)}",
            street2=f"Floor {random.randint(2, 40)}" if random.random() < 0.3 else "",
            city=city,
            state=metro.state,
            postal_code=postal_code,
            country=metro.country,
            latitude=round(latitude, 6),
            longitude=round(longitude, 6),
            time_zone_id=self.zones[metro],
            neighborhood=self._get_neighborhood(metro, part) if part else None,
            is_active=random.random() > 0.02,
            is_after_hours_support_enabled=random.random() < 0.15,
            promo_text="First coffee is on us." if random.random() < 0.1 else "",
            parking_information="Garage in the basement." if random.random() < 0.5 else "",
            is_new_location=random.random() < 0.05,
            is_new_low_price=random.random() < 0.05,
            rank=random.randint(1, 1000),
            tax_rate=Decimal(random.choice(TAXES.get(metro.country, ("0", "8", "15", "20")))),
        )

    def _get_neighborhood(self, metro: Metro, name: str) -> Neighborhood:
        key = (name, metro.city, metro.state)
        if key not in self.neighborhoods:
            row = Neighborhood(
                name=name,
                original_name=name,
                city=metro.city,
                state=metro.state,
                custom_title=f"Meeting rooms in {name}, {metro.city}",
                landing_page_content=f"Rooms by the hour, the half day and the day in {name}.",
            )
            self.add_neighborhood(row)
            self.neighborhoods[key] = row
        return self.neighborhoods[key]

    def _generate_services(self, center: Center, level: Decimal) -> list[Service]:
        random = self.random
        rows = []
        for position, key in enumerate(
            random.sample([*catalog.SERVICES], k=random.choice((2, 3, 4, 5, 6)))
        ):
            offer = catalog.SERVICES[key]
            rate = catalog.build_service_rate(center, offer, level)
            self.add_rate(rate)
            row = catalog.build_service(center, offer, rate, self.types[offer.type], position)
            self.add_service(row)
            rows.append(row)
        return rows

    def _generate_rooms(self, center: Center, count: int, level: Decimal) -> list[MeetingRoom]:
        """Generates the rooms, and returns those that customers can book."""
        random = self.random
        rates: dict[str, Rate] = {}
        bookable = []
        room_types = random.choices(catalog.ROOM_TYPES, ROOM_WEIGHTS, k=count)
        for name, room_type in zip(random.sample(ROOM_NAMES, k=count), room_types, strict=True):
            if room_type not in rates:
                rates[room_type] = catalog.build_rate(
                    center, room_type, catalog.ROOM_TARIFFS[room_type], level
                )
                self.add_rate(rates[room_type])
            picture, thumbnail = random.choice(self.images) if random.random() < 0.7 else ("", "")
            row = MeetingRoom(
                center=center,
                name=name,
                resource_type_id=self.types[room_type],
                capacity=random.choice(CAPACITIES[room_type]),
                rate=rates[room_type] if random.random() > 0.02 else None,
                is_live_inventory=random.random() < 0.85,
                is_active=random.random() > 0.02,
                is_blocked=random.random() < 0.01,
                provider="Partner venues" if random.random() < 0.1 else "",
                picture=picture,
                picture_thumbnail=thumbnail,
                turnaround_minutes=random.choices((0, 15, 30), (80, 12, 8))[0],
                minimum_minutes=60 if random.random() < 0.1 else None,
            )
            self.add_room(row)
            if row.rate is not None and row.is_active:
                bookable.append(row)
        return bookable

    def _generate_closures(self, center: Center) -> set[dt.date]:
        """Generates closures for the holidays of this year and the next, and returns their days."""
        days = set()
        for year in (self.today.year, self.today.year + 1):
            for month, day, name in catalog.HOLIDAYS.get(center.country, catalog.HOLIDAYS["GB"]):
                date = dt.date(year, month, day)
                midnight = dt.datetime.combine(date, dt.time())
                starts_at = localize(midnight, center.zone)
                ends_at = localize(midnight + dt.timedelta(days=1), center.zone)
                self.add_closure(center.pk, None, starts_at, ends_at, name)
                days.add(date)
        return days


def _get_resource_type_ids(load: Loader) -> dict[str, int]:
    """The ids of the types of rooms and services by name. Existing types are used."""
    ids = dict(ResourceType.objects.values_list("name", "pk"))
    add = load.get_instance_adder(ResourceType)
    for row in catalog.build_resource_types():
        if row.name not in ids:
            add(row)
            ids[row.name] = row.pk
    return ids


def _draw_pictures() -> list[tuple[str, str]]:
    """Pictures with their thumbnails, which all centers share. Existing files are used."""
    names = []
    for number in range(1, PICTURES + 1):
        pair = (f"generated/{number}.jpg", f"generated/{number}-small.jpg")
        if not default_storage.exists(pair[0]):
            drawn = ContentFile(read_picture(f"city-{number}.jpg"))
            default_storage.save(pair[0], drawn)
            small = images.resize_image(images.open_image(drawn), images.THUMBNAIL_SIDE_PIXELS)
            default_storage.save(pair[1], small)
        names.append(pair)
    return names


def _get_meeting_hours(
    week: dict[int, tuple[tuple[dt.time, dt.time], ...]],
) -> dict[int, list[tuple[int, int]]]:
    """The opening hours between 7:00 and 22:00, in minutes of the day.

    No clock change skips an hour in that part of the day.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    for weekday, intervals in week.items():
        for opens, closes in intervals:
            first = max(opens.hour * 60 + opens.minute, 7 * 60)
            last = min((closes.hour * 60 + closes.minute) or 24 * 60, 22 * 60)
            if last - first >= 60:
                found.setdefault(weekday, []).append((first, last))
    return found
