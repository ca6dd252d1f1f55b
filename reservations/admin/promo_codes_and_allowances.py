"""What makes a booking cheaper, and who brought it, in the back office."""

from typing import Any

from django.contrib import admin
from django.db import connection
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from accounts import customer_access, roles
from accounts.admin.center_scope import SharedRowsMixin
from reservations import resources
from reservations.admin import allowance_balances
from reservations.admin.allowance_balances import AttributedRevenue
from reservations.admin.inlines import ReadOnlyInline
from reservations.models import Allowance, AllowanceEntry, Partner, PromoCode, PromoRedemption
from roombook import money
from roombook.backoffice.concurrent_edits import ChangedFieldsForm
from roombook.backoffice.model_admin import ModelAdmin, PageAnnotationsMixin, SaveChangedFieldsMixin
from roombook.ids import parse_id
from roombook.imports.admin import ImportExportAdminMixin


def get_center_condition(request: HttpRequest, permission: str) -> Q:
    """What is bound to centers of theirs, or to none and so is valid there too."""
    bound = roles.get_center_filter(request.user, permission, "centers")
    return bound and (bound | Q(centers__isnull=True))


class DiscountAdmin(SharedRowsMixin, SaveChangedFieldsMixin, PageAnnotationsMixin, ModelAdmin):
    """What holds for many centers, with its figures."""

    form = ChangedFieldsForm

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Locked while it is saved: its limits are compared with uses that checkouts count up."""
        if request.method == "POST" and connection.in_atomic_block:
            rows = self.model._default_manager.select_for_update(no_key=True)
            list(rows.filter(pk=parse_id(object_id) or 0))
        return super().get_object(request, object_id, from_field)

    def seen(self, request: HttpRequest) -> Q:
        """The reservations that figures are told of."""
        return roles.get_center_filter(request.user, "reservations.view_reservation")


# Allowances


class AllowanceEntryInline(ReadOnlyInline):
    model = AllowanceEntry
    fields = ("at", "period", "hours", "reason", "reservation_link")
    readonly_fields = ("reservation_link",)
    ordering = ("-at", "-pk")
    verbose_name_plural = "ledger"
    tab = True
    show_count = True
    per_page = 25
    hide_title = True

    @admin.display(description="reservation")
    def reservation_link(self, entry: AllowanceEntry) -> str:
        return _render_reservation_link(entry.reservation_id)


@admin.register(Allowance)
class AllowanceAdmin(ImportExportAdminMixin, DiscountAdmin):
    """Included hours of an account, with what was used month by month, and their ledger."""

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
    readonly_fields = ("months",)
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
        ("Month by month", {"fields": ("months",)}),
        ("Where", {"fields": ("centers", "room_types")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Allowance]:
        """Those that concern their centers, of customers whom they may know."""
        rows = super().get_queryset(request)
        concerned = get_center_condition(request, self.permission("view"))
        if not concerned:
            return rows
        theirs = Allowance.objects.filter(
            concerned, customer_access.get_customer_filter(request.user, "user")
        )
        return rows.filter(pk__in=theirs.values("pk"))

    def annotate_page(self, request: HttpRequest, rows: list[Any]) -> None:
        left = allowance_balances.get_hours_left(rows, timezone.now().date())
        for allowance in rows:
            allowance.hours_left = left[allowance.pk]

    @admin.display(description="left now")
    def left(self, allowance: Any) -> int:
        return allowance.hours_left

    @admin.display(description="balance")
    def months(self, allowance: Allowance) -> str:
        if allowance._state.adding:
            return "-"
        rows = allowance_balances.get_monthly_balances(allowance, timezone.now().date())
        return render_to_string("office/allowance_months.html", {"months": rows})

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Switched off, not deleted: its ledger stays."""
        return False


# Promo codes


class RedemptionInline(ReadOnlyInline):
    model = PromoRedemption
    fields = ("taken_at", "user", "amount", "given_back_at", "reservation_link")
    readonly_fields = ("reservation_link",)
    ordering = ("-taken_at", "-pk")
    verbose_name_plural = "uses"
    tab = True
    show_count = True
    per_page = 25
    hide_title = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[PromoRedemption]:
        rows = super().get_queryset(request).select_related("user", "promo_code")
        return rows.filter(
            roles.get_center_filter(
                request.user, "reservations.view_reservation", "reservation__room__center"
            )
        )

    @admin.display(description="reservation")
    def reservation_link(self, redemption: PromoRedemption) -> str:
        return _render_reservation_link(redemption.reservation_id)


