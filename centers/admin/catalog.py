"""Lists of small rows: opening hours, pictures, landmarks, favorites, neighborhoods and types."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.admin.center_scope import CenterScopedMixin, SharedRowsMixin
from accounts.customer_access import get_staff_filter
from centers import models
from centers.admin.closure_forms import OpeningHoursRowForm
from centers.admin.common import CENTER_ORDERING, CenterSearchMixin, render_thumbnail
from centers.closure_effects import find_effects_of_hours
from roombook.backoffice.model_admin import ModelAdmin


class CenterRelatedAdmin(CenterSearchMixin, CenterScopedMixin, ModelAdmin):
    """Rows of centers, which are mostly edited on the page of their center."""

    list_select_related = ("center",)
    sortable_by = ()
    search_help_text = "Name, address or neighborhood of the center"
    search_fields = ("center__name",)
    search_column = "center__name"
    autocomplete_fields = ("center",)


@admin.register(models.OpeningHours)
class OpeningHoursAdmin(CenterRelatedAdmin):
    form = OpeningHoursRowForm
    list_display = ("center", "weekday", "opens", "closes")
    list_filter = ("weekday",)
    ordering = ("center_id", "weekday", "opens")

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name the bookings that would be outside the hours too: of a page, and of the action."""
        deleted, *others = super().get_deleted_objects(objs, request)
        for center in models.Center.objects.filter(opening_hours__in=objs).distinct():
            week = center.opening_hours.exclude(pk__in=[each.pk for each in objs])
            if effects := find_effects_of_hours(center, list(week)):
                deleted.append(effects.html)
        return deleted, *others


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


@admin.register(models.CenterImage)
class CenterImageAdmin(CenterRelatedAdmin):
    list_display = ("preview", "center", "position")
    ordering = ("center_id", "position", "pk")
    fields = ("center", "image", "preview", "position")
    readonly_fields = ("preview",)

    @admin.display
    def preview(self, image: models.CenterImage) -> str:
        return render_thumbnail(image.thumbnail)


@admin.register(models.Landmark)
class LandmarkAdmin(CenterRelatedAdmin):
    list_display = ("name", "type", "center")
    ordering = CENTER_ORDERING
    search_column = "name"


@admin.register(models.Favorite)
class FavoriteAdmin(CenterScopedMixin, ModelAdmin):
    list_display = ("user", "center")
    list_select_related = ("user", "center")
    search_fields = ("user__email",)
    search_help_text = "E-mail address of the customer"
    ordering = ("-pk",)
    autocomplete_fields = ("user", "center")

    def get_queryset(self, request: HttpRequest) -> QuerySet[models.Favorite]:
        rows = super().get_queryset(request)
        return rows.filter(get_staff_filter(request.user, "user"))
