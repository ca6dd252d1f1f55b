"""What the back office's pages have in common."""

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.widgets import AutocompleteSelect, AutocompleteSelectMultiple
from django.core.exceptions import ValidationError
from django.core.paginator import Page, Paginator
from django.db import connection, models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.functional import cached_property
from unfold import admin as unfold
from unfold.forms import PaginationInlineFormSet
from unfold.overrides import FORMFIELD_OVERRIDES_INLINE
from unfold.views import ChangeList as UnfoldChangeList
from unfold.widgets import BASE_INPUT_CLASSES

from roombook.backoffice.audit_page import HistoryPageMixin
from roombook.backoffice.typing_bases import AnyAdminBase, InlineAdminBase, ModelAdminBase
from roombook.ids import parse_id

# Boxes that find rows by typing


class SelectedIdsMixin:
    """Shows a row that is chosen already; words where an id should be are no choice.

    Django would ask the database for them, and crash.
    """

    def optgroups(self, name: str, value: Sequence[str], attr: Any = None) -> Any:
        ids = [each for each in value if parse_id(str(each)) is not None]
        return super().optgroups(name, ids, attr)  # type: ignore[misc]


class AutocompleteWidget(SelectedIdsMixin, AutocompleteSelect):
    """A box for one row."""


class AutocompleteMultipleWidget(SelectedIdsMixin, AutocompleteSelectMultiple):
    """A box for several rows."""


class AutocompleteMultipleField(forms.ModelMultipleChoiceField):
    """Ids of rows; nonsense is told, and never reaches the database.

    Django asks it for numbers that no column holds, and crashes (a single row it asks for safely).
    """

    def __init__(self, queryset: Any, *, max_rows: int | None = None, **kwargs: Any) -> None:
        super().__init__(queryset, **kwargs)
        self.most = max_rows

    def clean(self, value: Any) -> Any:
        ids = [each for each in self.prepare_value(value or ()) if each != ""]
        if self.most is not None and len(ids) > self.most:
            raise ValidationError(f"Choose at most {self.most}.")
        for each in ids:
            if parse_id(str(each)) is None:
                raise ValidationError(f"“{str(each)[:40]}” is no choice.")
        return super().clean(ids)


class AutocompleteMixin(AnyAdminBase):
    """`autocomplete_fields` that take any nonsense that is sent to them."""

    def formfield_for_foreignkey(
        self, db_field: models.ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField | None:
        return super().formfield_for_foreignkey(
            db_field, request, **self._box(AutocompleteWidget, db_field, request), **kwargs
        )

    def formfield_for_manytomany(
        self, db_field: models.ManyToManyField, request: HttpRequest, **kwargs: Any
    ) -> forms.ModelMultipleChoiceField | None:
        return super().formfield_for_manytomany(
            *(db_field, request),
            **{
                "form_class": AutocompleteMultipleField,
                **self._box(AutocompleteMultipleWidget, db_field, request),
                **kwargs,
            },
        )

    def _box(self, box: type, db_field: models.Field, request: HttpRequest) -> dict[str, Any]:
        if db_field.name not in self.get_autocomplete_fields(request):
            return {}
        return {"widget": box(db_field, self.admin_site)}


# Days and times


INPUT_CLASSES = " ".join(BASE_INPUT_CLASSES)


class NativeDateInput(forms.DateInput):
    """A day, by the browser's own means."""

    input_type = "date"

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        # A year of five digits is a slip that browsers allow.
        attrs = {"class": INPUT_CLASSES, "max": "9999-12-31", **(attrs or {})}
        super().__init__(attrs, format="%Y-%m-%d")


class NativeTimeInput(forms.TimeInput):
    """A time of day, by the browser's own means."""

    input_type = "time"

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({"class": INPUT_CLASSES, **(attrs or {})}, format="%H:%M:%S")


class NativeDateTimeInput(forms.SplitDateTimeWidget):
    """A day and a time, by the browser's own means."""

    template_name = "office/moment.html"

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        forms.MultiWidget.__init__(self, [NativeDateInput(), NativeTimeInput()], attrs)


# Not Django's boxes with their shortcuts, which are the browser's today and now, and which tell
# how far the browser's clock is from UTC where the page shows a center's.
DATE_AND_TIME_OVERRIDES: dict[type[models.Field], dict[str, Any]] = {
    models.DateTimeField: {"widget": NativeDateTimeInput},
    models.DateField: {"widget": NativeDateInput},
    models.TimeField: {"widget": NativeTimeInput},
}


# Pages


class CappedPaginator(Paginator):
    """Pages of the first rows only: to count a million of them takes longer than to read a page.

    Who looks for something further down searches or filters.
    """

    MOST = 5_000

    @cached_property
    def _counted(self) -> Any:
        """The rows, or the ids of as many as are counted."""
        rows = self.object_list
        if not isinstance(rows, models.QuerySet):
            return rows
        return list(rows.order_by().values_list("pk", flat=True)[: self.MOST])

    @cached_property
    def count(self) -> int:
        return len(self._counted)

    def page(self, number: int | str) -> Page:
        """Where the ids are all there are, rows are read by them: those of a few centers among a
        million are sooner sorted than met with on the way through an index by time."""
        rows = self.object_list
        if isinstance(rows, models.QuerySet) and not self.is_capped:
            self.object_list = rows.filter(pk__in=self._counted)
        return super().page(number)

    @property
    def is_capped(self) -> bool:
        return self.count >= self.MOST


class BackofficeChangeList(UnfoldChangeList):
    """A list that says how many it found where somebody searched or filtered, and only there."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not (self.query or self.filter_params):
            self.full_result_count = self.result_count


class ModelAdmin(HistoryPageMixin, AutocompleteMixin, unfold.ModelAdmin):
    """A list and a page of the back office, for tables of any size."""

    formfield_overrides = DATE_AND_TIME_OVERRIDES
    show_full_result_count = False
    paginator = CappedPaginator
    list_per_page = 50
    list_max_show_all = 0
    # Rows that one action takes: it goes through them one by one.
    max_action_rows = 100
    # Rows that stand in the way of a deletion and are told; Django tells them all.
    max_protected_rows = 100

    def response_action(  # type: ignore[override]  # the stubs are of a later Django
        self, request: HttpRequest, queryset: models.QuerySet
    ) -> HttpResponse | None:
        """An action acts on rows of the list, on not too many, and on those only that it showed."""
        ticked = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if not self._are_row_ids(ticked):
            return _refuse_action(request, "What was ticked is no row of this list.")
        # Confirmed (Django's own page sends `post`) is what was shown, and that is ticked: "all" of
        # the list may be other rows by now.
        if "confirmed" in request.POST or "post" in request.POST:
            queryset = queryset.filter(pk__in=ticked)
        # As Django reads it.
        is_all = forms.BooleanField().to_python(request.POST.get("select_across"))
        most = self.max_action_rows
        if (queryset.order_by()[: most + 1].count() if is_all else len(ticked)) > most:
            return _refuse_action(
                request,
                f"More than {most} rows are too many for one go: search or filter the list for"
                " fewer, or go page by page.",
            )
        return super().response_action(request, queryset)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What goes with rows that are deleted; where very many stand in the way, the first."""
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

    def _are_row_ids(self, ticked: list[str]) -> bool:
        """Django would ask the database for words too, and crash."""
        lowest, highest = connection.ops.integer_field_range(self.opts.pk.get_internal_type())
        return all(
            each.isascii()
            and each.isdigit()
            and len(each) <= len(str(highest))
            and lowest <= int(each) <= highest
            for each in ticked
        )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BackofficeChangeList]:
        return BackofficeChangeList


