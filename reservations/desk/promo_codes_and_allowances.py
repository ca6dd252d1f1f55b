"""Allowances, promo codes and partners in the back office, with their uses."""

import datetime as dt
from collections.abc import Iterable
from typing import Any, TypeVar

from django.contrib import admin
from django.db.models import Model, Q, QuerySet, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from accounts import roles
from accounts.admin.center_scope import SharedRowsMixin
from accounts.customer_access import get_account_filter
from reservations import resources
from reservations.display import get_reservation_url
from reservations.models import Allowance, AllowanceEntry, Partner, PromoCode, PromoRedemption
from roombook import money
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin, TabularInline
from roombook.imports.admin import ImportExportAdminMixin

RowT = TypeVar("RowT", bound=Model)


def _render_link(url: str, text: str) -> str:
    return format_html(
        '<a class="text-primary-600 dark:text-primary-500" href="{}">{}</a>', url, text
    )


class UsageInline(ReadOnlyMixin, TabularInline):
    """A read-only list of uses, each of which may have a reservation."""

    readonly_fields = ("reservation_link",)
    extra = 0
    can_delete = False
    classes = ("no-names",)
    tab = True
    show_count = True
    per_page = 25
    hide_title = True

    @admin.display(description="reservation")
    def reservation_link(self, use: AllowanceEntry | PromoRedemption) -> str:
        return _render_link(
            get_reservation_url(use.reservation_id), f"Reservation {use.reservation_id}"
        )


class DiscountAdmin(SharedRowsMixin, ModelAdmin):
    """The base of models that are valid at some centers, or at all."""

    # Checkouts change their counters.
    is_locked_while_saved = True

    def limit_to_centers(self, request: HttpRequest, rows: QuerySet[RowT]) -> QuerySet[RowT]:
        """Limit the rows to those valid at the user's centers.

        A user with the permission at all centers sees all rows.
        """
        at_centers = roles.get_center_filter(
            request.user, self.get_permission_name("view"), "centers"
        )
        if not at_centers:
            return rows
        visible = self.model._default_manager.filter(at_centers | Q(centers__isnull=True))
        return rows.filter(pk__in=visible.values("pk"))


# --- Allowances ----------------------------------------------------------------------------------


class AllowanceEntryInline(UsageInline):
    model = AllowanceEntry
    fields = ("at", "period", "hours", "reason", "reservation_link")
    ordering = ("-at", "-pk")
    verbose_name_plural = "ledger"


@admin.register(Allowance)
class AllowanceAdmin(ImportExportAdminMixin, DiscountAdmin):
    """Included hours of a customer, with the balance of each month and the ledger."""

    resource_class = resources.AllowanceResource
    list_display = (
        *("description", "user", "kind", "hours", "left", "valid_from", "valid_until"),
        *("is_automatic", "is_active"),
    )
    list_filter = ("kind", "is_active", "is_automatic", "valid_until")
    list_select_related = ("user",)
    search_fields = ("description", "user__email", "user__last_name", "user__company_name")
    search_help_text = "Description, or e-mail address, last name, company of the customer."
    ordering = ("-pk",)
    sortable_by = ()
    autocomplete_fields = ("user", "centers", "room_types")
    inlines = (AllowanceEntryInline,)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    *("user", "description", ("kind", "hours"), ("valid_from", "valid_until")),
                    ("is_automatic", "is_active"),
                )
            },
        ),
        ("Where", {"fields": ("centers", "room_types")}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Allowance | None = None) -> Any:
        """Hours that were used stay those of their account and of their month."""
        is_used = obj is not None and obj.entries.exists()
        return (*self.readonly_fields, *(("user", "kind") if is_used else ()))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Allowance]:
        """The allowances at the user's centers, of customers whom they may see."""
        rows = super().get_queryset(request).filter(get_account_filter(request.user, "user"))
        return self.limit_to_centers(request, rows)

    def annotate_page(self, request: HttpRequest, rows: list[Any]) -> None:
        left = get_hours_left(rows, timezone.now().date())
        for allowance in rows:
            allowance.hours_left = left[allowance.pk]

    @admin.display(description="left now")
    def left(self, allowance: Any) -> int:
        return allowance.hours_left

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Allowances are deactivated, not deleted: the ledger stays."""
        return False


def get_hours_left(allowances: Iterable[Allowance], today: dt.date) -> dict[int, int]:
    """What is left of each allowance in this month, or in total if it is one-off; one query."""
    allowances = list(allowances)
    rows = (
        AllowanceEntry.objects.filter(
            Q(allowance__kind=Allowance.Kind.MONTHLY, period=today.replace(day=1))
            | Q(allowance__kind=Allowance.Kind.ONE_OFF, period__isnull=True),
            allowance__in=allowances,
        )
        .order_by()
        .values_list("allowance")
        .annotate(Sum("hours"))
    )
    entered = dict(rows)
    return {each.pk: each.hours + entered.get(each.pk, 0) for each in allowances}


# --- Promo codes ---------------------------------------------------------------------------------


class RedemptionInline(UsageInline):
    model = PromoRedemption
    fields = ("taken_at", "user", "amount", "given_back_at", "reservation_link")
    ordering = ("-taken_at", "-pk")
    verbose_name_plural = "uses"

    def get_queryset(self, request: HttpRequest) -> QuerySet[PromoRedemption]:
        """The uses at the user's centers, by customers whom they may see."""
        rows = super().get_queryset(request).select_related("user", "promo_code")
        return rows.filter(
            roles.get_center_filter(
                request.user, roles.VIEW_RESERVATION, "reservation__room__center"
            ),
            get_account_filter(request.user, "user"),
        )


