"""Terms of cancellation: on the page of their center, and on their own page."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError

from accounts.admin.center_scope import CenterScopedInlineMixin
from centers import models
from centers.admin.common import (
    CENTER_ORDERING,
    CenterSearchMixin,
    FixedCenterMixin,
    NamedRowsFormSet,
)
from centers.models.terms import MAX_HOURS, MAX_STEPS, parse_steps
from centers.resources import TermsResource
from roombook.backoffice.concurrent_edits import ChangedFieldsForm
from roombook.backoffice.model_admin import ModelAdmin, StackedInline
from roombook.backoffice.widgets import INPUT_CLASSES
from roombook.imports.admin import ImportExportAdminMixin

LABELS = ("Hours before the start", "Percent that comes back")


class StepsWidget(forms.MultiWidget):
    """A row for each step: its hours and its percentage."""

    template_name = "centers/steps.html"

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        inputs = [
            forms.NumberInput({"class": INPUT_CLASSES, "aria-label": f"{label}, step {number}"})
            for number in range(1, MAX_STEPS + 1)
            for label in LABELS
        ]
        super().__init__(inputs, attrs)

    def decompress(self, value: str | None) -> list[int | None]:
        try:
            return [number for step in parse_steps(value or "") for number in step]
        except ValidationError:
            return []

    def get_context(self, *args: Any) -> dict[str, Any]:
        context = super().get_context(*args)
        inputs = context["widget"]["subwidgets"]
        context["steps"] = [*zip(inputs[::2], inputs[1::2], strict=True)]
        return context

    def id_for_label(self, id_: str) -> str:
        return f"{id_}_0" if id_ else id_


class StepsFormField(forms.MultiValueField):
    """Steps in any order. A row without both numbers is no step."""

    def __init__(self, **kwargs: Any) -> None:
        fields = [
            forms.IntegerField(min_value=least, max_value=most, required=False)
            for _ in range(MAX_STEPS)
            for least, most in ((0, MAX_HOURS), (1, 100))
        ]
        super().__init__(
            fields, require_all_fields=False, required=False, widget=StepsWidget, **kwargs
        )

    def compress(self, values: list[int | None]) -> str:
        steps = [*zip(values[::2], values[1::2], strict=True)]
        if any(step.count(None) == 1 for step in steps):
            raise ValidationError("A step has hours and a percentage.")
        entered = sorted((step for step in steps if None not in step), reverse=True)
        return "; ".join(f"{hours}: {percent}" for hours, percent in entered)


class TermsForm(ChangedFieldsForm):
    steps = StepsFormField(
        help_text="Without steps, nothing ever comes back. Customers read the steps as sentences."
    )

    class Meta:
        model = models.Terms
        fields = ("name", "steps", "grace_minutes", "no_show_percent", "change_hours")


FIELDS = ("name", "steps", ("grace_minutes", "no_show_percent", "change_hours"))


class TermsInline(CenterScopedInlineMixin, StackedInline):
    model = models.Terms
    form = TermsForm
    formset = NamedRowsFormSet
    fields = FIELDS
    extra = 0
    ordering = ("pk",)


@admin.register(models.Terms)
class TermsAdmin(ImportExportAdminMixin, CenterSearchMixin, FixedCenterMixin, ModelAdmin):
    resource_class = TermsResource
    form = TermsForm
    fields = ("center", *FIELDS)
    list_display = (
        *("name", "center", "steps", "grace_minutes", "no_show_percent", "change_hours"),
    )
    list_select_related = ("center",)
    search_fields = ("name",)
    search_help_text = "Name of the terms; name, address or neighborhood of their center"
    ordering = CENTER_ORDERING
    sortable_by = ()
    autocomplete_fields = ("center",)

    class Media:
        css = {"all": ["centers/centers.css"]}
