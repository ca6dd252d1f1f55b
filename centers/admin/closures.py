"""Closures, and the page that adds the holidays of a year to centers."""

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from unfold.widgets import (
    UnfoldAdminFileFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
)

from accounts import roles
from accounts.admin.center_scope import CenterScopedMixin
from centers import holidays, models
from centers.admin.common import get_center_zone, search_rows_and_centers
from centers.holidays import HolidayState
from centers.resources.closures import ClosureResource
from centers.signals import closure_saved
from roombook import dates
from roombook.backoffice.concurrent_edits import ChangedFieldsForm
from roombook.backoffice.model_admin import (
    AutocompleteMultipleField,
    AutocompleteMultipleWidget,
    CenterTimeZoneMixin,
    ModelAdmin,
    SaveChangedFieldsMixin,
)
from roombook.ids import parse_id
from roombook.imports.admin import ImportExportAdminMixin

# Closures that one page writes at most.
MAX_CLOSURES = 2_000


@admin.register(models.Closure)
class ClosureAdmin(
    ImportExportAdminMixin,
    CenterScopedMixin,
    SaveChangedFieldsMixin,
    CenterTimeZoneMixin,
    ModelAdmin,
):
    """Closures, on the clock of their center."""

    resource_class = ClosureResource
    form = ChangedFieldsForm
    fields = ("center", "room", "starts_at", "ends_at", "reason")
    list_display = ("reason_display", "center", "room", "starts", "ends")
    list_filter = ("starts_at", ("room", admin.EmptyFieldListFilter))
    list_select_related = ("center", "room")
    list_before_template = "centers/closures_before.html"
    search_fields = ("reason",)
    search_help_text = "Reason, or name, address, neighborhood of the center, or both."
    ordering = ("-starts_at", "-pk")
    sortable_by = ()
    autocomplete_fields = ("center", "room")

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return search_rows_and_centers(queryset, search_term, column="reason"), False

    def get_time_zone(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        asked = request.POST.get("center") or request.GET.get("center")
        if asked:
            return get_center_zone(asked)
        closures = models.Closure.objects.select_related("center")
        closure = closures.filter(pk=parse_id(object_id) or 0).first()
        return closure.center.zone if closure else None

    def save_model(
        self,
        request: HttpRequest,
        obj: Any,
        form: ModelForm,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        super().save_model(request, obj, form, change)
        closure_saved.send(models.Closure, closure=obj, request=request)

    @admin.display(description="reason")
    def reason_display(self, closure: models.Closure) -> str:
        return closure.reason or "no reason given"

    @admin.display(ordering="starts_at")
    def starts(self, closure: models.Closure) -> str:
        return _format_local_time(closure.starts_at, closure.center)

    @admin.display(ordering="ends_at")
    def ends(self, closure: models.Closure) -> str:
        return _format_local_time(closure.ends_at, closure.center)

    # The holidays of a year

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.holidays_view)
        return [path("holidays/", view, name="centers_closure_holidays"), *super().get_urls()]

    def holidays_view(self, request: HttpRequest) -> HttpResponse:
        """Take holidays from lines, a calendar or the year before; show them; write them."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        now = timezone.now()
        mine = models.Center.objects.filter(
            roles.get_center_filter(request.user, "centers.add_closure", "")
        )
        # The year that people prepare: from July on the next one.
        year = now.year + (now.month >= 7)
        if request.method == "POST":
            form = HolidaysForm(
                request.POST, request.FILES, centers=mine, admin_site=self.admin_site
            )
        else:
            asked = parse_id(request.GET.get("center"))
            chosen = mine.filter(pk=asked) if asked else mine.none()
            form = HolidaysForm(
                initial={"year": year, "centers": chosen},
                centers=mine,
                admin_site=self.admin_site,
            )
        plans = form.build_plans(request.POST.get("do", ""), now) if form.is_bound else []
        new = sum(len(plan.of(HolidayState.NEW)) for plan in plans)
        if request.POST.get("do") == "write" and plans:
            return self._write_holidays(request, form, now)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Holidays of a year",
            "form": form,
            "days": summarize_plans(plans),
            "new": new,
            "center_count": len(plans),
            "media": self.media + form.media,
        }
        return TemplateResponse(request, "centers/holidays.html", context)

    def _write_holidays(
        self, request: HttpRequest, form: "HolidaysForm", now: dt.datetime
    ) -> HttpResponse:
        centers = [center.pk for center in form.cleaned_data["centers"]]
        closures = holidays.create_closures(centers, form.holidays, now=now)
        for closure in closures:
            self.log_addition(request, closure, "Holiday added.")
            closure_saved.send(models.Closure, closure=closure, request=request)
        count = len(closures)
        text = f"{count} closures added." if count != 1 else "1 closure added."
        messages.success(request, text if count else "Nothing was added: all is there already.")
        if len(centers) == 1 and self.admin_site._registry[models.Center].has_change_permission(
            request
        ):
            page = reverse("admin:centers_center_change", args=centers)
            return HttpResponseRedirect(f"{page}#closures")
        return HttpResponseRedirect(reverse("admin:centers_closure_changelist"))


class HolidaysForm(forms.Form):
    """Centers, and days on which they are closed: as lines, which calendars are turned into."""

    centers = AutocompleteMultipleField(
        models.Center.objects.none(), help_text="On whose clocks the days begin and end."
    )
    year = forms.IntegerField(
        min_value=2000,
        max_value=2200,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Of the calendar, or into which the year before is copied.",
    )
    calendar = forms.FileField(
        required=False,
        widget=UnfoldAdminFileFieldWidget,
        help_text="An .ics file, as public calendars of holidays offer it.",
    )
    lines = forms.CharField(
        required=False,
        max_length=60_000,
        widget=UnfoldAdminTextareaWidget({"rows": 12, "placeholder": "2027-12-25 Christmas Day"}),
        label="days",
        help_text="One a line: 2027-12-25 Christmas Day, or 2027-12-24 to 2027-12-26 Christmas.",
    )

    MAX_CENTERS = 100

    def __init__(self, *args: Any, centers: Any, admin_site: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        box = AutocompleteMultipleWidget(models.Closure._meta.get_field("center"), admin_site)
        self.fields["centers"].widget = box
        self.fields["centers"].queryset = centers  # type: ignore[attr-defined]
        self.holidays: list[holidays.Holiday] = []

    def clean_centers(self) -> list[models.Center]:
        centers = list(self.cleaned_data["centers"].order_by("name", "pk")[: self.MAX_CENTERS + 1])
        if len(centers) > self.MAX_CENTERS:
            raise forms.ValidationError(f"Choose {self.MAX_CENTERS} centers at most.")
        return centers

    def build_plans(self, do: str, now: dt.datetime) -> list[holidays.HolidayPlan]:
        """Read the days, into `lines` too; what they would do at each center, if all is well."""
        if not self.is_valid():
            return []
        fields = self.cleaned_data
        try:
            found = holidays.parse_lines(fields["lines"])
        except holidays.InvalidHolidays as error:
            self.add_error("lines", list(error.problems))
            return []
        try:
            if do == "calendar":
                if not fields["calendar"]:
                    raise holidays.InvalidHolidays("Choose a file.")
                upload = fields["calendar"]
                content = upload.read(holidays.MAX_CALENDAR_BYTES + 1)
                found += holidays.parse_calendar(content, fields["year"])
            elif do == "copy":
                if len(fields["centers"]) != 1:
                    raise holidays.InvalidHolidays("Choose one center to copy its year before.")
                before = holidays.load_holidays_of_year(fields["centers"][0], fields["year"] - 1)
                if not before:
                    raise holidays.InvalidHolidays(
                        "This center had no closed days in the year before."
                    )
                found += holidays.move_to_year(before, fields["year"])
            self.holidays = holidays.sort_holidays(found)
        except holidays.InvalidHolidays as error:
            self.add_error("calendar" if do == "calendar" else None, list(error.problems))
            return []
        if not self.holidays:
            self.add_error("lines", "There is no day yet.")
            return []
        # What is read stands in the box from now on, to be looked at and mended.
        assert isinstance(self.data, MultiValueDict)
        self.data = self.data.copy()
        self.data["lines"] = "\n".join(map(str, self.holidays))
        plans = holidays.plan_holidays(fields["centers"], self.holidays, now=now)
        if sum(len(plan.of(HolidayState.NEW)) for plan in plans) > MAX_CLOSURES:
            self.add_error(None, f"These are more than {MAX_CLOSURES:,} closures at a time.")
            return []
        return plans


def _format_local_time(at: dt.datetime, center: models.Center) -> str:
    return f"{dates.format_datetime(at, center.zone)} {at.astimezone(center.zone):%Z}"


def summarize_plans(plans: list[holidays.HolidayPlan]) -> list[dict[str, Any]]:
    """Each day with what becomes of it, in words."""
    if not plans:
        return []
    rows = []
    for index, (holiday, _) in enumerate(plans[0].states):
        states = [plan.states[index][1] for plan in plans]
        counts = {state: states.count(state) for state in HolidayState}
        words = [
            str(state) if count == len(states) else f"{state} at {count} centers"
            for state, count in counts.items()
            if count
        ]
        rows.append(
            {
                "holiday": holiday,
                "is_new": counts[HolidayState.NEW] > 0,
                "words": ", ".join(words).replace(" 1 centers", " 1 center"),
            }
        )
    return rows
