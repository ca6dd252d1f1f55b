"""What belongs to a center, on its page."""

from django.contrib import admin

from centers import forms, models
from centers.admin.common import OfTheCenter, preview
from roombook.admin import TabularInline


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
