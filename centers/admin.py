"""Centers in the back office."""

from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin
from django.db.models import Count, ForeignKey, Model, Q, QuerySet
from django.db.models.fields.files import FieldFile
from django.forms import BaseInlineFormSet, ModelChoiceField, ModelForm
from django.http import HttpRequest
from django.utils.html import format_html

from centers import forms, hours, models
from centers.search import words_of
from centers.signals import closure_saved
from roombook.admin import CenterClock, ModelAdmin, TabularInline, number


def preview(file: FieldFile) -> str:
    """A stored picture in small."""
    return format_html('<img src="{}" alt="" height="80">', file.url) if file else "-"


def object_id_of(request: HttpRequest) -> int | None:
    """The row that a change page is about, by its address; None while adding one."""
    match = request.resolver_match
    return number(match.kwargs.get("object_id") if match else None)


class OfTheCenter:
    """Inlines of a center whose choices (rates, rooms) are the center's own: few enough to list."""

    choices_of_center: tuple[str, ...] = ()

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        if db_field.name in self.choices_of_center:
            center = object_id_of(request)
            related = db_field.related_model._default_manager
            kwargs["queryset"] = (
                related.filter(center=center) if center is not None else related.none()
            )
        return super().formfield_for_foreignkey(  # type: ignore[misc]
            db_field, request, **kwargs
        )


class OpeningHoursInline(TabularInline):
    model = models.OpeningHours
    formset = forms.OpeningHoursFormSet
    classes = ("no-names",)
    extra = 0


class RateInline(TabularInline):
    model = models.Rate
    form = forms.RateForm
    extra = 0
    show_change_link = True


class MeetingRoomInline(OfTheCenter, TabularInline):
    model = models.MeetingRoom
    fields = (
        *("name", "resource_type", "capacity", "rate"),
        *("is_live_inventory", "is_active", "is_blocked"),
    )
    autocomplete_fields = ("resource_type",)
    choices_of_center = ("rate",)
    extra = 0
    show_change_link = True


class ServiceInline(OfTheCenter, TabularInline):
    model = models.Service
    fields = (
        *("name", "resource_type", "rate", "bill_at_center", "minimum_booking"),
        *("needs_duration", "needs_quantity", "position", "is_active"),
    )
    autocomplete_fields = ("resource_type",)
    choices_of_center = ("rate",)
    extra = 0
    show_change_link = True


class ClosureInline(OfTheCenter, TabularInline):
    model = models.Closure
    classes = ("no-names",)
    choices_of_center = ("room",)
    extra = 0
    ordering = ("-starts_at",)


class CenterImageInline(TabularInline):
    model = models.CenterImage
    fields = ("image", "shown", "position")
    readonly_fields = ("shown",)
    classes = ("no-names",)
    extra = 0

    @admin.display(description="preview")
    def shown(self, image: models.CenterImage) -> str:
        return preview(image.thumbnail)


class LandmarkInline(TabularInline):
    model = models.Landmark
    classes = ("no-names",)
    extra = 0


