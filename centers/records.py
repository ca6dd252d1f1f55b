"""What answers show of centers: plain rows, read in one question a table however many there are.

The rows have the attributes of the models that they are read from, so whatever tells of a Center
can tell of a ShownCenter; model instances and their prefetches would cost several times as much.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import QuerySet

from centers import rates
from centers.models import CenterImage, Landmark, MeetingRoom, OpeningHours, Service
from centers.record_properties import CenterFacts
from roombook import images
from roombook.address import AddressProperties
from roombook.db.compiled_queries import compiled_query, int_list_param


class RateRecord(NamedTuple):
    """The tiers of a rate, fit for `centers.rates`; equal tiers are equal."""

    is_flat_rate: bool
    flat_rate: Decimal | None
    hourly: Decimal | None
    half_day: Decimal | None
    full_day: Decimal | None
    setup_fee: Decimal | None
    bill_in_blocks: bool
    description: str

    @property
    def description_for_customers(self) -> str:
        return self.description or rates.describe_rate(self)


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
    def duration_hours(self) -> None:
        """The customer's to say, not the center's."""

    @property
    def quantity(self) -> None:
        """The customer's to say, too."""

    @property
    def rate_description(self) -> str:
        return rates.format_entry_price(self.rate)


class RoomRecord(NamedTuple):
    id: int
    center_id: int
    name: str
    resource_type_id: int
    capacity: int
    is_live_inventory: bool
    provider: str
    picture: str
    picture_thumbnail: str
    rate: RateRecord | None
    available_services: "list[ServiceRecord]"

    @property
    def lowest_rate(self) -> str:
        return rates.format_entry_price(self.rate)


class ImageRecord(NamedTuple):
    """The addresses of a picture; empty where there is none."""

    image: str
    thumbnail: str


class LandmarkRecord(NamedTuple):
    name: str
    description: str
    type: str


class CenterRow(NamedTuple):
    """The columns of a center that answers show."""

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


CENTER_COLUMNS = CenterRow._fields
RATE_COLUMNS = ("rate_id", *(f"rate__{name}" for name in RateRecord._fields))
ROOM_COLUMNS = (*RoomRecord._fields[:-2], *RATE_COLUMNS)
SERVICE_COLUMNS = (*ServiceRecord._fields[:-1], *RATE_COLUMNS)


@dataclass(slots=True, eq=False)
class CenterRecord(CenterFacts, AddressProperties):
    """A center with all that answers show of it."""

    row: CenterRow
    distance_from_query: float | None = None
    rooms_on_offer: list[RoomRecord] = field(default_factory=list)
    # Those of the rooms that an answer lists: a search keeps the ones that its filters want.
    meeting_rooms: list[RoomRecord] = field(default_factory=list)
    services_on_offer: list[ServiceRecord] = field(default_factory=list)
    opening_hours: list[tuple[int, dt.time, dt.time]] = field(default_factory=list)
    images: list[ImageRecord] = field(default_factory=list)
    landmarks: list[LandmarkRecord] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        # What is not a list of its own is a column.
        return getattr(object.__getattribute__(self, "row"), name)

    def stretches(self) -> list[tuple[int, dt.time, dt.time]]:
        return self.opening_hours

    def pictures(self) -> list[ImageRecord]:
        return self.images


def load_related(centers: Sequence[CenterRecord]) -> Sequence[CenterRecord]:
    """These centers with their lists, in five questions."""
    by_id = {center.row.id: center for center in centers}
    ids = list(by_id)
    for row in query_services(centers=ids):
        by_id[row[1]].services_on_offer.append(build_service_record(row))
    for row in query_rooms(centers=ids):
        center = by_id[row[1]]
        center.rooms_on_offer.append(build_room_record(row, center.services_on_offer))
    for pk, *stretch in query_opening_hours(centers=ids):
        by_id[pk].opening_hours.append(tuple(stretch))
    for pk, *image in query_images(centers=ids):
        by_id[pk].images.append(ImageRecord(*map(images.get_url, image)))
    for pk, *landmark in query_landmarks(centers=ids):
        by_id[pk].landmarks.append(LandmarkRecord(*landmark))
    for center in centers:
        center.meeting_rooms = center.rooms_on_offer
    return centers


def build_rate_record(cells: Sequence[Any]) -> RateRecord | None:
    """From the cells of RATE_OF."""
    return None if cells[0] is None else RateRecord._make(cells[1:])


def build_room_record(row: Sequence[Any], services: list[ServiceRecord]) -> RoomRecord:
    """From the cells of ROOM_COLUMNS."""
    picture, thumbnail = map(images.get_url, row[7:9])
    return RoomRecord._make((*row[:7], picture, thumbnail, build_rate_record(row[9:]), services))


def build_service_record(row: Sequence[Any]) -> ServiceRecord:
    """From the cells of SERVICE_COLUMNS."""
    return ServiceRecord._make((*row[:-9], build_rate_record(row[-9:])))


# --- The questions, each for any number of centers ------------------------------------------------


@compiled_query(keep_plan=True)
def query_rooms() -> QuerySet[Any, Any]:
    rooms = MeetingRoom.objects.on_offer().filter(center__any_of=int_list_param("centers"))
    return rooms.order_by("name", "pk").values_list(*ROOM_COLUMNS)


@compiled_query(keep_plan=True)
def query_services() -> QuerySet[Any, Any]:
    services = Service.objects.filter(is_active=True, center__any_of=int_list_param("centers"))
    return services.values_list(*SERVICE_COLUMNS)


@compiled_query(keep_plan=True)
def query_opening_hours() -> QuerySet[Any, Any]:
    found = OpeningHours.objects.filter(center__any_of=int_list_param("centers"))
    return found.values_list("center_id", "weekday", "opens", "closes")


@compiled_query(keep_plan=True)
def query_images() -> QuerySet[Any, Any]:
    found = CenterImage.objects.filter(center__any_of=int_list_param("centers"))
    return found.values_list("center_id", *ImageRecord._fields)


@compiled_query(keep_plan=True)
def query_landmarks() -> QuerySet[Any, Any]:
    found = Landmark.objects.filter(center__any_of=int_list_param("centers"))
    return found.values_list("center_id", *LandmarkRecord._fields)