class AttributedRevenueMixin(DiscountAdmin):
    """Figures of one row, which its page shows as its list does."""

    column: str

    def annotate_page(self, request: HttpRequest, rows: list[Any]) -> None:
        found = allowance_balances.get_attributed_revenue(
            self.column, [row.pk for row in rows], seen=self.seen(request)
        )
        for row in rows:
            row.brought = found.get(row.pk, AttributedRevenue())

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            self.annotate_page(request, [row])
        return row

    @admin.display(description="bookings brought")
    def bookings(self, row: Any) -> int:
        return getattr(row, "brought", AttributedRevenue()).bookings

    @admin.display(description="revenue brought")
    def revenue(self, row: Any) -> str:
        return money.format_amount(getattr(row, "brought", AttributedRevenue()).revenue)


@admin.register(PromoCode)
class PromoCodeAdmin(ImportExportAdminMixin, AttributedRevenueMixin):
    """Promo codes with what was used of them, what they brought, and what is left."""

    resource_class = resources.PromoCodeResource
    column = "promo_code"
    list_display = (
        *("code", "description", "discount", "valid_until", "uses_told", "spent_told"),
        *("bookings", "revenue", "is_active"),
    )
    list_filter = ("is_active", "valid_until")
    search_fields = ("code", "description")
    ordering = ("code",)
    sortable_by = ("code", "valid_until")
    autocomplete_fields = ("centers", "room_types")
    readonly_fields = ("uses_told", "spent_told", "bookings", "revenue")
    inlines = (RedemptionInline,)
    fieldsets = (
        (
            None,
            {"fields": ("code", "description", ("percent", "amount"), "is_active")},
        ),
        ("So far", {"fields": (("uses_told", "spent_told"), ("bookings", "revenue"))}),
        (
            "Limits",
            {"fields": (("max_uses", "max_uses_per_account"), ("budget", "minimum_spend"))},
        ),
        (
            "When",
            {
                "fields": (
                    ("valid_from", "valid_until"),
                    ("meeting_from", "meeting_until"),
                ),
                "description": "Booked from and until are in UTC; days of a meeting are the"
                " center's.",
            },
        ),
        ("Where", {"fields": ("centers", "room_types")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[PromoCode]:
        rows = super().get_queryset(request)
        concerned = get_center_condition(request, self.permission("view"))
        if not concerned:
            return rows
        return rows.filter(pk__in=PromoCode.objects.filter(concerned).values("pk"))

    @admin.display(description="discount")
    def discount(self, promo: PromoCode) -> str:
        if promo.percent is not None:
            return f"{promo.percent.normalize():f}%"
        return money.format_amount(promo.amount or 0)

    @admin.display(description="uses")
    def uses_told(self, promo: PromoCode) -> str:
        if promo.max_uses is None:
            return f"{promo.uses}"
        return f"{promo.uses} of {promo.max_uses}, {max(0, promo.max_uses - promo.uses)} left"

    @admin.display(description="discounts given")
    def spent_told(self, promo: PromoCode) -> str:
        spent = money.format_amount(promo.spent)
        if promo.budget is None:
            return spent
        left = money.format_amount(max(money.ZERO, promo.budget - promo.spent))
        return f"{spent} of {money.format_amount(promo.budget)}, {left} left"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_delete_permission(request, obj)
        return may and (obj is None or not (obj.uses or obj.redemptions.exists()))


# Partners


@admin.register(Partner)
class PartnerAdmin(AttributedRevenueMixin):
    """Partners with the bookings that they brought."""

    column = "partner"
    list_display = ("code", "name", "bookings", "revenue", "is_active")
    list_filter = ("is_active",)
    search_fields = ("code", "name")
    ordering = ("code",)
    sortable_by = ("code", "name")
    readonly_fields = ("bookings", "revenue", "reservations_link")
    fieldsets = (
        (None, {"fields": ("code", "name", "is_active")}),
        ("So far", {"fields": (("bookings", "revenue"), "reservations_link")}),
    )

    @admin.display(description="reservations")
    def reservations_link(self, partner: Partner) -> str:
        if partner._state.adding:
            return "-"
        page = reverse("admin:reservations_reservation_changelist")
        return format_html(
            '<a class="text-primary-600 dark:text-primary-500" href="{}?partner__id__exact={}">'
            "Those it brought, drafts too</a>",
            page,
            partner.pk,
        )


def _render_reservation_link(reservation_id: int | None) -> str:
    if reservation_id is None:
        return "-"
    page = reverse("admin:reservations_reservation_change", args=[reservation_id])
    return format_html(
        '<a class="text-primary-600 dark:text-primary-500" href="{}">Reservation {}</a>',
        page,
        reservation_id,
    )
