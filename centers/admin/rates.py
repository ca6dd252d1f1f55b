"""Rates."""

from django.contrib import admin

from centers import forms, models
from roombook.admin import ModelAdmin


@admin.register(models.Rate)
class RateAdmin(ModelAdmin):
    form = forms.RateForm
    fields = ("center", *forms.RateForm.Meta.fields, "is_meant_free")
    list_display = ("name", "center", "prices", "bill_in_blocks")
    list_filter = ("is_flat_rate", "bill_in_blocks")
    list_select_related = ("center",)
    search_fields = ("name", "center__name", "description")
    ordering = ("center__name", "name", "pk")
    autocomplete_fields = ("center",)

    @admin.display(empty_value="no price")
    def prices(self, rate: models.Rate) -> str | None:
        return rate.description_for_customers or None
