"""Validates that the center offers the services that a customer selected (B12.3)."""

from collections.abc import Sequence

from django.db.models import QuerySet

from centers.models import Center, Service
from centers.span import Span
from reservations.models.booking_fields import ServiceInput
from reservations.pricing.quote import ServiceSelection, to_timedelta
from roombook.db.compiled_queries import compiled_query, int_list_param, int_param
from roombook.errors import InvalidRequest

# Of one selected service.
MAX_QUANTITY = 1000
MAX_DURATION_HOURS = 31 * 24


def select_services(
    center: Center,
    options: Sequence[ServiceInput],
    span: Span | None,
    *,
    booked: Sequence[ServiceSelection] = (),
) -> list[ServiceSelection]:
    """Return the selected options, in the center's order. Raises InvalidRequest by field.

    An option without `selected` counts as selected. The names of services, and whether they need a
    duration or a quantity, come from the database and not from the client. A duration or a quantity
    that the service does not need is ignored. No service can last longer than the booking; `span`
    is None if the times of the booking are invalid. `booked` is what the reservation has already:
    it can keep a service that was deactivated since, with the same duration and quantity (B27.1).
    """
    selected = [(index, each) for index, each in enumerate(options) if each.get("selected", True)]
    ids = [each["service_id"] for _, each in selected if "service_id" in each]
    offered = {}
    if ids:
        kept = {each.service.pk for each in booked}
        found = find_services(center=center.pk, services=ids)
        offered = {each.pk: each for each in found if each.is_active or each.pk in kept}
    selections: list[ServiceSelection] = []
    problems: dict[str, str] = {}
    seen: set[int] = set()
    for index, option in selected:
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
        else:
            hours = option.get("duration_hours") if service.needs_duration else None
            if hours == 0:
                problems[f"{path}.duration_hours"] = "Must be greater than 0."
            elif hours is not None and span and to_timedelta(hours) > span.duration:
                problems[f"{path}.duration_hours"] = "Must not be longer than the booking."
            quantity = option.get("quantity") if service.needs_quantity else None
            selection = ServiceSelection(service, hours, quantity)
            if not service.is_active and selection not in booked:
                problems[f"{path}.service_id"] = (
                    "This center no longer offers this service. Keep it as it is, or remove it."
                )
            selections.append(selection)
        seen.add(pk)
    if problems:
        raise InvalidRequest(problems)
    return sorted(selections, key=lambda each: (each.service.position, each.service.pk))


@compiled_query(keep_plan=True)
def find_services() -> QuerySet[Service]:
    return Service.objects.filter(
        center=int_param("center"), pk__any_of=int_list_param("services")
    ).select_related("rate")
