"""The history of a row, on a page of its own in the back office."""

from typing import Any

from auditlog.models import LogEntry
from django.contrib.admin.options import get_content_type_for_model
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.text import capfirst

from roombook.backoffice import audit_display, audit_log
from roombook.backoffice.typing_bases import ModelAdminBase

ENTRIES_PER_PAGE = 50


class HistoryPageMixin(ModelAdminBase):
    """A ModelAdmin whose rows tell who changed what of them, from what to what.

    It replaces Django's own log: what auditlog sees is there already, and what an action has to
    say beside it is written down with `log_change`. Stands before ModelAdmin among the bases.
    """

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined]  # Django's own
                request, self.opts, object_id
            )
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        paginator = self.paginator(self.get_history(request, row), ENTRIES_PER_PAGE)
        shown = paginator.get_page(request.GET.get("p"))
        context = {
            **self.admin_site.each_context(request),
            "title": f"History of {audit_log.get_object_name(row)}",
            "subtitle": None,
            "lines": audit_display.render_entries(shown.object_list),
            "shown": shown,
            "module_name": str(capfirst(self.opts.verbose_name_plural)),
            "object": row,
            "opts": self.opts,
            "preserved_filters": self.get_preserved_filters(request),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "office/history.html", context)

    def get_history(self, request: HttpRequest, row: Model) -> QuerySet[LogEntry]:
        """What may be told of a row here, the latest first; who looked at it is for others."""
        entries = LogEntry.objects.filter(
            content_type=get_content_type_for_model(row), object_id=row.pk
        )
        return (
            entries.exclude(action=LogEntry.Action.ACCESS)
            .select_related("actor", "content_type")
            .order_by("-timestamp", "-pk")
        )

    # Django's log of its own pages; what it returns there, nobody reads

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._note(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._note(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet) -> Any:
        pass

    def _note(self, request: HttpRequest, obj: Model, message: Any) -> None:
        """Words are kept; a list of the fields that a form changed says less than is known."""
        if isinstance(message, str) and message:
            audit_log.record_change(obj, {}, by=request.user, note=message)
