"""The page that adds closures for the holidays of a year, after a preview."""

import datetime as dt
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from unfold.widgets import (
    UnfoldAdminFileFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
)

from accounts import roles
from centers import holidays, models
from centers.closure_effects import find_effects
from centers.holidays import HolidayPlan, HolidayState, InvalidHolidays
from centers.models.schedule import closure_saved
from roombook.backoffice.model_admin import ModelAdmin
from roombook.backoffice.widgets import AutocompleteMultipleField, AutocompleteMultipleWidget
from roombook.ids import parse_id

MAX_CLOSURES = 2_000
MAX_CENTERS = 100


class HolidaysForm(forms.Form):
    """Centers, and their holidays as lines. Holidays from other sources are added to the lines."""

    centers = AutocompleteMultipleField(
        models.Center.objects.none(),
        help_text="Holidays begin and end at midnight in each center's local time.",
    )
    year = forms.IntegerField(
        min_value=holidays.ALLOWED_YEARS[0],
        max_value=holidays.ALLOWED_YEARS[-1],
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="The year to read from the calendar, or to copy the year before to.",
    )
    calendar = forms.FileField(
        required=False,
        widget=UnfoldAdminFileFieldWidget,
        help_text="An .ics file, as published by many calendars of public holidays.",
    )
    lines = forms.CharField(
        required=False,
        max_length=60_000,
        widget=UnfoldAdminTextareaWidget({"rows": 12, "placeholder": "2027-12-25 Christmas Day"}),
        label="days",
        help_text=(
            "One per line: 2027-12-25 Christmas Day, or 2027-12-24 to 2027-12-26 Christmas."
        ),
    )

    def __init__(self, *args: Any, centers: Any, admin_site: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["centers"]
        field.widget = AutocompleteMultipleWidget(
            models.Closure._meta.get_field("center"), admin_site
        )
        field.queryset = centers  # type: ignore[attr-defined]
        self.holidays: list[holidays.Holiday] = []

    def clean_centers(self) -> list[models.Center]:
        centers = list(self.cleaned_data["centers"].order_by("name", "pk")[: MAX_CENTERS + 1])
        if len(centers) > MAX_CENTERS:
            raise forms.ValidationError(f"Choose at most {MAX_CENTERS} centers.")
        return centers

    def build_plans(self, action: str, now: dt.datetime) -> list[HolidayPlan]:
        """Read the holidays into `lines`, and plan the closures of each center.

        Returns nothing if the form has errors.
        """
        if not self.is_valid():
            return []
        fields = self.cleaned_data
        try:
            found = holidays.parse_lines(fields["lines"])
        except InvalidHolidays as error:
            self.add_error("lines", list(error.problems))
            return []
        try:
            if action == "calendar":
                if not fields["calendar"]:
                    raise InvalidHolidays("Choose a file.")
                content = fields["calendar"].read(holidays.MAX_CALENDAR_BYTES + 1)
                found += holidays.parse_calendar(content, fields["year"])
            elif action == "copy":
                found += self._copy_year_before(fields["centers"], fields["year"])
            self.holidays = holidays.sort_holidays(found)
        except InvalidHolidays as error:
            self.add_error("calendar" if action == "calendar" else None, list(error.problems))
            return []
        if not self.holidays:
            self.add_error("lines", "Enter at least one day.")
            return []
        # The lines now show everything that was read, so that it can be edited.
        assert isinstance(self.data, MultiValueDict)
        self.data = self.data.copy()
        self.data["lines"] = "\n".join(map(str, self.holidays))
        plans = holidays.plan_holidays(fields["centers"], self.holidays, now=now)
        if sum(len(plan.get_new()) for plan in plans) > MAX_CLOSURES:
            self.add_error(None, f"At most {MAX_CLOSURES:,} closures can be added at once.")
            return []
        return plans

    def _copy_year_before(self, centers: list[models.Center], year: int) -> list[holidays.Holiday]:
        if len(centers) != 1:
            raise InvalidHolidays("Choose exactly one center to copy its year before.")
        before = holidays.load_holidays_of_year(centers[0], year - 1)
        if not before:
            raise InvalidHolidays("This center had no closed days in the year before.")
        return holidays.move_to_year(before, year)


def render_page(model_admin: ModelAdmin, request: HttpRequest) -> HttpResponse:
    """Show the form and the preview, or create the closures."""
    if not model_admin.has_add_permission(request):
        raise PermissionDenied
    now = timezone.now()
    centers = models.Center.objects.filter(
        roles.get_center_filter(request.user, "centers.add_closure", "")
    )
    action = request.POST.get("do", "")
    if request.method == "POST":
        form = HolidaysForm(
            request.POST, request.FILES, centers=centers, admin_site=model_admin.admin_site
        )
    else:
        pk = parse_id(request.GET.get("center"))
        initial = {
            # From July on, staff prepare the next year.
            "year": now.year + (now.month >= 7),
            "centers": centers.filter(pk=pk) if pk else centers.none(),
        }
        form = HolidaysForm(initial=initial, centers=centers, admin_site=model_admin.admin_site)
    plans = form.build_plans(action, now) if form.is_bound else []
    if action == "write" and plans:
        return _create_closures(model_admin, request, form, now)
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "title": "Holidays of a year",
        "form": form,
        "days": summarize_plans(plans),
        "effects": find_effects([closure for plan in plans for closure in plan.build_closures()]),
        "new_count": sum(len(plan.get_new()) for plan in plans),
        "center_count": len(plans),
        "media": model_admin.media + form.media,
    }
    return TemplateResponse(request, "centers/holidays.html", context)


def _create_closures(
    model_admin: ModelAdmin, request: HttpRequest, form: HolidaysForm, now: dt.datetime
) -> HttpResponse:
    centers = [center.pk for center in form.cleaned_data["centers"]]
    closures = holidays.create_closures(centers, form.holidays, now=now)
    for closure in closures:
        model_admin.log_addition(request, closure, "Holiday added.")
        closure_saved.send(models.Closure, closure=closure, request=request)
    count = len(closures)
    text = "1 closure added." if count == 1 else f"{count} closures added."
    messages.success(request, text if count else "Nothing was added: all closures exist already.")
    center_admin = model_admin.admin_site.get_model_admin(models.Center)
    if len(centers) == 1 and center_admin.has_change_permission(request):
        page = reverse("admin:centers_center_change", args=centers)
        return HttpResponseRedirect(f"{page}#closures")
    return HttpResponseRedirect(reverse("admin:centers_closure_changelist"))


def summarize_plans(plans: list[HolidayPlan]) -> list[dict[str, object]]:
    """Each holiday, with the number of centers by state in words."""
    if not plans:
        return []
    rows = []
    for index, (holiday, _) in enumerate(plans[0].states):
        states = [plan.states[index][1] for plan in plans]
        counts = {state: states.count(state) for state in HolidayState}
        texts = [
            str(state) if count == len(states) else f"{state} at {_format_centers(count)}"
            for state, count in counts.items()
            if count
        ]
        rows.append(
            {
                "holiday": holiday,
                "is_new": counts[HolidayState.NEW] > 0,
                "status": ", ".join(texts),
            }
        )
    return rows


def _format_centers(count: int) -> str:
    return "1 center" if count == 1 else f"{count} centers"
