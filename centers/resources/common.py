"""What the tables of centers share: rows of one center, and what they refer to there."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from import_export.fields import Field

from accounts.resources import CenterScopedResource
from centers.models import (
    Center,
    Closure,
    MeetingRoom,
    PriceList,
    Rate,
    ResourceType,
    Service,
    Terms,
)
from roombook import places
from roombook.ids import is_id
from roombook.imports.resources import Cells
from roombook.imports.widgets import IntegerWidget, ReferenceWidget, TextWidget
from roombook.texts import fold_name

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
