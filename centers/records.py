"""Records of centers and rooms: what responses show of them, read without model instances.

However many centers a response shows, each table is read by one query; model instances and
prefetches would take several times as long. Serializers render records (centers/serializers.py).
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils import timezone

from accounts.models import User
from centers import hours, price_lists, rates
from centers.models import (
    Center,
    CenterImage,
    Favorite,
    Landmark,
    MeetingRoom,
    OpeningHours,
    PriceList,
    Service,
)
from roombook import images, places
from roombook.address import AddressProperties
from roombook.db.compiled_queries import query_related
from roombook.errors import NotFound


class PriceListRecord(NamedTuple):
    """A special price list of a rate, and when it holds."""

    name: str
    weekdays: str
    starts: dt.time
    ends: dt.time
    valid_from: dt.date | None
    valid_until: dt.date | None
    is_yearly: bool
    hourly: Decimal | None
    half_day: Decimal | None
    full_day: Decimal | None


# The price lists of rates, by the rates' ids.
SpecialPrices: TypeAlias = dict[int, tuple[PriceListRecord, ...]]


@dataclass(frozen=True, eq=False)
class RateRecord:
    """A rate and its texts. Equal rates share one record, so its texts are formatted once."""

    is_flat_rate: bool
    flat_rate: Decimal | None
    hourly: Decimal | None
    half_day: Decimal | None
    full_day: Decimal | None
    setup_fee: Decimal | None
    bill_in_blocks: bool
    description: str
    # Only those that still hold some day.
    special_prices: tuple[PriceListRecord, ...] = ()

    @cached_property
    def entry_price(self) -> rates.TierPrice | None:
        return rates.get_entry_price(self)

    @cached_property
    def entry_price_text(self) -> str:
        return "" if self.entry_price is None else str(self.entry_price)

    @cached_property
    def description_for_customers(self) -> str:
        return self.description or rates.describe_for_customers(self)


class ImageRecord(NamedTuple):
    """The URLs of an image and its thumbnail; empty if there is none."""

    image: str
    thumbnail: str


class ServiceRecord(NamedTuple):
    id: int
    center_id: int
    resource_type_id: int
    name: str
    description: str
    bill_at_center: bool
    minimum_booking: int
    needs_duration: bool
    needs_quantity: bool
    position: int
    rate: RateRecord | None

    @property
    def rate_description(self) -> str:
        return self.rate.entry_price_text if self.rate else ""

    @property
    def duration_hours(self) -> None:
        """Part of ServiceInfo, but only customers fill it in."""

    @property
    def quantity(self) -> None:
        """Part of ServiceInfo, but only customers fill it in."""


class RoomRecord(NamedTuple):
    id: int
    center_id: int
    name: str
    resource_type_id: int
    capacity: int
    is_live_inventory: bool
    provider: str
    picture: ImageRecord
    rate: RateRecord | None
    # The same list for all rooms of a center.
    available_services: list[ServiceRecord]

    @property
    def lowest_rate(self) -> str:
        return self.rate.entry_price_text if self.rate else ""


class LandmarkRecord(NamedTuple):
    name: str
    description: str
    type: str


class CenterHoursRecord(NamedTuple):
    """A run of weekdays with equal opening hours."""

    value: str
    display_value: str


@dataclass(slots=True, eq=False)
class CenterColumns:
    """The columns of a center that responses show, and whether it is a favorite of the account."""

    id: int
    name: str
    street1: str
    street2: str
    street3: str
    city: str
    state: str
    postal_code: str
    country: str
    latitude: float | None
    longitude: float | None
    time_zone_id: str
    promo_text: str
    is_after_hours_support_enabled: bool
    parking_information: str
    is_new_location: bool
    is_new_low_price: bool
    neighborhood_id: int | None
    is_favorite: bool


@dataclass(slots=True, eq=False)
class CenterRecord(CenterColumns, AddressProperties):
    """A center with everything that responses show of it."""

    distance_from_query: float | None = None
    rooms_on_offer: list[RoomRecord] = field(default_factory=list)
    # The rooms that a response lists: a search keeps those that match its filters.
    meeting_rooms: list[RoomRecord] = field(default_factory=list)
    services_on_offer: list[ServiceRecord] = field(default_factory=list)
    opening_hours: list[tuple[int, dt.time, dt.time]] = field(default_factory=list)
    images: list[ImageRecord] = field(default_factory=list)
    landmarks: list[LandmarkRecord] = field(default_factory=list)

    @property
    def zone(self) -> ZoneInfo:
        return places.get_time_zone(self.time_zone_id)

    @property
    def image(self) -> ImageRecord | None:
        return self.images[0] if self.images else None

    @property
    def center_hours(self) -> list[CenterHoursRecord]:
        return [CenterHoursRecord(*run) for run in hours.summarize_intervals(self.opening_hours)]

    @property
    def center_hours_concatenated(self) -> str:
        return "; ".join(text for _, text in hours.summarize_intervals(self.opening_hours))

    @property
    def lowest_rate(self) -> str:
        """The lowest entry price of the rooms; hourly prices go before daily ones."""
        prices = (room.rate.entry_price for room in self.rooms_on_offer if room.rate)
        lowest = rates.pick_lowest_price(prices)
        return "" if lowest is None else str(lowest)

    @property
    def is_live_inventory(self) -> bool:
        return any(room.is_live_inventory for room in self.rooms_on_offer)

    @property
    def is_not_favorite(self) -> bool:
        return not self.is_favorite


CENTER_COLUMNS = tuple(each.name for each in fields(CenterColumns))
RATE_FIELDS = tuple(each.name for each in fields(RateRecord) if each.name != "special_prices")
RATE_COLUMNS = ("rate_id", "rate__has_special_prices", *(f"rate__{name}" for name in RATE_FIELDS))
ROOM_COLUMNS = (*RoomRecord._fields[:7], "picture", "picture_thumbnail", *RATE_COLUMNS)
FIRST_RATE_COLUMN = ROOM_COLUMNS.index("rate_id")
SERVICE_COLUMNS = (*ServiceRecord._fields[:-1], *RATE_COLUMNS)


query_services = query_related(Service.objects.filter(is_active=True), "center", SERVICE_COLUMNS)
query_rooms = query_related(
    MeetingRoom.objects.on_offer().order_by("name", "pk"), "center", ROOM_COLUMNS
)
query_opening_hours = query_related(
    OpeningHours.objects.all(), "center", ("weekday", "opens", "closes")
)
query_images = query_related(CenterImage.objects.all(), "center", ImageRecord._fields)
query_landmarks = query_related(Landmark.objects.all(), "center", LandmarkRecord._fields)


def get_center(center_id: int, user: User) -> CenterRecord:
    """Return an active center as this account sees it, or raise NotFound."""
    centers = Center.objects.active().filter(pk=center_id)
    centers = centers.annotate(is_favorite=Favorite.objects.exists_for(user.pk))
    row = centers.values_list(*CENTER_COLUMNS).first()
    if row is None:
        raise NotFound
    center = CenterRecord(*row)
    load_related([center])
    return center


def load_related(
    centers: Sequence[CenterRecord], rooms: Iterable[Sequence[Any]] = ()
) -> SpecialPrices:
    """Fill the lists of these centers, in five queries, or in six if rooms have special prices.

    Return the special prices of their rooms, and of those that are other rows of ROOM_COLUMNS.
    """
    by_id = {center.id: center for center in centers}
    ids = list(by_id)
    for center_id, *row in query_services(ids=ids):
        by_id[center_id].services_on_offer.append(build_service_record(row))
    rooms_on_offer = list(query_rooms(ids=ids))
    special_prices = _load_special_prices(centers, [*rooms, *(row[1:] for row in rooms_on_offer)])
    for center_id, *row in rooms_on_offer:
        center = by_id[center_id]
        room = build_room_record(row, center.services_on_offer, special_prices)
        center.rooms_on_offer.append(room)
    for center_id, *interval in query_opening_hours(ids=ids):
        by_id[center_id].opening_hours.append(tuple(interval))
    for center_id, *files in query_images(ids=ids):
        by_id[center_id].images.append(ImageRecord(*map(images.get_url, files)))
    for center_id, *columns in query_landmarks(ids=ids):
        by_id[center_id].landmarks.append(LandmarkRecord(*columns))
    for center in centers:
        center.meeting_rooms = center.rooms_on_offer
    return special_prices


def _load_special_prices(
    centers: Sequence[CenterRecord], rooms: Iterable[Sequence[Any]]
) -> SpecialPrices:
    """Return the price lists of the rates of these rows of ROOM_COLUMNS that have some."""
    ids = {row[FIRST_RATE_COLUMN] for row in rooms if row[FIRST_RATE_COLUMN + 1]}
    found: SpecialPrices = defaultdict(tuple)
    if ids:
        rows = PriceList.objects.filter(rate__in=ids).order_by("pk")
        now = timezone.now()  # noqa: TID251 (records have no `now`)
        # The first day that any of the centers has now.
        today = min(now.astimezone(each.zone).date() for each in centers)
        for rate_id, *columns in rows.values_list("rate_id", *PriceListRecord._fields):
            record = PriceListRecord._make(columns)
            if not price_lists.has_ended(record, today):
                found[rate_id] += (record,)
    return found


def build_rate_record(row: Sequence[Any], special_prices: SpecialPrices) -> RateRecord | None:
    """Return the record of a row of RATE_COLUMNS."""
    rate_id, _, is_flat_rate, *others = row
    if rate_id is None:
        return None
    # A flat rate has none.
    lists = () if is_flat_rate else special_prices.get(rate_id, ())
    columns = (is_flat_rate, *others, lists)
    return _get_shared_rate_record(columns, settings.CURRENCY, settings.LOCALE)


# The texts of a record depend on the currency and the locale, which tests change.
@lru_cache(maxsize=4096)
def _get_shared_rate_record(columns: tuple[Any, ...], currency: str, locale: str) -> RateRecord:
    return RateRecord(*columns)


def build_room_record(
    row: Sequence[Any], services: list[ServiceRecord], special_prices: SpecialPrices
) -> RoomRecord:
    """Return the record of a row of ROOM_COLUMNS."""
    picture = ImageRecord(*map(images.get_url, row[7:FIRST_RATE_COLUMN]))
    rate = build_rate_record(row[FIRST_RATE_COLUMN:], special_prices)
    return RoomRecord._make((*row[:7], picture, rate, services))


def build_service_record(row: Sequence[Any]) -> ServiceRecord:
    """Return the record of a row of SERVICE_COLUMNS."""
    own = len(ServiceRecord._fields) - 1
    return ServiceRecord._make((*row[:own], build_rate_record(row[own:], {})))
