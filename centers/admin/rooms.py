"""Rooms and services."""

from typing import Any

from django.contrib import admin
from django.db.models import ForeignKey, QuerySet
from django.forms import ModelChoiceField
from django.http import HttpRequest

from centers import models
from centers.admin.common import object_id_of, preview
from roombook.admin import ModelAdmin


@admin.register(models.MeetingRoom)
class MeetingRoomAdmin(ModelAdmin):
    """Rooms. The rate, one of the center's, is chosen after the first save."""

    list_display = (
        *("name", "center", "resource_type", "capacity", "price"),
        *("is_live_inventory", "is_active", "is_blocked"),
    )
    list_filter = (
        *("is_active", "is_blocked", "is_live_inventory"),
        ("rate", admin.EmptyFieldListFilter),
        ("resource_type", admin.RelatedOnlyFieldListFilter),
    )
    list_select_related = ("center", "resource_type", "rate")
    search_fields = ("name", "center__name", "center__city", "provider")
    ordering = ("center__name", "name", "pk")
    autocomplete_fields = ("center", "resource_type")
    readonly_fields = ("shown",)
    actions = ("take_out_of_service", "put_back_into_service")
    fieldsets = (
        (None, {"fields": ("center", "name", "resource_type", "capacity", "rate", "provider")}),
        ("State", {"fields": ("is_active", "is_blocked", "is_live_inventory")}),
        ("Picture", {"fields": ("picture", "shown")}),
        (
            "Booking rules",
            {
                "fields": (
                    *("turnaround_minutes", "grid_minutes", "minimum_minutes"),
                    *("maximum_minutes", "booking_window_days"),
                )
            },
        ),
    )

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        if db_field.name == "rate":
            room = object_id_of(request)
            rates = models.Rate.objects.order_by("name")
            kwargs["queryset"] = (
                rates.filter(center__rooms=room) if room is not None else rates.none()
            )
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    @admin.display(description="price", empty_value="no price: not shown")
    def price(self, room: models.MeetingRoom) -> str | None:
        return room.lowest_rate or None

    @admin.display(description="preview")
    def shown(self, room: models.MeetingRoom) -> str:
        return preview(room.picture_thumbnail)

    @admin.action(description="Take out of service", permissions=["change"])
    def take_out_of_service(self, request: HttpRequest, rooms: QuerySet) -> None:
        self._block(request, rooms, is_blocked=True)

    @admin.action(description="Put back into service", permissions=["change"])
    def put_back_into_service(self, request: HttpRequest, rooms: QuerySet) -> None:
        self._block(request, rooms, is_blocked=False)

    def _block(self, request: HttpRequest, rooms: QuerySet, *, is_blocked: bool) -> None:
        # One by one, so that each one's history tells.
        for room in rooms.exclude(is_blocked=is_blocked):
            room.is_blocked = is_blocked
            room.save(update_fields=["is_blocked"])
            done = "Taken out of service." if is_blocked else "Put back into service."
            self.log_change(request, room, done)
        self.message_user(request, "Done.")


@admin.register(models.Service)
class ServiceAdmin(ModelAdmin):
    list_display = ("name", "center", "resource_type", "price", "bill_at_center", "is_active")
    list_filter = (
        *("is_active", "bill_at_center", "needs_duration", "needs_quantity"),
        ("resource_type", admin.RelatedOnlyFieldListFilter),
    )
    list_select_related = ("center", "resource_type", "rate")
    search_fields = ("name", "center__name", "center__city")
    ordering = ("center__name", "position", "name", "pk")
    autocomplete_fields = ("center", "resource_type")

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        if db_field.name == "rate":
            service = object_id_of(request)
            rates = models.Rate.objects.order_by("name")
            kwargs["queryset"] = (
                rates.filter(center__services=service) if service is not None else rates.none()
            )
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    @admin.display(description="price")
    def price(self, service: models.Service) -> str | None:
        return service.rate_description or None
