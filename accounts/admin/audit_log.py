"""The history of everything, for administrators and accountants: read, never written."""

import datetime as dt
from typing import Any

import auditlog.admin  # noqa: F401  (registers its own page, which ours replaces)
from auditlog.models import LogEntry
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import mark_safe
from unfold.contrib.filters.admin import RangeDateFilter

from accounts.admin.center_scope import AllCentersOnlyMixin
from accounts.models import User, canonicalize_email
from roombook import dates
from roombook.backoffice import audit_display
from roombook.backoffice.filters import AutocompleteFilter
from roombook.backoffice.model_admin import ModelAdmin, PageAnnotationsMixin, ReadOnlyMixin
from roombook.ids import parse_id

MAX_SUMMARY_LENGTH = 160

admin.site.unregister(LogEntry)


class TrackedModelFilter(admin.SimpleListFilter):
    """By what was changed. The kinds are few; which of them occur is not asked."""

    title = "what"
    parameter_name = "what"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        kept = sorted(
            audit_display.get_tracked_models(), key=lambda model: str(model._meta.verbose_name)
        )
        return [
            (model._meta.label_lower, str(model._meta.verbose_name).capitalize()) for model in kept
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if self.value() not in dict(self.lookup_choices):
            return queryset
        app, model = str(self.value()).split(".")
        return queryset.filter(content_type__app_label=app, content_type__model=model)


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyMixin, AllCentersOnlyMixin, PageAnnotationsMixin, ModelAdmin):
    list_display = ("when", "who", "did", "what", "told")
    list_display_links = ("when",)
    list_filter = (
        TrackedModelFilter,
        "action",
        ("actor", AutocompleteFilter),
        ("timestamp", RangeDateFilter),
    )
    list_filter_submit = True
    list_select_related = ("actor", "content_type")
    search_fields = ("=object_id",)
    search_help_text = "The number of a row, or the whole e-mail address of who did it."
    ordering = ("-timestamp", "-pk")
    sortable_by = ()
    fields = ("when", "who", "did", "what", "in_full", "remote_addr")
    readonly_fields = fields

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        words = search_term.strip()
        if not words:
            return queryset, False
        if (pk := parse_id(words.removeprefix("#"))) is not None:
            return queryset.filter(object_id=pk), False
        actors = User.objects.filter(email=canonicalize_email(words))
        return queryset.filter(actor__in=list(actors.values_list("pk", flat=True))), False

    def annotate_page(self, request: HttpRequest, rows: list[Any]) -> None:
        for row, line in zip(rows, audit_display.render_entries(rows), strict=True):
            row.line = line

    def _line(self, entry: Any) -> audit_display.RenderedEntry:
        if not hasattr(entry, "line"):
            entry.line = audit_display.render_entries([entry])[0]
        return entry.line

    @admin.display(description="when (UTC)")
    def when(self, entry: LogEntry) -> str:
        return f"{dates.format_datetime(entry.timestamp, dt.UTC)}:{entry.timestamp:%S}"

    @admin.display(description="who")
    def who(self, entry: LogEntry) -> str:
        return self._line(entry).who

    @admin.display(description="did")
    def did(self, entry: LogEntry) -> str:
        return self._line(entry).action

    @admin.display(description="what")
    def what(self, entry: LogEntry) -> str:
        kind = entry.content_type.name
        name = format_html("{}: {}", kind.capitalize(), entry.object_repr)
        try:
            page = f"admin:{entry.content_type.app_label}_{entry.content_type.model}_history"
            return format_html('<a href="{}">{}</a>', reverse(page, args=[entry.object_pk]), name)
        except NoReverseMatch:
            return name

    @admin.display(description="from what to what")
    def told(self, entry: LogEntry) -> str:
        words = self._line(entry).words
        return words if len(words) <= MAX_SUMMARY_LENGTH else f"{words[:MAX_SUMMARY_LENGTH]}…"

    @admin.display(description="from what to what")
    def in_full(self, entry: LogEntry) -> str:
        return mark_safe(render_to_string("office/history_line.html", {"line": self._line(entry)}))
