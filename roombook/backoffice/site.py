"""The back office as a site: its front page, its side bar, who may come in."""

from functools import partial
from typing import Any

from django.contrib.admin.apps import AdminConfig
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from django.http.response import HttpResponseBase
from django.templatetags.static import static
from django.urls import reverse
from unfold.sites import UnfoldAdminSite


class BackofficeAdminConfig(AdminConfig):
    """Django's admin with our site as `admin.site`."""

    default_site = "roombook.backoffice.site.BackofficeSite"


class AutocompleteView(AutocompleteJsonView):
    """What a box that finds by typing offers: rows that many places have are told with theirs."""

    def get_queryset(self) -> QuerySet:
        related = getattr(self.model_admin, "list_select_related", None)
        rows: QuerySet = super().get_queryset()
        return rows.select_related(*related) if isinstance(related, tuple) else rows

    def serialize_result(self, obj: Model, to_field_name: str) -> dict[str, str]:
        told = super().serialize_result(obj, to_field_name)
        return {**told, "text": getattr(obj, "full_name", "") or told["text"]}


class BackofficeSite(UnfoldAdminSite):
    """The site under /admin/; settings.UNFOLD says how it looks."""

    index_title = "Today"

    def autocomplete_view(self, request: HttpRequest) -> HttpResponseBase:
        return AutocompleteView.as_view(admin_site=self)(request)

    def search(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The theme's own search stumbles over what is not a number; each list has its own."""
        return HttpResponseNotFound()

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The theme's page, with the limit of failed sign-ins on what is typed as old password."""
        from django.contrib.auth.views import PasswordChangeView

        from accounts.forms import OwnPasswordChangeForm
        from roombook.middleware import get_client_address

        request.current_app = self.name
        view = PasswordChangeView.as_view(
            form_class=partial(OwnPasswordChangeForm, network_address=get_client_address(request)),
            success_url=reverse(f"{self.name}:password_change_done"),
            extra_context={**self.each_context(request), **(extra_context or {})},
        )
        response: HttpResponse = view(request)  # type: ignore[assignment]
        return response


# Files of ours on every page; settings.UNFOLD names these.


def get_icon_url(request: HttpRequest) -> str:
    return static("roombook/icon.svg")


def get_stylesheet_url(request: HttpRequest) -> str:
    return static("roombook/office.css")


def get_script_url(request: HttpRequest) -> str:
    return static("roombook/live.js")
