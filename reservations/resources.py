"""Promo codes and allowances as tables to import and export."""

import contextlib
import csv
import io
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

from django.db.models import Q, QuerySet
from import_export.fields import Field

from accounts.customer_access import get_account_filter
from accounts.models import User, canonicalize_email
from accounts.resources import CenterScopedResource
from centers.models import Center, ResourceType
from centers.resources import get_types_by_name
from reservations.models import Allowance, PromoCode
from reservations.models.codes import normalize_code
from roombook.backoffice import audit_log
from roombook.ids import is_id
from roombook.imports.files import normalize_cell
from roombook.imports.resources import Cells
from roombook.imports.results import ImportRowResult
from roombook.imports.widgets import PercentWidget, ReferenceWidget, RelatedField, TextWidget
from roombook.texts import fold_name

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


class CentersWidget(TextWidget):
    """The centers to which a row is restricted, by their ids."""

    help_text = "ids of centers, separated by semicolons; empty: every center"

    def parse(self, text: str, *, resource: Any = None, **kwargs: object) -> list[Center]:
        centers = set()
        for pk in split_list(text):
            if pk not in resource.centers:
                raise ValueError(f"There is no center {pk[:20]}. Separate ids by semicolons.")
            centers.add(resource.centers[pk])
        return sorted(centers, key=attrgetter("pk"))

    def render(self, value: Any, **kwargs: object) -> str:
        return "; ".join(str(pk) for pk in sorted(each.pk for each in value or ()))


class RoomTypesWidget(TextWidget):
    """The room types to which a row is restricted, by their names."""

    help_text = "names of room types, separated by semicolons; empty: every type"

    def parse(self, text: str, *, resource: Any = None, **kwargs: object) -> list[ResourceType]:
        types = set()
        for name in split_list(text):
            if fold_name(name) not in resource.types:
                raise ValueError(f'There is no room type "{name[:50]}".')
            types.add(resource.types[fold_name(name)])
        return sorted(types, key=attrgetter("pk"))

    def render(self, value: Any, **kwargs: object) -> str:
        return join_list(sorted(normalize_cell(each.name) for each in value or ()))


def find_account(address: str, resource: "AllowanceResource", record: object) -> User:
    account = resource.accounts.get(canonicalize_email(address))
    if account is None:
        raise ValueError("There is no account with this e-mail address.")
    return account


class AllowanceKindWidget(TextWidget):
    """The kind of an allowance."""

    help_text = " or ".join(Allowance.Kind.values)

    def parse(self, text: str, **kwargs: object) -> str:
        if text.lower() not in Allowance.Kind.values:
            raise ValueError(f"Write one of: {', '.join(Allowance.Kind.values)}.")
        return text.lower()


class RestrictedBenefitResource(CenterScopedResource[BenefitT]):
    """Rows that may be restricted to some centers and types of rooms."""

    center_path = None
    # The relations of the model: column -> the table between them, and its column.
    RELATIONS: ClassVar = {
        "center_ids": ("centers", "center"),
        "room_types": ("room_types", "resourcetype"),
    }

    center_ids = RelatedField("centers_of_row", lambda row: row.centers.all(), CentersWidget())
    room_types = RelatedField("types_of_row", lambda row: row.room_types.all(), RoomTypesWidget())

    def _get_rows_at(self, centers: Any) -> QuerySet[BenefitT]:
        return super()._get_rows_at(centers).prefetch_related("centers", "room_types")

    def load_references(self, rows: Sequence[Cells], stored: QuerySet[BenefitT]) -> None:
        self.types = get_types_by_name(is_service=False)
        ids: set[int] = set()
        for row in rows:
            # The check of the row reports the error.
            with contextlib.suppress(ValueError):
                ids |= {int(text) for text in split_list(row.get("center_ids", "")) if is_id(text)}
        self.centers = {str(each.pk): each for each in Center.objects.only("pk").filter(pk__in=ids)}

    def save_related(self, rows: Sequence[ImportRowResult]) -> None:
        own = self._meta.model._meta.model_name
        for column, (relation, other) in self.RELATIONS.items():
            changed = [row.instance for row in rows if column in row.changes]
            through = getattr(self._meta.model, relation).through
            through._base_manager.filter(**{f"{own}__in": changed}).delete()
            through._base_manager.bulk_create(
                through(**{own: row, other: each})
                for row in changed
                for each in self.fields[column].get_value(row)
            )


class PromoCodeResource(RestrictedBenefitResource[PromoCode]):
    """Promo codes. The code identifies the row."""

    name: ClassVar = "promo-codes"
    singular: ClassVar = "promo code"
    example: ClassVar = {"code": "WELCOME10", "percent": Decimal(10)}
    key: ClassVar = ("code",)
    required_columns: ClassVar = (("code",),)

    percent = Field("percent", widget=PercentWidget(PromoCode._meta.get_field("percent")))

    class Meta:
        model = PromoCode
        fields = (
            *("code", "description", "is_active", "percent", "amount", "valid_from", "valid_until"),
            *("meeting_from", "meeting_until", "max_uses", "max_uses_per_account", "budget"),
            *("minimum_spend", "center_ids", "room_types"),
        )

    def get_candidates(self, rows: Sequence[Cells]) -> Q:
        return Q(code__in={normalize_code(row.get("code", "")) for row in rows})

    def get_key(self, instance: PromoCode) -> Hashable:
        return normalize_code(instance.code)

    def import_instance(self, instance: PromoCode, row: Cells, **kwargs: object) -> None:
        super().import_instance(instance, row, **kwargs)
        # So that it is compared with what will be stored.
        instance.code = normalize_code(instance.code)


class AllowanceResource(RestrictedBenefitResource[Allowance]):
    """Included hours of accounts."""

    name: ClassVar = "allowances"
    singular: ClassVar = "allowance"
    example: ClassVar = {
        "user": User(email="customer@example.com"),
        "description": "Membership",
        "kind": Allowance.Kind.MONTHLY,
        "hours": 4,
    }
    related: ClassVar = ("user",)
    key: ClassVar = ("account", "description", "kind", "valid_from")
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

    def _get_rows_at(self, centers: Any) -> QuerySet[Allowance]:
        return super()._get_rows_at(centers).filter(self._get_account_filter("user"))

    def _get_account_filter(self, path: str = "") -> Q:
        return Q() if self.user is None else get_account_filter(self.user, path)

    def load_references(self, rows: Sequence[Cells], stored: QuerySet[Allowance]) -> None:
        super().load_references(rows, stored)
        addresses = {canonicalize_email(row.get("account", "")) for row in rows}
        users = User.objects.filter(self._get_account_filter(), email__in=addresses)
        self.accounts = {user.email: user for user in users}

    def get_candidates(self, rows: Sequence[Cells]) -> Q:
        return Q(user__in=[*self.accounts.values()])

    def get_key(self, instance: Allowance) -> Hashable:
        description = fold_name(instance.description)
        return instance.user_id, description, str(instance.kind), instance.valid_from

    def get_errors(self, instance: Allowance, original: Allowance | None) -> dict[str, str]:
        if original and original.user_id != instance.user_id:
            return {"user": "Hours stay with their account: deactivate these and add others."}
        return {}

    def after_export(self, queryset: Any, dataset: Any, **kwargs: object) -> None:
        """Record whose personal data is exported."""
        if self.user is not None:
            users = User.objects.filter(email__in={*dataset["account"]})
            audit_log.record_views(users, by=self.user, note="Exported with their allowances.")