@admin.register(PromoCode)
class PromoCodeAdmin(ImportExportAdminMixin, DiscountAdmin):
    """Promo codes with their uses and what is left."""

    resource_class = resources.PromoCodeResource
    list_display = (
        *("code", "description", "discount", "valid_until", "uses_and_limit", "spent_and_budget"),
        "is_active",
    )
    list_filter = ("is_active", "valid_until")
    search_fields = ("code", "description")
    ordering = ("code",)
    sortable_by = ("code", "valid_until")
    autocomplete_fields = ("centers", "room_types")
    readonly_fields = ("uses_and_limit", "spent_and_budget")
    inlines = (RedemptionInline,)
    fieldsets = (
        (None, {"fields": ("code", "description", ("percent", "amount"), "is_active")}),
        ("So far", {"fields": (("uses_and_limit", "spent_and_budget"),)}),
        (
            "Limits",
            {"fields": (("max_uses", "max_uses_per_account"), ("budget", "minimum_spend"))},
        ),
        (
            "When",
            {
                "fields": (("valid_from", "valid_until"), ("meeting_from", "meeting_until")),
                "description": "The times of booking are in UTC, the days of the meeting are local"
                " days of the center.",
            },
        ),
        ("Where", {"fields": ("centers", "room_types")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[PromoCode]:
        return self.limit_to_centers(request, super().get_queryset(request))

    @admin.display(description="discount")
    def discount(self, promo: PromoCode) -> str:
        if promo.percent is not None:
            return f"{promo.percent.normalize():f}%"
        return money.format_amount(promo.amount or 0)

    @admin.display(description="uses")
    def uses_and_limit(self, promo: PromoCode) -> str:
        if promo.max_uses is None:
            return f"{promo.uses}"
        return f"{promo.uses} of {promo.max_uses}, {max(0, promo.max_uses - promo.uses)} left"

    @admin.display(description="discounts given")
    def spent_and_budget(self, promo: PromoCode) -> str:
        spent = money.format_amount(promo.spent)
        if promo.budget is None:
            return spent
        left = money.format_amount(max(money.ZERO, promo.budget - promo.spent))
        return f"{spent} of {money.format_amount(promo.budget)}, {left} left"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only promo codes that were never used can be deleted."""
        is_permitted = super().has_delete_permission(request, obj)
        return is_permitted and (obj is None or not (obj.uses or obj.redemptions.exists()))


# --- Partners ------------------------------------------------------------------------------------


@admin.register(Partner)
class PartnerAdmin(SharedRowsMixin, ModelAdmin):
    """Partners; the revenue report shows what they generated."""

    list_display = ("code", "name", "is_active")
    list_filter = ("is_active",)
    search_fields = ("code", "name")
    ordering = ("code",)
    sortable_by = ("code", "name")
    readonly_fields = ("reservations_link",)
    fieldsets = (
        (None, {"fields": ("code", "name", "is_active")}),
        ("So far", {"fields": ("reservations_link",)}),
    )

    @admin.display(description="reservations")
    def reservations_link(self, partner: Partner) -> str:
        if partner._state.adding:
            return "-"
        page = reverse("admin:reservations_reservation_changelist")
        return _render_link(f"{page}?partner__id__exact={partner.pk}", "All, including drafts")
