"""Pages of the back office that are not those of a model."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, path


class BackofficePages:
    """Views for staff, under the URL of a ModelAdmin that adds their `urls` to its own."""

    # The path, the method, the name of the URL and, if there are any, the method's arguments.
    pages: ClassVar[tuple[tuple[Any, ...], ...]]

    def __init__(self, site: AdminSite) -> None:
        self.site = site

    def urls(self) -> list[URLPattern]:
        view = self.site.admin_view
        return [
            path(route, view(getattr(self, method)), dict(*arguments), name)
            for route, method, name, *arguments in self.pages
        ]

    def render(
        self, request: HttpRequest, template: str, context: Mapping[str, Any], *, status: int = 200
    ) -> TemplateResponse:
        """Render a page with the menu; ``context`` has at least its title."""
        page = {**self.site.each_context(request), **context}
        return TemplateResponse(request, template, page, status=status)
