"""The demo centers, made as rows."""

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal

from django.core.files.base import ContentFile

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
from reservations.demo import pictures, priced
from reservations.demo.catalog import (
    EXTRAS,
    HOLIDAYS,
    HOURS,
    ROOM_TARIFFS,
)
from reservations.demo.world import CENTERS, DemoCenter, DemoRoom

Tell = Callable[[str], object]


def make(*, now: dt.datetime, tell: Tell) -> None:
    """Make all centers. The caller is in a transaction."""
    types = _make_types()
    for number, each in enumerate(CENTERS, start=1):
        tell(f"[{number}/{len(CENTERS)}] {each.name}, {each.city}: {len(each.rooms)} rooms")
        _make_center(each, types, now)


def _make_types() -> dict[str, ResourceType]:
    rows = ResourceType.objects.bulk_create(priced.resource_types())
    return {row.name: row for row in rows}


def _make_center(demo: DemoCenter, types: dict[str, ResourceType], now: dt.datetime) -> None:
    center = Center(
        name=demo.name,
        street1=demo.street1,
        street2=demo.street2,
        city=demo.city,
        state=demo.state,
        postal_code=demo.postal_code,
        country=demo.country,
        latitude=demo.latitude,
        longitude=demo.longitude,
        time_zone_id=demo.time_zone_id,
        neighborhood=_neighborhood(demo),
        is_after_hours_support_enabled=demo.after_hours,
        promo_text=demo.promo_text,
        parking_information=demo.parking,
        is_new_location=demo.is_new,
        is_new_low_price=demo.has_new_low_price,
        rank=demo.rank,
        tax_rate=Decimal(demo.tax),
    )
    center.save()
    for name, kind, description in demo.landmarks:
        Landmark.objects.create(center=center, name=name, type=kind, description=description)
    OpeningHours.objects.bulk_create(
        OpeningHours(center=center, weekday=day, opens=opens, closes=closes)
        for day, stretches in HOURS[demo.hours].items()
        for opens, closes in stretches
    )
    level = Decimal(demo.level)
    _make_services(center, demo, types, level)
    rooms = _make_rooms(center, demo, types, level)
    Closure.objects.bulk_create(_closures(center, demo, rooms, now))
    for number in range(demo.images):
        drawn = pictures.outside(f"{demo.name} {number}")
        image = ContentFile(drawn, name="center.jpg")
        CenterImage.objects.create(center=center, image=image, position=number)


def _neighborhood(demo: DemoCenter) -> Neighborhood:
    name, original = demo.neighborhood
    return Neighborhood.objects.create(
        name=name,
        original_name=original,
        city=demo.city,
        state=demo.state,
        custom_title=f"Meeting rooms in {name}, {demo.city}",
        landing_page_content=f"Rooms by the hour, the half day and the day in {name}.",
        coworking_landing_page_content=f"Day offices and booths in {name}.",
    )


def _make_services(
    center: Center, demo: DemoCenter, types: dict[str, ResourceType], level: Decimal
) -> None:
    extras = [EXTRAS[key] for key in demo.extras]
    rates = Rate.objects.bulk_create(priced.rate_of_extra(center, extra, level) for extra in extras)
    Service.objects.bulk_create(
        priced.service(center, extra, rate, types[extra.type].pk, position)
        for position, (extra, rate) in enumerate(zip(extras, rates, strict=True))
    )


def _make_rooms(
    center: Center, demo: DemoCenter, types: dict[str, ResourceType], level: Decimal
) -> dict[str, MeetingRoom]:
    names = list(dict.fromkeys(map(_tariff_of, demo.rooms)))
    rates = Rate.objects.bulk_create(
        priced.rate(center, name, ROOM_TARIFFS[name], level) for name in names
    )
    rate_of = dict(zip(names, rates, strict=True))
    rooms = {}
    for each in demo.rooms:
        drawn = pictures.inside(f"{demo.name} {each.name}", each.capacity)
        rooms[each.name] = MeetingRoom.objects.create(
            center=center,
            name=each.name,
            resource_type=types[each.type],
            capacity=each.capacity,
            rate=rate_of[_tariff_of(each)],
            is_live_inventory=each.is_live,
            is_blocked=each.is_blocked,
            provider=each.provider,
            picture=ContentFile(drawn, name="room.jpg"),
            turnaround_minutes=each.turnaround_minutes,
            minimum_minutes=each.minimum_minutes,
        )
    return rooms


def _tariff_of(room: DemoRoom) -> str:
    return room.tariff or room.type


def _closures(
    center: Center, demo: DemoCenter, rooms: dict[str, MeetingRoom], now: dt.datetime
) -> Iterator[Closure]:
    """Each holiday once, as it comes next; and the room that is being renewed."""
    today = now.astimezone(center.zone).date()
    for month, day, name in HOLIDAYS[demo.country]:
        date = today.replace(month=month, day=day)
        if date <= today:
            date = date.replace(year=today.year + 1)
        yield _closure(center, date, 1, name)
    if demo.maintenance is not None:
        name, days, reason = demo.maintenance
        yield _closure(center, today + dt.timedelta(days), 2, reason, room=rooms[name])


def _closure(
    center: Center, date: dt.date, days: int, reason: str, room: MeetingRoom | None = None
) -> Closure:
    midnight = dt.datetime.combine(date, dt.time())
    return Closure(
        center=center,
        room=room,
        starts_at=localize(midnight, center.zone),
        ends_at=localize(midnight + dt.timedelta(days), center.zone),
        reason=reason,
    )
