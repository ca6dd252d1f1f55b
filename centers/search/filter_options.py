"""The filters that are offered for a search (B9.8): those that its matches have values for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet

from centers.models import MeetingRoom, Neighborhood, ResourceType, Service
from centers.records import CenterRecord
from centers.search.queries import SearchQuery, filter_listed
from roombook.db.compiled_queries import Row, RowQuerySet, compiled_query, int_list_param


class ResourceTypeRecord(NamedTuple):
    """A type of room or of service."""

    id: int
    name: str
    is_service: bool
    position: int
    internal: bool


class NeighborhoodRecord(NamedTuple):
    id: int
    original_name: str
    name: str
    city: str
    state: str
    custom_title: str
    landing_page_content: str
    coworking_landing_page_content: str


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """The filters that are offered for a search."""

    room_types: Sequence[ResourceTypeRecord] = ()
    services: Sequence[ResourceTypeRecord] = ()
    neighborhoods: Sequence[NeighborhoodRecord] = ()


def collect_from_centers(centers: Sequence[CenterRecord]) -> FilterOptions:
    """The options of a search that found exactly these centers."""
    types = {room.resource_type_id for center in centers for room in center.rooms_on_offer}
    types |= {each.resource_type_id for center in centers for each in center.services_on_offer}
    neighborhoods = {center.neighborhood_id for center in centers} - {None}
    return _build_options(
        load_resource_types(types=list(types)),
        load_neighborhoods(neighborhoods=list(neighborhoods)),
    )


def collect_from_search(search: SearchQuery) -> FilterOptions:
    """The options of all centers that match a search, of which only some are listed."""
    listed = filter_listed(search.conditions)
    ids = listed.values("pk")
    rooms = MeetingRoom.objects.on_offer().filter(resource_type=OuterRef("pk"), center__in=ids)
    services = Service.objects.filter(
        is_active=True, resource_type=OuterRef("pk"), center__in=ids
    ).order_by()
    # Each type is checked on its own, so that its first room is enough.
    types = ResourceType.objects.filter(
        Q(Q(is_service=False), Exists(rooms)) | Q(Q(is_service=True), Exists(services))
    )
    neighborhoods = Neighborhood.objects.filter(pk__in=listed.values("neighborhood"))
    return _build_options(_select_resource_types(types), _select_neighborhoods(neighborhoods))


def _build_options(types: Iterable[Row], neighborhoods: Iterable[Row]) -> FilterOptions:
    records = [ResourceTypeRecord._make(row) for row in types]
    return FilterOptions(
        room_types=[each for each in records if not each.is_service],
        services=[each for each in records if each.is_service],
        neighborhoods=[NeighborhoodRecord._make(row) for row in neighborhoods],
    )


@compiled_query(keep_plan=True)
def load_resource_types() -> RowQuerySet:
    types = ResourceType.objects.filter(pk__any_of=int_list_param("types"))
    return _select_resource_types(types)


@compiled_query(keep_plan=True)
def load_neighborhoods() -> RowQuerySet:
    ids = int_list_param("neighborhoods")
    return _select_neighborhoods(Neighborhood.objects.filter(pk__any_of=ids))


def _select_resource_types(types: QuerySet[ResourceType]) -> RowQuerySet:
    """Internal types are for staff only."""
    types = types.filter(internal=False).order_by("position", "name", "pk")
    return types.values_list(*ResourceTypeRecord._fields)


def _select_neighborhoods(neighborhoods: QuerySet[Neighborhood]) -> RowQuerySet:
    return neighborhoods.order_by("name", "pk").values_list(*NeighborhoodRecord._fields)
