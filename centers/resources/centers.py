"""Centers as a table, with their opening hours."""

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from decimal import Decimal
from itertools import product
from typing import Any, ClassVar

from django.db.models import Q, QuerySet
from django.utils import timezone
from import_export.fields import Field

from accounts.resources import CenterScopedResource
from centers.closure_effects import find_effects_of_hours, find_effects_of_settings
from centers.hours import MIDNIGHT, WEEKDAYS, find_overlapping_days
from centers.models import Center, Neighborhood, OpeningHours
from centers.resources.common import EXAMPLE_CENTER, load_terms, terms_widget
from roombook import places
from roombook.backoffice import audit_log
from roombook.imports.resources import Cells
from roombook.imports.results import ImportRowResult
from roombook.imports.widgets import PercentWidget, ReferenceWidget, RelatedField, TextWidget

# The widgets of the columns that the model cannot tell.
TAX_RATE = Center._meta.get_field("tax_rate")


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

    def parse(self, text: str, **kwargs: object) -> tuple[tuple[dt.time, dt.time], ...]:
        if text.lower() in ("", "closed"):
            return ()
        return tuple(sorted(self._parse(part.strip()) for part in re.split("[,;]", text)))

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


def weekday_field(weekday: int) -> RelatedField:
    def read(center: Center) -> list[tuple[dt.time, dt.time]]:
        hours = [each for each in center.opening_hours.all() if each.weekday == weekday]
        return sorted((each.opens, each.closes) for each in hours)

    return RelatedField(f"hours_{weekday}", read, OpeningHoursWidget())


