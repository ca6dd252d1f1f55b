"""Centers as a table, with their week."""

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any, ClassVar

from auditlog.context import disable_auditlog
from django.db.models import prefetch_related_objects

from accounts.resources import CenterScopedResource
from centers.hours import MIDNIGHT
from centers.models import Center, Neighborhood, OpeningHours
from centers.resources.common import NameWidget
from roombook import places
from roombook.imports import cells
from roombook.imports.batches import batches
from roombook.imports.cells import CellWidget, Column
from roombook.imports.plan import Checked
from roombook.imports.sheet import Cells

DayHours = tuple[tuple[dt.time, dt.time], ...]

WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class NeighborhoodWidget(NameWidget):
    """A neighborhood as the back office tells it: "LoDo, Denver, CO"."""

    how = "name, city, state: LoDo, Denver, CO"

    def find(self, name: str, *, of: Any, sheet: Any) -> Neighborhood:
        found: list[Neighborhood] = sheet.neighborhoods.get(places.fold_text(name), [])
        if len(found) != 1:
            raise ValueError(
                "Several neighborhoods are called so: write it as name, city, state."
                if found
                else "There is no neighborhood of that name."
            )
        return found[0]

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else cells.normalize_cell(str(value))


class OpeningHoursWidget(CellWidget):
    """When a center is open on a weekday: 09:00-12:30, 14:00-24:00; or closed, or nothing."""

    how = "09:00-17:00, or 09:00-12:00, 13:00-24:00, or closed"

    PATTERN = re.compile(r"(\d\d?):(\d\d)\s*[-–]\s*(\d\d?):(\d\d)", re.ASCII)  # noqa: RUF001

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> DayHours:
        if value.lower() in ("", "closed"):
            return ()
        found = [self._stretch(part.strip()) for part in re.split("[,;]", value)]
        found.sort()
        for (_, closes), (opens, _) in pairwise(found):
            if closes == MIDNIGHT or opens < closes:
                raise ValueError("Opening hours of one day overlap.")
        return tuple(found)

    def _stretch(self, text: str) -> tuple[dt.time, dt.time]:
        match = self.PATTERN.fullmatch(text)
        wrong = "Write hours such as 09:00-17:00, or 09:00-12:00, 13:00-24:00, or closed."
        if match is None:
            raise ValueError(wrong)
        first, second, third, fourth = map(int, match.groups())
        try:
            opens = dt.time(first, second)
            closes = MIDNIGHT if (third, fourth) == (24, 0) else dt.time(third, fourth)
        except ValueError:
            raise ValueError(wrong) from None
        if closes != MIDNIGHT and closes <= opens:
            raise ValueError("Closing comes after opening; 24:00 is midnight.")
        return opens, closes

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        if value is None:
            return ""
        told = [
            f"{_clock(opens)}-{'24:00' if closes == MIDNIGHT else _clock(closes)}"
            for opens, closes in value
        ]
        return ", ".join(told) or "closed"


def _clock(at: dt.time) -> str:
    return at.isoformat(timespec="minutes")


class CenterResource(CenterScopedResource):
    """Centers with their week."""

    name: ClassVar = "centers"
    one: ClassVar = "center"
    center_path: ClassVar = "pk"
    related: ClassVar = ("neighborhood",)
    key: ClassVar = ("name", "city", "state")
    key_is_unique: ClassVar = False
    needed: ClassVar = (("name",),)
    extras: ClassVar = tuple(f"hours_{weekday}" for weekday in range(7))
    derived: ClassVar = Center.SEARCH_COLUMNS

    time_zone = Column("time_zone_id", how="such as America/Denver; empty: by its place")
    neighborhood = Column("neighborhood", NeighborhoodWidget())
    mon, tue, wed, thu, fri, sat, sun = (
        Column(f"hours_{weekday}", OpeningHoursWidget()) for weekday in range(7)
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

    def center_of(self, instance: Any) -> int | None:
        pk: int | None = instance.pk
        return pk

    def look_up(self, rows: Sequence[Cells], stored: Iterable[Any]) -> None:
        self.neighborhoods: dict[str, list[Neighborhood]] = defaultdict(list)
        if not any(row.get("neighborhood") for row in rows):
            return
        shown = Neighborhood.objects.only("name", "original_name", "city", "state")
        by_name: dict[str, list[Neighborhood]] = defaultdict(list)
        for each in shown:
            self.neighborhoods[places.fold_text(str(each))].append(each)
            by_name[places.fold_text(each.name)].append(each)
        # The name alone does where nothing is called so in full.
        for name, found in by_name.items():
            self.neighborhoods.setdefault(name, found)

    def key_of_row(self, row: Cells) -> Any:
        return _key(*(row.get(name, "") for name in ("name", "city", "state", "country")))

    def key_of(self, instance: Any) -> Any:
        return _key(instance.name, instance.city, instance.state, instance.country)

    def keys_stored(self, keys: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        for batch in batches(sorted(keys)):
            rows = Center.objects.filter(
                name_folded__in={name for name, *_ in batch},
                city_folded__in={city for _, city, *_ in batch},
            )
            shown = ("pk", "name_folded", "city_folded", "state_folded")
            for pk, *key in rows.values_list(*shown):
                yield tuple(key), pk

    def attach(self, instances: Sequence[Any]) -> None:
        weeks: dict[tuple[int, int], list[tuple[dt.time, dt.time]]] = defaultdict(list)
        rows = OpeningHours.objects.filter(center__in=[each.pk for each in instances])
        shown = rows.order_by("opens").values_list("center_id", "weekday", "opens", "closes")
        for center, weekday, opens, closes in shown:
            weeks[center, weekday].append((opens, closes))
        for center in instances:
            for weekday in range(7):
                setattr(center, f"hours_{weekday}", tuple(weeks[center.pk, weekday]))

    def settle(self, instance: Any) -> None:
        instance.normalize()

    def before_write(self, instances: Sequence[Any]) -> None:
        stored = [each for each in instances if each.pk is not None]
        # As they are under the lock: derived columns are made of them.
        for center in stored:
            center._prefetched_objects_cache = {}
        prefetch_related_objects(stored, "landmarks")
        for center in instances:
            center.update_search_columns()

    def write_extras(self, rows: Sequence[Checked]) -> None:
        """Write the days anew that are others now."""
        # Weekday -> centers.
        gone: dict[int, list[int]] = defaultdict(list)
        come = []
        for row, weekday in product(rows, range(7)):
            center, name = row.instance.pk, f"hours_{weekday}"
            before, now = row.before.get(name), getattr(row.instance, name)
            if before == now:
                continue
            if before:
                gone[weekday].append(center)
            come += [
                OpeningHours(center_id=center, weekday=weekday, opens=opens, closes=closes)
                for opens, closes in now or ()
            ]
        # The history tells it of the center.
        with disable_auditlog():
            for weekday, centers in gone.items():
                OpeningHours.objects.filter(weekday=weekday, center__in=centers).delete()
        OpeningHours.objects.bulk_create(come)


def _key(name: str, city: str, state: str, country: str) -> tuple[str, ...]:
    code, _ = places.get_state_code_and_name(places.get_country_code(country), state)
    return tuple(map(places.fold_text, (name, city, code)))
