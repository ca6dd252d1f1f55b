"""Centers as a table, with their opening hours."""

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, ClassVar

from django.db.models import prefetch_related_objects
from django.utils import timezone
from import_export.fields import Field

from accounts.resources import CenterScopedResource
from centers.closure_effects import (
    KEPT_TIMES,
    KEPT_TIMES_CHOICES,
    find_effects_of_hours,
    find_effects_of_settings,
    time_zone_changed,
)
from centers.hours import MIDNIGHT, find_overlapping_days
from centers.models import Center, Neighborhood, OpeningHours
from roombook import places
from roombook.backoffice import audit_log
from roombook.imports.batches import Cells, batches
from roombook.imports.results import ImportRowResult
from roombook.imports.widgets import PercentWidget, ReferenceWidget, TextWidget

DayHours = tuple[tuple[dt.time, dt.time], ...]

# The bookings that new settings touch are reported for so many centers of a file.
MAX_CENTERS_WITH_NOTES = 50

WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def find_neighborhood(name: str, resource: "CenterResource", record: object) -> Neighborhood:
    found = resource.neighborhoods.get(places.fold_text(name), [])
    if len(found) != 1:
        raise ValueError(
            "Several neighborhoods have this name: write it as name, city, state."
            if found
            else "There is no neighborhood of that name."
        )
    return found[0]


class OpeningHoursWidget(TextWidget):
    """The opening hours of a weekday: 09:00-12:30, 14:00-02:00; or closed, or nothing."""

    help_text = "09:00-17:00, or 09:00-12:00, 13:00-24:00, or 22:00-02:00, or closed"

    PATTERN = re.compile(r"(\d\d?):(\d\d)\s*[-–]\s*(\d\d?):(\d\d)", re.ASCII)  # noqa: RUF001

    def clean(self, value: str, **kwargs: object) -> DayHours:
        if value.lower() in ("", "closed"):
            return ()
        return tuple(sorted(self._parse(part.strip()) for part in re.split("[,;]", value)))

    def _parse(self, text: str) -> tuple[dt.time, dt.time]:
        match = self.PATTERN.fullmatch(text)
        message = "Write hours such as 09:00-17:00, or 09:00-12:00, 13:00-24:00, or closed."
        if match is None:
            raise ValueError(message)
        first, second, third, fourth = map(int, match.groups())
        try:
            opens = dt.time(first, second)
            closes = MIDNIGHT if (third, fourth) == (24, 0) else dt.time(third, fourth)
        except ValueError:
            raise ValueError(message) from None
        if closes == opens != MIDNIGHT:
            raise ValueError("Opening and closing are the same time. 24 hours are 00:00-24:00.")
        return opens, closes

    def render(self, value: Any, **kwargs: object) -> str:
        if value is None:
            return ""
        intervals = [
            f"{opens:%H:%M}-{'24:00' if closes == MIDNIGHT else f'{closes:%H:%M}'}"
            for opens, closes in value
        ]
        return ", ".join(intervals) or "closed"


