"""What centers are sorted by, and small rows by themselves."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from accounts.admin.center_scope import CenterScopedMixin, SharedRowsMixin
from centers import models
from centers.admin.common import CENTER_ORDERING, render_thumbnail, search_rows_and_centers
from roombook.backoffice.concurrent_edits import ChangedFieldsForm
from roombook.backoffice.model_admin import ModelAdmin


class CenterRelatedAdmin(CenterScopedMixin, ModelAdmin):
    """Rows of centers that are mostly edited on the page of their center."""

    form = ChangedFieldsForm
    list_select_related = ("center",)
    sortable_by = ()
    search_help_text = "Name, address, neighborhood of the center."
    search_fields = ("center__name",)
    autocomplete_fields = ("center",)
    # A column that words of a search may be found in, beside those of the center.
    name_field = "center__name"

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return search_rows_and_centers(queryset, search_term, column=self.name_field), False


@admin.register(models.OpeningHours)
class OpeningHoursAdmin(CenterRelatedAdmin):
    list_display = ("center", "weekday", "opens", "closes")
    list_filter = ("weekday",)
    ordering = ("center_id", "weekday", "opens")


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
    list_display = ("shown", "center", "position")
    ordering = ("center_id", "position", "pk")
    fields = ("center", "image", "shown", "position")
    readonly_fields = ("shown",)

    @admin.display(description="preview")
    def shown(self, image: models.CenterImage) -> str:
        return render_thumbnail(image.thumbnail)


@admin.register(models.Landmark)
class LandmarkAdmin(CenterRelatedAdmin):
    list_display = ("name", "type", "center")
    ordering = CENTER_ORDERING
    name_field = "name"


@admin.register(models.Favorite)
class FavoriteAdmin(CenterScopedMixin, ModelAdmin):
    list_display = ("user", "center")
    list_select_related = ("user", "center")
    search_fields = ("user__email",)
    search_help_text = "E-mail address of the customer."
    ordering = ("-pk",)
    autocomplete_fields = ("user", "center")
