"""Promo codes and allowances as tables to import and export."""

from collections.abc import Callable, Hashable
from decimal import Decimal
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

from django.db.models import Q, QuerySet
from import_export.fields import Field

from accounts.customer_access import get_account_filter
from accounts.models import User, canonicalize_email
from accounts.resources import CenterScopedResource
from centers.models import Center, ResourceType
from reservations.models import Allowance, PromoCode
from reservations.models.codes import normalize_code
from roombook.backoffice import audit_log
from roombook.imports.files import normalize_cell
from roombook.imports.resources import Cells
from roombook.imports.widgets import PercentWidget, ReferenceWidget, RelatedField, TextWidget
from roombook.texts import fold_name

BenefitT = TypeVar("BenefitT", bound=PromoCode | Allowance)


class RowsWidget(TextWidget):
    """The rows to which another one is restricted, by their names; an empty cell means all."""

    def __init__(
        self, noun: str, rows: QuerySet[Any], get_name: Callable[[Any], str], help_text: str
    ) -> None:
        super().__init__(help_text=f"{help_text}, separated by semicolons; empty: every {noun}")
        self.noun, self.rows, self.get_name = noun, rows, get_name

    def get_folded_name(self, row: Any) -> str:
        return fold_name(self.get_name(row))

    def parse(self, text: str, **kwargs: Any) -> list[Any]:
        rows = kwargs["resource"].group(self.rows, self.get_folded_name)
        names = {fold_name(name): name for name in text.split(";") if name.strip()}
        if unknown := [name for folded, name in names.items() if folded not in rows]:
            name = unknown[0].strip()[:50]
            why = f'There is no {self.noun} "{name}". Separate several by semicolons.'
            raise ValueError(why)
        return [rows[name][0] for name in names]

    def render(self, value: Any, **kwargs: object) -> str:
        rows = sorted(value or (), key=attrgetter("pk"))
        return "; ".join(normalize_cell(self.get_name(each)) for each in rows)


CENTERS = RowsWidget("center", Center.objects.only("pk"), lambda row: str(row.pk), "ids of centers")
ROOM_TYPES = RowsWidget(
    *("room type", ResourceType.objects.filter(is_service=False), attrgetter("name")),
    "names of room types",
)


def find_account(address: str, resource: "AllowanceResource", record: object) -> User:
    email = canonicalize_email(address)
    account = User.objects.filter(resource.get_account_filter(), email=email).first()
    if account is None:
        raise ValueError("There is no account with this e-mail address.")
    return account


class RestrictedBenefitResource(CenterScopedResource[BenefitT]):
    """Rows that may be restricted to some centers and types of rooms."""

    center_path = None
    center_ids = RelatedField("centers_of_row", lambda row: row.centers.all(), CENTERS)
    room_types = RelatedField("types_of_row", lambda row: row.room_types.all(), ROOM_TYPES)

    def _get_rows_at(self, centers: Any) -> QuerySet[BenefitT]:
        return super()._get_rows_at(centers).prefetch_related("centers", "room_types")

    def save_m2m(self, instance: BenefitT, row: Cells, **kwargs: object) -> None:
        if "center_ids" in self.changes:
            instance.centers.set(self.fields["center_ids"].get_value(instance))
        if "room_types" in self.changes:
            instance.room_types.set(self.fields["room_types"].get_value(instance))


class PromoCodeResource(RestrictedBenefitResource[PromoCode]):
    """Promo codes. The code identifies the row."""

    name: ClassVar = "promo-codes"
    singular: ClassVar = "promo code"
    example: ClassVar = {"code": "WELCOME10", "percent": Decimal(10)}
    key: ClassVar = ("code",)

    percent = Field("percent", widget=PercentWidget(PromoCode._meta.get_field("percent")))

    class Meta:
        model = PromoCode
        fields = (
            *("code", "description", "is_active", "percent", "amount", "valid_from", "valid_until"),
            *("meeting_from", "meeting_until", "max_uses", "max_uses_per_account", "budget"),
            *("minimum_spend", "center_ids", "room_types"),
        )

    def get_scope(self, instance: PromoCode) -> dict[str, Any]:
        return {"code": normalize_code(instance.code)}

    def import_instance(self, instance: PromoCode, row: Cells, **kwargs: object) -> None:
        super().import_instance(instance, row, **kwargs)
        # So that it is compared with what will be stored.
        instance.code = normalize_code(instance.code)


class AllowanceResource(RestrictedBenefitResource[Allowance]):
    """Included hours of accounts."""

    name: ClassVar = "allowances"
    singular: ClassVar = "allowance"
    example: ClassVar = {
        "account": "customer@example.com",
        "description": "Membership",
        "kind": "monthly",
        "hours": 4,
    }
    key: ClassVar = ("account", "description", "kind", "valid_from")
    required: ClassVar = ("account", "description")

    account = Field(
        "user",
        widget=ReferenceWidget("an account's e-mail address", find_account, attrgetter("email")),
    )
    kind = Field("kind", widget=TextWidget(help_text=" or ".join(Allowance.Kind.values)))

    class Meta:
        model = Allowance
        fields = (
            *("id", "account", "description", "kind", "hours", "valid_from", "valid_until"),
            *("center_ids", "room_types", "is_automatic", "is_active"),
        )

    def _get_rows_at(self, centers: Any) -> QuerySet[Allowance]:
        return super()._get_rows_at(centers).filter(self.get_account_filter("user"))

    def get_account_filter(self, path: str = "") -> Q:
        return Q() if self.user is None else get_account_filter(self.user, path)

    def get_scope(self, instance: Allowance) -> dict[str, Any]:
        return {"user": instance.user_id}

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
