"""Centers and what belongs to them as tables, which are imported and exported."""

import datetime as dt
import re
from collections.abc import Hashable, Iterator
from decimal import Decimal
from typing import Any, ClassVar, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.utils import timezone
from import_export.fields import Field

from accounts.resources import CenterScopedResource
from centers.closure_effects import find_effects, find_effects_of_hours, find_effects_of_settings
from centers.hours import MIDNIGHT, WEEKDAYS, find_overlapping_days, localize
from centers.models import (
    Center,
    Closure,
    MeetingRoom,
    Neighborhood,
    OpeningHours,
    PriceList,
    Rate,
    ResourceType,
    Service,
    Terms,
)
from centers.models.price_list import lock_rates, update_rates
from centers.models.room import is_offered
from centers.price_lists import find_overlap
from roombook import places
from roombook.backoffice import audit_log
from roombook.ids import parse_id
from roombook.imports.displayed_values import CellKind
from roombook.imports.files import ImportTable
from roombook.imports.resources import Cells
from roombook.imports.results import ImportResult
from roombook.imports.widgets import (
    PercentWidget,
    ReferenceWidget,
    RelatedField,
    TextWidget,
    format_datetime,
    parse_datetime,
)
from roombook.texts import fold_name

# --- Rows of one center, and what they refer to there ---------------------------------------------

NamedT = TypeVar("NamedT", bound=Rate | PriceList | MeetingRoom | Service | Terms)
ChildT = TypeVar("ChildT", bound=Rate | PriceList | MeetingRoom | Service | Terms | Closure)
# What the templates of all tables refer to.
EXAMPLE_CENTER = "Downtown"
EXAMPLE_RATE = "Standard"


def get_folded_name(row: Any) -> str:
    return fold_name(row.name)


def at_center(rows: QuerySet[Any], noun: str, if_empty: str = "") -> ReferenceWidget:
    """The widget for a row of the same center."""

    def find(name: str, resource: Any, record: Any) -> Model | None:
        if resource.lookup_error:
            return None
        center = resource.get_center_id(record)
        named = resource.group(rows, get_folded_name, center=center)[fold_name(name)]
        if len(named) != 1:
            several = "Several of this center have that name."
            missing = f"This center has no {noun.removeprefix('a ')} of that name."
            raise ValueError(several if named else missing)
        if not getattr(named[0], "is_offered", True):
            others = "rooms" if resource.is_service else "services"
            raise ValueError(f"This is {noun} of {others}. Enter another one.")
        return named[0]

    return ReferenceWidget(f"the name of {noun} of this center{if_empty}", find)


def at_terms(if_empty: str) -> ReferenceWidget:
    return at_center(Terms.objects.all(), "terms", f"; empty: those of the {if_empty}")


def build_center_fields(path: str) -> tuple[Field, Field]:
    number = TextWidget(help_text="the center's number")
    name = TextWidget(help_text="the center's name; may replace the number")
    fields = (f"{path}_id", number), (f"{path}__name", name)
    one, other = (Field(path, widget=widget, readonly=True) for path, widget in fields)
    return one, other


class CenterChildResource(CenterScopedResource[ChildT]):
    """Rows that belong to one center and stay there."""

    center_id, center = build_center_fields("center")
    center_path: ClassVar = "center"
    order: ClassVar[tuple[str, ...]] = ("center_id", "pk")

    def prepare_row(self, row: Cells) -> None:
        """Find the center that a row names; one with an id need not."""
        self.center_of_row: Center | None = None
        number, name = row.get("center_id", ""), row.get("center", "")
        if not number and not name:
            if not row.get("id"):
                raise ValidationError({"center": "This needs a value, or the center_id."})
            return
        column = "center_id" if number else "center"
        where: dict[str, Any] = {"name_folded": places.fold_text(name)}
        if number:
            where = {"pk": parse_id(number)}
        if self.changed_centers is not None:
            where["pk__in"] = self.changed_centers
        centers = Center.objects.defer("search_text", "parking_information")
        found = self.group(centers, type, **where)[Center]
        if not found:
            raise ValidationError({column: "There is no such center that you may change."})
        if len(found) > 1:
            ids = ", ".join(str(each.pk) for each in found[:5])
            raise ValidationError(
                {column: f"Several centers have this name: give the center_id ({ids})."}
            )
        self.center_of_row = found[0]
        if name and places.fold_text(name) != found[0].name_folded:
            raise ValidationError({"center": f'Center {number} is called "{found[0].name}".'})

    def init_instance(self, row: Cells | None = None) -> ChildT:
        instance: ChildT = super().init_instance(row)
        if self.center_of_row:
            self.set_center(instance, self.center_of_row)
        return instance

    def set_center(self, instance: Any, center: Center) -> None:
        instance.center = center

    def get_center(self, instance: Any) -> Center:
        center: Center = instance.center
        return center

    def get_center_id(self, instance: Any) -> int | None:
        center_id: int | None = instance.center_id
        return center_id

    def get_scope(self, instance: ChildT) -> dict[str, Any]:
        return {self.center_path: self.get_center_id(instance)}

    def get_errors(self, instance: ChildT, original: ChildT | None) -> dict[str, str]:
        is_moved = original and self.center_of_row not in (None, self.get_center(original))
        return {"center": f"A {self.singular} stays at its center."} if is_moved else {}


