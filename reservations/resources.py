"""What makes bookings cheaper, as tables to import and export."""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db.models import Sum
from django.utils.functional import cached_property

from accounts.models import User, canonicalize_email
from accounts.resources import CenterScopedResource
from centers.models import Center, ResourceType
from centers.resources.common import get_types_by_name
from reservations.models import Allowance, AllowanceEntry, PromoCode
from reservations.models.codes import normalize_code
from roombook.backoffice import audit_log
from roombook.ids import is_id
from roombook.imports import cells
from roombook.imports.batches import iterate_rows_where
from roombook.imports.cells import CellWidget, ChoiceWidget, Column
from roombook.imports.checking import REQUIRED_MESSAGE
from roombook.imports.plan import Checked
from roombook.imports.sheet import Cells

Bound = frozenset[int]


class CenterIdsWidget(CellWidget):
    """The ids of the centers that a row is bound to; empty: to none, so it is good for all."""

    how = "ids of centers, semicolons between them; empty: every center"

    is_text = False

    def clean(self, value: str, row: Any = None, *, sheet: Any = None, **kwargs: Any) -> Bound:
        found = set()
        for text in cells.split_list(value):
            if not is_id(text) or int(text) not in sheet.centers:
                raise ValueError(f"There is no center {text[:20]}. Part ids by semicolons.")
            found.add(int(text))
        return frozenset(found)

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "; ".join(str(pk) for pk in sorted(value or ()))


class ResourceTypesWidget(CellWidget):
    """The names of the types of rooms that a row is bound to; empty: it is good for all."""

    how = "names of room types, semicolons between them; empty: every type"

    def clean(self, value: str, row: Any = None, *, sheet: Any = None, **kwargs: Any) -> Bound:
        found = set()
        for name in cells.split_list(value):
            if name.lower() not in sheet.types:
                raise ValueError(f'There is no type of rooms "{name[:50]}".')
            found.add(sheet.types[name.lower()].pk)
        return frozenset(found)

    def render(self, value: Any, obj: Any = None, *, sheet: Any = None, **kwargs: Any) -> str:
        names = (sheet.type_names[pk] for pk in value or ())
        return cells.join_list(sorted(cells.normalize_cell(name) for name in names))


class AccountWidget(CellWidget):
    """An account by its e-mail address."""

    how = "an account's e-mail address"

    def clean(self, value: str, row: Any = None, *, sheet: Any = None, **kwargs: Any) -> Any:
        return sheet.account_of(value) if value else None

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else str(value.email)


class RestrictedBenefitResource(CenterScopedResource):
    """Rows that may be bound to some centers and types of rooms."""

    center_path = None
    extras: ClassVar[tuple[str, ...]] = ("bound_centers", "bound_types")
    # Extra -> the model's own name of it, and the column of its table.
    BOUND: ClassVar = {
        "bound_centers": ("centers", "center_id"),
        "bound_types": ("room_types", "resourcetype_id"),
    }

    center_ids = Column("bound_centers", CenterIdsWidget())
    room_types = Column("bound_types", ResourceTypesWidget())

    @cached_property
    def type_names(self) -> dict[int, str]:
        return dict(ResourceType.objects.values_list("pk", "name"))

    def look_up(self, rows: Sequence[Cells], stored: Iterable[Any]) -> None:
        self.types = get_types_by_name(is_service=False)
        ids: set[int] = set()
        for row in rows:
            # What is wrong is told when the row's turn comes.
            with contextlib.suppress(ValueError):
                ids |= {
                    int(text) for text in cells.split_list(row.get("center_ids", "")) if is_id(text)
                }
        self.centers = set(
            iterate_rows_where(Center.objects.values_list("pk", flat=True), "pk", ids)
        )

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