def _refuse_action(request: HttpRequest, why: str) -> HttpResponse:
    messages.error(request, f"{why} Nothing was done.")
    return HttpResponseRedirect(request.get_full_path())


class PageAnnotationsMixin(ModelAdminBase):
    """A ModelAdmin that reads more about the rows of a list, once for all that a page shows.

    What a query would have to count for every row of the table, to show fifty of them. Stands
    before ModelAdmin among the bases.
    """

    def annotate_page(self, request: HttpRequest, rows: list[Any]) -> None:
        """Set on each row what its columns show."""
        raise NotImplementedError

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type:
        listed = super().get_changelist(request, **kwargs)
        reader = self

        class PageRead(listed):  # type: ignore[valid-type, misc]
            def get_results(self, request: HttpRequest) -> None:
                super().get_results(request)
                # Read into the queryset's own cache: forms of a list want a queryset.
                reader.annotate_page(request, list(self.result_list))

        return PageRead


class PaginatedInlineFormSet(PaginationInlineFormSet):
    """The rows of an inline, page by page where it has `per_page`."""

    def get_page_num(self) -> int:
        # The theme stumbles over digits that are no numbers.
        key = self.get_pagination_key()
        asked = self.request and (self.request.GET.get(key) or self.request.POST.get(key))
        return parse_id(asked) or 1


class TabularInline(AutocompleteMixin, unfold.TabularInline, InlineAdminBase):
    formset = PaginatedInlineFormSet
    formfield_overrides = FORMFIELD_OVERRIDES_INLINE | DATE_AND_TIME_OVERRIDES


class StackedInline(AutocompleteMixin, unfold.StackedInline, InlineAdminBase):
    formset = PaginatedInlineFormSet
    formfield_overrides = FORMFIELD_OVERRIDES_INLINE | DATE_AND_TIME_OVERRIDES


class CenterTimeZoneMixin(ModelAdminBase):
    """A ModelAdmin whose change page shows and takes times on the clock of the row's center.

    Stands before ModelAdmin among the bases; `zone_of` says which clock.
    """

    def get_time_zone(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        """The time zone of the center in question, None where it is not known yet (UTC then)."""
        raise NotImplementedError

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        zone = self.get_time_zone(request, object_id)
        with timezone.override(zone or timezone.get_current_timezone()):
            response = super().changeform_view(request, object_id, form_url, extra_context)
            # A template is filled in after the view: too late for the clock.
            if hasattr(response, "render"):
                response.render()
        return response


class ReadOnlyMixin(AnyAdminBase):
    """Nothing is added, changed or deleted by hand."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class SaveChangedFieldsMixin(ModelAdminBase):
    """A ModelAdmin that writes only the columns that were typed into.

    What else stands in the row (counters, a password) may have moved while the page was open, and
    Django would write it back as it was. Stands before ModelAdmin among the bases.
    """

    def save_model(
        self,
        request: HttpRequest,
        obj: Any,
        form: Any,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        if not change:
            super().save_model(request, obj, form, change)
            return
        columns = {field.name for field in obj._meta.concrete_fields}
        obj.save(update_fields=[name for name in form.changed_data if name in columns])
