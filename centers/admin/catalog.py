"""Lists that all centers share: neighborhoods and types of rooms and services."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from accounts.admin.center_scope import SharedRowsMixin
from centers import models
from centers.resources import TypeResource
from roombook.backoffice.model_admin import ModelAdmin
from roombook.imports.admin import ImportExportAdminMixin

# What most centers have: whether it is a type of service, by its name.
SAMPLE_TYPES = {"Meeting room": False, "Training room": False, "Catering and equipment": True}


@admin.register(models.Neighborhood)
class NeighborhoodAdmin(SharedRowsMixin, ModelAdmin):
    list_display = ("name", "original_name", "city", "state")
    search_fields = ("name", "original_name", "city", "state")
    ordering = ("state", "city", "name", "pk")


@admin.register(models.ResourceType)
class ResourceTypeAdmin(ImportExportAdminMixin, SharedRowsMixin, ModelAdmin):
    resource_class = TypeResource
    list_display = ("name", "is_service", "position", "internal")
    list_filter = ("is_service", "internal")
    search_fields = ("name",)
    ordering = ("is_service", "position", "name")

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """From the page of a service, it is a type of services."""
        is_service = "/centers/service/" in request.headers.get("Referer", "")
        return {"is_service": is_service, **super().get_changeform_initial_data(request)}

    def get_urls(self) -> list[URLPattern]:
        view = require_POST(self.admin_site.admin_view(self.samples_view))
        return [path("samples/", view, name="centers_resourcetype_samples"), *super().get_urls()]

    def samples_view(self, request: HttpRequest) -> HttpResponse:
        """Add the usual types, unless there are some already."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        if models.ResourceType.objects.exists():
            self.message_user(request, "There are types already.")
        else:
            for position, (name, is_service) in enumerate(SAMPLE_TYPES.items()):
                models.ResourceType.objects.create(
                    name=name, is_service=is_service, position=position
                )
            self.message_user(request, f"Added: {', '.join(SAMPLE_TYPES)}.")
        return redirect("admin:index")
