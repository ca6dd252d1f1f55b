"""The form of a center."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget

from centers.admin.closure_forms import SeenEffectsForm
from centers.closure_effects import KEPT_TIMES, KEPT_TIMES_CHOICES, ClosureEffects
from roombook import places


class CoordinatesForm(forms.Form):
    """A location on the map."""

    latitude = forms.FloatField(min_value=-90, max_value=90)
    longitude = forms.FloatField(min_value=-180, max_value=180)

    def find_time_zone(self) -> str:
        """The name of the time zone there; empty if it is unknown or the location is invalid."""
        if not self.is_valid():
            return ""
        return places.find_time_zone(self.cleaned_data["latitude"], self.cleaned_data["longitude"])


class CenterEditForm(SeenEffectsForm):
    """A center. Without JavaScript too, moving it on the map changes its time zone."""

    keeps_instants = forms.ChoiceField(
        label=KEPT_TIMES,
        choices=KEPT_TIMES_CHOICES,
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="Customers whose booking moves get an e-mail.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.former_zone = self.instance.time_zone_id

    def find_effects(self, cleaned: dict[str, Any]) -> ClosureEffects | None:
        has_moved = {"latitude", "longitude"} & set(self.changed_data)
        if has_moved and "time_zone_id" not in self.changed_data:
            coordinates = {name: cleaned.get(name) for name in ("latitude", "longitude")}
            if time_zone := CoordinatesForm(coordinates).find_time_zone():
                cleaned["time_zone_id"] = time_zone
                self.changed_data.append("time_zone_id")
        return super().find_effects(cleaned)