class NamedResource(CenterChildResource[NamedT]):
    """Rows that are found by their center and their name."""

    key: ClassVar[tuple[str, ...]] = ("center", "name")

    def get_key(self, instance: NamedT) -> Hashable:
        return (*self.get_scope(instance).items(), fold_name(instance.name))

    def get_title(self, instance: NamedT) -> str:
        return f"{instance.name}, {self.get_center(instance).name}"


# --- Centers, with their opening hours ------------------------------------------------------------


def get_full_name(neighborhood: Neighborhood) -> str:
    return places.fold_text(str(neighborhood))


def get_place_name(neighborhood: Neighborhood) -> str:
    return places.fold_text(neighborhood.name)


def find_neighborhood(text: str, resource: "CenterResource", record: object) -> Neighborhood:
    """The name alone is enough unless it is the full name of another, or of several."""
    rows = Neighborhood.objects.only("name", "original_name", "city", "state")
    name = places.fold_text(text)
    found = resource.group(rows, get_full_name)[name] or resource.group(rows, get_place_name)[name]
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
        "name": EXAMPLE_CENTER,
        "street1": "1701 Wynkoop Street",
        "city": "Denver",
        "state": "Colorado",
        "postal_code": "80202",
        "country": "USA",
        "latitude": 39.7527,
        "longitude": -104.9992,
        "time_zone": "America/Denver",
        "tax_rate": Decimal("8.81"),
        **dict.fromkeys(WEEKDAYS[:5], "08:00-18:00"),
    }
    center_path: ClassVar = "pk"
    key: ClassVar = ("name", "city", "state", "country")
    required: ClassVar = ("name",)

    time_zone = Field(
        "time_zone_id",
        widget=TextWidget(help_text="such as America/Denver; empty: that of its location"),
    )
    neighborhood = Field(
        "neighborhood",
        widget=ReferenceWidget("name, city, state: LoDo, Denver, CO", find_neighborhood, str),
    )
    tax_rate = Field("tax_rate", widget=PercentWidget(Center._meta.get_field("tax_rate")))
    terms = Field("terms", widget=at_terms("deployment"))
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

    def get_scope(self, instance: Center) -> dict[str, Any]:
        return {"name_folded": places.fold_text(instance.name)}

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

    def get_notes(self, instance: Center) -> Iterator[tuple[str, str]]:
        """Name the reservations that the new hours and other settings would touch."""
        changed = {self.fields[column].attribute for column in self.changes}
        day = next((day for day in WEEKDAYS if day in self.changes), "")
        touching = {"is_active"}.union(*Center.CHANGE_COLUMNS.values()) & changed
        if self.original is None or not (day or touching) or not self.may_look_up():
            return
        if day and (effects := find_effects_of_hours(instance, self._get_week(instance))):
            yield day, effects.html
        if effects := find_effects_of_settings(instance, touching):
            yield next(iter(self.changes)), effects.html

    def save_m2m(self, instance: Center, row: Cells, **kwargs: object) -> None:
        """Replace the opening hours of the weekdays that changed."""
        days = {number: day for number, day in enumerate(WEEKDAYS) if day in self.changes}
        if not days:
            return
        # They are one entry in the audit log.
        with audit_log.recording(is_paused=True):
            instance.opening_hours.filter(weekday__in=days).delete()
            for each in self._get_week(instance):
                if each.weekday in days:
                    each.save()
        audit_log.record_change(instance, {day: self.changes[day] for day in days.values()})

    def _get_week(self, center: Center) -> list[OpeningHours]:
        return [
            OpeningHours(center=center, weekday=weekday, opens=opens, closes=closes)
            for weekday, day in enumerate(WEEKDAYS)
            for opens, closes in self.fields[day].get_value(center) or ()
        ]


# --- Rates, rooms and services --------------------------------------------------------------------

PricedT = TypeVar("PricedT", bound=MeetingRoom | Service)


