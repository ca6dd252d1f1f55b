"""What tables of centers have in common: rows of one center, and what they name there."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from accounts.resources import CenterScopedResource
from centers.models import Center, Rate, ResourceType
from roombook import places
from roombook.ids import is_id
from roombook.imports import cells
from roombook.imports.batches import iterate_rows_where
from roombook.imports.cells import CellWidget, Column, IntegerWidget
from roombook.imports.sheet import Cells, CenterIdSet

# A row by its center and its name.
RowsByName = dict[tuple[int, str], Any]


class NameWidget(CellWidget):
    """A row that is told by its name; the sheet knows which there are."""

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> Any:
        return self.find(value, **kwargs) if value else None

    def find(self, name: str, *, of: Any, sheet: Any) -> Any:
        raise NotImplementedError

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else cells.normalize_cell(value.name)


class NameAtCenterWidget(NameWidget):
    """A row of the same center, out of the sheet's `at_center`."""

    def __init__(self, one: str, if_empty: str = "") -> None:
        super().__init__()
        self.one = one
        self.how = f"the name of a {one} of this center{if_empty}"

    def find(self, name: str, *, of: Any, sheet: Any) -> Any:
        found = sheet.at_center.get((of.center_id, name.lower()))
        if found is None:
            raise ValueError(f"This center has no {self.one} of that name.")
        return found


class ResourceTypeWidget(NameWidget):
    """A kind of rooms or of services."""

    how = "the name of a type"

    def find(self, name: str, *, of: Any, sheet: Any) -> ResourceType:
        found: ResourceType | None = sheet.types.get(name.lower())
        if found is None:
            told = ", ".join(sorted(each.name for each in sheet.types.values())[:20])
            raise ValueError(f"There is no such type. There are: {told or 'none'}.")
        return found


def get_types_by_name(*, is_service: bool) -> dict[str, ResourceType]:
    rows = ResourceType.objects.filter(is_service=is_service)
    return {cells.normalize_cell(each.name).lower(): each for each in rows}


class CenterChildResource(CenterScopedResource):
    """Rows that belong to one center and stay there."""

    center_id = Column("center_id", IntegerWidget(), how="the center's number", readonly=True)
    center = Column(
        "center__name", how="the center's name; it may stand for the number", readonly=True
    )

    key: ClassVar[tuple[str, ...]] = ("center", "name")
    needed: ClassVar = (("center_id", "center"), ("name",))
    related: ClassVar[tuple[str, ...]] = ("center",)
    order: ClassVar = ("center_id", "pk")

    def look_up(self, rows: Sequence[Cells], stored: Iterable[Any]) -> None:
        named = get_centers_named(rows, self.allowed.written)
        # By their ids and by their names, which several may have.
        self.centers: dict[Any, list[Center]] = defaultdict(list)
        for center in named.values():
            self.centers[center.pk].append(center)
            self.centers[center.name_folded].append(center)
        self.spoken_of = named.keys() | {each.center_id for each in stored}

    def by_name(self, rows: QuerySet[Any]) -> RowsByName:
        """Rows of the centers that are spoken of."""
        found = iterate_rows_where(rows, "center", self.spoken_of)
        return {(each.center_id, cells.normalize_cell(each.name).lower()): each for each in found}

    def center_named(self, row: Cells) -> Center | None:
        """The center that a row names; None where it names none."""
        told, name = row.get("center_id", ""), row.get("center", "")
        if told:
            found = self.centers.get(int(told), []) if is_id(told) else []
            if not found:
                raise ValidationError(
                    {"center_id": f"There is no center {told[:20]} that you may change."}
                )
            if name and places.fold_text(name) != found[0].name_folded:
                raise ValidationError(
                    {"center__name": f'Center {told} is called "{found[0].name}".'}
                )
            return found[0]
        if not name:
            return None
        found = self.centers.get(places.fold_text(name), [])
        if len(found) > 1:
            ids = ", ".join(str(each.pk) for each in found[:5])
            raise ValidationError(
                {"center__name": f"Several centers are called so: give the center_id ({ids})."}
            )
        if not found:
            raise ValidationError({"center__name": "There is no such center that you may change."})
        return found[0]

    def center_needed(self, row: Cells) -> Center:
        """The center that a row without an id must name."""
        center = self.center_named(row)
        if center is None:
            raise ValidationError({"center__name": "This needs a value, or the center_id."})
        return center

    def key_of_row(self, row: Cells) -> Any:
        return self.center_needed(row).pk, row.get("name", "").lower()

    def key_of(self, instance: Any) -> Any:
        return instance.center_id, cells.normalize_cell(instance.name).lower()

    def keys_stored(self, keys: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        # Of all their centers: a row that is told by its id may get any name.
        rows = self._meta.model._default_manager.values_list("pk", "center_id", "name")
        for pk, center, name in iterate_rows_where(rows, "center", self.spoken_of):
            yield (center, cells.normalize_cell(name).lower()), pk

    def center_of(self, instance: Any) -> int | None:
        center: int = instance.center_id
        return center

    def place(self, instance: Any, row: Cells, *, is_new: bool) -> None:
        if is_new:
            instance.center = self.center_needed(row)
            return
        center = self.center_named(row)
        if center is not None and center.pk != instance.center_id:
            raise ValidationError({"center__name": f"A {self.one} stays at its center."})

    def title(self, instance: Any) -> str:
        return f"{instance.name}, {instance.center.name}"


def get_centers_named(rows: Sequence[Cells], written: CenterIdSet) -> dict[int, Center]:
    """The centers that rows name by id or name, as far as somebody may write there."""
    ids = {int(text) for row in rows if is_id(text := row.get("center_id", ""))}
    names = {places.fold_text(row.get("center", "")) for row in rows} - {""}
    known = Center.objects.defer("search_text", "parking_information")
    if written is not None:
        known = known.filter(pk__in=written)
    found = [
        *iterate_rows_where(known, "pk", ids),
        *iterate_rows_where(known, "name_folded", names),
    ]
    return {center.pk: center for center in found}


class PricedResource(CenterChildResource):
    """What has a type, and a rate of its center: rooms and services."""

    related: ClassVar = ("center", "resource_type", "rate")
    is_service: ClassVar[bool]

    type = Column("resource_type", ResourceTypeWidget())
    rate = Column("rate", NameAtCenterWidget("rate"))

    def look_up(self, rows: Sequence[Cells], stored: Iterable[Any]) -> None:
        super().look_up(rows, stored)
        self.types = get_types_by_name(is_service=self.is_service)
        self.at_center = self.by_name(Rate.objects.all())
