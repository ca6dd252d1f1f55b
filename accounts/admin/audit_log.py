"""The audit log of all tracked models, read-only, for administrators and accountants."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import mark_safe
from django.utils.text import Truncator

from accounts.admin.center_scope import AllCentersOnlyMixin, SharedTimeZoneMixin
from accounts.admin.date_range import DateRangeFilter
from accounts.models import User, canonicalize_email
from roombook import dates
from roombook.backoffice.audit_display import load_field_changes
from roombook.backoffice.audit_log import get_tracked_models
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin
from roombook.backoffice.models import AuditEntry
from roombook.backoffice.widgets import AutocompleteFilter
from roombook.ids import parse_id

MAX_SUMMARY_LENGTH = 160


class TrackedModelFilter(admin.SimpleListFilter):
    """Filters by the model of the row. Offers all tracked models, without a query."""

    title = "what"
    parameter_name = "what"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        tracked = [model._meta for model in get_tracked_models()]
        choices = [(opts.label_lower, str(opts.verbose_name).capitalize()) for opts in tracked]
        return sorted(choices, key=lambda choice: choice[1])

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if self.value() not in dict(self.lookup_choices):
            return queryset
        app, model = str(self.value()).split(".")
        return queryset.filter(content_type__app_label=app, content_type__model=model)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyMixin, AllCentersOnlyMixin, SharedTimeZoneMixin, ModelAdmin):
    list_display = ("when", "who", "action", "what", "summary")
    list_display_links = ("when",)
    list_filter = (
        TrackedModelFilter,
        "action",
        ("actor", AutocompleteFilter),
        ("timestamp", DateRangeFilter),
    )
    list_filter_submit = True
    list_select_related = ("actor", "content_type")
    search_fields = ("=object_id",)
    search_help_text = "The number of a row, or the complete e-mail address of who changed it."
    ordering = ("-timestamp", "-pk")
    sortable_by = ()
    fields = ("when", "who", "action", "what", "details", "network_address")
    readonly_fields = fields

    def search(self, request: HttpRequest, rows: QuerySet, words: str) -> QuerySet:
        if (pk := parse_id(words.removeprefix("#"))) is not None:
            return rows.filter(object_id=pk)
        actors = User.objects.filter(email=canonicalize_email(words))
        return rows.filter(actor__in=list(actors.values_list("pk", flat=True)))

    def annotate_page(self, request: HttpRequest, rows: list[Any]) -> None:
        load_field_changes(rows)

    def get_object(self, *args: Any, **kwargs: Any) -> AuditEntry | None:
        entry: AuditEntry | None = super().get_object(*args, **kwargs)
        load_field_changes(filter(None, [entry]))
        return entry

    @admin.display(description="when")
    def when(self, entry: AuditEntry) -> str:
        return dates.format_exact_datetime(entry.timestamp, timezone.get_current_timezone())

    @admin.display(description="who")
    def who(self, entry: AuditEntry) -> str:
        return entry.actor_name

    @admin.display(description="what")
    def what(self, entry: AuditEntry) -> str:
        kind = entry.content_type
        name = f"{kind.name.capitalize()}: {entry.object_name}"
        try:
            url = reverse(f"admin:{kind.app_label}_{kind.model}_history", args=[entry.object_id])
        except NoReverseMatch:
            return name
        return format_html('<a href="{}">{}</a>', url, name)

    @admin.display(description="changes")
    def summary(self, entry: AuditEntry) -> str:
        return Truncator(entry.summary).chars(MAX_SUMMARY_LENGTH)

    @admin.display(description="changes")
    def details(self, entry: AuditEntry) -> str:
        return mark_safe(render_to_string("backoffice/audit_entry.html", {"entry": entry}))
