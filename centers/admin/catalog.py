"""What centers are sorted by, and small rows by themselves."""

from django.contrib import admin

from centers import models
from centers.admin.common import preview
from roombook.admin import ModelAdmin


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
