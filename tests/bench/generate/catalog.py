"""The catalog of generated centers: room types, services, rates, opening hours, holidays."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import time
from decimal import Decimal

from centers.models import Center, Rate, ResourceType, Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """Prices at level 1. Each center multiplies them by its own price level."""

    hourly: str | None = None
    half_day: str | None = None
    full_day: str | None = None
    flat: str | None = None
    setup_fee: str | None = None
    bill_in_blocks: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOffer:
    """A service that a center may offer."""

    name: str
    type: str
    description: str
    tariff: Tariff
    needs_duration: bool = False
    needs_quantity: bool = False
    bill_at_center: bool = False
    minimum_booking: int = 0


ROOM_TYPES = (
    *("Board room", "Meeting room", "Training room", "Day office", "Interview room"),
    *("Event space", "Focus booth"),
)
SERVICE_TYPES = ("Coffee and tea", "Catering", "Audio and video", "Equipment", "Parking", "Staff")
# These can be booked, but are not filters of a search.
INTERNAL_SERVICE_TYPES = ("Cleaning",)

ROOM_TARIFFS = {
    "Board room": Tariff(hourly="45", half_day="160", full_day="280"),
    "Meeting room": Tariff(hourly="25", half_day="90", full_day="160"),
    "Training room": Tariff(
        hourly="60", half_day="210", full_day="380", setup_fee="40", bill_in_blocks=True
    ),
    "Day office": Tariff(half_day="50", full_day="85"),
    "Interview room": Tariff(hourly="15", full_day="70"),
    "Event space": Tariff(
        flat="450", setup_fee="75", description="One price for the event, however long"
    ),
    "Focus booth": Tariff(hourly="8"),
    "Lecture hall": Tariff(full_day="900", setup_fee="120"),
    "Community table": Tariff(flat="0", description="Free for everybody"),
}

SERVICES = {
    "coffee": ServiceOffer(
        name="Coffee and tea",
        type="Coffee and tea",
        description="A cup and as many refills as the meeting needs.",
        tariff=Tariff(flat="4.50"),
        needs_quantity=True,
    ),
    "lunch": ServiceOffer(
        name="Lunch buffet",
        type="Catering",
        description="Warm and cold dishes, vegetarian and vegan ones among them.",
        tariff=Tariff(flat="19", setup_fee="25"),
        needs_quantity=True,
        minimum_booking=6,
    ),
    "projector": ServiceOffer(
        name="Projector and screen",
        type="Audio and video",
        description="Full HD with HDMI and USB-C.",
        tariff=Tariff(hourly="12"),
        needs_duration=True,
    ),
    "video": ServiceOffer(
        name="Video conference",
        type="Audio and video",
        description="Camera, microphones and a large display, for the whole meeting.",
        tariff=Tariff(flat="40"),
    ),
    "microphone": ServiceOffer(
        name="Wireless microphone",
        type="Audio and video",
        description="Hand-held or clip-on.",
        tariff=Tariff(hourly="5"),
        needs_duration=True,
        needs_quantity=True,
    ),
    "flip chart": ServiceOffer(
        name="Flip chart",
        type="Equipment",
        description="With paper and pens.",
        tariff=Tariff(flat="0"),
    ),
    "parking": ServiceOffer(
        name="Parking space",
        type="Parking",
        description="Reserved for you, paid at the front desk.",
        tariff=Tariff(flat="15"),
        needs_quantity=True,
        bill_at_center=True,
    ),
    "host": ServiceOffer(
        name="Host at reception",
        type="Staff",
        description="Receives your guests and shows them in.",
        tariff=Tariff(hourly="35"),
        needs_duration=True,
        minimum_booking=2,
    ),
    "cleaning": ServiceOffer(
        name="Cleaning after the event",
        type="Cleaning",
        description="",
        tariff=Tariff(flat="60"),
    ),
}

# Opening intervals in local time by weekday (0 is Monday); a closing time of 00:00 is midnight.
Week = dict[int, tuple[tuple[time, time], ...]]


def _open(days: range, *intervals: tuple[int | float, int | float]) -> Week:
    return {day: tuple((_at(a), _at(b)) for a, b in intervals) for day in days}


def _at(hour: float) -> time:
    return time(int(hour) % 24, round(hour % 1 * 60))


MON_FRI, EVERY_DAY = range(5), range(7)
HOURS: dict[str, Week] = {
    "office": _open(MON_FRI, (8.5, 17)),
    "long": _open(MON_FRI, (7, 21)) | _open(range(5, 6), (9, 17)),
    "every day": _open(EVERY_DAY, (8, 20)),
    "late": _open(range(4), (8, 22)) | _open(range(4, 5), (8, 24)) | _open(range(5, 6), (10, 24)),
    "lunch break": _open(MON_FRI, (9, 12.5), (13.5, 18.5)),
    "always": _open(EVERY_DAY, (0, 24)),
}

# (month, day, name), by country.
HOLIDAYS: dict[str, tuple[tuple[int, int, str], ...]] = {
    "US": (
        (1, 1, "New Year's Day"),
        (7, 4, "Independence Day"),
        (12, 25, "Christmas Day"),
    ),
    "CA": ((1, 1, "New Year's Day"), (7, 1, "Canada Day"), (12, 25, "Christmas Day")),
    "GB": ((1, 1, "New Year's Day"), (12, 25, "Christmas Day"), (12, 26, "Boxing Day")),
    "FR": ((1, 1, "Jour de l'an"), (7, 14, "Fête nationale"), (12, 25, "Noël")),
    "CH": ((1, 1, "Neujahr"), (8, 1, "Bundesfeiertag"), (12, 25, "Weihnachten")),
    "KE": ((1, 1, "New Year's Day"), (12, 12, "Jamhuri Day"), (12, 25, "Christmas Day")),
    "IN": ((1, 26, "Republic Day"), (8, 15, "Independence Day"), (10, 2, "Gandhi Jayanti")),
    "JP": ((1, 1, "Ganjitsu"), (1, 2, "New Year holiday"), (1, 3, "New Year holiday")),
    "AU": ((1, 26, "Australia Day"), (4, 25, "Anzac Day"), (12, 25, "Christmas Day")),
    "BR": ((1, 1, "Ano Novo"), (9, 7, "Independência"), (12, 25, "Natal")),
}


def scale_price(amount: str | None, level: Decimal) -> Decimal | None:
    """The price at a price level, rounded to full units, or to quarters if it is below 10."""
    if amount is None:
        return None
    exact = Decimal(amount) * level
    step = Decimal("0.25") if exact < 10 else Decimal(1)
    return (exact / step).quantize(Decimal(1)) * step


def build_resource_types() -> Iterator[ResourceType]:
    """Types of rooms and of services in their order, not saved."""
    services = (*SERVICE_TYPES, *INTERNAL_SERVICE_TYPES)
    for is_service, names in ((False, ROOM_TYPES), (True, services)):
        for position, name in enumerate(names):
            yield ResourceType(
                name=name,
                is_service=is_service,
                position=position,
                internal=name in INTERNAL_SERVICE_TYPES,
            )


def build_rate(center: Center, name: str, tariff: Tariff, level: Decimal) -> Rate:
    """The rate at the price level of a center, not saved."""
    return Rate(
        center=center,
        name=name,
        is_flat_rate=tariff.flat is not None,
        flat_rate=scale_price(tariff.flat, level),
        hourly=scale_price(tariff.hourly, level),
        half_day=scale_price(tariff.half_day, level),
        full_day=scale_price(tariff.full_day, level),
        setup_fee=scale_price(tariff.setup_fee, level),
        bill_in_blocks=tariff.bill_in_blocks,
        description=tariff.description,
    )


def build_service_rate(center: Center, offer: ServiceOffer, level: Decimal) -> Rate:
    return build_rate(center, f"Service: {offer.name}", offer.tariff, level)


def build_service(
    center: Center, offer: ServiceOffer, rate: Rate, type_id: int, position: int
) -> Service:
    return Service(
        center=center,
        resource_type_id=type_id,
        name=offer.name,
        description=offer.description,
        rate=rate,
        bill_at_center=offer.bill_at_center,
        minimum_booking=offer.minimum_booking,
        needs_duration=offer.needs_duration,
        needs_quantity=offer.needs_quantity,
        position=position,
    )
