"""The base classes of every page in the back office."""

from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db import connection, models
from django.db.models.constants import LOOKUP_SEP
from django.forms.models import BaseModelFormSet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst
from unfold import admin as unfold
from unfold.overrides import FORMFIELD_OVERRIDES_INLINE

from roombook.backoffice import audit_display, audit_log
from roombook.backoffice.concurrent_edits import ChangedFieldsForm, save_changed_fields
from roombook.backoffice.models import AuditAction, AuditEntry
from roombook.backoffice.pagination import (
    BackofficeChangeList,
    CappedPaginator,
    PaginatedInlineFormSet,
)
from roombook.backoffice.typing_bases import AnyAdminBase, InlineAdminBase, ModelAdminBase
from roombook.backoffice.widgets import FIELD_OVERRIDES, AutocompleteMixin
from roombook.ids import is_id, parse_id
from roombook.texts import clean_line

HISTORY_PAGE_SIZE = 50


class ModelAdmin(AutocompleteMixin, unfold.ModelAdmin, ModelAdminBase):
    """A list and a page of the back office, for tables of any size."""

    form: type[forms.ModelForm] = ChangedFieldsForm
    formfield_overrides = FIELD_OVERRIDES
    show_full_result_count = False
    paginator = CappedPaginator
    list_per_page = 50
    list_max_show_all = 0
    # Fields that the list does not show: a filter by one of them would reveal it bit by bit.
    secret_fields: frozenset[str] = frozenset()
    # Whether other code changes rows in ways that a form must not overwrite.
    is_locked_while_saved = False
    # Actions process their rows one by one.
    max_action_rows = 100
    # Django would list every protected row that prevents a deletion.
    max_protected_rows = 100

    def response_action(
        self, request: HttpRequest, queryset: models.QuerySet, *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Run an action, but only on a limited number of rows, and only on rows that were shown."""
        selected = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if not all(map(is_id, selected)):
            return _refuse_action(request, "The selection contains rows that do not exist.")
        # A confirmation page (Django's own submits `post`) submits the ids of the rows that it
        # showed. "Select all" could match other rows by then.
        if "confirmed" in request.POST or "post" in request.POST:
            queryset = queryset.filter(pk__in=selected)
        is_select_all = forms.BooleanField().to_python(request.POST.get("select_across"))
        limit = self.max_action_rows
        count = queryset.order_by()[: limit + 1].count() if is_select_all else len(selected)
        if count > limit:
            return _refuse_action(
                request,
                f"An action can change at most {limit} rows at a time. Search or filter the list"
                " for fewer rows, or select one page at a time.",
            )
        return super().response_action(request, queryset, *args, **kwargs)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return the rows that are deleted too, or the first rows that prevent the deletion."""
        for relation in self.opts.related_objects:
            if relation.on_delete is not models.PROTECT:
                continue
            rows = relation.related_model._default_manager.filter(
                **{f"{relation.field.name}__in": objs}
            )
            found = list(rows.order_by("pk")[: self.max_protected_rows + 1])
            if len(found) > self.max_protected_rows:
                return [], {}, set(), [*map(str, found[:-1]), "and more"]
        return super().get_deleted_objects(objs, request)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        if self.secret_fields.intersection(lookup.split(LOOKUP_SEP)):
            return False
        return super().lookup_allowed(lookup, value, request)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BackofficeChangeList]:
        return BackofficeChangeList

    # --- Saving

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        if self.is_locked_while_saved and request.method == "POST" and connection.in_atomic_block:
            # NO KEY, so that other transactions can still insert rows that refer to this one.
            rows = self.model._default_manager.select_for_update(no_key=True)
            list(rows.filter(pk=parse_id(object_id) or 0))
        return super().get_object(request, object_id, from_field)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        """Save only the columns that were edited.

        Django would overwrite others, such as counters or a password, with the values that they had
        when the row was loaded.
        """
        if change:
            save_changed_fields(obj, form.changed_data)
        else:
            super().save_model(request, obj, form, change)

    def annotate_page(self, request: HttpRequest, rows: list[Any]) -> None:
        """Set on the rows of a page of the list what their columns show.

        An annotated queryset would compute it for every row of the table in order to show fifty.
        """

    # --- The search of the list, which is also that in the head of every page

    def search(
        self, request: HttpRequest, rows: models.QuerySet, words: str
    ) -> models.QuerySet | None:
        """Return the rows that match the words, or None to search `search_fields` as Django does.

        Without `search_fields`, there is no search box.
        """
        return None

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet, search_term: str
    ) -> tuple[models.QuerySet, bool]:
        if not (words := clean_line(search_term)):
            return queryset, False
        found = self.search(request, queryset, words)
        if found is not None:
            return found, False
        return super().get_search_results(request, queryset, search_term)

    result_icon = "data_object"

    def get_result_title(self, row: Any) -> str:
        return getattr(row, "full_name", "") or str(row)

    def get_result_description(self, row: Any) -> str:
        return str(capfirst(self.opts.verbose_name))

    # --- Lists that can be edited

    def get_changelist_form(self, request: HttpRequest, **kwargs: Any) -> type[forms.ModelForm]:
        return super().get_changelist_form(request, **{"form": self.form, **kwargs})

    def get_changelist_formset(self, request: HttpRequest, **kwargs: Any) -> type[BaseModelFormSet]:
        return _label_fields(super().get_changelist_formset(request, **kwargs))

    # --- The history page of a row: its audit log instead of Django's log of admin actions

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return redirect_not_found(request)
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        paginator = self.paginator(self.get_history(request, row), HISTORY_PAGE_SIZE)
        page = paginator.get_page(request.GET.get("p"))
        context = {
            **self.admin_site.each_context(request),
            "title": f"History of {audit_log.get_object_name(row)}",
            "subtitle": None,
            "entries": audit_display.load_field_changes(page.object_list),
            "page": page,
            "module_name": str(capfirst(self.opts.verbose_name_plural)),
            "object": row,
            "opts": self.opts,
            "preserved_filters": self.get_preserved_filters(request),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "backoffice/history.html", context)

    def get_history(self, request: HttpRequest, row: models.Model) -> models.QuerySet[AuditEntry]:
        """Show the changes of a row, the latest first; only the audit log shows views."""
        content_type = ContentType.objects.get_for_model(row)
        entries = AuditEntry.objects.filter(content_type=content_type, object_id=row.pk)
        return (
            entries.exclude(action=AuditAction.VIEW)
            .select_related("actor", "content_type")
            .order_by("-timestamp", "-pk")
        )

    # Django calls these to log admin actions, and ignores what they return.

    def log_addition(self, request: HttpRequest, obj: models.Model, message: Any) -> Any:
        self._record_note(request, obj, message)

    def log_change(self, request: HttpRequest, obj: models.Model, message: Any) -> Any:
        self._record_note(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: models.QuerySet) -> Any:
        pass

    def _record_note(self, request: HttpRequest, obj: models.Model, message: Any) -> None:
        """Record text. Lists of changed fields are ignored: signals have recorded more already."""
        if isinstance(message, str) and message:
            audit_log.record_change(obj, {}, by=request.user, note=message)


