"""What the tables of centers share: rows of one center, and what they refer to there."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from import_export.fields import Field

from accounts.resources import CenterIds, CenterScopedResource
from centers.models import Center, Closure, MeetingRoom, Rate, ResourceType, Service
from roombook import places
from roombook.ids import is_id
from roombook.imports.batches import Cells, iterate_rows_where
from roombook.imports.widgets import IntegerWidget, ReferenceWidget, TextWidget
from roombook.texts import fold_name

NamedT = TypeVar("NamedT", bound=Rate | MeetingRoom | Service)
ChildT = TypeVar("ChildT", bound=Rate | MeetingRoom | Service | Closure)
# Rows by their center and their name.
RowsByName = dict[tuple[int, str], list[Model]]


def name_at_center_widget(singular: str, if_empty: str = "") -> ReferenceWidget:
    """The widget for a row of the same center, one of the resource's `rows_at_center`."""

    def find(name: str, resource: "CenterChildResource[Any]", record: Any) -> Model:
        found = resource.rows_at_center.get((record.center_id, fold_name(name)), [])
        if len(found) != 1:
            several = f"several {singular}s" if found else f"no {singular}"
            raise ValueError(f"This center has {several} of that name.")
        if not getattr(found[0], "is_offered", True):
            others = "rooms" if resource.is_service else "services"
            raise ValueError(f"This is a {singular} of {others}. Enter another one.")
        return found[0]

    return ReferenceWidget(f"the name of a {singular} of this center{if_empty}", find)


def get_types_by_name(*, is_service: bool) -> dict[str, ResourceType]:
    rows = ResourceType.objects.filter(is_service=is_service)
    return {fold_name(each.name): each for each in rows}


class CenterChildResource(CenterScopedResource[ChildT]):
    """Rows that belong to one center and stay there."""

    center_id = Field("center_id", widget=IntegerWidget("the center's number"), readonly=True)
    center = Field(
        "center__name",
        widget=TextWidget("the center's name; may replace the number"),
        readonly=True,
    )

    related: ClassVar[tuple[str, ...]] = ("center",)
    # The rows that cells may name: set by `load_references`.
    rows_at_center: RowsByName
    order: ClassVar = ("center_id", "pk")

    def load_references(self, rows: Sequence[Cells], instances: Iterable[ChildT]) -> None:
        named = get_centers_named(rows, self.written_centers)
        # By their ids and by their names, which several may share.
        self.centers: dict[Any, list[Center]] = defaultdict(list)
        for center in named.values():
            self.centers[center.pk].append(center)
            self.centers[center.name_folded].append(center)
        self.center_ids = named.keys() | {each.center_id for each in instances}

    def get_rows_by_name(self, rows: QuerySet[Any]) -> RowsByName:
        """Rows of the centers of the file."""
        found: RowsByName = defaultdict(list)
        for each in iterate_rows_where(rows, "center", self.center_ids):
            found[each.center_id, fold_name(each.name)].append(each)
        return found

    def find_center(self, row: Cells) -> Center | None:
        """The center that a row names; None if it names none."""
        number, name = row.get("center_id", ""), row.get("center", "")
        if number:
            found = self.centers.get(int(number), []) if is_id(number) else []
            if not found:
                raise ValidationError(
                    {"center_id": f"There is no center {number[:20]} that you may change."}
                )
            if name and places.fold_text(name) != found[0].name_folded:
                raise ValidationError(
                    {"center__name": f'Center {number} is called "{found[0].name}".'}
                )
            return found[0]
        if not name:
            return None
        found = self.centers.get(places.fold_text(name), [])
        if len(found) > 1:
            ids = ", ".join(str(each.pk) for each in found[:5])
            raise ValidationError(
                {"center__name": f"Several centers have this name: give the center_id ({ids})."}
            )
        if not found:
            raise ValidationError(
                {"center__name": "There is no center of this name that you may change."}
            )
        return found[0]

    def get_center(self, row: Cells) -> Center:
        """The center that a row without an id must name."""
        center = self.find_center(row)
        if center is None:
            raise ValidationError({"center__name": "This needs a value, or the center_id."})
        return center

    def get_center_id(self, instance: ChildT) -> int | None:
        return instance.center_id

    def after_init_instance(
        self, instance: ChildT, new: bool, row: Cells, **kwargs: object
    ) -> None:
        super().after_init_instance(instance, new, row, **kwargs)
        if new:
            instance.center = self.get_center(row)
            return
        center = self.find_center(row)
        if center is not None and center.pk != instance.center_id:
            raise ValidationError({"center__name": f"A {self.singular} stays at its center."})


class NamedResource(CenterChildResource[NamedT]):
    """Rows that are found by their center and their name."""

    key: ClassVar = ("center", "name")
    required_columns: ClassVar = (("center_id", "center"), ("name",))

    def get_row_key(self, row: Cells) -> Hashable:
        return self.get_center(row).pk, fold_name(row.get("name", ""))

    def get_instance_key(self, instance: NamedT) -> Hashable:
        return instance.center_id, fold_name(instance.name)

    def find_stored(self, keys: Iterable[Any]) -> Iterator[NamedT]:
        # Of all their centers: a row that is found by its id may get any name.
        rows = self._meta.model._default_manager.only("center", "name")
        return iterate_rows_where(rows, "center", self.center_ids)

    def get_title(self, instance: NamedT) -> str:
        return f"{instance.name}, {instance.center.name}"


def get_centers_named(rows: Sequence[Cells], center_ids: CenterIds) -> dict[int, Center]:
    """The centers that rows name by id or name, out of `center_ids`."""
    ids = {int(text) for row in rows if is_id(text := row.get("center_id", ""))}
    names = {places.fold_text(row.get("center", "")) for row in rows} - {""}
    known = Center.objects.defer("search_text", "parking_information")
    if center_ids is not None:
        known = known.filter(pk__in=center_ids)
    found = [
        *iterate_rows_where(known, "pk", ids),
        *iterate_rows_where(known, "name_folded", names),
    ]
    return {center.pk: center for center in found}
