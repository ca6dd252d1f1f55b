"""Forms for rows that other people may be editing at the same time."""

from collections.abc import Iterable, Iterator
from typing import Any

from django import forms
from django.db.models import Model
from django.forms.models import ModelChoiceIterator
from django.utils.functional import cached_property


class ChangedFieldsForm(forms.ModelForm):
    """Saves only the fields that were edited.

    A page may stay open for hours. Each input is submitted together with its initial value, so that
    edits can be recognized. A field that was not edited gets the row's current value, for
    validation too.
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
            initial_name = self[name].html_initial_name
            if field.show_hidden_initial and field.hidden_widget().value_omitted_from_data(
                self.data, self.files, initial_name
            ):
                # The request does not come from our page.
                field.show_hidden_initial = False
        return super().changed_data

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.instance._state.adding:
            columns = {field.name: field for field in self.instance._meta.concrete_fields}
            for name in cleaned.keys() & columns.keys() - set(self.changed_data):
                current = getattr(self.instance, columns[name].attname)
                if getattr(cleaned[name], "pk", cleaned[name]) != current:
                    cleaned[name] = getattr(self.instance, name)
        return cleaned

    def save(self, commit: bool = True) -> Any:  # noqa: FBT001, FBT002 (Django's signature)
        if not commit or self.errors or self.instance._state.adding:
            return super().save(commit)
        super().save(commit=False)
        save_changed_fields(self.instance, self.changed_data)
        self.save_m2m()
        return self.instance


def save_changed_fields(row: Model, names: Iterable[str]) -> None:
    """Write only these fields; other code may have changed the others meanwhile."""
    columns = {field.name for field in row._meta.concrete_fields}
    row.save(update_fields=columns.intersection(names))


class CachedChoiceIterator(ModelChoiceIterator):
    """Reads the choices of a ``CachedChoiceField`` once."""

    def __iter__(self) -> Iterator[Any]:
        choices: list[Any] = self.field.cached_choices  # type: ignore[attr-defined]
        if not choices:
            choices.extend(super().__iter__())
        return iter(choices)


class CachedChoiceField(forms.ModelChoiceField):
    """A select that every row of a page has; its choices are read once for all rows."""

    iterator = CachedChoiceIterator

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Each row's form has a copy of this field; the copies share this list.
        self.cached_choices: list[Any] = []
        super().__init__(*args, **kwargs)
