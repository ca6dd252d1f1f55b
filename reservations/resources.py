"""Promo codes and allowances as tables to import and export."""

import contextlib
import csv
import datetime as dt
import io
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet, Sum
from django.utils.functional import cached_property
from import_export.fields import Field

from accounts.customer_access import get_account_filter
from accounts.models import User, canonicalize_email
from accounts.resources import CenterScopedResource
from centers.models import Center, ResourceType
from centers.resources.common import get_types_by_name
from reservations.models import Allowance, AllowanceEntry, PromoCode
from reservations.models.codes import normalize_code
from roombook.backoffice import audit_log
from roombook.ids import is_id
from roombook.imports.batches import Cells, iterate_rows_where
from roombook.imports.checking import REQUIRED_MESSAGE
from roombook.imports.files import normalize_cell
from roombook.imports.results import ImportRowResult
from roombook.imports.widgets import PercentWidget, ReferenceWidget, TextWidget
from roombook.texts import fold_name

IdSet = frozenset[int]
BenefitT = TypeVar("BenefitT", bound=PromoCode | Allowance)


def join_list(texts: Iterable[str]) -> str:
    """Join texts into one cell, separated by semicolons. `split_list` is the inverse."""
    line = io.StringIO()
    csv.writer(line, delimiter=";", lineterminator="").writerow(texts)
    return line.getvalue() if '"' in line.getvalue() else line.getvalue().replace(";", "; ")


def split_list(cell: str) -> list[str]:
    try:
        lines = csv.reader(io.StringIO(cell), delimiter=";", skipinitialspace=True, strict=True)
        parts = [part.strip() for line in lines for part in line]
    except csv.Error as error:
        raise ValueError("Separate them by semicolons.") from error
    return [part for part in parts if part]


class CenterIdsWidget(TextWidget):
    """Converts the ids of the centers to which a row is restricted."""

    help_text = "ids of centers, separated by semicolons; empty: every center"

    def clean(self, value: str, *, resource: Any = None, **kwargs: object) -> IdSet:
        pks = set()
        for text in split_list(value):
            if not is_id(text) or int(text) not in resource.center_ids:
                raise ValueError(f"There is no center {text[:20]}. Separate ids by semicolons.")
            pks.add(int(text))
        return frozenset(pks)

    def render(self, value: Any, **kwargs: object) -> str:
        return "; ".join(str(pk) for pk in sorted(value or ()))


class ResourceTypesWidget(TextWidget):
    """Converts the names of the room types to which a row is restricted."""

    help_text = "names of room types, separated by semicolons; empty: every type"

    def clean(self, value: str, *, resource: Any = None, **kwargs: object) -> IdSet:
        pks = set()
        for name in split_list(value):
            if fold_name(name) not in resource.types:
                raise ValueError(f'There is no room type "{name[:50]}".')
            pks.add(resource.types[fold_name(name)].pk)
        return frozenset(pks)

    def render(self, value: Any, *, resource: Any = None, **kwargs: object) -> str:
        names = (resource.type_names[pk] for pk in value or ())
        return join_list(sorted(normalize_cell(name) for name in names))


def find_account(address: str, resource: "AllowanceResource", record: object) -> User:
    account = resource.accounts.get(canonicalize_email(address))
    if account is None:
        raise ValueError("There is no account with this e-mail address.")
    return account


class AllowanceKindWidget(TextWidget):
    """Converts the kind of an allowance."""

    help_text = " or ".join(Allowance.Kind.values)

    def clean(self, value: str, **kwargs: object) -> str:
        if value.lower() not in Allowance.Kind.values:
            raise ValueError(f"Write one of: {', '.join(Allowance.Kind.values)}.")
        return value.lower()


class RestrictedBenefitResource(CenterScopedResource[BenefitT]):
    """Rows that may be restricted to some centers and types of rooms."""

    center_path = None
    extra_attributes: ClassVar[tuple[str, ...]] = ("restricted_center_ids", "restricted_type_ids")
    # Maps each extra attribute to the model's relation and the column of the table between them.
    RELATIONS: ClassVar = {
        "restricted_center_ids": ("centers", "center_id"),
        "restricted_type_ids": ("room_types", "resourcetype_id"),
    }

    center_ids = Field("restricted_center_ids", widget=CenterIdsWidget())
    room_types = Field("restricted_type_ids", widget=ResourceTypesWidget())

    @cached_property
    def type_names(self) -> dict[int, str]:
        return dict(ResourceType.objects.values_list("pk", "name"))

    def load_references(self, rows: Sequence[Cells], instances: Iterable[BenefitT]) -> None:
        self.types = get_types_by_name(is_service=False)
        ids: set[int] = set()
        for row in rows:
            # The check of the row reports the error.
            with contextlib.suppress(ValueError):
                ids |= {int(text) for text in split_list(row.get("center_ids", "")) if is_id(text)}
        centers = Center.objects.values_list("pk", flat=True)
        self.center_ids = set(iterate_rows_where(centers, "pk", ids))

    def load_extra_attributes(self, instances: Sequence[BenefitT]) -> None:
        for attribute, (relation, column) in self.RELATIONS.items():
            ids: dict[int, set[int]] = defaultdict(set)
            through, own_column = self._get_through(relation)
            rows = through.filter(**{f"{own_column}__in": [each.pk for each in instances]})
            for pk, other in rows.values_list(own_column, column):
                ids[pk].add(other)
            for each in instances:
                setattr(each, attribute, frozenset(ids[each.pk]))

    def _get_through(self, relation: str) -> tuple[Any, str]:
        model = self._meta.model
        return getattr(model, relation).through._base_manager, f"{model._meta.model_name}_id"

    def save_extra_attributes(self, rows: Sequence[ImportRowResult]) -> None:
        for attribute, (relation, column) in self.RELATIONS.items():
            through, own_column = self._get_through(relation)
            changed, created = [], []
            for row in rows:
                after = getattr(row.instance, attribute) or frozenset()
                before = row.before.get(attribute) or frozenset()
                if after != before:
                    changed.append(row.instance.pk)
                    created += [
                        through.model(**{own_column: row.instance.pk, column: pk})
                        for pk in sorted(after)
                    ]
            through.filter(**{f"{own_column}__in": changed}).delete()
            through.bulk_create(created)


