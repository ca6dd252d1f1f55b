"""Closures as a table, on the clock of their center."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from django.core.exceptions import ValidationError

from centers.hours import localize
from centers.models import Center, Closure, MeetingRoom
from centers.resources.common import CenterChildResource, NameAtCenterWidget
from centers.signals import closure_saved
from roombook.imports import cells
from roombook.imports.batches import batches
from roombook.imports.cells import Column, ValueWidget
from roombook.imports.files import Cell
from roombook.imports.plan import Checked, Origin
from roombook.imports.sheet import Cells


class LocalDateTimeWidget(ValueWidget):
    """A moment on the clock of the row's center; with its offset where the clock shows it twice."""

    how = "a time on the center's clock: 2027-03-01T09:00"

    def clean(self, value: str, row: Any = None, *, of: Any = None, **kwargs: Any) -> Any:
        return parse_local_datetime(of.center, value) if value else None

    def render(self, value: Any, obj: Any = None, *, of: Any = None, **kwargs: Any) -> str:
        if value is None:
            return ""
        local = value.astimezone(of.center.zone)
        return cells.format_datetime(local if local.fold else local.replace(tzinfo=None))

    def cell(self, value: Any, text: str) -> Cell:
        return text


def parse_local_datetime(center: Center, text: str) -> dt.datetime:
    return localize(cells.parse_datetime(text), center.zone).astimezone(dt.UTC)


class ClosureResource(CenterChildResource):
    """Closures."""

    name: ClassVar = "closures"
    one: ClassVar = "closure"
    key: ClassVar = ("center", "room", "starts_at")
    key_is_unique: ClassVar = False
    needed: ClassVar = (("center_id", "center"), ("starts_at",))
    related: ClassVar = ("center", "room")
    # So many closures are looked at for bookings that they touch.
    MOST_TOLD: ClassVar = 50

    room = Column("room", NameAtCenterWidget("room", "; empty: the whole center"))
    starts_at = Column("starts_at", LocalDateTimeWidget())
    ends_at = Column("ends_at", LocalDateTimeWidget())

    class Meta:
        model = Closure
        fields = ("id", "center_id", "center", "room", "starts_at", "ends_at", "reason")

    def look_up(self, rows: Sequence[Cells], stored: Iterable[Any]) -> None:
        super().look_up(rows, stored)
        self.at_center = self.by_name(MeetingRoom.objects.only("name", "center"))

    def key_of_row(self, row: Cells) -> Any:
        center = self.center_needed(row)
        try:
            starts = parse_local_datetime(center, row.get("starts_at", ""))
        except ValueError as error:
            raise ValidationError({"starts_at": str(error)}) from error
        room = self.fields["room"].widget
        try:
            found = room.clean(row.get("room", ""), of=Closure(center=center), sheet=self)
        except ValueError as error:
            raise ValidationError({"room": str(error)}) from error
        return center.pk, found.pk if found else None, starts

    def key_of(self, instance: Any) -> Any:
        return instance.center_id, instance.room_id, instance.starts_at

    def keys_stored(self, keys: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        for batch in batches(keys):
            rows = Closure.objects.filter(
                center__in={center for center, *_ in batch},
                starts_at__in={starts for *_, starts in batch},
            )
            for pk, *key in rows.values_list("pk", "center_id", "room_id", "starts_at"):
                yield tuple(key), pk

    def title(self, instance: Any) -> str:
        starts = self.told("starts_at", instance)
        return f"{instance.reason or 'Closure'}, {starts}, {instance.center.name}"

    def written(self, rows: Sequence[Checked], origin: Origin) -> None:
        """Tell which bookings a closure touches, as saving one by hand does."""
        if origin.request is not None:
            for row in rows[: self.MOST_TOLD]:
                closure_saved.send(Closure, closure=row.instance, request=origin.request)