class RateResource(NamedResource[Rate]):
    """Rates."""

    name: ClassVar = "rates"
    singular: ClassVar = "rate"
    example: ClassVar = {
        "center": EXAMPLE_CENTER,
        "name": EXAMPLE_RATE,
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

    def get_notes(self, instance: Rate) -> Iterator[tuple[str, str]]:
        for name in ("flat_rate", "hourly", "half_day", "full_day"):
            if name in self.changes and getattr(instance, name) == 0:
                yield name, "This makes it free. With an empty cell, it is not offered."


def find_type(name: str, resource: "PricedResource[Any]", record: object) -> ResourceType:
    rows = ResourceType.objects.filter(is_service=resource.is_service).order_by("name")
    types = resource.group(rows, get_folded_name)
    if not (found := types.get(fold_name(name))):
        names = ", ".join(each.name for same in [*types.values()][:20] for each in same)
        raise ValueError(f"There is no such type. There are: {names or 'none'}.")
    return found[0]


def at_rate(relation: str) -> ReferenceWidget:
    offered = Rate.objects.filter(is_offered(relation), pk=OuterRef("pk"))
    return at_center(Rate.objects.annotate(is_offered=Exists(offered)), "a rate")


class PricedResource(NamedResource[PricedT]):
    """What has a type, and a rate of its center: rooms and services."""

    is_service: ClassVar[bool]

    type = Field("resource_type", widget=ReferenceWidget("the name of a type", find_type))


class RoomResource(PricedResource[MeetingRoom]):
    """Rooms."""

    name: ClassVar = "rooms"
    singular: ClassVar = "room"
    example: ClassVar = {
        "center": EXAMPLE_CENTER,
        "name": "Boardroom",
        "capacity": 12,
        "rate": EXAMPLE_RATE,
        "type": "Meeting room",
    }
    is_service: ClassVar = False

    rate = Field("rate", widget=at_rate("rooms"))
    terms = Field("terms", widget=at_terms("center"))

    class Meta:
        model = MeetingRoom
        fields = (
            *("id", "center_id", "center", "name", "type", "capacity", "rate", "is_active"),
            *("is_blocked", "is_live_inventory", "provider", "turnaround_minutes"),
            *("grid_minutes", "minimum_minutes", "maximum_minutes", "booking_window_days"),
            "terms",
        )

    def get_notes(self, instance: MeetingRoom) -> Iterator[tuple[str, str]]:
        """Name the reservations that the new settings would touch."""
        changed = [name for name in ("is_active", "is_blocked", "capacity") if name in self.changes]
        if not changed or self.original is None or not self.may_look_up():
            return
        if effects := find_effects_of_settings(instance, changed):
            yield changed[0], effects.html


class ServiceResource(PricedResource[Service]):
    """Services."""

    name: ClassVar = "services"
    singular: ClassVar = "service"
    example: ClassVar = {
        "center": EXAMPLE_CENTER,
        "name": "Flip chart",
        "type": "Catering and equipment",
    }
    is_service: ClassVar = True

    rate = Field("rate", widget=at_rate("services"))

    class Meta:
        model = Service
        fields = (
            *("id", "center_id", "center", "name", "type", "description", "rate", "is_active"),
            *("bill_at_center", "minimum_booking", "needs_duration", "needs_quantity", "position"),
        )


# --- Special price lists, by the rate and the center that they belong to --------------------------


class WeekdaysWidget(TextWidget):
    """Weekdays by their short names."""

    help_text = "mon, tue, sat; empty: every day"

    def render(self, value: Any, **kwargs: object) -> str:
        return (value or "").replace(",", ", ")


class HoursWidget(OpeningHoursWidget):
    """One span of a day; an empty cell means all of it."""

    help_text = "18:00-24:00; empty: the whole day"

    def parse(self, text: str, **kwargs: object) -> Any:
        if not text:
            return MIDNIGHT, MIDNIGHT
        starts, ends = self._parse(text)
        if ends <= starts and ends != MIDNIGHT:
            raise ValueError("It ends at 24:00 at the latest.")
        return starts, ends

    def render(self, value: Any, **kwargs: object) -> str:
        return "" if value == (MIDNIGHT, MIDNIGHT) else super().render([value])


class PriceListResource(NamedResource[PriceList]):
    """Special price lists."""

    name: ClassVar = "price-lists"
    singular: ClassVar = "price list"
    example: ClassVar = {
        "center": EXAMPLE_CENTER,
        "rate": EXAMPLE_RATE,
        "name": "Evening",
        "weekdays": "mon, tue, wed, thu, fri",
        "hours": "18:00-24:00",
        "hourly": Decimal(48),
    }
    center_path: ClassVar = "rate__center"
    key: ClassVar = ("center", "rate", "name")
    order: ClassVar = ("rate__center_id", "rate_id", "pk")

    center_id, center = build_center_fields("rate__center")
    rate = Field("rate", widget=at_center(Rate.objects.select_related("center"), "a rate"))
    weekdays = Field("weekdays", widget=WeekdaysWidget(PriceList._meta.get_field("weekdays")))
    hours = Field("hours", widget=HoursWidget())

    class Meta:
        model = PriceList
        fields = (
            *("id", "center_id", "center", "rate", "name", "weekdays", "hours", "valid_from"),
            *("valid_until", "is_yearly", "hourly", "half_day", "full_day"),
        )

    def set_center(self, instance: PriceList, center: Center) -> None:
        """Its rate, which is found at this center, says where it belongs."""

    def get_center(self, instance: PriceList) -> Center:
        return instance.rate.center

    def get_scope(self, instance: PriceList) -> dict[str, Any]:
        return {"rate": instance.rate_id}

    def get_center_id(self, instance: PriceList) -> int | None:
        if instance.rate_id:
            return instance.rate.center_id
        return self.center_of_row.pk if self.center_of_row else None

    def get_title(self, instance: PriceList) -> str:
        return f"{instance.name}, {instance.rate.name}, {instance.rate.center.name}"

    def after_import(self, dataset: ImportTable, result: ImportResult, **kwargs: object) -> None:
        """Refuse lists that overlap when all rows are written: a file may move several of them."""
        super().after_import(dataset, result, **kwargs)
        if result.has_validation_errors() or result.has_errors():
            return
        rows = {row.instance.rate_id: row for row in result.rows}
        lists: dict[int, list[PriceList]] = {rate_id: [] for rate_id in rows}
        lock_rates(rows)
        for each in PriceList.objects.filter(rate__in=rows).order_by("pk"):
            lists[each.rate_id].append(each)
        today = timezone.localdate()  # noqa: TID251 (a preview has no `now`)
        for rate_id, row in rows.items():
            if overlap := find_overlap(lists[rate_id], today=today):
                wrong = ValidationError({"hours": overlap})
                result.append_invalid_row(row.number, row.row_values, wrong)
                result.totals[row.import_type] -= 1
                result.totals[row.IMPORT_TYPE_INVALID] += 1

    def save_m2m(self, instance: PriceList, row: Cells, **kwargs: object) -> None:
        """The rate that the list had before has fewer."""
        if self.original and self.original.rate_id != instance.rate_id:
            update_rates([self.original.rate_id])


# --- Closures, in the local time of their center --------------------------------------------------


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
        "starts_at": "2027-12-25T00:00",
        "ends_at": "2027-12-26T00:00",
    }
    key: ClassVar = ("center", "room", "starts_at")
    required: ClassVar = ("center", "starts_at")

    room = Field(
        "room",
        widget=at_center(
            MeetingRoom.objects.only("name", "center"), "a room", "; empty: the whole center"
        ),
    )
    starts_at = CenterTimeField("starts_at", widget=CenterTimeWidget())
    ends_at = CenterTimeField("ends_at", widget=CenterTimeWidget())

    class Meta:
        model = Closure
        fields = ("id", "center_id", "center", "room", "starts_at", "ends_at", "reason")

    def get_key(self, instance: Closure) -> Hashable:
        return instance.center_id, instance.room_id, instance.starts_at

    def get_title(self, instance: Closure) -> str:
        starts_at = self.fields["starts_at"].export(instance)
        return f"{instance.reason or 'Closure'}, {starts_at}, {instance.center.name}"

    def get_notes(self, instance: Closure) -> Iterator[tuple[str, str]]:
        """Name the reservations during the closure."""
        if self.may_look_up() and (effects := find_effects([instance])):
            yield "starts_at", effects.html


