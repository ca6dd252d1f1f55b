"""Lists that all centers share: neighborhoods and types of rooms and services."""

from django.contrib import admin

from accounts.admin.center_scope import SharedRowsMixin
from centers import models
from roombook.backoffice.model_admin import ModelAdmin


@admin.register(models.Neighborhood)
class NeighborhoodAdmin(SharedRowsMixin, ModelAdmin):
    list_display = ("name", "original_name", "city", "state")
    search_fields = ("name", "original_name", "city", "state")
    ordering = ("state", "city", "name", "pk")


@admin.register(models.ResourceType)
class ResourceTypeAdmin(SharedRowsMixin, ModelAdmin):
    list_display = ("name", "is_service", "position", "internal")
    list_filter = ("is_service", "internal")
    search_fields = ("name",)
    ordering = ("is_service", "position", "name")
