"""Rooms and services. Both are also edited in their lists."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import ForeignKey, QuerySet
from django.forms import ModelChoiceField
from django.http import HttpRequest
from django.urls import reverse

from accounts import roles
from centers import models
from centers.admin.closures import SeenEffectsForm
from centers.admin.common import (
    CENTER_ORDERING,
    CenterSearchMixin,
    FixedCenterMixin,
    TimelineLinkMixin,
    get_object_id,
    render_thumbnail,
)
from centers.closure_effects import find_effects_of_settings
from centers.models.price_list import load_special_prices
from centers.resources import RoomResource, ServiceResource
from centers.rooms import get_default_booking_rules
from roombook.backoffice.model_admin import ModelAdmin
from roombook.ids import parse_id
from roombook.imports.admin import ImportExportAdminMixin


class PricedRowAdmin(ImportExportAdminMixin, CenterSearchMixin, FixedCenterMixin, ModelAdmin):
    """Rows of a center that have one of its rates, and rooms also one of its terms.

    The choices are those of the center in the request, or of the row's center. A script loads
    those of another center while it is being selected.
    """

    list_select_related = ("center", "resource_type", "rate")
    search_fields = ("name",)
    ordering = CENTER_ORDERING
    sortable_by = ()
    # Rows with inputs are slow to render.
    list_per_page = 25
    # The relation from the center to these rows.
    rate_relation: str

    class Media:
        js = ["centers/rate_choices.js"]

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: object
    ) -> ModelChoiceField | None:
        if db_field.name not in ("rate", "terms"):
            return super().formfield_for_foreignkey(db_field, request, **kwargs)
        rows = db_field.related_model._default_manager.all()
        permissions = [f"centers.{action}_{db_field.name}" for action in ("view", "change")]
        visible = rows.filter(roles.get_center_filter(request.user, permissions, "center"))
        query = request.POST if request.method == "POST" else request.GET
        center, row = parse_id(query.get("center")), get_object_id(request)
        choices = visible.none()
        if center is not None:
            choices = visible.filter(center=center)
        elif row is not None:
            choices = rows.filter(**{f"center__{self.rate_relation}": row})
        kwargs["queryset"] = choices.order_by("name")
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if field is not None:
            url = reverse("admin:centers_rate_choices")
            kind = self.rate_relation if db_field.name == "rate" else "terms"
            field.widget.attrs["data-choices-url"] = f"{url}?for={kind}"
        return field


@admin.register(models.MeetingRoom)
class MeetingRoomAdmin(TimelineLinkMixin, PricedRowAdmin):
    form = SeenEffectsForm
    resource_class = RoomResource
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
    result_icon = "meeting_room"
    search_help_text = "Name of the room; name, address or neighborhood of its center"
    autocomplete_fields = ("center", "resource_type")
    readonly_fields = ("preview",)
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
        ("Status", {"fields": ("is_active", "is_blocked", "is_live_inventory")}),
        ("Picture", {"fields": ("picture", "preview")}),
        (
            "Booking rules",
            {
                "fields": (
                    ("turnaround_minutes", "grid_minutes"),
                    ("minimum_minutes", "maximum_minutes"),
                    ("booking_window_days", "terms"),
                )
            },
        ),
    )

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and (rule := get_default_rules().get(db_field.name)):
            default, field.help_text = rule
            field.widget.attrs["placeholder"] = default
        return field

    def get_timeline_url(self, obj: models.MeetingRoom) -> str:
        return f"{reverse('admin:reservations_room_week')}?room={obj.pk}"

    def annotate_page(self, request: HttpRequest, rows: list[Any]) -> None:
        load_special_prices([room.rate for room in rows if room.rate])

    @admin.display(description="price", empty_value="no price: not shown")
    def price(self, room: models.MeetingRoom) -> str | None:
        return room.lowest_rate or None

    @admin.display
    def preview(self, room: models.MeetingRoom) -> str:
        return render_thumbnail(room.picture_thumbnail)

    @admin.action(description="Take out of service", permissions=["change"])
    def take_out_of_service(self, request: HttpRequest, rooms: QuerySet) -> None:
        self._set_blocked(request, rooms, is_blocked=True)

    @admin.action(description="Put back into service", permissions=["change"])
    def put_back_into_service(self, request: HttpRequest, rooms: QuerySet) -> None:
        self._set_blocked(request, rooms, is_blocked=False)

    def _set_blocked(self, request: HttpRequest, rooms: QuerySet, *, is_blocked: bool) -> None:
        # Saved one by one, so that each gets an entry in the audit log.
        for room in rooms.exclude(is_blocked=is_blocked):
            if not self.has_change_permission(request, room):
                continue
            room.is_blocked = is_blocked
            effects = find_effects_of_settings(room, {"is_blocked"})
            room.save(update_fields=["is_blocked"])
            note = "Taken out of service." if is_blocked else "Put back into service."
            self.log_change(request, room, note)
            if effects:
                messages.warning(request, effects.html)
        self.message_user(request, "Done.")


def get_default_rules() -> dict[str, tuple[int, str]]:
    """The booking rules that apply if a room has none of its own, with the help texts."""
    default = get_default_booking_rules()
    longest_days = default.maximum_minutes // (24 * 60)
    return {
        "grid_minutes": (default.slot_minutes, "In minutes."),
        "minimum_minutes": (default.minimum_minutes, "In minutes."),
        "maximum_minutes": (
            default.maximum_minutes,
            f"In minutes. The default is {longest_days} days.",
        ),
        "booking_window_days": (default.window_days, "In days."),
    }


@admin.register(models.Service)
class ServiceAdmin(PricedRowAdmin):
    resource_class = ServiceResource
    rate_relation = "services"
    list_display = ("name", "center", "resource_type", "price", "bill_at_center", "is_active")
    list_editable = ("bill_at_center", "is_active")
    list_filter = (
        *("is_active", "bill_at_center", "needs_duration", "needs_quantity"),
        "resource_type",
    )
    search_help_text = "Name of the service; name, address or neighborhood of its center"
    autocomplete_fields = ("center",)
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
            "Billing",
            {"fields": (("needs_duration", "needs_quantity"), ("minimum_booking", "position"))},
        ),
    )

    @admin.display(description="price", empty_value="no price")
    def price(self, service: models.Service) -> str | None:
        return service.price_description or None
