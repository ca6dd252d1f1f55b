"""A kind of rows that can be imported and exported: its columns, and how a row is found.

`checking` compares a file with what a sheet says is stored, `writing` writes the difference,
`exporting` takes rows out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.db import models
from import_export.resources import ModelResource

from roombook.imports.cells import (
    BooleanWidget,
    CellWidget,
    Column,
    DateTimeWidget,
    DateWidget,
    DecimalWidget,
    FloatWidget,
    IntegerWidget,
    TextWidget,
)
from roombook.imports.plan import Checked, Origin

# Of which centers; None is every one.
CenterIdSet = set[int] | None
# A row of a file: column -> what stands there, the guard of text taken off.
Cells = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ImportRights:
    """At which centers somebody may add, change and take out rows; nothing told: everywhere."""

    add: CenterIdSet = None
    change: CenterIdSet = None
    export: CenterIdSet = None

    def may_add(self, center: int | None) -> bool:
        return self.add is None or (center is not None and center in self.add)

    @property
    def may_import(self) -> bool:
        return _somewhere(self.change) or _somewhere(self.add)

    @property
    def may_export(self) -> bool:
        return _somewhere(self.export)

    @property
    def written(self) -> CenterIdSet:
        """Where they may add or change."""
        return None if self.add is None or self.change is None else self.add | self.change


def _somewhere(centers: CenterIdSet) -> bool:
    return centers is None or bool(centers)


EVERYWHERE = ImportRights()


class SpreadsheetResource(ModelResource):
    """Rows of one model; subclasses say which columns, and how a row is found.

    The library makes the columns of the model's fields and turns cells into attributes; all that
    asks the database (finding a row, foreign keys, constraints) is done for many rows at once.
    """

    # How files, addresses and commands call it.
    name: ClassVar[str]
    # What a row is called.
    one: ClassVar[str]
    # The columns by which a row is found that has no id.
    key: ClassVar[tuple[str, ...]]
    # One of each of these groups must be there, unless rows come with their ids.
    needed: ClassVar[tuple[tuple[str, ...], ...]]
    # No two rows have the same key; otherwise they may, and only an id tells them apart.
    key_is_unique: ClassVar[bool] = True
    # Columns of the model that others write meanwhile.
    moving: ClassVar[tuple[str, ...]] = ()
    # Attributes that are no columns of the model: `attach` sets them, `write_extras` keeps them.
    extras: ClassVar[tuple[str, ...]] = ()
    # Columns written beside those of the file.
    derived: ClassVar[tuple[str, ...]] = ()

    # The first that fits: a moment is a day, too.
    KINDS: ClassVar[dict[type[models.Field], type[CellWidget]]] = {
        models.BooleanField: BooleanWidget,
        models.FloatField: FloatWidget,
        models.DateTimeField: DateTimeWidget,
        models.DateField: DateWidget,
        models.IntegerField: IntegerWidget,
    }

    def __init__(self, allowed: ImportRights = EVERYWHERE) -> None:
        super().__init__()
        self.allowed = allowed
        concrete = self._meta.model._meta.concrete_fields
        self.model_fields = {each.name: each for each in concrete}
        # What the check looks at: all that must be the same when the row is written.
        unsteady = {*self.moving, *self.derived}
        self.compared = [each.attname for each in concrete if each.name not in unsteady]
        self.compared += self.extras

    @classmethod
    def allowed_for(cls, user: Any) -> ImportRights:
        """Where this person may import and export these rows."""
        raise NotImplementedError

    @classmethod
    def field_from_django_field(cls, field_name: str, django_field: Any, readonly: bool) -> Column:  # noqa: FBT001 (the library's signature)
        if isinstance(django_field, models.DecimalField):
            kind: CellWidget = DecimalWidget(django_field.decimal_places)
        else:
            fits = (each for base, each in cls.KINDS.items() if isinstance(django_field, base))
            kind = next(fits, TextWidget)()
        # A row that was found by its key keeps its id, whatever the cell says.
        readonly = readonly or django_field.primary_key
        how = "its number; empty for a new one" if django_field.primary_key else ""
        return Column(field_name, kind, how=how, column_name=field_name, readonly=readonly)

    # What a sheet says of itself

    @classmethod
    def in_order(cls) -> list[Column]:
        return [cls.fields[name] for name in cls._meta.fields]

    @classmethod
    def columns(cls) -> list[str]:
        return list(cls._meta.fields)

    @classmethod
    def plural(cls) -> str:
        return cls.name.replace("-", " ")

    # Which rows there are

    def stored(self) -> models.QuerySet[Any]:
        """The rows that may be changed."""
        raise NotImplementedError

    def exported(self) -> models.QuerySet[Any]:
        """The rows that may be taken out, in the order in which they stand in the file."""
        raise NotImplementedError

    def look_up(self, rows: Sequence[Cells], stored: Iterable[Any]) -> None:
        """Read what a file names: centers, rates, types; `stored` are those it tells by id."""

    def key_of_row(self, row: Cells) -> Any:
        """By what the row is found; ValidationError by attribute where that cannot be said."""
        raise NotImplementedError

    def key_of(self, instance: Any) -> Any:
        """The same of a stored row."""
        raise NotImplementedError

    def keys_stored(self, keys: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        """The stored rows that may have one of these keys, whoever may change them."""
        raise NotImplementedError

    def attach(self, instances: Sequence[Any]) -> None:
        """Set the attributes that are no columns of the model."""

    def center_of(self, instance: Any) -> int | None:
        """Whose row it is; None: nobody's in particular."""
        return None

    # What becomes of a row

    def place(self, instance: Any, row: Cells, *, is_new: bool) -> None:
        """Set to whom a new row belongs; ValidationError where a stored one would go elsewhere."""

    def settle(self, instance: Any) -> None:
        """Write values as the model will, so that the comparison sees what will be stored."""

    def judge(self, row: Checked) -> dict[str, str]:
        """What is wrong beyond the model's own rules, by attribute."""
        return {}

    def title(self, instance: Any) -> str:
        """What the row is called in a preview."""
        return str(instance)

    def notes(self, row: Checked) -> Iterator[tuple[str, str]]:
        """What somebody should read twice, by column."""
        return iter(())

    def before_write(self, instances: Sequence[Any]) -> None:
        """Fill in derived columns; rows are locked."""

    def write_extras(self, rows: Sequence[Checked]) -> None:
        """Write what is not in the model's own table."""

    def written(self, rows: Sequence[Checked], origin: Origin) -> None:
        """After all is committed."""

    def looked_at(self, rows: Sequence[Any], by: Any) -> None:
        """Write down whose personal data goes out to somebody."""

    # Values of a row

    def told(self, column: str, instance: Any) -> str:
        text: str = self.fields[column].export(instance, of=instance, sheet=self)
        return text

    def snapshot(self, instance: Any) -> dict[str, Any]:
        return {name: getattr(instance, name) for name in self.compared}


# Every sheet there is, by its name; apps register theirs when they are ready.
RESOURCES: dict[str, type[SpreadsheetResource]] = {}


def register(*sheets: type[SpreadsheetResource]) -> None:
    RESOURCES.update({sheet.name: sheet for sheet in sheets})
