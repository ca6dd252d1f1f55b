"""The pages of the timeline: a day of a center, a week of a room."""

import datetime as dt
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from accounts import roles
from centers.models import Center, MeetingRoom
from reservations.admin.timeline import timeline_view
from reservations.admin.timeline.timeline_view import STATUS_LABELS, STATUS_SIGNS, TimelineViewer
from reservations.booking.drafts import OVERRIDE_OPENING_HOURS
from roombook import dates
from roombook.backoffice.model_admin import INPUT_CLASSES, AutocompleteWidget, NativeDateInput
from roombook.ids import parse_id

VIEW_PERMISSIONS = ("reservations.view_reservation", "reservations.change_reservation")
ADD = "reservations.add_reservation"
# Nearer to the ends of the calendar, a week or a time zone falls off it.
YEARS = range(2000, 2101)
DAY, WEEK = dt.timedelta(days=1), dt.timedelta(days=7)

LEGEND = [
    (status.value, STATUS_SIGNS[status], STATUS_LABELS.get(status, status.label))
    for status in STATUS_SIGNS
]


class TimelinePages:
    """The timeline under its addresses, on a site of the admin."""

    def __init__(self, site: AdminSite) -> None:
        self.site = site

    def urls(self) -> list[URLPattern]:
        view = self.site.admin_view
        return [
            path("timeline/", view(self.day), name="reservations_timeline"),
            path("timeline/week/", view(self.week), name="reservations_room_week"),
        ]

    def day(self, request: HttpRequest) -> HttpResponse:
        """The rooms of a center on a day: of the one asked for, else of the first of theirs."""
        center = self._center(request)
        if center is None:
            return self._page(request, "office/timeline.html", {"title": "Timeline"})
        now = timezone.now()
        today = now.astimezone(center.zone).date()
        day = self._day(request, today)
        whole_day = request.GET.get("hours") == "all"
        shown = timeline_view.build_day_timeline(
            center, day, viewer=_get_viewer(request, center), whole_day=whole_day, now=now
        )
        place = {"center": center.pk, **({"hours": "all"} if whole_day else {})}
        form = CenterDayForm(self.site, _get_visible_centers(request), center, day)
        return self._page(
            request,
            "office/timeline.html",
            {
                "title": f"{center.name}, {dates.format_day(day)}",
                "center": center,
                "board": shown,
                "form": form,
                "media": form.media,
                "heading": "Room",
                "nothing": "This center has no active rooms."
                if shown
                else "This day does not exist at this place: its clock left it out.",
                "steps": [
                    ("Previous day", "chevron_left", _build_url(place, day - DAY)),
                    ("Today", "", _build_url(place, today)),
                    ("Next day", "chevron_right", _build_url(place, day + DAY)),
                ],
                "whole_day": whole_day,
                "other_hours": _build_url(_toggle_hours(place), day),
            },
        )

    def week(self, request: HttpRequest) -> HttpResponse:
        """A room on the days of a week, from Monday on."""
        pk = parse_id(request.GET.get("room"))
        theirs = MeetingRoom.objects.filter(
            roles.get_center_filter(request.user, VIEW_PERMISSIONS, "center")
        )
        room = (
            theirs.select_related("center")
            .prefetch_related("center__opening_hours")
            .filter(pk=pk or 0)
            .first()
        )
        if room is None:
            raise Http404("There is no such room among yours.")
        center = room.center
        now = timezone.now()
        today = now.astimezone(center.zone).date()
        day = self._day(request, today)
        monday = day - dt.timedelta(days=day.weekday())
        sunday = monday + 6 * DAY
        whole_day = request.GET.get("hours") == "all"
        shown = timeline_view.build_week_timeline(
            room, monday, viewer=_get_viewer(request, center), whole_day=whole_day, now=now
        )
        place = {"room": room.pk, **({"hours": "all"} if whole_day else {})}
        form = RoomWeekForm(center.rooms.order_by("name", "pk"), room, day)
        return self._page(
            request,
            "office/timeline.html",
            {
                "title": f"{room.name}, {dates.format_day(monday)} - {dates.format_day(sunday)}",
                "center": center,
                "board": shown,
                "form": form,
                "media": form.media,
                "heading": "Day",
                "back": _build_url({"center": center.pk}, day),
                "steps": [
                    ("Previous week", "chevron_left", _build_url(place, day - WEEK)),
                    ("This week", "", _build_url(place, today)),
                    ("Next week", "chevron_right", _build_url(place, day + WEEK)),
                ],
                "whole_day": whole_day,
                "other_hours": _build_url(_toggle_hours(place), day),
            },
        )

    def _center(self, request: HttpRequest) -> Center | None:
        if not any(roles.has_permission(request.user, each) for each in VIEW_PERMISSIONS):
            raise PermissionDenied
        theirs = _get_visible_centers(request).prefetch_related("opening_hours", "rooms")
        asked = request.GET.get("center")
        if not asked:
            return theirs.order_by("rank", "name_folded", "pk").first()
        center = theirs.filter(pk=parse_id(asked) or 0).first()
        if center is None:
            raise Http404("There is no such center among yours.")
        return center

    def _day(self, request: HttpRequest, today: dt.date) -> dt.date:
        asked = request.GET.get("date")
        if not asked:
            return today
        try:
            day = dt.date.fromisoformat(asked)
        except ValueError:
            day = None
        if day is None or day.year not in YEARS:
            text = f"That is no day from {YEARS[0]} to {YEARS[-1]}. Today is shown."
            messages.warning(request, text)
            return today
        return day

    def _page(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        return TemplateResponse(
            request,
            template,
            {
                **self.site.each_context(request),
                "content_title": context["title"],
                "legend": LEGEND,
                **context,
            },
        )


class CenterDayForm(forms.Form):
    """Where and when to look; the center is found by typing."""

    center = forms.ModelChoiceField(Center.objects.none())
    date = forms.DateField(widget=NativeDateInput)

    def __init__(
        self, site: AdminSite, centers: QuerySet[Center], center: Center, day: dt.date
    ) -> None:
        super().__init__(initial={"center": center.pk, "date": day}, auto_id="timeline-%s")
        field: Any = self.fields["center"]
        field.queryset = centers
        # Any column that points to a center will do.
        field.widget = AutocompleteWidget(MeetingRoom._meta.get_field("center"), site)
        field.widget.choices = field.choices


class RoomWeekForm(forms.Form):
    """Which room of the center, and when."""

    room = forms.ModelChoiceField(
        MeetingRoom.objects.none(),
        empty_label=None,
        widget=forms.Select({"class": INPUT_CLASSES}),
    )
    date = forms.DateField(label="Week of", widget=NativeDateInput)

    def __init__(self, rooms: QuerySet[MeetingRoom], room: MeetingRoom, day: dt.date) -> None:
        super().__init__(initial={"room": room.pk, "date": day}, auto_id="timeline-%s")
        field: Any = self.fields["room"]
        field.queryset = rooms


def _get_visible_centers(request: HttpRequest) -> QuerySet[Center]:
    return Center.objects.filter(roles.get_center_filter(request.user, VIEW_PERMISSIONS, ""))


def _get_viewer(request: HttpRequest, center: Center) -> TimelineViewer:
    return TimelineViewer(
        may_add=roles.has_permission(request.user, ADD, center.pk),
        may_override_hours=roles.has_permission(request.user, OVERRIDE_OPENING_HOURS, center.pk),
    )


def _toggle_hours(place: dict[str, Any]) -> dict[str, Any]:
    if "hours" in place:
        return {name: value for name, value in place.items() if name != "hours"}
    return {**place, "hours": "all"}


def _build_url(place: dict[str, Any], day: dt.date) -> str:
    page = "reservations_room_week" if "room" in place else "reservations_timeline"
    return f"{reverse(f'admin:{page}')}?{urlencode({**place, 'date': day})}"