class PromoCodeResource(RestrictedBenefitResource):
    """Promo codes, known by their code."""

    name: ClassVar = "promo-codes"
    one: ClassVar = "promo code"
    key: ClassVar = ("code",)
    needed: ClassVar = (("code",),)
    moving: ClassVar = ("uses", "spent")

    class Meta:
        model = PromoCode
        fields = (
            *("code", "description", "is_active", "percent", "amount", "valid_from", "valid_until"),
            *("meeting_from", "meeting_until", "max_uses", "max_uses_per_account", "budget"),
            *("minimum_spend", "center_ids", "room_types"),
        )

    def key_of_row(self, row: Cells) -> Any:
        return normalize_code(row.get("code", ""))

    def key_of(self, instance: Any) -> Any:
        return instance.code

    def keys_stored(self, keys: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        yield from iterate_rows_where(PromoCode.objects.values_list("code", "pk"), "code", keys)

    def settle(self, instance: Any) -> None:
        instance.code = normalize_code(instance.code)


class AllowanceResource(RestrictedBenefitResource):
    """Included hours of accounts."""

    name: ClassVar = "allowances"
    one: ClassVar = "allowance"
    related: ClassVar = ("user",)
    key: ClassVar = ("account", "description", "kind", "valid_from")
    key_is_unique: ClassVar = False
    # Hours that are booked while a file is checked count.
    extras: ClassVar = (*RestrictedBenefitResource.extras, "peak_usage_from_query")
    needed: ClassVar = (("account",), ("description",))

    account = Column("user", AccountWidget())
    kind = Column("kind", ChoiceWidget(Allowance.Kind.values))

    class Meta:
        model = Allowance
        fields = (
            *("id", "account", "description", "kind", "hours", "valid_from", "valid_until"),
            *("center_ids", "room_types", "is_automatic", "is_active"),
        )

    def look_up(self, rows: Sequence[Cells], stored: Iterable[Any]) -> None:
        super().look_up(rows, stored)
        addresses = {canonicalize_email(row.get("account", "")) for row in rows} - {""}
        found = iterate_rows_where(User.objects.all(), "email", addresses)
        self.accounts: dict[str, User] = {user.email: user for user in found}

    def account_of(self, address: str) -> User:
        found = self.accounts.get(canonicalize_email(address))
        if found is None:
            raise ValueError("There is no account with this e-mail address.")
        return found

    def attach(self, instances: Sequence[Any]) -> None:
        super().attach(instances)
        entries = AllowanceEntry.objects.filter(allowance__in=[each.pk for each in instances])
        sums = entries.values("allowance", "period").annotate(entered=Sum("hours")).order_by()
        most: dict[int, int] = {}
        for allowance, entered in sums.values_list("allowance", "entered"):
            most[allowance] = max(most.get(allowance, 0), -entered)
        for each in instances:
            each.peak_usage_from_query = most.get(each.pk, 0)

    def looked_at(self, rows: Sequence[Any], by: Any) -> None:
        audit_log.record_views(
            {each.user_id: each.user for each in rows}.values(),
            by=by,
            note="Exported with their allowances.",
        )

    def key_of_row(self, row: Cells) -> Any:
        if not row.get("account"):
            raise ValidationError({"user": REQUIRED_MESSAGE})
        try:
            account = self.account_of(row["account"])
        except ValueError as error:
            raise ValidationError({"user": str(error)}) from error
        try:
            begins = cells.DateWidget().clean(row.get("valid_from", ""))
        except ValueError as error:
            raise ValidationError({"valid_from": str(error)}) from error
        kind = row.get("kind", "").lower() or Allowance.Kind.ONE_OFF.value
        return account.pk, row.get("description", "").lower(), kind, begins

    def key_of(self, instance: Any) -> Any:
        description = cells.normalize_cell(instance.description).lower()
        return instance.user_id, description, str(instance.kind), instance.valid_from

    def keys_stored(self, keys: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        shown = ("pk", "user_id", "description", "kind", "valid_from")
        rows = Allowance.objects.values_list(*shown)
        accounts = {account for account, *_ in keys}
        for pk, user, description, kind, begins in iterate_rows_where(rows, "user", accounts):
            yield (user, cells.normalize_cell(description).lower(), kind, begins), pk

    def judge(self, row: Checked) -> dict[str, str]:
        account = row.before.get("user_id")
        if row.kind == Checked.CHANGED and account != row.instance.user_id:
            return {"user": "Hours stay with their account: switch these off and add others."}
        return {}
