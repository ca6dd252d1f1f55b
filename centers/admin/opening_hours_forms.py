"""The weekly opening hours of a center as one form: each weekday has any number of intervals."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html

from centers.closure_effects import find_effects_of_hours
from centers.hours import find_overlapping_days
from centers.models import OpeningHours
from roombook.backoffice.concurrent_edits import ChangedFieldsForm
from roombook.backoffice.pagination import PaginatedInlineFormSet
from roombook.ids import parse_id


class OpeningHoursForm(ChangedFieldsForm):
    """One interval. It is deleted by leaving both times empty."""

    class Meta:
        model = OpeningHours
        fields = ("weekday", "opens", "closes")
        widgets = {"weekday": forms.HiddenInput}

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.fields["opens"].required = self.fields["closes"].required = False

    @property
    def is_empty(self) -> bool:
        fields = self.cleaned_data
        return bool(fields.get("DELETE")) or not (
            fields.get("opens") is not None or fields.get("closes") is not None
        )

    def clean(self) -> dict[str, Any]:
        # The form set checks for duplicates, because an interval may replace another one. Django
        # leaves the center out, so it does not compare the interval with those in the database.
        if not self.is_empty:
            messages = {"opens": "Enter an opening time.", "closes": "Enter a closing time."}
            for name, message in messages.items():
                if name not in self.errors and self.cleaned_data.get(name) is None:
                    self.add_error(name, message)
        return self.cleaned_data


@dataclass(frozen=True, slots=True)
class WeekdayRow:
    """A weekday and the forms of its intervals."""

    number: int
    name: str
    forms: list[OpeningHoursForm]


class OpeningHoursFormSet(PaginatedInlineFormSet):
    """The week of a center. Its intervals must not overlap.

    It is saved only when its effects were displayed, that is by submitting it a second time.
    """

    # The key of the effects that are displayed.
    seen_effects = ""

    def get_weekdays(self) -> list[WeekdayRow]:
        """The seven days. A form with an invalid weekday is shown, with its error, on Monday."""
        rows = [WeekdayRow(value, label, []) for value, label in OpeningHours.Weekday.choices]
        for form in self.forms:
            day = parse_id(str(form["weekday"].value()))
            rows[day if day is not None and day < len(rows) else 0].forms.append(form)
        return rows

    def _get_filled_forms(self) -> Iterator[OpeningHoursForm]:
        for form in self.forms:
            data = getattr(form, "cleaned_data", None) or {}
            if {"weekday", "opens", "closes"} <= data.keys() and not form.is_empty:
                yield form

    def clean(self) -> None:
        super().clean()
        week = [
            OpeningHours(weekday=data["weekday"], opens=data["opens"], closes=data["closes"])
            for data in (form.cleaned_data for form in self._get_filled_forms())
            if data["opens"] is not None and data["closes"] is not None
        ]
        if days := find_overlapping_days(week):
            names = ", ".join(OpeningHours.Weekday(day).label for day in days)
            raise ValidationError(f"Opening hours overlap on {names}.")
        if self.instance.pk and any(form.has_changed() for form in self.forms):
            self._require_seen_effects(week)

    def _require_seen_effects(self, week: list[OpeningHours]) -> None:
        effects = find_effects_of_hours(self.instance, week)
        if effects is None:
            return
        self.seen_effects = effects.key
        if effects.key != self.data.get(f"{self.prefix}-seen_effects"):
            raise ValidationError(
                format_html("{} Nothing is saved yet: save again to change them.", effects.html)
            )

    def validate_unique(self) -> None:
        """Duplicates are overlaps, which `clean` reports for each day."""

    def save(self, commit: bool = True) -> list[OpeningHours]:  # noqa: FBT001, FBT002 (Django's)
        """Delete before adding, because an interval may replace another one."""
        assert commit  # the admin always commits
        self.new_objects: list[OpeningHours] = []
        self.changed_objects: list[tuple[OpeningHours, list[str]]] = []
        self.deleted_objects: list[OpeningHours] = []
        self.save_m2m = lambda: None
        changed = [form for form in self.forms if form.has_changed()]
        filled = set(map(id, self._get_filled_forms()))
        added = []
        for form in changed:
            is_stored = not form.instance._state.adding
            if is_stored and id(form) in filled and form.changed_data == ["closes"]:
                form.save()
                self.changed_objects.append((form.instance, form.changed_data))
                continue
            if is_stored:
                stored = OpeningHours.objects.filter(pk=form.instance.pk).first()
                if stored:
                    stored.delete()
                    self.deleted_objects.append(stored)
            if id(form) in filled:
                added.append(form)
        for form in added:
            data = form.cleaned_data
            row, _ = OpeningHours.objects.update_or_create(
                center=self.instance,
                weekday=data["weekday"],
                opens=data["opens"],
                defaults={"closes": data["closes"]},
            )
            self.new_objects.append(row)
        return [*self.new_objects, *(row for row, _ in self.changed_objects)]
