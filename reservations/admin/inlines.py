"""Rows that are shown on the page of another, and not changed there."""

from roombook.backoffice.model_admin import ReadOnlyMixin, TabularInline


class ReadOnlyInline(ReadOnlyMixin, TabularInline):
    extra = 0
    can_delete = False
    classes = ("no-names",)
