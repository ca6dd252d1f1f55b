"""The filters that are offered for a search (B9.8): those that its matches have values for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Exists, Min, OuterRef, Q, QuerySet

from centers.models import Center, MeetingRoom, Neighborhood, ResourceType, Service
from centers.records import CenterRecord
from centers.search.filters import has_bookable_room
from centers.search.queries import QueryShape, SearchQuery, filter_listed, filter_matching
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


# The types of up to this many centers are found through the centers' ids. Among more centers, each
# type is met soon; and PostgreSQL would read all rates rather than those of the centers' rooms.
MAX_CENTERS_BY_ID = 200


def collect_from_centers(centers: Sequence[CenterRecord]) -> FilterOptions:
    """The options of a search that found exactly these centers."""
    neighborhood_ids = {center.neighborhood_id for center in centers}
    return _load_by_ids(_get_resource_type_ids(centers), neighborhood_ids)


def collect_from_search(search: SearchQuery, centers: Sequence[CenterRecord]) -> FilterOptions:
    """The options of a search of which these centers are only a part."""
    sample = search.execute(load_sample)
    if len(sample) <= MAX_CENTERS_BY_ID:
        type_rows = load_resource_type_ids(centers=[pk for pk, _ in sample])
        return _load_by_ids(
            {type_id for (type_id,) in type_rows}, {neighborhood for _, neighborhood in sample}
        )
    known = list(_get_resource_type_ids(centers))
    return _build_options(
        search.execute(load_resource_types, known=known), _load_neighborhoods(search)
    )


def _get_resource_type_ids(centers: Iterable[CenterRecord]) -> set[int]:
    ids = {room.resource_type_id for center in centers for room in center.rooms_on_offer}
    return ids.union(each.resource_type_id for c in centers for each in c.services_on_offer)


def _load_by_ids(type_ids: Iterable[int], neighborhood_ids: Iterable[int | None]) -> FilterOptions:
    return _build_options(
        load_resource_types_by_id(types=list(type_ids)),
        load_neighborhoods_by_id(neighborhoods=[pk for pk in neighborhood_ids if pk is not None]),
    )


def _build_options(types: Iterable[Row], neighborhoods: Iterable[Row]) -> FilterOptions:
    records = [ResourceTypeRecord._make(row) for row in types]
    return FilterOptions(
        room_types=[each for each in records if not each.is_service],
        services=[each for each in records if each.is_service],
        neighborhoods=[NeighborhoodRecord._make(row) for row in neighborhoods],
    )


def _load_neighborhoods(search: SearchQuery) -> Sequence[Row]:
    """The neighborhoods in which a matching center is listed.

    In a selective search, one center of each neighborhood is tried first, because nearly every
    center is listed. Only the neighborhoods whose center is not listed are searched in full.
    """
    if not search.is_selective:
        return search.execute(load_neighborhoods)
    centers_by_neighborhood: dict[int, int] = dict(search.execute(load_one_center_per_neighborhood))
    tried = list(centers_by_neighborhood.values())
    listed = {pk for (pk,) in load_neighborhoods_of_listed(centers=tried)}
    if remaining := list(centers_by_neighborhood.keys() - listed):
        rows = search.execute(load_listed_neighborhoods, remaining=remaining)
        listed |= {pk for (pk,) in rows}
    return load_neighborhoods_by_id(neighborhoods=list(listed))


# --- Queries about all matching centers ----------------------------------------------------------


@compiled_query(keep_plan=False)
def load_sample(shape: QueryShape) -> RowQuerySet:
    """Id and neighborhood of the listed centers, of one more than MAX_CENTERS_BY_ID at most."""
    rows = filter_listed(shape).values_list("pk", "neighborhood_id")
    return rows[: MAX_CENTERS_BY_ID + 1]


@compiled_query(keep_plan=False)
def load_resource_types(shape: QueryShape) -> RowQuerySet:
    """The public types of the rooms and services of the listed centers.

    Each type is checked on its own, so that its first room is enough. `known` types are included
    without a check.
    """
    ids = filter_listed(shape).values("pk")
    rooms = MeetingRoom.objects.on_offer().filter(resource_type=OuterRef("pk"), center__in=ids)
    services = Service.objects.filter(
        is_active=True, resource_type=OuterRef("pk"), center__in=ids
    ).order_by()
    types = ResourceType.objects.filter(
        Q(pk__any_of=int_list_param("known"))
        | Q(Q(is_service=False), Exists(rooms))
        | Q(Q(is_service=True), Exists(services))
    )
    return _select_resource_types(types)


@compiled_query(keep_plan=False)
def load_neighborhoods(shape: QueryShape) -> RowQuerySet:
    ids = filter_listed(shape).values("neighborhood")
    return _select_neighborhoods(Neighborhood.objects.filter(pk__in=ids))


@compiled_query(keep_plan=False)
def load_one_center_per_neighborhood(shape: QueryShape) -> RowQuerySet:
    """Every neighborhood with one of its matching centers, which may not be listed."""
    centers = filter_matching(shape).filter(neighborhood__isnull=False).order_by()
    grouped = centers.values("neighborhood_id").annotate(center_id=Min("pk"))
    return grouped.values_list("neighborhood_id", "center_id")


@compiled_query(keep_plan=False)
def load_listed_neighborhoods(shape: QueryShape) -> RowQuerySet:
    """Those of the `remaining` neighborhoods in which a matching center is listed."""
    listed = filter_listed(shape).filter(neighborhood__any_of=int_list_param("remaining"))
    return listed.values_list("neighborhood_id").distinct()


# --- Queries by ids ------------------------------------------------------------------------------


@compiled_query(keep_plan=True)
def load_neighborhoods_of_listed() -> RowQuerySet:
    """The neighborhoods of those of these centers that are listed."""
    centers = Center.objects.active().filter(pk__any_of=int_list_param("centers"))
    return centers.filter(has_bookable_room({})).values_list("neighborhood_id")


@compiled_query(keep_plan=False)
def load_resource_type_ids() -> RowQuerySet:
    """The types of the rooms and services of these centers."""
    rooms = MeetingRoom.objects.on_offer().filter(center__any_of=int_list_param("centers"))
    services = Service.objects.filter(is_active=True, center__any_of=int_list_param("centers"))
    service_types = services.order_by().values_list("resource_type_id")
    return rooms.values_list("resource_type_id").union(service_types)


@compiled_query(keep_plan=True)
def load_resource_types_by_id() -> RowQuerySet:
    types = ResourceType.objects.filter(pk__any_of=int_list_param("types"))
    return _select_resource_types(types)


@compiled_query(keep_plan=True)
def load_neighborhoods_by_id() -> RowQuerySet:
    ids = int_list_param("neighborhoods")
    return _select_neighborhoods(Neighborhood.objects.filter(pk__any_of=ids))


def _select_resource_types(types: QuerySet[ResourceType]) -> RowQuerySet:
    """Internal types are for staff only."""
    types = types.filter(internal=False).order_by("position", "name", "pk")
    return types.values_list(*ResourceTypeRecord._fields)


def _select_neighborhoods(neighborhoods: QuerySet[Neighborhood]) -> RowQuerySet:
    return neighborhoods.order_by("name", "pk").values_list(*NeighborhoodRecord._fields)
