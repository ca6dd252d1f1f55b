"""The services that a customer ticked, judged against what the center offers (B12.3)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from centers.models import Center, Service
from reservations.pricing.quote import ServiceSelection
from roombook.db.compiled_queries import compiled_query, int_list_param, int_param
from roombook.errors import InvalidRequest

if TYPE_CHECKING:
    from decimal import Decimal

    from django.db.models import QuerySet


def select_services(center: Center, options: Sequence[Mapping[str, Any]]) -> list[ServiceSelection]:
    """The selected options as extras; anything wrong with them is told by its field.

    An option without `selected` counts as selected. Name and needs are the server's to say: what
    a client sends of them is ignored, and so are hours and pieces of a service that needs none.
    """
    wanted = [(index, each) for index, each in enumerate(options) if each.get("selected", True)]
    ids = [each["service_id"] for _, each in wanted if "service_id" in each]
    offered = {each.pk: each for each in offered_services(center=center.pk, services=ids)}
    extras: list[ServiceSelection] = []
    problems: dict[str, str] = {}
    seen: set[int] = set()
    for index, option in wanted:
        path = f"service_options.{index}"
        pk = option.get("service_id", 0)
        service = offered.get(pk)
        if not pk:
            problems[f"{path}.service_id"] = "Required."
        elif service is None:
            problems[f"{path}.service_id"] = "This center does not offer this service."
        elif pk in seen:
            problems[f"{path}.service_id"] = "Each service can be chosen once."
        elif service.needs_quantity and not option.get("quantity"):
            problems[f"{path}.quantity"] = "This service needs a quantity of 1 or more."
        elif service.needs_duration and option.get("duration_hours") == 0:
            problems[f"{path}.duration_hours"] = "This service needs more than no time."
        else:
            extras.append(_extra(service, option))
        seen.add(pk)
    if problems:
        raise InvalidRequest(problems)
    return sorted(extras, key=lambda extra: (extra.service.position, extra.service.pk))


@compiled_query(keep_plan=True)
def offered_services() -> "QuerySet[Service]":
    return Service.objects.filter(
        center=int_param("center"), is_active=True, pk__any_of=int_list_param("services")
    ).select_related("rate")


def _extra(service: Service, option: Mapping[str, Any]) -> ServiceSelection:
    duration: Decimal | None = option.get("duration_hours") if service.needs_duration else None
    quantity: int | None = option.get("quantity") if service.needs_quantity else None
    return ServiceSelection(service, duration, quantity)
