"""The filters that are offered for a search (B9.8): those that its matches have values for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q, QuerySet

from centers.models import MeetingRoom, Neighborhood, ResourceType, Service
from centers.records import CenterRecord
from centers.search.queries import SearchQuery, filter_listed
from roombook.db.compiled_queries import compiled_query, int_list_param


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """The filters that are offered for a search."""

    room_types: Sequence[ResourceType] = ()
    services: Sequence[ResourceType] = ()
    neighborhoods: Sequence[Neighborhood] = ()


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


def _build_options(
    types: Iterable[ResourceType], neighborhoods: Iterable[Neighborhood]
) -> FilterOptions:
    found = list(types)
    return FilterOptions(
        room_types=[each for each in found if not each.is_service],
        services=[each for each in found if each.is_service],
        neighborhoods=list(neighborhoods),
    )


@compiled_query(keep_plan=True)
def load_resource_types() -> QuerySet[ResourceType]:
    types = ResourceType.objects.filter(pk__any_of=int_list_param("types"))
    return _select_resource_types(types)


@compiled_query(keep_plan=True)
def load_neighborhoods() -> QuerySet[Neighborhood]:
    ids = int_list_param("neighborhoods")
    return _select_neighborhoods(Neighborhood.objects.filter(pk__any_of=ids))


def _select_resource_types(types: QuerySet[ResourceType]) -> QuerySet[ResourceType]:
    """Internal types are for staff only."""
    return types.filter(internal=False).order_by("position", "name", "pk")


def _select_neighborhoods(neighborhoods: QuerySet[Neighborhood]) -> QuerySet[Neighborhood]:
    return neighborhoods.order_by("name", "pk")