class CenterResource(CenterScopedResource[Center]):
    """Centers with their opening hours."""

    name: ClassVar = "centers"
    singular: ClassVar = "center"
    example: ClassVar = {
        "name": EXAMPLE_CENTER.name,
        "street1": "1701 Wynkoop Street",
        "city": "Denver",
        "state": "Colorado",
        "postal_code": "80202",
        "country": "USA",
        "latitude": 39.7527,
        "longitude": -104.9992,
        "time_zone_id": EXAMPLE_CENTER.time_zone_id,
        "tax_rate": Decimal("8.81"),
        **{f"hours_{day}": [(dt.time(8), dt.time(18))] for day in range(5)},
    }
    center_path: ClassVar = "pk"
    related: ClassVar = ("neighborhood", "terms")
    key: ClassVar = ("name", "city", "state", "country")
    required_columns: ClassVar = (("name",),)
    derived_fields: ClassVar = (*Center.SEARCH_COLUMNS, "country", "state", "time_zone_id")

    time_zone = Field(
        "time_zone_id",
        widget=TextWidget(help_text="such as America/Denver; empty: that of its location"),
    )
    neighborhood = Field(
        "neighborhood",
        widget=ReferenceWidget("name, city, state: LoDo, Denver, CO", find_neighborhood, str),
    )
    tax_rate = Field("tax_rate", widget=PercentWidget(TAX_RATE))
    terms = Field("terms", widget=terms_widget("those of the deployment"))
    mon, tue, wed, thu, fri, sat, sun = map(weekday_field, range(7))

    class Meta:
        model = Center
        fields = (
            *("id", "name", "is_active", "street1", "street2", "street3", "city", "state"),
            *("postal_code", "country", "latitude", "longitude", "time_zone", "neighborhood"),
            *WEEKDAYS,
            *("is_after_hours_support_enabled", "tax_rate", "prices_include_tax"),
            *("rank", "promo_text"),
            *("parking_information", "is_new_location", "is_new_low_price", "terms"),
        )

    def get_center_id(self, instance: Center) -> int | None:
        return instance.pk

    def _get_rows_at(self, centers: Any) -> QuerySet[Center]:
        return super()._get_rows_at(centers).prefetch_related("opening_hours", "landmarks")

    def load_references(self, rows: Sequence[Cells], stored: QuerySet[Center]) -> None:
        names = {places.fold_text(row.get("name", "")) for row in rows}
        self.terms_at_center = load_terms(Q(center__in=stored) | Q(center__name_folded__in=names))
        self.neighborhoods: dict[str, list[Neighborhood]] = defaultdict(list)
        by_name: dict[str, list[Neighborhood]] = defaultdict(list)
        for each in Neighborhood.objects.only("name", "original_name", "city", "state"):
            self.neighborhoods[places.fold_text(str(each))].append(each)
            by_name[places.fold_text(each.name)].append(each)
        # The name alone is enough unless it is the full name of another.
        for name, found in by_name.items():
            self.neighborhoods.setdefault(name, found)

    def get_candidates(self, rows: Sequence[Cells]) -> Q:
        return Q(name_folded__in={places.fold_text(row.get("name", "")) for row in rows})

    def get_key(self, instance: Center) -> Hashable:
        country = places.get_country_code(instance.country)
        code, _ = places.get_state_code_and_name(country, instance.state)
        return tuple(map(places.fold_text, (instance.name, instance.city, code)))

    def import_instance(self, instance: Center, row: Cells, **kwargs: object) -> None:
        super().import_instance(instance, row, **kwargs)
        # So that it is compared with what will be stored.
        instance.normalize()

    def get_errors(self, instance: Center, original: Center | None) -> dict[str, str]:
        days = find_overlapping_days(self._get_week(instance))
        errors = {f"hours_{day}": "These opening hours overlap others." for day in days}
        if original and original.time_zone_id != instance.time_zone_id:
            errors["time_zone_id"] = (
                "Change it on the page of the center, which asks what bookings keep."
            )
        return errors

    def get_notes(self, row: ImportRowResult) -> Iterator[tuple[str, str]]:
        """Name the reservations that the new hours and other settings would touch."""
        column = next((day for day in WEEKDAYS if day in row.changes), "")
        touching = {"is_active"}.union(*Center.CHANGE_COLUMNS.values())
        changed = self._get_changed_fields(row) & touching
        if not changed or not self.may_look_up():
            return
        week = self._get_week(row.instance)
        if column and (effects := find_effects_of_hours(row.instance, week)):
            yield column, effects.html
        if effects := find_effects_of_settings(row.instance, changed):
            yield next(iter(row.changes)), effects.html

    def before_save_instance(self, instance: Center, row: Cells, **kwargs: object) -> None:
        instance.update_search_columns()

    def save_related(self, rows: Sequence[ImportRowResult]) -> None:
        """Replace the opening hours of the weekdays that changed."""
        # Weekday -> centers.
        deleted: dict[int, list[int]] = defaultdict(list)
        created = []
        for row, (weekday, day) in product(rows, enumerate(WEEKDAYS)):
            if day in row.changes:
                deleted[weekday].append(row.instance.pk)
                created += [
                    OpeningHours(center=row.instance, weekday=weekday, opens=opens, closes=closes)
                    for opens, closes in self.fields[day].get_value(row.instance)
                ]
        # They are part of the center's entry in the audit log.
        with audit_log.pause_signals():
            for weekday, center_ids in deleted.items():
                OpeningHours.objects.filter(weekday=weekday, center__in=center_ids).delete()
        OpeningHours.objects.bulk_create(created)
        now = timezone.now()  # noqa: TID251 (an import has no `now` here)
        for column, fields in Center.CHANGE_COLUMNS.items():
            changed = [row.instance.pk for row in rows if fields & self._get_changed_fields(row)]
            Center.objects.filter(pk__in=changed).update(**{column: now})

    def _get_week(self, center: Center) -> list[OpeningHours]:
        return [
            OpeningHours(weekday=weekday, opens=opens, closes=closes)
            for weekday, day in enumerate(WEEKDAYS)
            for opens, closes in self.fields[day].get_value(center) or ()
        ]

    def _get_changed_fields(self, row: ImportRowResult) -> set[str]:
        """The changed fields of a stored center; opening_hours for those of any day."""
        if not row.is_update():
            return set()
        names = {self.fields[column].attribute for column in row.changes}
        return names | ({"opening_hours"} if names & {f"hours_{n}" for n in range(7)} else set())
