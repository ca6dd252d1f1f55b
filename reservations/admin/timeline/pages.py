"""The pages of the timeline: a day of a center, and a week of a room."""

import datetime as dt
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone

from accounts import roles
from centers.models import Center, MeetingRoom
from reservations.admin.formatting import format_time_zone
from reservations.admin.forms import YEARS, CenterSearchField
from reservations.admin.timeline import timeline_view
from reservations.admin.timeline.free_slots import TimelineOptions
from reservations.admin.timeline.timeline_view import STATUS_SIGNS
from reservations.booking.drafts import OVERRIDE_OPENING_HOURS
from roombook import dates
from roombook.backoffice.widgets import INPUT_CLASSES, DateTextInput
from roombook.ids import parse_id

# One of these permissions is enough.
VIEW_PERMISSIONS = (roles.VIEW_RESERVATION, roles.CHANGE_RESERVATION)
DAY, WEEK = dt.timedelta(days=1), dt.timedelta(days=7)

LEGEND = [(status.value, sign, status.label) for status, sign in STATUS_SIGNS.items()]


class TimelinePages:
    """The pages of the timeline on an admin site."""

    def __init__(self, site: AdminSite) -> None:
        self.site = site

    def urls(self) -> list[URLPattern]:
        view = self.site.admin_view
        return [
            path("timeline/", view(self.show_day), name="reservations_timeline"),
            path("timeline/week/", view(self.show_week), name="reservations_room_week"),
        ]

    def show_day(self, request: HttpRequest) -> HttpResponse:
        """The rooms of a center on a day. Without parameters the first center, today."""
        roles.require_permission(request, *VIEW_PERMISSIONS)
        center = _get_center(request)
        if center is None:
            return self._render(request, "Timeline")
        options = _get_options(request, center)
        today = options.now.astimezone(center.zone).date()
        day = _get_day(request, today)
        timeline = timeline_view.build_day_timeline(center, day, options)
        no_rows = "This center has no active rooms."
        if timeline is None:
            no_rows = "This day does not exist in the time zone of the center."
        return self._render(
            request,
            f"{center.name}, {dates.format_day(day)}",
            CenterDayForm(_get_visible_centers(request), center, day),
            **_describe_day(center, day, options),
            timeline=timeline,
            day_links=[
                ("Previous day", "chevron_left", day - DAY),
                ("Today", "", today),
                ("Next day", "chevron_right", day + DAY),
            ],
            heading="Room",
            no_rows=no_rows,
        )

    def show_week(self, request: HttpRequest) -> HttpResponse:
        """A room on the days of a week, from Monday on."""
        room = _get_room(request)
        center = room.center
        options = _get_options(request, center)
        today = options.now.astimezone(center.zone).date()
        day = _get_day(request, today)
        monday = day - day.weekday() * DAY
        return self._render(
            request,
            f"{room.name}, {dates.format_day(monday)} - {dates.format_day(monday + 6 * DAY)}",
            RoomWeekForm(center.rooms.order_by("name", "pk"), room, day),
            **_describe_day(center, day, options),
            timeline=timeline_view.build_week_timeline(room, monday, options),
            day_links=[
                ("Previous week", "chevron_left", day - WEEK),
                ("This week", "", today),
                ("Next week", "chevron_right", day + WEEK),
            ],
            heading="Day",
            is_week=True,
        )

    def _render(
        self,
        request: HttpRequest,
        title: str,
        form: forms.Form | None = None,
        **context: object,
    ) -> HttpResponse:
        context = {
            **self.site.each_context(request),
            "title": title,
            "content_title": title,
            "form": form,
            "media": form.media if form else "",
            "legend": LEGEND,
            **context,
        }
        return TemplateResponse(request, "admin/reservations/timeline.html", context)


class CenterDayForm(forms.Form):
    """Selects the center and the day."""

    center = CenterSearchField()
    date = forms.DateField(widget=DateTextInput)

    def __init__(self, centers: QuerySet[Center], center: Center, day: dt.date) -> None:
        super().__init__(initial={"center": center.pk, "date": day}, auto_id="timeline-%s")
        field: Any = self.fields["center"]
        field.queryset = centers


class RoomWeekForm(forms.Form):
    """Selects the room of a center, and the week."""

    room = forms.ModelChoiceField(
        MeetingRoom.objects.none(),
        empty_label=None,
        widget=forms.Select({"class": INPUT_CLASSES}),
    )
    date = forms.DateField(label="Week of", widget=DateTextInput)

    def __init__(self, rooms: QuerySet[MeetingRoom], room: MeetingRoom, day: dt.date) -> None:
        super().__init__(initial={"room": room.pk, "date": day}, auto_id="timeline-%s")
        field: Any = self.fields["room"]
        field.queryset = rooms


# --- Query parameters ----------------------------------------------------------------------------


def _get_visible_centers(request: HttpRequest) -> QuerySet[Center]:
    return Center.objects.filter(roles.get_center_filter(request.user, VIEW_PERMISSIONS, ""))


def _get_center(request: HttpRequest) -> Center | None:
    centers = _get_visible_centers(request).prefetch_related("opening_hours", "rooms")
    if not request.GET.get("center"):
        return centers.order_by("rank", "name_folded", "pk").first()
    center = centers.filter(pk=parse_id(request.GET["center"]) or 0).first()
    if center is None:
        raise Http404("Not found.")
    return center


def _get_room(request: HttpRequest) -> MeetingRoom:
    rooms = MeetingRoom.objects.filter(
        roles.get_center_filter(request.user, VIEW_PERMISSIONS, "center"),
        pk=parse_id(request.GET.get("room")) or 0,
    )
    room = rooms.select_related("center").prefetch_related("center__opening_hours").first()
    if room is None:
        raise Http404("Not found.")
    return room


def _get_day(request: HttpRequest, today: dt.date) -> dt.date:
    text = request.GET.get("date")
    if not text:
        return today
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.year not in YEARS:
        message = f"Choose a day from {YEARS[0]} to {YEARS[-1]}. This is today."
        messages.warning(request, message)
        return today
    return day


def _get_options(request: HttpRequest, center: Center) -> TimelineOptions:
    user = request.user
    return TimelineOptions(
        now=timezone.now(),
        whole_day=request.GET.get("hours") == "all",
        can_add=roles.has_permission(user, roles.ADD_RESERVATION, center.pk),
        can_override_hours=roles.has_permission(user, OVERRIDE_OPENING_HOURS, center.pk),
    )


def _describe_day(center: Center, day: dt.date, options: TimelineOptions) -> dict[str, object]:
    noon = dt.datetime.combine(day, dt.time(12), tzinfo=center.zone)
    zone_name = format_time_zone(center, noon)
    whole_day = options.whole_day
    return {"center": center, "day": day, "zone_name": zone_name, "whole_day": whole_day}
