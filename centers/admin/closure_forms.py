"""Forms that show what a closure, a center or a room affects before it is saved."""

from copy import copy
from typing import Any

from django import forms
from django.utils.datastructures import MultiValueDict
from django.utils.html import format_html

from centers.closure_effects import (
    ClosureEffects,
    find_effects,
    find_effects_of_hours,
    find_effects_of_settings,
)
from centers.hours import find_overlapping_days
from centers.models import Closure, OpeningHours
from roombook.backoffice.concurrent_edits import ChangedFieldsForm

AFFECTING_FIELDS = {"center", "room", "starts_at", "ends_at"}


class SeenEffectsForm(ChangedFieldsForm):
    """Saved only when its effects were displayed, that is by submitting it a second time."""

    # The key of the effects that were displayed. It is part of the message that displays them,
    # because lists that can be edited render no hidden fields.
    seen_effects = forms.CharField(required=False, widget=forms.HiddenInput)
    verb = "change it"

    def find_effects(self, cleaned: dict[str, Any]) -> ClosureEffects | None:
        """By default those of the settings of a center or a room that is stored already."""
        if self.instance._state.adding:
            return None
        planned = copy(self.instance)
        for name in (changed := cleaned.keys() & set(self.changed_data)):
            setattr(planned, name, cleaned[name])
        return find_effects_of_settings(planned, changed)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        effects = None if self.errors else self.find_effects(cleaned)
        if effects is not None and effects.key != cleaned.get("seen_effects"):
            assert isinstance(self.data, MultiValueDict)
            self.data = self.data.copy()
            self.data[self.add_prefix("seen_effects")] = effects.key
            text = "{} Nothing is saved yet: save again to {}.{}"
            html = format_html(text, effects.html, self.verb, self["seen_effects"])
            self.add_error(None, html)
        return cleaned


class ClosureForm(SeenEffectsForm):
    """A closure."""

    verb = "close"

    def find_effects(self, cleaned: dict[str, Any]) -> ClosureEffects | None:
        if not AFFECTING_FIELDS & set(self.changed_data):
            return None
        closure = Closure(
            center=cleaned.get("center") or self.instance.center,
            **{name: cleaned.get(name) for name in ("room", "starts_at", "ends_at")},
        )
        return find_effects([closure])


class CenterPartForm(SeenEffectsForm):
    """A part of a center, such as a room, which stays at its center."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if "center" in self.changed_data and not self.instance._state.adding:
            self.add_error("center", "It stays at its center.")
        return cleaned


class OpeningHoursRowForm(CenterPartForm):
    """One interval of opening hours, in the list of all."""

    def find_effects(self, cleaned: dict[str, Any]) -> ClosureEffects | None:
        center = cleaned["center"]
        interval = OpeningHours(**{name: cleaned[name] for name in ("weekday", "opens", "closes")})
        week = [*center.opening_hours.exclude(pk=self.instance.pk), interval]
        if find_overlapping_days(week):
            self.add_error(None, "These opening hours overlap others.")
        return find_effects_of_hours(center, week)
