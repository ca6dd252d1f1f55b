"""Rates, rooms and services as tables."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, ClassVar, TypeVar

from django.db.models import Exists, OuterRef, Q, QuerySet
from import_export.fields import Field

from centers.closure_effects import find_effects_of_settings
from centers.models import MeetingRoom, Rate, ResourceType, Service
from centers.models.room import is_offered
from centers.resources.common import (
    EXAMPLE_CENTER,
    EXAMPLE_RATE,
    NamedResource,
    get_types_by_name,
    load_terms,
    name_at_center_widget,
    terms_widget,
)
from roombook.imports.resources import Cells
from roombook.imports.results import ImportRowResult
from roombook.imports.widgets import ReferenceWidget
from roombook.texts import fold_name

PricedT = TypeVar("PricedT", bound=MeetingRoom | Service)


class RateResource(NamedResource[Rate]):
    """Rates."""

    name: ClassVar = "rates"
    singular: ClassVar = "rate"
    example: ClassVar = {
        "center": EXAMPLE_CENTER,
        "name": EXAMPLE_RATE.name,
        "hourly": Decimal(40),
        "half_day": Decimal(140),
        "full_day": Decimal(250),
    }

    class Meta:
        model = Rate
        fields = (
            *("id", "center_id", "center", "name", "is_flat_rate", "flat_rate", "hourly"),
            *("half_day", "full_day", "setup_fee", "bill_in_blocks", "description"),
        )

    def get_notes(self, row: ImportRowResult) -> Iterator[tuple[str, str]]:
        for name in ("flat_rate", "hourly", "half_day", "full_day"):
            if name in row.changes and getattr(row.instance, name) == 0:
                yield name, "This makes it free. With an empty cell, it is not offered."


def find_type(name: str, resource: "PricedResource[Any]", record: object) -> ResourceType:
    found = resource.types.get(fold_name(name))
    if found is None:
        names = ", ".join(sorted(each.name for each in resource.types.values())[:20])
        raise ValueError(f"There is no such type. There are: {names or 'none'}.")
    return found


class PricedResource(NamedResource[PricedT]):
    """What has a type, and a rate of its center: rooms and services."""

    related: ClassVar[tuple[str, ...]] = ("center", "resource_type", "rate")
    is_service: ClassVar[bool]

    type = Field("resource_type", widget=ReferenceWidget("the name of a type", find_type))
    rate = Field("rate", widget=name_at_center_widget("rate"))

    def load_references(self, rows: Sequence[Cells], stored: QuerySet[PricedT]) -> None:
        super().load_references(rows, stored)
        self.types = get_types_by_name(is_service=self.is_service)
        offered = Rate.objects.filter(is_offered("services" if self.is_service else "rooms"))
        rates = Rate.objects.annotate(is_offered=Exists(offered.filter(pk=OuterRef("pk"))))
        self.load_rows_at_center(rates)


class RoomResource(PricedResource[MeetingRoom]):
    """Rooms."""

    name: ClassVar = "rooms"
    singular: ClassVar = "room"
    example: ClassVar = {
        "center": EXAMPLE_CENTER,
        "name": "Boardroom",
        "capacity": 12,
        "rate": EXAMPLE_RATE,
        "resource_type": ResourceType(name="Meeting room"),
    }
    is_service: ClassVar = False
    related: ClassVar = (*PricedResource.related, "terms")

    terms = Field("terms", widget=terms_widget("those of the center"))

    class Meta:
        model = MeetingRoom
        fields = (
            *("id", "center_id", "center", "name", "type", "capacity", "rate", "is_active"),
            *("is_blocked", "is_live_inventory", "provider", "turnaround_minutes"),
            *("grid_minutes", "minimum_minutes", "maximum_minutes", "booking_window_days"),
            "terms",
        )

    def load_references(self, rows: Sequence[Cells], stored: QuerySet[MeetingRoom]) -> None:
        super().load_references(rows, stored)
        self.terms_at_center = load_terms(Q(center__in=self.center_ids))

    def get_notes(self, row: ImportRowResult) -> Iterator[tuple[str, str]]:
        """Name the reservations that the new settings would touch."""
        changed = [name for name in ("is_active", "is_blocked", "capacity") if name in row.changes]
        if not changed or row.is_new() or not self.may_look_up():
            return
        if effects := find_effects_of_settings(row.instance, changed):
            yield changed[0], effects.html


class ServiceResource(PricedResource[Service]):
    """Services."""

    name: ClassVar = "services"
    singular: ClassVar = "service"
    example: ClassVar = {
        "center": EXAMPLE_CENTER,
        "name": "Flip chart",
        "resource_type": ResourceType(name="Catering and equipment"),
    }
    is_service: ClassVar = True

    class Meta:
        model = Service
        fields = (
            *("id", "center_id", "center", "name", "type", "description", "rate", "is_active"),
            *("bill_at_center", "minimum_booking", "needs_duration", "needs_quantity", "position"),
        )
