"""The form of a center."""

from typing import Any

from django import forms

from roombook import places
from roombook.backoffice.concurrent_edits import ChangedFieldsForm


class CoordinatesForm(forms.Form):
    """A location on the map."""

    latitude = forms.FloatField(min_value=-90, max_value=90)
    longitude = forms.FloatField(min_value=-180, max_value=180)

    def find_time_zone(self) -> str:
        """The name of the time zone there; empty if it is unknown or the location is invalid."""
        if not self.is_valid():
            return ""
        return places.find_time_zone(self.cleaned_data["latitude"], self.cleaned_data["longitude"])


class CenterEditForm(ChangedFieldsForm):
    """A center. Without JavaScript too, moving it on the map changes its time zone."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        has_moved = {"latitude", "longitude"} & set(self.changed_data)
        if has_moved and "time_zone_id" not in self.changed_data:
            coordinates = {name: cleaned.get(name) for name in ("latitude", "longitude")}
            if time_zone := CoordinatesForm(coordinates).find_time_zone():
                cleaned["time_zone_id"] = time_zone
                self.changed_data.append("time_zone_id")
        return cleaned
