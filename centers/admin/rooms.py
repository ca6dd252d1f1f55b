"""Rooms and services."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from accounts.admin.center_scope import CenterScopedMixin
from centers import models
from centers.admin.common import (
    CENTER_ORDERING,
    CenterRatesMixin,
    TimelineLinkMixin,
    render_thumbnail,
    search_rows_and_centers,
)
from centers.resources.inventory import RoomResource, ServiceResource
from roombook.backoffice.concurrent_edits import ChangedFieldsForm
from roombook.backoffice.model_admin import ModelAdmin, SaveChangedFieldsMixin
from roombook.imports.admin import ImportExportAdminMixin


@admin.register(models.MeetingRoom)
class MeetingRoomAdmin(
    ImportExportAdminMixin,
    CenterScopedMixin,
    TimelineLinkMixin,
    SaveChangedFieldsMixin,
    CenterRatesMixin,
    ModelAdmin,
):
    """Rooms, also edited in their list."""

    resource_class = RoomResource
    form = ChangedFieldsForm
    rate_relation = "rooms"
    timeline_label = "Week"
    list_display = (
        *("name", "center", "resource_type", "capacity", "price"),
        *("is_live_inventory", "is_active", "is_blocked"),
    )
    list_editable = ("capacity", "is_live_inventory", "is_active", "is_blocked")
    list_filter = (
        *("is_active", "is_blocked", "is_live_inventory"),
        ("rate", admin.EmptyFieldListFilter),
        "resource_type",
    )
    list_select_related = ("center", "resource_type", "rate")
    search_fields = ("name",)
    search_help_text = "Name of the room, or name, address, neighborhood of its center, or both."
    ordering = CENTER_ORDERING
    sortable_by = ()
    # Rows of boxes take their time to draw.
    list_per_page = 25
    autocomplete_fields = ("center", "resource_type")
    readonly_fields = ("shown",)
    actions = ("take_out_of_service", "put_back_into_service")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    *("center", "name", ("resource_type", "capacity")),
                    *("rate", "provider"),
                )
            },
        ),
        ("State", {"fields": (("is_active", "is_blocked", "is_live_inventory"),)}),
        ("Picture", {"fields": ("picture", "shown")}),
        (
            "Booking rules",
            {
                "fields": (
                    ("turnaround_minutes", "grid_minutes"),
                    ("minimum_minutes", "maximum_minutes"),
                    "booking_window_days",
                )
            },
        ),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return search_rows_and_centers(queryset, search_term), False

    def get_changelist_form(self, request: HttpRequest, **kwargs: Any) -> Any:
        return super().get_changelist_form(request, form=ChangedFieldsForm, **kwargs)

    def get_timeline_url(self, obj: models.MeetingRoom) -> str:
        return f"{reverse('admin:reservations_room_week')}?room={obj.pk}"

    def get_center_id(self, obj: models.MeetingRoom) -> int:
        return obj.center_id

    @admin.display(description="price", empty_value="no price: not shown")
    def price(self, room: models.MeetingRoom) -> str | None:
        return room.lowest_rate or None

    @admin.display(description="preview")
    def shown(self, room: models.MeetingRoom) -> str:
        return render_thumbnail(room.picture_thumbnail)

    @admin.action(description="Take out of service", permissions=["change"])
    def take_out_of_service(self, request: HttpRequest, rooms: QuerySet) -> None:
        self._block(request, rooms, is_blocked=True)

    @admin.action(description="Put back into service", permissions=["change"])
    def put_back_into_service(self, request: HttpRequest, rooms: QuerySet) -> None:
        self._block(request, rooms, is_blocked=False)

    def _block(self, request: HttpRequest, rooms: QuerySet, *, is_blocked: bool) -> None:
        # One by one, so that each one's history tells.
        for room in rooms.exclude(is_blocked=is_blocked):
            if not self.has_change_permission(request, room):
                continue
            room.is_blocked = is_blocked
            room.save(update_fields=["is_blocked"])
            done = "Taken out of service." if is_blocked else "Put back into service."
            self.log_change(request, room, done)
        self.message_user(request, "Done.")


@admin.register(models.Service)
class ServiceAdmin(
    ImportExportAdminMixin, CenterScopedMixin, SaveChangedFieldsMixin, CenterRatesMixin, ModelAdmin
):
    resource_class = ServiceResource
    form = ChangedFieldsForm
    rate_relation = "services"
    list_display = ("name", "center", "resource_type", "price", "bill_at_center", "is_active")
    list_editable = ("bill_at_center", "is_active")
    list_filter = (
        *("is_active", "bill_at_center", "needs_duration", "needs_quantity"),
        "resource_type",
    )
    list_select_related = ("center", "resource_type", "rate")
    search_fields = ("name",)
    search_help_text = "Name of the service, or name, address, neighborhood of its center, or both."
    ordering = CENTER_ORDERING
    sortable_by = ()
    # Rows of boxes take their time to draw.
    list_per_page = 25
    autocomplete_fields = ("center", "resource_type")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    *("center", "name", "resource_type", "rate", "description"),
                    ("bill_at_center", "is_active"),
                )
            },
        ),
        (
            "How it is billed",
            {"fields": (("needs_duration", "needs_quantity"), ("minimum_booking", "position"))},
        ),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return search_rows_and_centers(queryset, search_term), False

    def get_changelist_form(self, request: HttpRequest, **kwargs: Any) -> Any:
        return super().get_changelist_form(request, form=ChangedFieldsForm, **kwargs)

    @admin.display(description="price", empty_value="no price")
    def price(self, service: models.Service) -> str | None:
        return service.rate_description or None
