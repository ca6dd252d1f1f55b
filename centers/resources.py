"""What of the centers can be imported and exported: columns, and how a row is found."""

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from auditlog.context import disable_auditlog
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import prefetch_related_objects

from accounts.imports import ByRole
from centers.hours import MIDNIGHT, localize
from centers.models import (
    Center,
    Closure,
    MeetingRoom,
    Neighborhood,
    OpeningHours,
    Rate,
    ResourceType,
    Service,
)
from centers.signals import closure_saved
from roombook import places
from roombook.imports import cells
from roombook.imports.cells import Column, Kind, Plain
from roombook.imports.files import Cell, Row
from roombook.imports.sheet import Centers, Checked, Origin, Sheet, batches, is_id, register
from roombook.spreadsheets import unguarded

Stretches = tuple[tuple[dt.time, dt.time], ...]

# --- How values are written ----------------------------------------------------------------------


class ById(Plain):
    """The id of a row."""

    how = "a whole number"

    def read(self, text: str) -> int:
        if not is_id(text):
            raise ValueError("Write a whole number.")
        return int(text)


class ByName(Kind):
    """A row that is named in words; the sheet knows how."""

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> Any:
        if not value:
            return None
        return self.find(value, of=kwargs.get("of"), sheet=kwargs.get("sheet"))

    def find(self, name: str, *, of: Any, sheet: Any) -> Any:
        raise NotImplementedError

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else cells.tidy(value.name)


class RateName(ByName):
    """A rate of the same center."""

    how = "the name of a rate of this center"

    def find(self, name: str, *, of: Any, sheet: Any) -> Rate:
        found: Rate | None = sheet.rates.get((of.center_id, name.lower()))
        if found is None:
            raise ValueError("This center has no rate of that name.")
        return found


class RoomName(ByName):
    """A room of the same center."""

    how = "the name of a room of this center; empty: the whole center"

    def find(self, name: str, *, of: Any, sheet: Any) -> MeetingRoom:
        found: MeetingRoom | None = sheet.rooms.get((of.center_id, name.lower()))
        if found is None:
            raise ValueError("This center has no room of that name.")
        return found


class TypeName(ByName):
    """A kind of rooms or of services."""

    how = "the name of a type"

    def find(self, name: str, *, of: Any, sheet: Any) -> ResourceType:
        found: ResourceType | None = sheet.types.get(name.lower())
        if found is None:
            told = ", ".join(sorted(each.name for each in sheet.types.values())[:20])
            raise ValueError(f"There is no such type. There are: {told or 'none'}.")
        return found


class NeighborhoodName(ByName):
    """A neighborhood as the back office tells it: "LoDo, Denver, CO"."""

    how = "name, city, state: LoDo, Denver, CO"

    def find(self, name: str, *, of: Any, sheet: Any) -> Neighborhood:
        found = sheet.neighborhoods.get(places.folded(name), [])
        if len(found) != 1:
            raise ValueError(
                "Several neighborhoods are called so: write it as name, city, state."
                if found
                else "There is no neighborhood of that name."
            )
        return found[0]

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else cells.tidy(str(value))


class Stretch(Kind):
    """When a center is open on a weekday: 09:00-12:30, 14:00-24:00; or closed."""

    how = "09:00-17:00, or 09:00-12:00, 13:00-24:00, or closed"

    PATTERN = re.compile(r"(\d\d?):(\d\d)\s*[-–]\s*(\d\d?):(\d\d)", re.ASCII)  # noqa: RUF001

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> Stretches:
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


class LocalTime(Plain):
    """A moment on the clock of the row's center; with its offset where the clock shows it twice."""

    how = "a time on the center's clock: 2027-03-01T09:00"

    def clean(self, value: str, row: Any = None, *, of: Any = None, **kwargs: Any) -> Any:
        if not value:
            return None
        try:
            return localize(cells.moment(value), of.center.zone).astimezone(dt.UTC)
        except OverflowError as error:
            raise ValueError("This time is out of range.") from error

    def render(self, value: Any, obj: Any = None, *, of: Any = None, **kwargs: Any) -> str:
        if value is None:
            return ""
        local = value.astimezone(of.center.zone)
        return cells.told(local if local.fold else local.replace(tzinfo=None))

    def cell(self, value: Any, text: str) -> Cell:
        return text


# --- What sheets of centers have in common -------------------------------------------------------


