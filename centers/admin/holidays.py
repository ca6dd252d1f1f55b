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
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
)

from accounts import roles
from centers import holidays, models
from centers.closure_effects import find_effects
from centers.holidays import Holiday, InvalidHolidays
from roombook.backoffice.model_admin import ModelAdmin
from roombook.backoffice.widgets import AutocompleteMultipleField, AutocompleteMultipleWidget
from roombook.ids import parse_id

MAX_CLOSURES = 2_000
MAX_CENTERS = 100


class HolidaysForm(forms.Form):
    """Centers, and their holidays as lines. Public holidays are added to the lines."""

    centers = AutocompleteMultipleField(
        models.Center.objects.none(),
        max_rows=MAX_CENTERS,
        help_text="Holidays begin and end at midnight in each center's local time.",
    )
    country = forms.ChoiceField(required=False, widget=UnfoldAdminSelectWidget)
    region = forms.ChoiceField(
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="Some parts of a country have holidays of their own.",
    )
    year = forms.IntegerField(
        min_value=holidays.ALLOWED_YEARS[0],
        max_value=holidays.ALLOWED_YEARS[-1],
        widget=UnfoldAdminIntegerFieldWidget,
    )
    lines = forms.CharField(
        required=False,
        max_length=60_000,
        widget=UnfoldAdminTextareaWidget({"rows": 12, "placeholder": "2027-12-25 Christmas Day"}),
        label="days",
        help_text=(
            "One per line: 2027-12-25 Christmas Day, 2027-12-27 to 2027-12-31 Winter break, or"
            " 2027-12-24 Christmas Eve, closed from 12:00. Delete the lines of days on which you"
            " open."
        ),
    )

    # The public holidays that were listed before, which those of another region replace.
    listed = forms.CharField(required=False, max_length=60_000, widget=forms.HiddenInput)

    def __init__(self, *args: Any, centers: Any, admin_site: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["centers"]
        field.widget = AutocompleteMultipleWidget(
            models.Closure._meta.get_field("center"), admin_site
        )
        field.queryset = centers  # type: ignore[attr-defined]
        country, countries = self["country"].value(), holidays.get_countries()
        regions = holidays.get_regions(country) if country in countries else {}
        if self.is_bound and self.data.get("region") not in regions:
            # The region of the country that was chosen before.
            self.data = self.data.copy()  # type: ignore[attr-defined]
            self.data["region"] = ""  # type: ignore[index]
        for name, empty, choices in (
            ("country", "None", countries),
            ("region", "Whole country", regions),
        ):
            self.fields[name].choices = [("", empty), *choices.items()]  # type: ignore[attr-defined]
        self.holidays: list[holidays.Holiday] = []

    def build_plan(self, action: str, now: dt.datetime) -> dict[Holiday, list[models.Closure]]:
        """Read the holidays into `lines`, and plan the closures for each.

        Returns nothing if the form has errors.
        """
        if not self.is_valid():
            return {}
        fields = self.cleaned_data
        try:
            found = holidays.parse_lines(fields["lines"])
        except InvalidHolidays as error:
            self.add_error("lines", list(error.problems))
            return {}
        try:
            if action == "list":
                if not fields["country"]:
                    raise InvalidHolidays("Choose a country.")
                place = (fields["country"], fields["region"])
                listed = holidays.list_public_holidays(*place, fields["year"])
                former = {
                    each
                    for each in holidays.parse_lines(fields["listed"])
                    if each.first.year == fields["year"]
                }
                found = [each for each in found if each not in former] + listed
            self.holidays = holidays.sort_holidays(found)
        except InvalidHolidays as error:
            self.add_error(None, list(error.problems))
            return {}
        if not self.holidays:
            self.add_error("lines", "Enter at least one day.")
            return {}
        # The lines now show everything that was read, so that it can be edited.
        assert isinstance(self.data, MultiValueDict)
        self.data = self.data.copy()
        self.data["lines"] = "\n".join(map(str, self.holidays))
        if action == "list":
            self.data["listed"] = "\n".join(map(str, listed))
        plan = holidays.plan_closures(fields["centers"], self.holidays, now=now)
        if sum(map(len, plan.values())) > MAX_CLOSURES:
            self.add_error(None, f"At most {MAX_CLOSURES:,} closures can be added at once.")
            return {}
        return plan


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
        form = HolidaysForm(request.POST, centers=centers, admin_site=model_admin.admin_site)
    else:
        pk = parse_id(request.GET.get("center"))
        only = list(centers.values_list("pk", flat=True)[:2])
        chosen = centers.filter(pk__in=[pk] if pk else only if len(only) == 1 else [])
        place = chosen.first() or centers.order_by("pk").first()
        initial = {
            # From July on, staff prepare the next year.
            "year": now.year + (now.month >= 7),
            "centers": chosen,
            "country": place.country if place else "",
            "region": holidays.find_region(place.country, place.state) if place else "",
        }
        form = HolidaysForm(initial=initial, centers=centers, admin_site=model_admin.admin_site)
    plan = form.build_plan(action, now) if form.is_bound else {}
    if action == "write" and plan:
        return _create_closures(model_admin, request, form, now)
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "title": "Holidays of a year",
        "form": form,
        "plan": plan,
        "effects": find_effects([closure for closures in plan.values() for closure in closures]),
        "new_count": sum(map(len, plan.values())),
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
    count = len(closures)
    text = "1 closure added." if count == 1 else f"{count} closures added."
    messages.success(request, text if count else "Nothing was added: all closures exist already.")
    center_admin = model_admin.admin_site.get_model_admin(models.Center)
    if len(centers) == 1 and center_admin.has_change_permission(request):
        page = reverse("admin:centers_center_change", args=centers)
        return HttpResponseRedirect(f"{page}?tab=closure")
    return HttpResponseRedirect(reverse("admin:centers_closure_changelist"))
