"""The back office as a site: its front page, its side bar, who may come in."""

from typing import Any

from django.contrib.admin.apps import AdminConfig
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from django.templatetags.static import static
from unfold.sites import UnfoldAdminSite


class BackOfficeConfig(AdminConfig):
    """Django's admin with our site as `admin.site`."""

    default_site = "roombook.site.BackOffice"


class BackOffice(UnfoldAdminSite):
    """The site under /admin/; settings.UNFOLD says how it looks."""

    index_title = "Today"

    def search(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The theme's own search stumbles over what is not a number; each list has its own."""
        return HttpResponseNotFound()


# Files of ours on every page; settings.UNFOLD names these.


def icon(request: HttpRequest) -> str:
    return static("roombook/icon.svg")


def styles(request: HttpRequest) -> str:
    return static("roombook/office.css")


def script(request: HttpRequest) -> str:
    return static("roombook/live.js")