# --- Terms of cancellation ------------------------------------------------------------------------

STEPS = TextWidget(
    Terms._meta.get_field("steps"),
    "168: 100; 48: 50 (hours before the start: percent that comes back)",
)


class TermsResource(NamedResource[Terms]):
    """Terms of cancellation."""

    name: ClassVar = "terms"
    singular: ClassVar = "set of terms"
    example: ClassVar = {"center": EXAMPLE_CENTER, "name": "Flexible", "steps": "168: 100; 48: 50"}

    steps = Field("steps", widget=STEPS)

    class Meta:
        model = Terms
        fields = (
            *("id", "center_id", "center", "name", "steps", "grace_minutes", "no_show_percent"),
            "change_hours",
        )


# --- Types of rooms and services, which all centers share -----------------------------------------


class TypeResource(CenterScopedResource[ResourceType]):
    """Types of rooms and services."""

    name: ClassVar = "types"
    singular: ClassVar = "type"
    center_path: ClassVar = None
    key: ClassVar = ("name",)
    example: ClassVar = {"name": "Meeting room"}
    more_examples: ClassVar = ({"name": "Catering and equipment", "is_service": True},)

    class Meta:
        model = ResourceType
        fields = ("id", "name", "is_service", "position", "internal")

    def get_key(self, instance: ResourceType) -> Hashable:
        return fold_name(instance.name)
