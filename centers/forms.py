"""Forms of the back office that know more than their model."""

from itertools import pairwise
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from centers.hours import MIDNIGHT
from centers.models import Rate

PRICES = ("flat_rate", "hourly", "half_day", "full_day")


class RateForm(forms.ModelForm):
    """A rate; a price of 0 is a gift, so it is asked for twice."""

    is_meant_free = forms.BooleanField(
        required=False,
        label="free is meant",
        help_text="Tick this if a price of 0 is right. An empty price is a tier not offered.",
    )

    class Meta:
        model = Rate
        fields = (
            *("name", "is_flat_rate", "flat_rate", "hourly", "half_day", "full_day"),
            *("setup_fee", "bill_in_blocks", "description"),
        )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        free = [name for name in PRICES if cleaned.get(name) == 0 and name in self.changed_data]
        if free and not cleaned.get("is_meant_free"):
            for name in free:
                self.add_error(name, "This makes it free. Leave it empty to not offer it.")
            self.add_error("is_meant_free", "Tick this if 0 is meant.")
        return cleaned


class OpeningHoursFormSet(forms.BaseInlineFormSet):
    """The week of a center: stretches of one day do not overlap."""

    def clean(self) -> None:
        super().clean()
        by_day: dict[int, list[tuple[Any, Any]]] = {}
        for form in self.forms:
            data = getattr(form, "cleaned_data", None) or {}
            if form in self.deleted_forms or not {"weekday", "opens", "closes"} <= data.keys():
                continue
            by_day.setdefault(data["weekday"], []).append((data["opens"], data["closes"]))
        for stretches in by_day.values():
            stretches.sort()
            for (_, closes), (opens, _) in pairwise(stretches):
                if closes == MIDNIGHT or opens < closes:
                    raise ValidationError("Opening hours of one day overlap.")