class PromoCodeResource(RestrictedBenefitResource[PromoCode]):
    """Promo codes. The code identifies the row."""

    name: ClassVar = "promo-codes"
    singular: ClassVar = "promo code"
    key: ClassVar = ("code",)
    required_columns: ClassVar = (("code",),)
    volatile_fields: ClassVar = ("uses", "spent")

    percent = Field("percent", widget=PercentWidget(2))

    class Meta:
        model = PromoCode
        fields = (
            *("code", "description", "is_active", "percent", "amount", "valid_from", "valid_until"),
            *("meeting_from", "meeting_until", "max_uses", "max_uses_per_account", "budget"),
            *("minimum_spend", "center_ids", "room_types"),
        )

    def get_row_key(self, row: Cells) -> Hashable:
        return normalize_code(row.get("code", ""))

    def get_instance_key(self, instance: PromoCode) -> Hashable:
        return instance.code

    def find_stored(self, keys: Iterable[str]) -> Iterator[PromoCode]:
        return iterate_rows_where(PromoCode.objects.all(), "code", keys)


class AllowanceResource(RestrictedBenefitResource[Allowance]):
    """Included hours of accounts."""

    name: ClassVar = "allowances"
    singular: ClassVar = "allowance"
    related: ClassVar = ("user",)
    key: ClassVar = ("account", "description", "kind", "valid_from")
    has_unique_key: ClassVar = False
    # An import is refused if bookings have used hours since the check.
    extra_attributes: ClassVar = (*RestrictedBenefitResource.extra_attributes, "used_most")
    required_columns: ClassVar = (("account",), ("description",))

    account = Field(
        "user",
        widget=ReferenceWidget("an account's e-mail address", find_account, attrgetter("email")),
    )
    kind = Field("kind", widget=AllowanceKindWidget())

    class Meta:
        model = Allowance
        fields = (
            *("id", "account", "description", "kind", "hours", "valid_from", "valid_until"),
            *("center_ids", "room_types", "is_automatic", "is_active"),
        )

    def get_queryset(self) -> QuerySet[Allowance]:
        return super().get_queryset().filter(self._get_account_filter("user"))

    def _get_account_filter(self, path: str = "") -> Q:
        return Q() if self.user is None else get_account_filter(self.user, path)

    def load_references(self, rows: Sequence[Cells], instances: Iterable[Allowance]) -> None:
        super().load_references(rows, instances)
        addresses = {canonicalize_email(row.get("account", "")) for row in rows} - {""}
        users = iterate_rows_where(
            User.objects.filter(self._get_account_filter()), "email", addresses
        )
        self.accounts: dict[str, User] = {user.email: user for user in users}

    def load_extra_attributes(self, instances: Sequence[Allowance]) -> None:
        super().load_extra_attributes(instances)
        entries = AllowanceEntry.objects.filter(allowance__in=[each.pk for each in instances])
        sums = entries.values("allowance", "period").annotate(entered=Sum("hours")).order_by()
        used_most: dict[int, int] = {}
        for allowance, entered in sums.values_list("allowance", "entered"):
            used_most[allowance] = max(used_most.get(allowance, 0), -entered)
        for each in instances:
            # A column of no table.
            each.used_most = used_most.get(each.pk, 0)  # type: ignore[attr-defined]

    def log_export(self, instances: Sequence[Allowance]) -> None:
        audit_log.record_views(
            {each.user_id: each.user for each in instances}.values(),
            by=self.user,
            note="Exported with their allowances.",
        )

    def get_row_key(self, row: Cells) -> Hashable:
        account = self.clean_cell("account", row)
        if account is None:
            raise ValidationError({"user": REQUIRED_MESSAGE})
        valid_from = self.clean_cell("valid_from", row)
        kind = row.get("kind", "").lower() or Allowance.Kind.ONE_OFF.value
        return account.pk, fold_name(row.get("description", "")), kind, valid_from

    def get_instance_key(self, instance: Allowance) -> Hashable:
        description = fold_name(instance.description)
        return instance.user_id, description, str(instance.kind), instance.valid_from

    def find_stored(
        self, keys: Iterable[tuple[int, str, str, dt.date | None]]
    ) -> Iterator[Allowance]:
        accounts = {account for account, *_ in keys}
        return iterate_rows_where(Allowance.objects.all(), "user", accounts)

    def get_errors(self, instance: Allowance) -> dict[str, str]:
        if self.before and self.before["user_id"] != instance.user_id:
            return {"user": "Hours stay with their account: deactivate these and add others."}
        return {}
