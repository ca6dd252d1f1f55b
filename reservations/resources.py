"""What makes bookings cheaper, as tables to import and export."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Sum

from accounts.imports import ByRole
from accounts.models import User, canonical_email
from centers.models import Center, ResourceType
from centers.resources import types_by_name
from reservations.models import Allowance, AllowanceEntry, PromoCode
from roombook import history
from roombook.imports import cells
from roombook.imports.cells import Choice, Column, Kind
from roombook.imports.files import Row
from roombook.imports.sheet import Checked, Sheet, batches, is_id, register

Bound = frozenset[int]


class CenterIds(Kind):
    """The ids of the centers that a row is bound to; empty: to none, so it is good for all."""

    how = "ids of centers, semicolons between them; empty: every center"

    is_text = False

    def clean(self, value: str, row: Any = None, *, sheet: Any = None, **kwargs: Any) -> Bound:
        found = set()
        for text in cells.parted(value):
            if not is_id(text) or int(text) not in sheet.centers:
                raise ValueError(f"There is no center {text[:20]}. Part ids by semicolons.")
            found.add(int(text))
        return frozenset(found)

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "; ".join(str(pk) for pk in sorted(value or ()))


class TypeNames(Kind):
    """The names of the types of rooms that a row is bound to; empty: it is good for all."""

    how = "names of room types, semicolons between them; empty: every type"

    def clean(self, value: str, row: Any = None, *, sheet: Any = None, **kwargs: Any) -> Bound:
        found = set()
        for name in cells.parted(value):
            if name.lower() not in sheet.types:
                raise ValueError(f'There is no type of rooms "{name[:50]}".')
            found.add(sheet.types[name.lower()].pk)
        return frozenset(found)

    def render(self, value: Any, obj: Any = None, *, sheet: Any = None, **kwargs: Any) -> str:
        names = (sheet.type_names[pk] for pk in value or ())
        return cells.joined(sorted(cells.tidy(name) for name in names))


class Account(Kind):
    """An account by its e-mail address."""

    how = "an account's e-mail address"

    def clean(self, value: str, row: Any = None, *, sheet: Any = None, **kwargs: Any) -> Any:
        if not value:
            return None
        found = sheet.accounts.get(canonical_email(value))
        if found is None:
            raise ValueError("There is no account with this e-mail address.")
        return found

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else str(value.email)


class Benefit(ByRole):
    """Rows that may be bound to some centers and types of rooms."""

    belongs_to_a_center = False
    extras: ClassVar[tuple[str, ...]] = ("bound_centers", "bound_types")
    # Extra -> the model's own name of it, and the column of its table.
    BOUND: ClassVar = {
        "bound_centers": ("centers", "center_id"),
        "bound_types": ("room_types", "resourcetype_id"),
    }

    center_ids = Column("bound_centers", CenterIds())
    room_types = Column("bound_types", TypeNames())

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._names: dict[int, str] | None = None

    @property
    def type_names(self) -> dict[int, str]:
        if self._names is None:
            self._names = dict(ResourceType.objects.values_list("pk", "name"))
        return self._names

    def stored(self) -> models.QuerySet[Any]:
        return self._meta.model._default_manager.all()

    def exported(self) -> models.QuerySet[Any]:
        return self.stored().order_by("pk")

    def center_of(self, instance: Any) -> int | None:
        return None

    def look_up(self, rows: Sequence[Row]) -> None:
        self.types = types_by_name(is_service=False)
        ids: set[int] = set()
        for row in rows:
            try:
                parts = cells.parted(row.cells.get("center_ids", ""))
            except ValueError:
                continue
            ids |= {int(text) for text in parts if is_id(text)}
        self.centers: set[int] = set()
        for batch in batches(sorted(ids)):
            found = Center.objects.filter(pk__in=batch).values_list("pk", flat=True)
            self.centers |= set(found)

    def attach(self, instances: Sequence[Any]) -> None:
        for extra, (name, column) in self.BOUND.items():
            bound: dict[int, set[int]] = defaultdict(set)
            through, mine = self._through(name)
            rows = through.filter(**{f"{mine}__in": [each.pk for each in instances]})
            for pk, other in rows.values_list(mine, column):
                bound[pk].add(other)
            for each in instances:
                setattr(each, extra, frozenset(bound[each.pk]))

    def _through(self, name: str) -> tuple[Any, str]:
        model = self._meta.model
        return getattr(model, name).through._base_manager, f"{model._meta.model_name}_id"

    def write_extras(self, rows: Sequence[Checked]) -> None:
        for extra, (name, column) in self.BOUND.items():
            through, mine = self._through(name)
            gone, come = [], []
            for row in rows:
                now = getattr(row.instance, extra) or frozenset()
                before = row.before.get(extra) or frozenset()
                if now != before:
                    gone.append(row.instance.pk)
                    come += [
                        through.model(**{mine: row.instance.pk, column: pk}) for pk in sorted(now)
                    ]
            through.filter(**{f"{mine}__in": gone}).delete()
            through.bulk_create(come)


class PromoCodeSheet(Benefit):
    """Promo codes, known by their code."""

    name: ClassVar = "promo-codes"
    one: ClassVar = "promo code"
    key: ClassVar = ("code",)
    needed: ClassVar = (("code",),)
    moving: ClassVar = ("uses", "spent")

    class Meta(Sheet.Meta):
        model = PromoCode
        fields = (
            *("code", "description", "is_active", "percent", "amount", "valid_from", "valid_until"),
            *("meeting_from", "meeting_until", "max_uses", "max_uses_per_account", "budget"),
            *("minimum_spend", "center_ids", "room_types"),
        )

    def key_of_row(self, row: Mapping[str, str]) -> Any:
        return row.get("code", "").strip().upper()

    def key_of(self, instance: Any) -> Any:
        return instance.code

    def keys_stored(self, keys: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        for batch in batches(sorted(keys)):
            yield from PromoCode.objects.filter(code__in=batch).values_list("code", "pk")

    def settle(self, instance: Any) -> None:
        instance.code = instance.code.strip().upper()


class AllowanceSheet(Benefit):
    """Included hours of accounts."""

    name: ClassVar = "allowances"
    one: ClassVar = "allowance"
    key: ClassVar = ("account", "description", "kind", "valid_from")
    key_is_unique: ClassVar = False
    # Hours that are booked while a file is checked count.
    extras: ClassVar = (*Benefit.extras, "used_most")
    needed: ClassVar = (("account",), ("description",))

    account = Column("user", Account())
    kind = Column("kind", Choice(Allowance.Kind.values))

    class Meta(Sheet.Meta):
        model = Allowance
        fields = (
            *("id", "account", "description", "kind", "hours", "valid_from", "valid_until"),
            *("center_ids", "room_types", "is_automatic", "is_active"),
        )

    def stored(self) -> models.QuerySet[Any]:
        return Allowance.objects.select_related("user")

    def look_up(self, rows: Sequence[Row]) -> None:
        super().look_up(rows)
        addresses = {canonical_email(row.cells.get("account", "")) for row in rows} - {""}
        self.accounts: dict[str, User] = {}
        for batch in batches(sorted(addresses)):
            self.accounts |= {user.email: user for user in User.objects.filter(email__in=batch)}

    def attach(self, instances: Sequence[Any]) -> None:
        super().attach(instances)
        entries = AllowanceEntry.objects.filter(allowance__in=[each.pk for each in instances])
        sums = entries.values("allowance", "period").annotate(entered=Sum("hours")).order_by()
        most: dict[int, int] = {}
        for allowance, entered in sums.values_list("allowance", "entered"):
            most[allowance] = max(most.get(allowance, 0), -entered)
        for each in instances:
            each.used_most = most.get(each.pk, 0)

    def looked_at(self, rows: Sequence[Any]) -> None:
        history.looked_at_all(
            {each.user_id: each.user for each in rows}.values(),
            by=self.exporter,
            note="Exported with their allowances.",
        )

    def key_of_row(self, row: Mapping[str, str]) -> Any:
        account = self.accounts.get(canonical_email(row.get("account", "")))
        if account is None:
            why = "There is no account with this e-mail address."
            raise ValidationError({"user": why if row.get("account") else "This needs a value."})
        try:
            begins = cells.Day().clean(row.get("valid_from", ""))
        except ValueError as error:
            raise ValidationError({"valid_from": str(error)}) from error
        kind = row.get("kind", "").lower() or Allowance.Kind.ONE_OFF.value
        return account.pk, row.get("description", "").lower(), kind, begins

    def key_of(self, instance: Any) -> Any:
        description = cells.tidy(instance.description).lower()
        return instance.user_id, description, str(instance.kind), instance.valid_from

    def keys_stored(self, keys: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        for batch in batches(sorted({account for account, *_ in keys})):
            rows = Allowance.objects.filter(user__in=batch)
            shown = ("pk", "user_id", "description", "kind", "valid_from")
            for pk, user, description, kind, begins in rows.values_list(*shown):
                yield (user, cells.tidy(description).lower(), kind, begins), pk

    def judge(self, instance: Any, *, is_new: bool) -> dict[str, str]:
        account = self.before.get("user_id")
        if not is_new and account != instance.user_id:
            return {"user": "Hours stay with their account: switch these off and add others."}
        return {}


SHEETS = (PromoCodeSheet, AllowanceSheet)


def connect() -> None:
    """Once, when the app is ready."""
    register(*SHEETS)
