"""What a search can be narrowed by: the room types, services and neighborhoods that it met."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from django.db.models import Exists, Min, OuterRef, Q, QuerySet

from centers.models import Center, MeetingRoom, Neighborhood, ResourceType, Service
from centers.querysets import CenterQuerySet
from centers.records import ShownCenter
from centers.search.queries import How, matching
from roombook.db.compiled_queries import numbers, prepared, written_once


class ShownType(NamedTuple):
    """A kind of room or of service."""

    id: int
    name: str
    is_service: bool
    position: int
    internal: bool


class ShownNeighborhood(NamedTuple):
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

    room_types: Sequence[ShownType]
    services: Sequence[ShownType]
    neighborhoods: Sequence[ShownNeighborhood]


class Matches(Protocol):
    """All centers that match a search before its filters, as they can be asked about."""

    def some(self) -> Sequence[Any]:
        """Number and neighborhood of each; of one more than a FEW at most."""

    def types(self, known: Sequence[int]) -> Iterable[Any]: ...

    def neighborhoods(self) -> Iterable[Any]: ...


# So many centers are asked about by their ids: among more each kind is met soon. And among more
# PostgreSQL would rather read all the rates there are than those of their rooms.
FEW = 200


def of_all(centers: Sequence[ShownCenter]) -> FilterOptions:
    """The options, where these are all the centers that match."""
    neighborhoods = {center.row.neighborhood_id for center in centers}
    return _options(
        types_by_id(types=list(_kinds(centers))),
        neighborhoods_by_id(neighborhoods=_numbers(neighborhoods)),
    )


def among(matches: Matches, shown: Sequence[ShownCenter]) -> FilterOptions:
    """The options, where these are but some of those that match."""
    some = matches.some()
    if len(some) > FEW:
        return _options(matches.types(list(_kinds(shown))), matches.neighborhoods())
    kinds = [kind for (kind,) in kinds_among(centers=[pk for pk, _ in some])]
    neighborhoods = {neighborhood for _, neighborhood in some}
    return _options(
        types_by_id(types=kinds), neighborhoods_by_id(neighborhoods=_numbers(neighborhoods))
    )


def _kinds(centers: Iterable[ShownCenter]) -> set[int]:
    rooms = {room.resource_type_id for each in centers for room in each.rooms_on_offer}
    return rooms.union(s.resource_type_id for c in centers for s in c.services_on_offer)


def _numbers(ids: Iterable[int | None]) -> list[int]:
    return [pk for pk in ids if pk is not None]


def _options(types: Iterable[Any], neighborhoods: Iterable[Any]) -> FilterOptions:
    kinds = [ShownType._make(row) for row in types]
    return FilterOptions(
        room_types=[kind for kind in kinds if not kind.is_service],
        services=[kind for kind in kinds if kind.is_service],
        neighborhoods=[ShownNeighborhood._make(row) for row in neighborhoods],
    )


# --- The questions, of the listed centers among those that match ---------------------------------


def some_of(centers: CenterQuerySet) -> QuerySet[Any, Any]:
    return centers.listed().order_by().values_list("pk", "neighborhood_id")[: FEW + 1]


def types_of(centers: CenterQuerySet, known: Any) -> QuerySet[Any, Any]:
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
    return _types(types)


def _types(types: QuerySet[ResourceType]) -> QuerySet[Any, Any]:
    return types.order_by("position", "name", "pk").values_list(*ShownType._fields)


def _neighborhoods(neighborhoods: QuerySet[Neighborhood]) -> QuerySet[Any, Any]:
    return neighborhoods.order_by("name", "pk").values_list(*ShownNeighborhood._fields)


@written_once
def some_matching(how: How) -> QuerySet[Any, Any]:
    return some_of(matching(how))


@written_once
def types_matching(how: How) -> QuerySet[Any, Any]:
    return types_of(matching(how), numbers("known"))


@written_once
def neighborhoods_matching(how: How) -> QuerySet[Any, Any]:
    ids = matching(how).listed().order_by().values("neighborhood")
    return _neighborhoods(Neighborhood.objects.filter(pk__in=ids))


def neighborhoods_near(
    one_each: Iterable[Any], left: Callable[[list[int]], Iterable[Any]]
) -> Sequence[Any]:
    """The neighborhoods, where what is asked leaves few of all there are.

    Nearly every center is listed: one of each neighborhood is asked, and all of them only in the
    neighborhoods that are `left`, because that one is not.
    """
    neighborhoods = dict(one_each)
    found = {pk for (pk,) in neighborhoods_listed(centers=list(neighborhoods.values()))}
    if rest := neighborhoods.keys() - found:
        found |= {pk for (pk,) in left(list(rest))}
    return neighborhoods_by_id(neighborhoods=list(found))


def one_each_of(centers: CenterQuerySet) -> QuerySet[Any, Any]:
    """Every neighborhood with one of its centers, listed or not."""
    found = centers.filter(neighborhood__isnull=False).order_by().values("neighborhood_id")
    return found.annotate(one=Min("pk")).values_list("neighborhood_id", "one")


def left_of(centers: CenterQuerySet, neighborhoods: Any) -> QuerySet[Any, Any]:
    """Those of these neighborhoods in which a center is listed."""
    listed = centers.listed().filter(neighborhood__any_of=neighborhoods)
    return listed.order_by().values_list("neighborhood_id").distinct()


@written_once
def one_each_matching(how: How) -> QuerySet[Any, Any]:
    return one_each_of(matching(how))


@written_once
def left_matching(how: How) -> QuerySet[Any, Any]:
    return left_of(matching(how), numbers("left"))


@prepared
def neighborhoods_listed() -> QuerySet[Any, Any]:
    listed = Center.objects.listed().filter(pk__any_of=numbers("centers"))
    return listed.values_list("neighborhood_id")


@written_once
def kinds_among() -> QuerySet[Any, Any]:
    """The kinds of rooms and services that these centers have."""
    rooms = MeetingRoom.objects.on_offer().filter(center__any_of=numbers("centers"))
    services = Service.objects.filter(is_active=True, center__any_of=numbers("centers"))
    kinds = services.order_by().values_list("resource_type_id")
    return rooms.values_list("resource_type_id").union(kinds)


@prepared
def types_by_id() -> QuerySet[Any, Any]:
    return _types(ResourceType.objects.filter(pk__any_of=numbers("types"), internal=False))


@prepared
def neighborhoods_by_id() -> QuerySet[Any, Any]:
    return _neighborhoods(Neighborhood.objects.filter(pk__any_of=numbers("neighborhoods")))