def named_centers(rows: Sequence[Row], written: Centers) -> dict[Any, list[Center]]:
    """The centers that rows name by id or name, as far as somebody may write there."""
    ids = {int(text) for row in rows if is_id(text := row.cells.get("center_id", ""))}
    names = {places.folded(unguarded(row.cells.get("center", ""))) for row in rows} - {""}
    known = Center.objects.defer("search_text", "parking_information")
    if written is not None:
        known = known.filter(pk__in=written)
    found: dict[int, Center] = {}
    for batch in batches(sorted(ids)):
        found |= {center.pk: center for center in known.filter(pk__in=batch)}
    for batch in batches(sorted(names)):
        found |= {center.pk: center for center in known.filter(name_folded__in=batch)}
    centers: dict[Any, list[Center]] = defaultdict(list)
    for center in found.values():
        centers[center.pk].append(center)
        centers[center.name_folded].append(center)
    return centers


class OfACenter(ByRole):
    """Rows that belong to one center and stay there."""

    center_id = Column("center_id", ById(), how="the center's number", readonly=True)
    center = Column(
        "center__name", how="the center's name; it may stand for the number", readonly=True
    )

    key: ClassVar[tuple[str, ...]] = ("center", "name")
    needed: ClassVar = (("center_id", "center"), ("name",))

    def stored(self) -> models.QuerySet[Any]:
        rows = self._meta.model._default_manager.select_related("center")
        change = self.allowed.change
        return rows if change is None else rows.filter(center__in=change)

    def exported(self) -> models.QuerySet[Any]:
        rows = self._meta.model._default_manager.select_related("center", *self.related)
        if self.allowed.export is not None:
            rows = rows.filter(center__in=self.allowed.export)
        return rows.order_by("center_id", "pk")

    # Foreign keys that an exported row shows.
    related: ClassVar[tuple[str, ...]] = ()

    def look_up(self, rows: Sequence[Row]) -> None:
        self.centers = named_centers(rows, self.allowed.written)

    def center_named(self, row: Mapping[str, str]) -> Center | None:
        """The center that a row names; None where it names none."""
        told, name = row.get("center_id", ""), row.get("center", "")
        if told:
            found = self.centers.get(int(told), []) if is_id(told) else []
            if not found:
                raise ValidationError(
                    {"center_id": f"There is no center {told[:20]} that you may change."}
                )
            if name and places.folded(name) != found[0].name_folded:
                raise ValidationError(
                    {"center__name": f'Center {told} is called "{found[0].name}".'}
                )
            return found[0]
        if not name:
            return None
        found = self.centers.get(places.folded(name), [])
        if len(found) > 1:
            ids = ", ".join(str(each.pk) for each in found[:5])
            raise ValidationError(
                {"center__name": f"Several centers are called so: give the center_id ({ids})."}
            )
        if not found:
            raise ValidationError({"center__name": "There is no such center that you may change."})
        return found[0]

    def key_of_row(self, row: Mapping[str, str]) -> Any:
        center = self.center_named(row)
        if center is None:
            raise ValidationError({"center__name": "This needs a value, or the center_id."})
        return center.pk, row.get("name", "").lower()

    def key_of(self, instance: Any) -> Any:
        return instance.center_id, cells.tidy(instance.name).lower()

    def keys_stored(self, keys: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        of_ids = {instance.center_id for instance in self.by_id.values()}
        for batch in batches(sorted({center for center, *_ in keys} | of_ids)):
            rows = self._meta.model._default_manager.filter(center__in=batch)
            for pk, center, name in rows.values_list("pk", "center_id", "name").iterator():
                yield (center, cells.tidy(name).lower()), pk

    def title(self, instance: Any) -> str:
        return f"{instance.name}, {instance.center.name}"

    def after_init_instance(self, instance: Any, new: bool, row: Any, **kwargs: Any) -> None:  # noqa: FBT001 (the library's signature)
        named = self.center_named(row)
        if new:
            # It was found by its center, so there is one.
            assert named is not None
            instance.center = named
        elif named is not None and named.pk != instance.center_id:
            raise ValidationError({"center__name": f"A {self.one} stays at its center."})
        super().after_init_instance(instance, new, row, **kwargs)
        if new:
            for name in {"center_id", "center"} & self.present:
                self.before_told[name] = ""


def types_by_name(*, is_service: bool) -> dict[str, ResourceType]:
    rows = ResourceType.objects.filter(is_service=is_service)
    return {cells.tidy(each.name).lower(): each for each in rows}


def rates_by_name(centers: Iterable[int]) -> dict[tuple[int, str], Rate]:
    return {
        (each.center_id, cells.tidy(each.name).lower()): each
        for batch in batches(sorted(centers))
        for each in Rate.objects.filter(center__in=batch)
    }


# --- The sheets ----------------------------------------------------------------------------------

WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Hours(Column):
    """The opening hours of one weekday; empty is closed."""

    def __init__(self, weekday: int) -> None:
        super().__init__(f"hours_{weekday}", Stretch())


class CenterSheet(ByRole):
    """Centers with their week."""

    name: ClassVar = "centers"
    one: ClassVar = "center"
    key: ClassVar = ("name", "city", "state")
    key_is_unique: ClassVar = False
    needed: ClassVar = (("name",),)
    extras: ClassVar = tuple(f"hours_{weekday}" for weekday in range(7))
    derived: ClassVar = Center.DERIVED

    time_zone = Column("time_zone_id", how="such as America/Denver; empty: by its place")
    neighborhood = Column("neighborhood", NeighborhoodName())
    mon, tue, wed, thu, fri, sat, sun = (Hours(weekday) for weekday in range(7))

    class Meta(Sheet.Meta):
        model = Center
        fields = (
            *("id", "name", "is_active", "street1", "street2", "street3", "city", "state"),
            *("postal_code", "country", "latitude", "longitude", "time_zone", "neighborhood"),
            *WEEK,
            *("is_after_hours_support_enabled", "tax_rate", "rank", "promo_text"),
            *("parking_information", "is_new_location", "is_new_low_price"),
        )

    def stored(self) -> models.QuerySet[Any]:
        rows = Center.objects.select_related("neighborhood")
        return rows if self.allowed.change is None else rows.filter(pk__in=self.allowed.change)

    def exported(self) -> models.QuerySet[Any]:
        rows = Center.objects.select_related("neighborhood")
        if self.allowed.export is not None:
            rows = rows.filter(pk__in=self.allowed.export)
        return rows.order_by("pk")

    def center_of(self, instance: Any) -> int | None:
        return instance.pk

    def look_up(self, rows: Sequence[Row]) -> None:
        self.neighborhoods: dict[str, list[Neighborhood]] = defaultdict(list)
        if "neighborhood" not in self.present:
            return
        shown = Neighborhood.objects.only("name", "original_name", "city", "state")
        by_name: dict[str, list[Neighborhood]] = defaultdict(list)
        for each in shown:
            self.neighborhoods[places.folded(str(each))].append(each)
            by_name[places.folded(each.name)].append(each)
        # The name alone does where nothing is called so in full.
        for name, found in by_name.items():
            self.neighborhoods.setdefault(name, found)

    def key_of_row(self, row: Mapping[str, str]) -> Any:
        country = places.country_code(row.get("country", ""))
        state, _ = places.state_code_and_name(country, row.get("state", ""))
        return tuple(map(places.folded, (row.get("name", ""), row.get("city", ""), state)))

    def key_of(self, instance: Any) -> Any:
        country = places.country_code(instance.country)
        state, _ = places.state_code_and_name(country, instance.state)
        return tuple(map(places.folded, (instance.name, instance.city, state)))

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
            center.derive()

    def write_extras(self, rows: Sequence[Checked]) -> None:
        old, new = [], []
        for row in rows:
            for weekday in range(7):
                before = row.before.get(f"hours_{weekday}") or ()
                now = getattr(row.instance, f"hours_{weekday}") or ()
                if before != now:
                    old.append((row.instance.pk, weekday))
                    new += [
                        OpeningHours(
                            center_id=row.instance.pk, weekday=weekday, opens=opens, closes=closes
                        )
                        for opens, closes in now
                    ]
        by_day: dict[int, list[int]] = defaultdict(list)
        for center, weekday in old:
            by_day[weekday].append(center)
        # The history tells it of the center.
        with disable_auditlog():
            for weekday, centers in by_day.items():
                OpeningHours.objects.filter(weekday=weekday, center__in=centers).delete()
        OpeningHours.objects.bulk_create(new)


class RateSheet(OfACenter):
    """Prices."""

    name: ClassVar = "rates"
    one: ClassVar = "rate"

    class Meta(Sheet.Meta):
        model = Rate
        fields = (
            *("id", "center_id", "center", "name", "is_flat_rate", "flat_rate", "hourly"),
            *("half_day", "full_day", "setup_fee", "bill_in_blocks", "description"),
        )

    def notes(self, instance: Any) -> Iterator[tuple[str, str]]:
        for name in ("flat_rate", "hourly", "half_day", "full_day"):
            if name in self.changes and getattr(instance, name) == 0:
                yield name, "This makes it free. An empty cell does not offer it."


class RoomSheet(OfACenter):
    """Rooms."""

    name: ClassVar = "rooms"
    one: ClassVar = "room"
    related: ClassVar = ("resource_type", "rate")

    type = Column("resource_type", TypeName())
    rate = Column("rate", RateName())

    class Meta(Sheet.Meta):
        model = MeetingRoom
        fields = (
            *("id", "center_id", "center", "name", "type", "capacity", "rate", "is_active"),
            *("is_blocked", "is_live_inventory", "provider", "turnaround_minutes"),
            *("grid_minutes", "minimum_minutes", "maximum_minutes", "booking_window_days"),
        )

    def stored(self) -> models.QuerySet[Any]:
        return super().stored().select_related("center", "resource_type", "rate")

    def look_up(self, rows: Sequence[Row]) -> None:
        super().look_up(rows)
        self.types = types_by_name(is_service=False)

    def _load(self, rows: Sequence[Row]) -> None:
        super()._load(rows)
        self.rates = rates_by_name(centers_spoken_of(self))


class ServiceSheet(OfACenter):
    """Services."""

    name: ClassVar = "services"
    one: ClassVar = "service"
    related: ClassVar = ("resource_type", "rate")

    type = Column("resource_type", TypeName())
    rate = Column("rate", RateName())

    class Meta(Sheet.Meta):
        model = Service
        fields = (
            *("id", "center_id", "center", "name", "type", "description", "rate", "is_active"),
            *("bill_at_center", "minimum_booking", "needs_duration", "needs_quantity", "position"),
        )

    def stored(self) -> models.QuerySet[Any]:
        return super().stored().select_related("center", "resource_type", "rate")

    def look_up(self, rows: Sequence[Row]) -> None:
        super().look_up(rows)
        self.types = types_by_name(is_service=True)

    def _load(self, rows: Sequence[Row]) -> None:
        super()._load(rows)
        self.rates = rates_by_name(centers_spoken_of(self))


def centers_spoken_of(sheet: Any) -> set[int]:
    """The centers that rows name, and those of the rows that they name by id."""
    named = {key for key in sheet.centers if isinstance(key, int)}
    return named | {instance.center_id for instance in sheet.by_id.values()}


class ClosureSheet(OfACenter):
    """Closures, on the clock of their center."""

    name: ClassVar = "closures"
    one: ClassVar = "closure"
    key: ClassVar = ("center", "room", "starts_at")
    key_is_unique: ClassVar = False
    needed: ClassVar = (("center_id", "center"), ("starts_at",))
    related: ClassVar = ("room",)
    # So many closures are looked at for bookings that they touch.
    MOST_TOLD: ClassVar = 50

    room = Column("room", RoomName())
    starts_at = Column("starts_at", LocalTime())
    ends_at = Column("ends_at", LocalTime())

    class Meta(Sheet.Meta):
        model = Closure
        fields = ("id", "center_id", "center", "room", "starts_at", "ends_at", "reason")

    def stored(self) -> models.QuerySet[Any]:
        return super().stored().select_related("center", "room")

    def _load(self, rows: Sequence[Row]) -> None:
        centers = {key for key in self.centers if isinstance(key, int)}
        if "room" in self.present:
            ids = [int(text) for row in rows if is_id(text := row.cells.get("id", ""))]
            for batch in batches(ids):
                centers |= set(self.stored().filter(pk__in=batch).values_list("center", flat=True))
        self.rooms = {
            (each.center_id, cells.tidy(each.name).lower()): each
            for batch in batches(sorted(centers))
            for each in MeetingRoom.objects.filter(center__in=batch).only("name", "center")
        }
        super()._load(rows)

    def key_of_row(self, row: Mapping[str, str]) -> Any:
        center = self.center_named(row)
        if center is None:
            raise ValidationError({"center__name": "This needs a value, or the center_id."})
        try:
            starts = localize(cells.moment(row.get("starts_at", "")), center.zone)
        except (ValueError, OverflowError) as error:
            raise ValidationError({"starts_at": str(error)}) from error
        name = row.get("room", "").lower()
        room = self.rooms.get((center.pk, name)) if name else None
        if name and room is None:
            raise ValidationError({"room": "This center has no room of that name."})
        return center.pk, room.pk if room else None, starts.astimezone(dt.UTC)

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


SHEETS = (CenterSheet, RateSheet, RoomSheet, ServiceSheet, ClosureSheet)


def connect() -> None:
    """Once, when the app is ready."""
    register(*SHEETS)
