"""Forms of the back office that know more than their model."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from centers.hours import MIDNIGHT
from centers.models import OpeningHours, Rate
from roombook import places
from roombook.backoffice.concurrent_edits import ChangedFieldsForm
from roombook.backoffice.model_admin import PaginatedInlineFormSet
from roombook.ids import parse_id

PRICE_FIELDS = ("flat_rate", "hourly", "half_day", "full_day")


# Rates


class RatePricesForm(ChangedFieldsForm):
    """The prices of a rate as typed."""

    class Meta:
        model = Rate
        fields = (
            *("name", "is_flat_rate", "flat_rate", "hourly", "half_day", "full_day"),
            *("setup_fee", "bill_in_blocks", "description"),
        )

    def get_new_zero_prices(self) -> list[str]:
        """The prices that are made 0 now."""
        return [
            name
            for name in PRICE_FIELDS
            if self.cleaned_data.get(name) == 0 and name in self.changed_data
        ]


class RateForm(RatePricesForm):
    """A rate; a price of 0 is a gift, so it is asked for twice."""

    is_zero_price_allowed = forms.BooleanField(
        required=False,
        label="Free is meant",
        help_text="Tick this if a price of 0 is right. An empty price is a tier not offered.",
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        free = self.get_new_zero_prices()
        if free and not cleaned.get("is_zero_price_allowed"):
            for name in free:
                self.add_error(name, "This makes it free. Leave it empty to not offer it.")
            self.add_error("is_zero_price_allowed", "Tick this if 0 is meant.")
        return cleaned


class RateListForm(RatePricesForm):
    """A rate in a list, where there is no room to ask twice."""

    class Meta:
        # Which columns it has, the list says.
        model = Rate
        fields = "__all__"

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for name in self.get_new_zero_prices():
            self.add_error(name, "This makes it free: open the rate to say that it is meant.")
        return cleaned


# Opening hours


class OpeningHoursForm(ChangedFieldsForm):
    """One stretch of opening. Both times empty: it is gone."""

    class Meta:
        model = OpeningHours
        fields = ("weekday", "opens", "closes")
        widgets = {"weekday": forms.HiddenInput}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["opens"].required = self.fields["closes"].required = False

    @property
    def is_empty(self) -> bool:
        fields = self.cleaned_data
        return bool(fields.get("DELETE")) or not (
            fields.get("opens") is not None or fields.get("closes") is not None
        )

    def clean(self) -> dict[str, Any]:
        # The week judges what is there twice: a stretch may take the place of another one.
        if not self.is_empty:
            for name, words in (("opens", "When does it open?"), ("closes", "When does it close?")):
                if name not in self.errors and self.cleaned_data.get(name) is None:
                    self.add_error(name, words)
        return self.cleaned_data

    def _get_validation_exclusions(self) -> set[str]:
        # With it, the stretch would be compared with those of the database.
        return {*super()._get_validation_exclusions(), "center"}  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class WeekdayRow:
    """A row of the week, with its stretches."""

    number: int
    name: str
    forms: list[OpeningHoursForm]


class OpeningHoursFormSet(PaginatedInlineFormSet):
    """The week of a center: stretches of one day do not overlap."""

    def get_weekdays(self) -> list[WeekdayRow]:
        """Its seven days. What was sent for no day at all stands with Monday, with its error."""
        days = [WeekdayRow(value, label, []) for value, label in OpeningHours.Weekday.choices]
        for form in self.forms:
            day = parse_id(str(form["weekday"].value()))
            days[day if day is not None and day < len(days) else 0].forms.append(form)
        return days

    def _filled(self) -> Iterator[OpeningHoursForm]:
        for form in self.forms:
            data = getattr(form, "cleaned_data", None) or {}
            if {"weekday", "opens", "closes"} <= data.keys() and not form.is_empty:
                yield form

    def clean(self) -> None:
        super().clean()
        by_day: dict[int, list[tuple[Any, Any]]] = {}
        for form in self._filled():
            data = form.cleaned_data
            if data["opens"] is not None and data["closes"] is not None:
                by_day.setdefault(data["weekday"], []).append((data["opens"], data["closes"]))
        overlapping = []
        for weekday, stretches in sorted(by_day.items()):
            stretches.sort()
            for (_, closes), (opens, _) in pairwise(stretches):
                if closes == MIDNIGHT or opens < closes:
                    overlapping.append(OpeningHours.Weekday(weekday).label)
                    break
        if overlapping:
            raise ValidationError(f"Opening hours overlap on {', '.join(overlapping)}.")

    def validate_unique(self) -> None:
        """What overlaps is told by day."""

    def save(self, commit: bool = True) -> list[OpeningHours]:  # noqa: FBT001, FBT002 (Django's)
        """Take away before adding: one stretch may take the place of another."""
        assert commit  # the admin does
        self.new_objects: list[Any] = []
        self.changed_objects: list[Any] = []
        self.deleted_objects: list[Any] = []
        self.save_m2m = lambda: None
        changed = [form for form in self.forms if form.has_changed()]
        filled = set(map(id, self._filled()))
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


# Centers


class CenterForm(ChangedFieldsForm):
    """A center. Its time zone is found by its place, also where no script did that before."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        place_moved = {"latitude", "longitude"} & set(self.changed_data)
        if place_moved and "time_zone_id" not in self.changed_data:
            found = CoordinatesForm(
                {name: cleaned.get(name) for name in ("latitude", "longitude")}
            ).get_time_zone()
            if found:
                cleaned["time_zone_id"] = found
                self.changed_data.append("time_zone_id")
        return cleaned


class CoordinatesForm(forms.Form):
    """A place on the map."""

    latitude = forms.FloatField(min_value=-90, max_value=90)
    longitude = forms.FloatField(min_value=-180, max_value=180)

    def get_time_zone(self) -> str:
        """The name of the time zone there, nothing where it is not known."""
        if not self.is_valid():
            return ""
        return places.find_time_zone(self.cleaned_data["latitude"], self.cleaned_data["longitude"])
