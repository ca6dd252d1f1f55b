"""Closures as a table, in the local time of their center."""

import datetime as dt
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from django.http import HttpRequest
from import_export.fields import Field

from centers.closure_effects import find_effects
from centers.hours import localize
from centers.models import Closure, MeetingRoom
from centers.models.schedule import closure_saved
from centers.resources.common import CenterChildResource, name_at_center_widget
from roombook.imports.batches import Cells, batches
from roombook.imports.displayed_values import CellKind
from roombook.imports.results import ImportRowResult
from roombook.imports.widgets import TextWidget, format_datetime, parse_datetime

# The overlapping bookings are reported for so many closures of a file.
MAX_CLOSURES_WITH_WARNINGS = 50


class LocalDateTimeWidget(TextWidget):
    """A time in the time zone of the row's center; with its offset if it is ambiguous."""

    help_text = "a local time of the center: 2027-03-01T09:00"
    kind = CellKind.TIME

    def clean(self, value: str, *, record: Any = None, **kwargs: object) -> Any:
        if not value:
            return None
        return localize(parse_datetime(value), record.center.zone).astimezone(dt.UTC)

    def render(self, value: Any, *, record: Any = None, **kwargs: object) -> str:
        if value is None:
            return ""
        local = value.astimezone(record.center.zone)
        return format_datetime(local if local.fold else local.replace(tzinfo=None))


class ClosureResource(CenterChildResource[Closure]):
    """Closures."""

    noted_closures = 0
    name: ClassVar = "closures"
    singular: ClassVar = "closure"
    key: ClassVar = ("center", "room", "starts_at")
    has_unique_key: ClassVar = False
    required_columns: ClassVar = (("center_id", "center"), ("starts_at",))
    related: ClassVar = ("center", "room")

    room = Field("room", widget=name_at_center_widget("room", "; empty: the whole center"))
    starts_at = Field("starts_at", widget=LocalDateTimeWidget())
    ends_at = Field("ends_at", widget=LocalDateTimeWidget())

    class Meta:
        model = Closure
        fields = ("id", "center_id", "center", "room", "starts_at", "ends_at", "reason")

    def load_references(self, rows: Sequence[Cells], instances: Iterable[Closure]) -> None:
        super().load_references(rows, instances)
        self.rows_at_center = self.get_rows_by_name(MeetingRoom.objects.only("name", "center"))

    def get_row_key(self, row: Cells) -> Hashable:
        closure = Closure(center=self.get_center(row))
        starts_at = self.clean_cell("starts_at", row, closure)
        room = self.clean_cell("room", row, closure)
        return closure.center_id, room.pk if room else None, starts_at

    def get_instance_key(self, instance: Closure) -> Hashable:
        return instance.center_id, instance.room_id, instance.starts_at

    def find_stored(self, keys: Iterable[tuple[int, int | None, dt.datetime]]) -> Iterator[Closure]:
        for batch in batches(keys):
            yield from Closure.objects.filter(
                center__in={center_id for center_id, *_ in batch},
                starts_at__in={starts_at for *_, starts_at in batch},
            )

    def get_title(self, instance: Closure) -> str:
        starts_at = self.render("starts_at", instance)
        return f"{instance.reason or 'Closure'}, {starts_at}, {instance.center.name}"

    def get_notes(self, row: ImportRowResult) -> Iterator[tuple[str, str]]:
        """Name the reservations during the closure."""
        if self.noted_closures < MAX_CLOSURES_WITH_WARNINGS:
            self.noted_closures += 1
            if effects := find_effects([row.instance]):
                yield "starts_at", effects.html

    def after_save(self, rows: Sequence[ImportRowResult], request: HttpRequest) -> None:
        """Warn about bookings during a closure, as saving one in the back office does."""
        for row in rows[:MAX_CLOSURES_WITH_WARNINGS]:
            closure_saved.send(Closure, closure=row.instance, request=request)