@admin.register(models.Center)
class CenterAdmin(CenterClock, ModelAdmin):
    """A center with all that belongs to it; rooms, services, closures come after its first save."""

    list_display = ("name", "city", "state", "country", "room_count", "is_active", "rank")
    list_filter = (
        *("is_active", "is_after_hours_support_enabled", "is_new_location", "is_new_low_price"),
        "country",
    )
    list_select_related = ("neighborhood",)
    # Not empty, so that the search box is there; what it finds is for get_search_results to say.
    search_fields = ("search_text",)
    search_help_text = "Name, address, neighborhood or landmark, as customers search."
    ordering = ("rank", "name", "pk")
    autocomplete_fields = ("neighborhood",)
    readonly_fields = ("hours_told", "searched")
    inlines = (
        *(OpeningHoursInline, RateInline, MeetingRoomInline, ServiceInline),
        *(ClosureInline, CenterImageInline, LandmarkInline),
    )
    fieldsets = (
        (None, {"fields": ("name", "is_active", "rank", "neighborhood", "tax_rate")}),
        (
            "Address",
            {
                "fields": (
                    *("street1", "street2", "street3", "city", "state", "postal_code", "country"),
                    *("latitude", "longitude", "time_zone_id"),
                ),
                "description": "Without a time zone it is found by latitude and longitude.",
            },
        ),
        (
            "For customers",
            {
                "fields": (
                    *("promo_text", "parking_information", "is_new_location", "is_new_low_price"),
                    *("is_after_hours_support_enabled", "hours_told"),
                )
            },
        ),
        ("Search", {"fields": ("searched",), "classes": ("collapse",)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[models.Center]:
        active = Count("rooms", filter=Q(rooms__is_active=True))
        return super().get_queryset(request).annotate(active_rooms=active)

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return queryset.containing(words_of(search_term)), False

    def get_inlines(self, request: HttpRequest, obj: Model | None) -> list[type]:
        after_first_save = {MeetingRoomInline, ServiceInline, ClosureInline}
        return [each for each in self.inlines if obj or each not in after_first_save]

    def zone_of(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        return zone_of_center(object_id)

    def save_formset(
        self,
        request: HttpRequest,
        form: ModelForm,
        formset: BaseInlineFormSet,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        super().save_formset(request, form, formset, change)
        if formset.model is models.Closure:
            for closure in (*formset.new_objects, *(row for row, _ in formset.changed_objects)):
                closure_saved.send(models.Closure, closure=closure, request=request)

    @admin.display(description="active rooms", ordering="active_rooms")
    def room_count(self, center: Any) -> int:
        return center.active_rooms

    @admin.display(description="opening hours as shown")
    def hours_told(self, center: models.Center) -> str:
        return (hours.concatenated(center.opening_hours.all()) if center.pk else "") or "-"

    @admin.display(description="text that searches read")
    def searched(self, center: models.Center) -> str:
        return center.search_text or "-"


def zone_of_center(pk: str | None) -> ZoneInfo | None:
    """The time zone of a center by its id as a page has it."""
    center = models.Center.objects.filter(pk=number(pk) or 0).first()
    return center.zone if center else None


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


@admin.register(models.Rate)
class RateAdmin(ModelAdmin):
    form = forms.RateForm
    fields = ("center", *forms.RateForm.Meta.fields, "is_meant_free")
    list_display = ("name", "center", "prices", "bill_in_blocks")
    list_filter = ("is_flat_rate", "bill_in_blocks")
    list_select_related = ("center",)
    search_fields = ("name", "center__name", "description")
    ordering = ("center__name", "name", "pk")
    autocomplete_fields = ("center",)

    @admin.display(empty_value="no price")
    def prices(self, rate: models.Rate) -> str | None:
        return rate.description_for_customers or None


@admin.register(models.Closure)
class ClosureAdmin(CenterClock, ModelAdmin):
    """Closures, on the clock of their center."""

    list_display = ("center", "room", "starts", "ends", "reason")
    list_filter = ("starts_at",)
    list_select_related = ("center", "room")
    search_fields = ("reason", "center__name", "center__city", "room__name")
    ordering = ("-starts_at", "pk")
    date_hierarchy = "starts_at"
    autocomplete_fields = ("center", "room")

    def zone_of(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        asked = request.POST.get("center") or request.GET.get("center")
        if asked:
            return zone_of_center(asked)
        closures = models.Closure.objects.select_related("center")
        closure = closures.filter(pk=number(object_id) or 0).first()
        return closure.center.zone if closure else None

    def save_model(
        self,
        request: HttpRequest,
        obj: models.Closure,
        form: ModelForm,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        super().save_model(request, obj, form, change)
        closure_saved.send(models.Closure, closure=obj, request=request)

    @admin.display(ordering="starts_at")
    def starts(self, closure: models.Closure) -> str:
        return f"{closure.starts_at.astimezone(closure.center.zone):%Y-%m-%d %H:%M %Z}"

    @admin.display(ordering="ends_at")
    def ends(self, closure: models.Closure) -> str:
        return f"{closure.ends_at.astimezone(closure.center.zone):%Y-%m-%d %H:%M %Z}"


@admin.register(models.OpeningHours)
class OpeningHoursAdmin(ModelAdmin):
    list_display = ("center", "weekday", "opens", "closes")
    list_filter = ("weekday",)
    list_select_related = ("center",)
    search_fields = ("center__name", "center__city")
    ordering = ("center__name", "weekday", "opens")
    autocomplete_fields = ("center",)


@admin.register(models.Neighborhood)
class NeighborhoodAdmin(ModelAdmin):
    list_display = ("name", "original_name", "city", "state")
    list_filter = ("state",)
    search_fields = ("name", "original_name", "city")
    ordering = ("state", "city", "name", "pk")


@admin.register(models.ResourceType)
class ResourceTypeAdmin(ModelAdmin):
    list_display = ("name", "is_service", "position", "internal")
    list_filter = ("is_service", "internal")
    search_fields = ("name",)
    ordering = ("is_service", "position", "name")


@admin.register(models.CenterImage)
class CenterImageAdmin(ModelAdmin):
    list_display = ("shown", "center", "position")
    list_select_related = ("center",)
    search_fields = ("center__name", "center__city")
    ordering = ("center__name", "position", "pk")
    autocomplete_fields = ("center",)
    fields = ("center", "image", "shown", "position")
    readonly_fields = ("shown",)

    @admin.display(description="preview")
    def shown(self, image: models.CenterImage) -> str:
        return preview(image.thumbnail)


@admin.register(models.Landmark)
class LandmarkAdmin(ModelAdmin):
    list_display = ("name", "type", "center")
    list_select_related = ("center",)
    search_fields = ("name", "center__name", "center__city")
    ordering = ("name", "pk")
    autocomplete_fields = ("center",)


@admin.register(models.Favorite)
class FavoriteAdmin(ModelAdmin):
    list_display = ("user", "center")
    list_select_related = ("user", "center")
    search_fields = ("user__email", "center__name")
    ordering = ("user__email", "center__name", "pk")
    autocomplete_fields = ("user", "center")
