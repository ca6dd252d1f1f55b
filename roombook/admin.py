"""What the back office's pages have in common."""

from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

admin.site.site_header = admin.site.site_title = "roombook"
admin.site.index_title = "Back office"


class CenterClock:
    """A ModelAdmin whose change page shows and takes times on the clock of the row's center.

    Stands before ModelAdmin among the bases; `zone_of` says which clock.
    """

    def zone_of(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        """The time zone of the center in question, None where it is not known yet (UTC then)."""
        raise NotImplementedError

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        zone = self.zone_of(request, object_id)
        with timezone.override(zone or timezone.get_current_timezone()):
            response = super().changeform_view(  # type: ignore[misc]
                request, object_id, form_url, extra_context
            )
            # A template is filled in after the view: too late for the clock.
            if hasattr(response, "render"):
                response.render()
        return response


class ReadOnly:
    """Nothing is added, changed or deleted by hand."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
