"""The form of a closure, which shows what the closure affects before it is saved."""

from django import forms
from django.utils.datastructures import MultiValueDict
from django.utils.html import format_html

from centers.closure_effects import find_effects
from centers.models import Closure
from roombook.backoffice.concurrent_edits import ChangedFieldsForm

AFFECTING_FIELDS = {"center", "room", "starts_at", "ends_at"}


class ClosureForm(ChangedFieldsForm):
    """Saved only when its effects were displayed, that is by submitting it a second time."""

    # The key of the effects that were displayed.
    seen_effects = forms.CharField(required=False, widget=forms.HiddenInput)

    def clean(self) -> dict[str, object]:
        cleaned = super().clean()
        if self.errors or not AFFECTING_FIELDS & set(self.changed_data):
            return cleaned
        closure = Closure(
            center=cleaned.get("center") or self.instance.center,
            **{name: cleaned.get(name) for name in ("room", "starts_at", "ends_at")},
        )
        effects = find_effects([closure])
        if effects is not None and effects.key != cleaned.get("seen_effects"):
            assert isinstance(self.data, MultiValueDict)
            self.data = self.data.copy()
            self.data[self.add_prefix("seen_effects")] = effects.key
            self.add_error(
                None, format_html("{} Nothing is saved yet: save again to close.", effects.html)
            )
        return cleaned
