"""Closures as a table, in the local time of their center."""

import datetime as dt
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpRequest
from import_export.fields import Field

from centers.closure_effects import find_effects
from centers.hours import localize
from centers.models import Closure, MeetingRoom
from centers.models.schedule import closure_saved
from centers.resources.common import EXAMPLE_CENTER, CenterChildResource, name_at_center_widget
from roombook.imports.displayed_values import CellKind
from roombook.imports.resources import MAX_ROWS_WITH_NOTES, Cells
from roombook.imports.results import ImportRowResult
from roombook.imports.widgets import TextWidget, format_datetime, parse_datetime


class CenterTimeField(Field):
    """A time in the time zone of the row's center."""

    def get_value(self, instance: Any) -> dt.datetime | None:
        value = super().get_value(instance)
        return value.astimezone(instance.center.zone) if value else None


class CenterTimeWidget(TextWidget):
    """A local time; with its offset if it is ambiguous."""

    help_text = "a local time of the center: 2027-03-01T09:00"
    kind = CellKind.TIME

    def parse(self, text: str, *, record: Any = None, **kwargs: object) -> dt.datetime | None:
        if not text or record.center_id is None:
            return None
        return localize(parse_datetime(text), record.center.zone).astimezone(dt.UTC)

    def render(self, value: dt.datetime | None, **kwargs: object) -> str:
        if value is None:
            return ""
        return format_datetime(value if value.fold else value.replace(tzinfo=None))


class ClosureResource(CenterChildResource[Closure]):
    """Closures."""

    name: ClassVar = "closures"
    singular: ClassVar = "closure"
    example: ClassVar = {
        "center": EXAMPLE_CENTER,
        "reason": "Christmas",
        "starts_at": localize(dt.datetime(2027, 12, 25), EXAMPLE_CENTER.zone),  # noqa: DTZ001
        "ends_at": localize(dt.datetime(2027, 12, 26), EXAMPLE_CENTER.zone),  # noqa: DTZ001
    }
    key: ClassVar = ("center", "room", "starts_at")
    required_columns: ClassVar = (("center_id", "center"), ("starts_at",))
    related: ClassVar = ("center", "room")

    room = Field("room", widget=name_at_center_widget("room", "; empty: the whole center"))
    starts_at = CenterTimeField("starts_at", widget=CenterTimeWidget())
    ends_at = CenterTimeField("ends_at", widget=CenterTimeWidget())

    class Meta:
        model = Closure
        fields = ("id", "center_id", "center", "room", "starts_at", "ends_at", "reason")

    def load_references(self, rows: Sequence[Cells], stored: QuerySet[Closure]) -> None:
        super().load_references(rows, stored)
        self.load_rows_at_center(MeetingRoom.objects.only("name", "center"))

    def get_key(self, instance: Closure) -> Hashable:
        return instance.center_id, instance.room_id, instance.starts_at

    def get_title(self, instance: Closure) -> str:
        starts_at = self.fields["starts_at"].export(instance)
        return f"{instance.reason or 'Closure'}, {starts_at}, {instance.center.name}"

    def get_notes(self, row: ImportRowResult) -> Iterator[tuple[str, str]]:
        """Name the reservations during the closure."""
        if self.may_look_up() and (effects := find_effects([row.instance])):
            yield "starts_at", effects.html

    def after_save(self, rows: Sequence[ImportRowResult], request: HttpRequest) -> None:
        """Warn about bookings during a closure, as saving one in the back office does."""
        for row in rows[:MAX_ROWS_WITH_NOTES]:
            closure_saved.send(Closure, closure=row.instance, request=request)
