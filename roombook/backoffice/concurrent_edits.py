"""Forms over rows that others may be editing at the same time."""

from collections.abc import Iterator
from typing import Any

from django import forms
from django.forms.models import ModelChoiceIterator
from django.utils.functional import cached_property


class ChangedFieldsForm(forms.ModelForm):
    """A form that writes what was typed into it, and leaves alone what only stood there.

    A page may stay open for hours. Each box brings along what it showed, so that the two can be
    told apart; what was not typed into is taken as the row has it by now, for checking too.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            for field in self.fields.values():
                if not isinstance(field, forms.FileField):
                    field.show_hidden_initial = True

    @cached_property
    def changed_data(self) -> list[str]:
        for name, field in self.fields.items():
            shown = self[name].html_initial_name
            if field.show_hidden_initial and field.hidden_widget().value_omitted_from_data(
                self.data, self.files, shown
            ):
                # Sent by something else than our page.
                field.show_hidden_initial = False
        return [name for name, bound in self._bound_items() if bound._has_changed()]  # type: ignore[attr-defined]

    def _post_clean(self) -> None:
        if not self.instance._state.adding:
            columns = {field.name: field for field in self.instance._meta.concrete_fields}
            for name in self.cleaned_data.keys() & columns.keys() - set(self.changed_data):
                kept = getattr(self.instance, columns[name].attname)
                value = self.cleaned_data[name]
                if getattr(value, "pk", value) != kept:
                    self.cleaned_data[name] = getattr(self.instance, name)
        super()._post_clean()  # type: ignore[misc]

    def save(self, commit: bool = True) -> Any:  # noqa: FBT001, FBT002 (Django's signature)
        if not commit or self.errors or self.instance._state.adding:
            return super().save(commit)
        columns = {field.name for field in self.instance._meta.concrete_fields}
        self.instance.save(update_fields=[name for name in self.changed_data if name in columns])
        self._save_m2m()  # type: ignore[attr-defined]
        return self.instance


class CachedChoiceIterator(ModelChoiceIterator):
    def __iter__(self) -> Iterator[Any]:
        listed: list[Any] = self.field.listed  # type: ignore[attr-defined]
        if not listed:
            listed.extend(super().__iter__())
        return iter(listed)


class CachedChoiceField(forms.ModelChoiceField):
    """A box that each row of a page has: its choices are read once for all of them."""

    iterator = CachedChoiceIterator

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Shared with its copies, which each row's form has one of.
        self.listed: list[Any] = []
        super().__init__(*args, **kwargs)
