"""Rows of what the catalog offers, not saved."""

from collections.abc import Iterator
from decimal import Decimal

from centers.models import Center, Rate, ResourceType, Service
from reservations.generate.catalog import (
    INTERNAL_SERVICE_TYPES,
    ROOM_TYPES,
    SERVICE_TYPES,
    Extra,
    Tariff,
    price,
)


def resource_types() -> Iterator[ResourceType]:
    """Kinds of rooms, and of services, in their order."""
    services = (*SERVICE_TYPES, *INTERNAL_SERVICE_TYPES)
    for is_service, names in ((False, ROOM_TYPES), (True, services)):
        for position, name in enumerate(names):
            yield ResourceType(
                name=name,
                is_service=is_service,
                position=position,
                internal=name in INTERNAL_SERVICE_TYPES,
            )


def rate(center: Center, name: str, tariff: Tariff, level: Decimal) -> Rate:
    """A tariff at the center's level of prices."""
    return Rate(
        center=center,
        name=name,
        is_flat_rate=tariff.flat is not None,
        flat_rate=price(tariff.flat, level),
        hourly=price(tariff.hourly, level),
        half_day=price(tariff.half_day, level),
        full_day=price(tariff.full_day, level),
        setup_fee=price(tariff.setup_fee, level),
        bill_in_blocks=tariff.bill_in_blocks,
        description=tariff.description,
    )


def rate_of_extra(center: Center, extra: Extra, level: Decimal) -> Rate:
    return rate(center, f"Service: {extra.name}", extra.tariff, level)


def service(center: Center, extra: Extra, rate: Rate, type_id: int, position: int) -> Service:
    return Service(
        center=center,
        resource_type_id=type_id,
        name=extra.name,
        description=extra.description,
        rate=rate,
        bill_at_center=extra.bill_at_center,
        minimum_booking=extra.minimum_booking,
        needs_duration=extra.needs_duration,
        needs_quantity=extra.needs_quantity,
        position=position,
    )
