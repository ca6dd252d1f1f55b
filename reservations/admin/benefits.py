"""What makes a booking cheaper, and who brought it, in the back office."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpRequest

from accounts import customers, roles
from accounts.scope import OfAllCenters
from reservations.admin.inlines import ReadOnlyInline
from reservations.models import Allowance, AllowanceEntry, Partner, PromoCode
from reservations.status import Status
from roombook.admin import ModelAdmin, SavesWhatChanged


def concerning(request: HttpRequest, permission: str) -> Q:
    """What is bound to centers of theirs, or to none and so is valid there too."""
    bound = roles.scope(request.user, permission, "centers")
    return bound and (bound | Q(centers__isnull=True))


class AllowanceEntryInline(ReadOnlyInline):
    model = AllowanceEntry
    fields = ("at", "period", "hours", "reason", "reservation")
    ordering = ("-at", "-pk")


@admin.register(Allowance)
class AllowanceAdmin(OfAllCenters, ModelAdmin):
    """Included hours of an account, with their ledger."""

    list_display = (
        *("description", "user", "kind", "hours", "valid_from", "valid_until"),
        *("is_automatic", "is_active"),
    )
    list_filter = ("kind", "is_active", "is_automatic", "valid_until")
    list_select_related = ("user",)
    search_fields = ("description", "user__email", "user__last_name", "user__company_name")
    ordering = ("user__email", "pk")
    autocomplete_fields = ("user", "centers", "room_types")
    readonly_fields = ("balance",)
    inlines = (AllowanceEntryInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Allowance]:
        """Those that concern their centers, of customers whom they may know."""
        rows = super().get_queryset(request)
        concerned = concerning(request, self.permission("view"))
        if not concerned:
            return rows
        theirs = Allowance.objects.filter(concerned, customers.known_to(request.user, "user"))
        return rows.filter(pk__in=theirs.values("pk"))

    @admin.display
    def balance(self, allowance: Allowance) -> str:
        """What is left of each period that something was entered in."""
        if allowance._state.adding:
            return "-"
        rows = allowance.entries.values_list("period").annotate(Sum("hours")).order_by("-period")
        told = [
            f"{f'{period:%B %Y}' if period else 'in all'}: {allowance.hours + entered} hours left"
            for period, entered in rows[:12]
        ]
        return "; ".join(told) or f"{allowance.hours} hours, none used"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Switched off, not deleted: its ledger stays."""
        return False


@admin.register(PromoCode)
class PromoCodeAdmin(OfAllCenters, SavesWhatChanged, ModelAdmin):
    list_display = (
        *("code", "description", "percent", "amount", "valid_until", "uses", "max_uses"),
        *("spent", "budget", "is_active"),
    )
    list_filter = ("is_active", "valid_until")
    search_fields = ("code", "description")
    ordering = ("code",)
    autocomplete_fields = ("centers", "room_types")
    readonly_fields = ("uses", "spent")

    def get_queryset(self, request: HttpRequest) -> QuerySet[PromoCode]:
        rows = super().get_queryset(request)
        concerned = concerning(request, self.permission("view"))
        if not concerned:
            return rows
        return rows.filter(pk__in=PromoCode.objects.filter(concerned).values("pk"))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_delete_permission(request, obj)
        return may and (obj is None or not (obj.uses or obj.redemptions.exists()))


@admin.register(Partner)
class PartnerAdmin(OfAllCenters, ModelAdmin):
    list_display = ("code", "name", "bookings", "is_active")
    list_filter = ("is_active",)
    search_fields = ("code", "name")
    ordering = ("code",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Partner]:
        theirs = roles.scope(
            request.user, "reservations.view_reservation", "reservations__room__center"
        )
        brought = Count("reservations", filter=~Q(reservations__status=Status.NEW) & theirs)
        return super().get_queryset(request).annotate(brought=brought)

    @admin.display(ordering="brought", description="bookings brought")
    def bookings(self, partner: Any) -> int:
        return int(partner.brought)
