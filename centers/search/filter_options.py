"""What a search can be narrowed by: the room types, services and neighborhoods that it met."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from django.db.models import Exists, Min, OuterRef, Q, QuerySet

from centers.models import Center, MeetingRoom, Neighborhood, ResourceType, Service
from centers.querysets import CenterQuerySet
from centers.records import CenterRecord
from centers.search.queries import QueryShape, filter_matching
from roombook.db.compiled_queries import compiled_query, int_list_param


class ResourceTypeRecord(NamedTuple):
    """A kind of room or of service."""

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
    """The filters on offer."""

    room_types: Sequence[ResourceTypeRecord]
    services: Sequence[ResourceTypeRecord]
    neighborhoods: Sequence[NeighborhoodRecord]


class MatchingCenters(Protocol):
    """All centers that match a search before its filters, as they can be asked about."""

    def load_sample(self) -> Sequence[Any]:
        """Number and neighborhood of each; of one more than a FEW at most."""

    def load_resource_types(self, known: Sequence[int]) -> Iterable[Any]: ...

    def load_neighborhoods(self) -> Iterable[Any]: ...


# So many centers are asked about by their ids: among more each kind is met soon. And among more
# PostgreSQL would rather read all the rates there are than those of their rooms.
MAX_CENTERS_BY_ID = 200


def collect_from_centers(centers: Sequence[CenterRecord]) -> FilterOptions:
    """The options, where these are all the centers that match."""
    neighborhoods = {center.row.neighborhood_id for center in centers}
    return _build_options(
        load_resource_types_by_id(types=list(_get_resource_type_ids(centers))),
        load_neighborhoods_by_id(neighborhoods=_drop_none(neighborhoods)),
    )


def collect_from_matches(matches: MatchingCenters, shown: Sequence[CenterRecord]) -> FilterOptions:
    """The options, where these are but some of those that match."""
    some = matches.load_sample()
    if len(some) > MAX_CENTERS_BY_ID:
        return _build_options(
            matches.load_resource_types(list(_get_resource_type_ids(shown))),
            matches.load_neighborhoods(),
        )
    kinds = [kind for (kind,) in load_resource_type_ids(centers=[pk for pk, _ in some])]
    neighborhoods = {neighborhood for _, neighborhood in some}
    return _build_options(
        load_resource_types_by_id(types=kinds),
        load_neighborhoods_by_id(neighborhoods=_drop_none(neighborhoods)),
    )


def _get_resource_type_ids(centers: Iterable[CenterRecord]) -> set[int]:
    rooms = {room.resource_type_id for each in centers for room in each.rooms_on_offer}
    return rooms.union(s.resource_type_id for c in centers for s in c.services_on_offer)


def _drop_none(ids: Iterable[int | None]) -> list[int]:
    return [pk for pk in ids if pk is not None]


def _build_options(types: Iterable[Any], neighborhoods: Iterable[Any]) -> FilterOptions:
    kinds = [ResourceTypeRecord._make(row) for row in types]
    return FilterOptions(
        room_types=[kind for kind in kinds if not kind.is_service],
        services=[kind for kind in kinds if kind.is_service],
        neighborhoods=[NeighborhoodRecord._make(row) for row in neighborhoods],
    )


# --- The questions, of the listed centers among those that match ---------------------------------


def select_sample(centers: CenterQuerySet) -> QuerySet[Any, Any]:
    return centers.listed().order_by().values_list("pk", "neighborhood_id")[: MAX_CENTERS_BY_ID + 1]


def select_resource_types(centers: CenterQuerySet, known: Any) -> QuerySet[Any, Any]:
    """The kinds of rooms and services of these centers; internal ones are for staff.

    Asked kind by kind, so that the first room of a kind is enough; `known` are not asked about.
    """
    ids = centers.listed().order_by().values("pk")
    rooms = MeetingRoom.objects.on_offer().filter(resource_type=OuterRef("pk"), center__in=ids)
    services = Service.objects.filter(
        is_active=True, resource_type=OuterRef("pk"), center__in=ids
    ).order_by()
    types = ResourceType.objects.filter(
        Q(pk__any_of=known)
        | Q(Q(is_service=False), Exists(rooms))
        | Q(Q(is_service=True), Exists(services)),
        internal=False,
    )
    return _select_resource_type_rows(types)


def _select_resource_type_rows(types: QuerySet[ResourceType]) -> QuerySet[Any, Any]:
    return types.order_by("position", "name", "pk").values_list(*ResourceTypeRecord._fields)


def _select_neighborhood_rows(neighborhoods: QuerySet[Neighborhood]) -> QuerySet[Any, Any]:
    return neighborhoods.order_by("name", "pk").values_list(*NeighborhoodRecord._fields)


@compiled_query(keep_plan=False)
def load_sample(how: QueryShape) -> QuerySet[Any, Any]:
    return select_sample(filter_matching(how))


@compiled_query(keep_plan=False)
def load_resource_types(how: QueryShape) -> QuerySet[Any, Any]:
    return select_resource_types(filter_matching(how), int_list_param("known"))


@compiled_query(keep_plan=False)
def load_neighborhoods(how: QueryShape) -> QuerySet[Any, Any]:
    ids = filter_matching(how).listed().order_by().values("neighborhood")
    return _select_neighborhood_rows(Neighborhood.objects.filter(pk__in=ids))


def find_neighborhoods(
    one_each: Iterable[Any], left: Callable[[list[int]], Iterable[Any]]
) -> Sequence[Any]:
    """The neighborhoods, where what is asked leaves few of all there are.

    Nearly every center is listed: one of each neighborhood is asked, and all of them only in the
    neighborhoods that are `left`, because that one is not.
    """
    neighborhoods = dict(one_each)
    found = {pk for (pk,) in load_neighborhoods_of_listed(centers=list(neighborhoods.values()))}
    if rest := neighborhoods.keys() - found:
        found |= {pk for (pk,) in left(list(rest))}
    return load_neighborhoods_by_id(neighborhoods=list(found))


def select_one_center_per_neighborhood(centers: CenterQuerySet) -> QuerySet[Any, Any]:
    """Every neighborhood with one of its centers, listed or not."""
    found = centers.filter(neighborhood__isnull=False).order_by().values("neighborhood_id")
    return found.annotate(one=Min("pk")).values_list("neighborhood_id", "one")


def select_listed_neighborhoods(centers: CenterQuerySet, neighborhoods: Any) -> QuerySet[Any, Any]:
    """Those of these neighborhoods in which a center is listed."""
    listed = centers.listed().filter(neighborhood__any_of=neighborhoods)
    return listed.order_by().values_list("neighborhood_id").distinct()


@compiled_query(keep_plan=False)
def load_one_center_per_neighborhood(how: QueryShape) -> QuerySet[Any, Any]:
    return select_one_center_per_neighborhood(filter_matching(how))


@compiled_query(keep_plan=False)
def load_listed_neighborhoods(how: QueryShape) -> QuerySet[Any, Any]:
    return select_listed_neighborhoods(filter_matching(how), int_list_param("left"))


@compiled_query(keep_plan=True)
def load_neighborhoods_of_listed() -> QuerySet[Any, Any]:
    listed = Center.objects.listed().filter(pk__any_of=int_list_param("centers"))
    return listed.values_list("neighborhood_id")


@compiled_query(keep_plan=False)
def load_resource_type_ids() -> QuerySet[Any, Any]:
    """The kinds of rooms and services that these centers have."""
    rooms = MeetingRoom.objects.on_offer().filter(center__any_of=int_list_param("centers"))
    services = Service.objects.filter(is_active=True, center__any_of=int_list_param("centers"))
    kinds = services.order_by().values_list("resource_type_id")
    return rooms.values_list("resource_type_id").union(kinds)


@compiled_query(keep_plan=True)
def load_resource_types_by_id() -> QuerySet[Any, Any]:
    return _select_resource_type_rows(
        ResourceType.objects.filter(pk__any_of=int_list_param("types"), internal=False)
    )


@compiled_query(keep_plan=True)
def load_neighborhoods_by_id() -> QuerySet[Any, Any]:
    return _select_neighborhood_rows(
        Neighborhood.objects.filter(pk__any_of=int_list_param("neighborhoods"))
    )
