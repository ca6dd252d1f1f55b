"""Centers and what belongs to them as tables, which are imported and exported."""

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from decimal import Decimal
from itertools import product
from typing import Any, ClassVar, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.http import HttpRequest
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
from centers.models.schedule import closure_saved
from centers.price_lists import find_overlap
from roombook import places
from roombook.backoffice import audit_log
from roombook.ids import is_id
from roombook.imports.displayed_values import CellKind
from roombook.imports.files import ImportTable
from roombook.imports.resources import MAX_ROWS_WITH_NOTES, Cells
from roombook.imports.results import ImportResult, ImportRowResult
from roombook.imports.widgets import (
    IntegerWidget,
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


def name_at_center_widget(singular: str, if_empty: str = "") -> ReferenceWidget:
    """The widget for a row of the same center, one of the resource's `rows_at_center`."""

    def find(name: str, resource: "CenterChildResource[Any]", record: Any) -> Model | None:
        center = resource.get_center_id(record)
        if center is None:
            return None
        found = resource.rows_at_center.get((center, fold_name(name)), [])
        if len(found) != 1:
            several = f"several {singular}s" if found else f"no {singular}"
            raise ValueError(f"This center has {several} of that name.")
        if not getattr(found[0], "is_offered", True):
            others = "rooms" if resource.is_service else "services"
            raise ValueError(f"This is a {singular} of {others}. Enter another one.")
        return found[0]

    return ReferenceWidget(f"the name of a {singular} of this center{if_empty}", find)


# What the templates of all tables refer to.
EXAMPLE_CENTER = Center(name="Downtown", time_zone_id="America/Denver")
EXAMPLE_RATE = Rate(center=EXAMPLE_CENTER, name="Standard")


class ModelFieldWidget(TextWidget):
    """A text that a field of the model reads and normalizes."""

    def parse(self, text: str, **kwargs: object) -> Any:
        try:
            return self.model_field.to_python(text)
        except ValidationError as error:
            raise ValueError(error.message) from error


TermsByName = dict[tuple[int | None, str], Terms]


def load_terms(centers: Q) -> TermsByName:
    """The terms of these centers, by their center and their name."""
    rows = Terms.objects.filter(centers)
    return {(each.center_id, fold_name(each.name)): each for each in rows}


def terms_widget(if_empty: str) -> ReferenceWidget:
    """The widget for terms of the same center, one of the resource's `terms_at_center`."""

    def find(name: str, resource: Any, record: Any) -> Terms:
        found: TermsByName = resource.terms_at_center
        terms = found.get((resource.get_center_id(record), fold_name(name)))
        if terms is None:
            raise ValueError("This center has no terms of that name.")
        return terms

    return ReferenceWidget(f"the name of terms of this center; empty: {if_empty}", find)


def get_types_by_name(*, is_service: bool) -> dict[str, ResourceType]:
    rows = ResourceType.objects.filter(is_service=is_service)
    return {fold_name(each.name): each for each in rows}


class CenterChildResource(CenterScopedResource[ChildT]):
    """Rows that belong to one center and stay there."""

    center_id = Field(
        "center_id", widget=IntegerWidget(help_text="the center's number"), readonly=True
    )
    center = Field(
        "center__name",
        widget=TextWidget(help_text="the center's name; may replace the number"),
        readonly=True,
    )

    center_path: ClassVar = "center"
    related: ClassVar[tuple[str, ...]] = ("center",)
    # Rows that cells may name, by their center and their name: set by `load_references`.
    rows_at_center: dict[tuple[int, str], list[Model]]
    order: ClassVar[tuple[str, ...]] = ("center_id", "pk")

    def load_references(self, rows: Sequence[Cells], stored: QuerySet[ChildT]) -> None:
        ids = {int(text) for row in rows if is_id(text := row.get("center_id", ""))}
        names = {places.fold_text(row.get("center", "")) for row in rows} - {""}
        known = Center.objects.filter(Q(pk__in=ids) | Q(name_folded__in=names))
        if self.written_centers is not None:
            known = known.filter(pk__in=self.written_centers)
        # By their ids and by their names, which several may share.
        self.centers: dict[Any, list[Center]] = defaultdict(list)
        for center in known.defer("search_text", "parking_information"):
            self.centers[str(center.pk)].append(center)
            self.centers["", center.name_folded].append(center)
        self.center_ids = {each.pk for found in self.centers.values() for each in found}
        self.center_ids |= {*stored.values_list(self.center_path, flat=True)}

    def load_rows_at_center(self, rows: QuerySet[Any]) -> None:
        self.rows_at_center = defaultdict(list)
        for each in rows.filter(center__in=self.center_ids):
            self.rows_at_center[each.center_id, fold_name(each.name)].append(each)

    def get_candidates(self, rows: Sequence[Cells]) -> Q:
        return Q(**{f"{self.center_path}__in": self.center_ids})

    def prepare_row(self, row: Cells) -> None:
        """Find the center that a row names; one with an id need not."""
        self.center_of_row: Center | None = None
        number, name = row.get("center_id", ""), row.get("center", "")
        if not number and not name:
            if not row.get("id"):
                raise ValidationError({"center": "This needs a value, or the center_id."})
            return
        column = "center_id" if number else "center"
        found = self.centers.get(number or ("", places.fold_text(name)), [])
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

    def get_errors(self, instance: ChildT, original: ChildT | None) -> dict[str, str]:
        is_moved = original and self.center_of_row not in (None, self.get_center(original))
        return {"center": f"A {self.singular} stays at its center."} if is_moved else {}


class NamedResource(CenterChildResource[NamedT]):
    """Rows that are found by their center and their name."""

    key: ClassVar[tuple[str, ...]] = ("center", "name")
    required_columns: ClassVar[tuple[tuple[str, ...], ...]] = (("center_id", "center"), ("name",))

    def get_key(self, instance: NamedT) -> Hashable:
        return self.get_center_id(instance), fold_name(instance.name)

    def get_title(self, instance: NamedT) -> str:
        return f"{instance.name}, {self.get_center(instance).name}"


# --- Centers, with their opening hours ------------------------------------------------------------

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


# --- Rates, rooms and services --------------------------------------------------------------------

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


# --- Special price lists, by the rate and the center that they belong to --------------------------


class WeekdaysWidget(ModelFieldWidget):
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
        "rate": EXAMPLE_RATE,
        "name": "Evening",
        "weekdays": "mon,tue,wed,thu,fri",
        "hours": (dt.time(18), MIDNIGHT),
        "hourly": Decimal(48),
    }
    center_path: ClassVar = "rate__center"
    related: ClassVar = ("rate__center",)
    key: ClassVar = ("rate", "name")
    required_columns: ClassVar = (("center_id", "center"), ("rate",), ("name",))
    derived_fields: ClassVar = ("starts", "ends")
    order: ClassVar = ("rate__center_id", "rate_id", "pk")

    center_id = Field(
        "rate__center_id", widget=IntegerWidget(help_text="the center's number"), readonly=True
    )
    center = Field(
        "rate__center__name",
        widget=TextWidget(help_text="the center's name; may replace the number"),
        readonly=True,
    )
    rate = Field("rate", widget=name_at_center_widget("rate"))
    weekdays = Field("weekdays", widget=WeekdaysWidget(PriceList._meta.get_field("weekdays")))
    hours = Field("hours", widget=HoursWidget())

    class Meta:
        model = PriceList
        fields = (
            *("id", "center_id", "center", "rate", "name", "weekdays", "hours", "valid_from"),
            *("valid_until", "is_yearly", "hourly", "half_day", "full_day"),
        )

    def load_references(self, rows: Sequence[Cells], stored: QuerySet[PriceList]) -> None:
        super().load_references(rows, stored)
        self.load_rows_at_center(Rate.objects.select_related("center"))

    def set_center(self, instance: PriceList, center: Center) -> None:
        """Its rate, which is found at this center, says where it belongs."""

    def get_center(self, instance: PriceList) -> Center:
        return instance.rate.center

    def get_center_id(self, instance: PriceList) -> int | None:
        if instance.rate_id:
            return instance.rate.center_id
        return self.center_of_row.pk if self.center_of_row else None

    def get_key(self, instance: PriceList) -> Hashable:
        return instance.rate_id, fold_name(instance.name)

    def get_title(self, instance: PriceList) -> str:
        return f"{instance.name}, {instance.rate.name}, {instance.rate.center.name}"

    def after_import(self, dataset: ImportTable, result: ImportResult, **kwargs: object) -> None:
        """Refuse lists that overlap when all rows are written: a file may move several of them."""
        super().after_import(dataset, result, **kwargs)
        if result.has_validation_errors() or result.has_errors():
            return
        rows = {row.instance.rate_id: row for row in result.rows}
        lists: dict[int, list[PriceList]] = {rate_id: [] for rate_id in rows}
        if self.is_locking:
            lock_rates(rows)
        for each in PriceList.objects.filter(rate__in=rows).order_by("pk"):
            lists[each.rate_id].append(each)
        today = timezone.localdate()  # noqa: TID251 (a preview has no `now`)
        for rate_id, row in rows.items():
            if overlap := find_overlap(lists[rate_id], today=today):
                self.refuse_row(result, row, "hours", [overlap])

    def save_related(self, rows: Sequence[ImportRowResult]) -> None:
        update_rates(
            {each.rate_id for row in rows for each in (row.instance, row.original) if each}
        )


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


# --- Terms of cancellation ------------------------------------------------------------------------

STEPS = ModelFieldWidget(
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
    required_columns: ClassVar = (("name",),)
    example: ClassVar = {"name": "Meeting room"}
    more_examples: ClassVar = ({"name": "Catering and equipment", "is_service": True},)

    class Meta:
        model = ResourceType
        fields = ("id", "name", "is_service", "position", "internal")

    def get_candidates(self, rows: Sequence[Cells]) -> Q:
        return Q()

    def get_key(self, instance: ResourceType) -> Hashable:
        return fold_name(instance.name)