def is_fragment_request(request: HttpRequest) -> bool:
    """Whether a script of the back office asks for a part of a page."""
    return request.headers.get("X-Requested-With") == "fetch"


def redirect_not_found(request: HttpRequest) -> HttpResponse:
    """Return the response for a row that does not exist, or that the user may not view."""
    messages.warning(request, "Not found.")
    return HttpResponseRedirect(reverse("admin:index"))


def _refuse_action(request: HttpRequest, reason: str) -> HttpResponse:
    messages.error(request, f"{reason} Nothing was changed.")
    return HttpResponseRedirect(request.get_full_path())


def _label_fields(formset: type[BaseModelFormSet]) -> type[BaseModelFormSet]:
    """Name the fields of rows that have no labels. The time after a day has a name of its own."""
    for field in formset.form.base_fields.values():
        widget = getattr(field.widget, "widgets", [field.widget])[0]
        widget.attrs.setdefault("aria-label", str(field.label))
    return formset


class InlineMixin(AutocompleteMixin, InlineAdminBase):
    form = ChangedFieldsForm
    formset = PaginatedInlineFormSet
    formfield_overrides = FORMFIELD_OVERRIDES_INLINE | FIELD_OVERRIDES


class TabularInline(InlineMixin, unfold.TabularInline):
    """Rows of another table, a line each."""

    def get_formset(self, *args: Any, **kwargs: Any) -> Any:
        return _label_fields(super().get_formset(*args, **kwargs))


class StackedInline(InlineMixin, unfold.StackedInline):
    """Rows of another table, a block each."""


# --- Mixins: put them before ModelAdmin among the bases ------------------------------------------


class LocalTimeMixin(ModelAdminBase):
    """Shows and reads the times on a page, and those of its history, in a local time zone."""

    def get_time_zone(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        """The time zone of a row, usually that of its center; None means UTC."""
        raise NotImplementedError

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        # Not `override`: the response is rendered later. The middleware resets it.
        timezone.activate(self.get_time_zone(request, object_id) or "UTC")
        return super().changeform_view(request, object_id, *args, **kwargs)

    def history_view(self, request: HttpRequest, object_id: str, *args: Any) -> HttpResponse:
        timezone.activate(self.get_time_zone(request, object_id) or "UTC")
        return super().history_view(request, object_id, *args)


class ReadOnlyMixin(AnyAdminBase):
    """A page without permission to add, change or delete rows in the back office."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