class CenterResource(CenterScopedResource[Center]):
    """Centers with their opening hours."""

    name: ClassVar = "centers"
    singular: ClassVar = "center"
    center_path: ClassVar = "pk"
    related: ClassVar = ("neighborhood",)
    key: ClassVar = ("name", "city", "state")
    has_unique_key: ClassVar = False
    required_columns: ClassVar = (("name",),)
    extra_attributes: ClassVar = tuple(f"hours_{weekday}" for weekday in range(7))
    derived_fields: ClassVar = Center.SEARCH_COLUMNS
    volatile_fields: ClassVar = tuple(Center.CHANGE_COLUMNS)
    question: ClassVar = ("time_zone", KEPT_TIMES, KEPT_TIMES_CHOICES)

    time_zone = Field(
        "time_zone_id", widget=TextWidget("such as America/Denver; empty: that of its location")
    )
    neighborhood = Field(
        "neighborhood",
        widget=ReferenceWidget("name, city, state: LoDo, Denver, CO", find_neighborhood, str),
    )
    tax_rate = Field("tax_rate", widget=PercentWidget(3))
    mon, tue, wed, thu, fri, sat, sun = (
        Field(f"hours_{weekday}", widget=OpeningHoursWidget()) for weekday in range(7)
    )

    class Meta:
        model = Center
        fields = (
            *("id", "name", "is_active", "street1", "street2", "street3", "city", "state"),
            *("postal_code", "country", "latitude", "longitude", "time_zone", "neighborhood"),
            *WEEK,
            *("is_after_hours_support_enabled", "tax_rate", "rank", "promo_text"),
            *("parking_information", "is_new_location", "is_new_low_price"),
        )

    def get_center_id(self, instance: Center) -> int | None:
        return instance.pk

    def load_references(self, rows: Sequence[Cells], instances: Iterable[Center]) -> None:
        self.neighborhoods: dict[str, list[Neighborhood]] = defaultdict(list)
        self.noted_centers = 0
        if not any(row.get("neighborhood") for row in rows):
            return
        by_name: dict[str, list[Neighborhood]] = defaultdict(list)
        for each in Neighborhood.objects.only("name", "original_name", "city", "state"):
            self.neighborhoods[places.fold_text(str(each))].append(each)
            by_name[places.fold_text(each.name)].append(each)
        # The name alone is enough unless it is the full name of another.
        for name, found in by_name.items():
            self.neighborhoods.setdefault(name, found)

    def get_row_key(self, row: Cells) -> Hashable:
        return _get_key(*(row.get(name, "") for name in ("name", "city", "state", "country")))

    def get_instance_key(self, instance: Center) -> Hashable:
        return _get_key(instance.name, instance.city, instance.state, instance.country)

    def find_stored(self, keys: Iterable[tuple[str, ...]]) -> Iterator[Center]:
        for batch in batches(sorted(keys)):
            yield from Center.objects.only("name", "city", "state", "country").filter(
                name_folded__in={name for name, *_ in batch},
                city_folded__in={city for _, city, *_ in batch},
            )

    def load_extra_attributes(self, instances: Sequence[Center]) -> None:
        hours: dict[tuple[int, int], list[tuple[dt.time, dt.time]]] = defaultdict(list)
        rows = OpeningHours.objects.filter(center__in=[each.pk for each in instances])
        columns = ("center_id", "weekday", "opens", "closes")
        for center_id, weekday, opens, closes in rows.order_by("opens").values_list(*columns):
            hours[center_id, weekday].append((opens, closes))
        for center in instances:
            for weekday in range(7):
                setattr(center, f"hours_{weekday}", tuple(hours[center.pk, weekday]))

    def normalize_instance(self, instance: Center) -> None:
        instance.normalize()

    def get_errors(self, instance: Center) -> dict[str, str]:
        days = find_overlapping_days(_get_week(instance))
        return {f"hours_{day}": "These opening hours overlap others." for day in days}

    def get_notes(self, row: ImportRowResult) -> Iterator[tuple[str, str]]:
        """Name the reservations that the new hours and other settings would touch."""
        column = next((day for day in WEEK if day in row.changes), "")
        touching = {"is_active"}.union(*Center.CHANGE_COLUMNS.values())
        changed = self.get_changed_fields(row) & touching
        if not changed or not row.before or self.noted_centers == MAX_CENTERS_WITH_NOTES:
            return
        self.noted_centers += 1
        if column and (effects := find_effects_of_hours(row.instance, _get_week(row.instance))):
            yield column, effects.html
        if effects := find_effects_of_settings(row.instance, changed):
            yield next(iter(row.changes)), effects.html

    def prepare_save(self, instances: Sequence[Center]) -> None:
        stored = [each for each in instances if not each._state.adding]
        # Derived fields are computed from the landmarks as they are now, under the lock.
        for center in stored:
            vars(center).pop("_prefetched_objects_cache", None)
        prefetch_related_objects(stored, "landmarks")
        for center in instances:
            center.update_search_columns()

    def save_extra_attributes(self, rows: Sequence[ImportRowResult]) -> None:
        """Replace the opening hours of the weekdays that changed."""
        # Weekday -> centers.
        deleted: dict[int, list[int]] = defaultdict(list)
        created = []
        for row, weekday in product(rows, range(7)):
            center_id, name = row.instance.pk, f"hours_{weekday}"
            before, after = row.before.get(name), getattr(row.instance, name)
            if before == after:
                continue
            if before:
                deleted[weekday].append(center_id)
            created += [
                OpeningHours(center_id=center_id, weekday=weekday, opens=opens, closes=closes)
                for opens, closes in after or ()
            ]
        # They are part of the center's entry in the audit log.
        with audit_log.pause_signals():
            for weekday, center_ids in deleted.items():
                OpeningHours.objects.filter(weekday=weekday, center__in=center_ids).delete()
        OpeningHours.objects.bulk_create(created)
        now = timezone.now()  # noqa: TID251 (an import has no `now` here)
        for column, fields in Center.CHANGE_COLUMNS.items():
            changed = [row.instance.pk for row in rows if fields & self.get_changed_fields(row)]
            Center.objects.filter(pk__in=changed).update(**{column: now})
        for row in rows:
            if "time_zone" in row.changes and row.before:
                time_zone_changed.send(
                    Center,
                    center=row.instance,
                    former_zone=row.before["time_zone_id"],
                    keeps_instants=bool(self.answer),
                    by=self.user,
                    now=now,
                )

    def get_changed_fields(self, row: ImportRowResult) -> set[str]:
        """The changed fields of a stored center; opening_hours for those of any day."""
        names = {self.fields[column].attribute for column in row.changes} if row.before else set()
        is_week_changed = any(day in row.changes for day in WEEK)
        return names | ({"opening_hours"} if is_week_changed else set())


def _get_week(center: Center) -> list[OpeningHours]:
    return [
        OpeningHours(weekday=weekday, opens=opens, closes=closes)
        for weekday in range(7)
        for opens, closes in getattr(center, f"hours_{weekday}") or ()
    ]


def _get_key(name: str, city: str, state: str, country: str) -> tuple[str, ...]:
    code, _ = places.get_state_code_and_name(places.get_country_code(country), state)
    return tuple(map(places.fold_text, (name, city, code)))
