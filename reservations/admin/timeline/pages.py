"""The pages of the timeline: a day or a week of a center, and a week of a room."""

import datetime as dt
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.cache import get_conditional_response

from accounts import roles
from centers.models import Center, MeetingRoom
from reservations.admin.formatting import format_time_zone
from reservations.admin.forms import CenterSearchField
from reservations.admin.timeline import geometry
from reservations.admin.timeline.free_slots import TimelineOptions
from reservations.admin.timeline.timeline_view import (
    CenterDayTimeline,
    CenterWeekTimeline,
    RoomWeekTimeline,
)
from reservations.admin.timeline.tracks import STATUS_SIGNS
from reservations.booking.drafts import OVERRIDE_OPENING_HOURS
from roombook import dates
from roombook.backoffice.model_admin import is_fragment_request
from roombook.backoffice.widgets import INPUT_CLASSES, DateTextInput
from roombook.dates import YEARS
from roombook.ids import parse_id

# One of these permissions is enough.
VIEW_PERMISSIONS = (roles.VIEW_RESERVATION, roles.CHANGE_RESERVATION)
# In the session: the center that the user has seen last.
LAST_CENTER = "timeline_center"
DAY, WEEK = dt.timedelta(days=1), dt.timedelta(days=7)

CenterTimeline = CenterDayTimeline | CenterWeekTimeline

LEGEND = [(status.value, sign, status.label) for status, sign in STATUS_SIGNS.items()]


class TimelinePages:
    """The pages of the timeline on an admin site."""

    def __init__(self, site: AdminSite) -> None:
        self.site = site

    def urls(self) -> list[URLPattern]:
        view = self.site.admin_view
        return [
            path("timeline/", view(self.show_day), name="reservations_timeline"),
            path(
                "timeline/center/", view(self.show_center_week), name="reservations_timeline_week"
            ),
            path("timeline/week/", view(self.show_room_week), name="reservations_room_week"),
        ]

    def show_day(self, request: HttpRequest) -> HttpResponseBase:
        """The rooms of a center on a day. Without parameters the last center, today."""
        return self._show_center(request, is_week=False)

    def show_center_week(self, request: HttpRequest) -> HttpResponseBase:
        """The rooms of a center on the days of a week, from Monday on."""
        return self._show_center(request, is_week=True)

    def _show_center(self, request: HttpRequest, *, is_week: bool) -> HttpResponseBase:
        roles.require_permission(request, *VIEW_PERMISSIONS)
        centers = _get_visible_centers(request)
        center = _get_center(request, centers)
        if center is None:
            return self._render(request, None, {"title": "Timeline"})
        options = _get_options(request, center)
        day = _get_day(request, center, options)
        timeline: CenterTimeline | None
        if is_week:
            title = _format_week(center.name, day)
            form: CenterDayForm = CenterWeekForm(centers, center, day)
            timeline = CenterWeekTimeline(center, _get_monday(day), options)
        else:
            title = f"{center.name}, {dates.format_day(day)}"
            form = CenterDayForm(centers, center, day)
            axis = geometry.build_axis(day, center.zone)
            timeline = CenterDayTimeline(center, axis, options) if axis else None
        view = "center-week" if is_week else "day"
        context = {"title": title, "form": form, **_describe_page(center, day, options, view)}
        return self._render(request, timeline, context)

    def show_room_week(self, request: HttpRequest) -> HttpResponseBase:
        """A room on the days of a week, from Monday on."""
        room = _get_room(request)
        options = _get_options(request, room.center)
        day = _get_day(request, room.center, options)
        context = {
            "title": _format_week(room.name, day),
            "form": RoomWeekForm(room.center.rooms.order_by("name", "pk"), room, day),
            "room": room,
            **_describe_page(room.center, day, options, "room-week"),
        }
        return self._render(request, RoomWeekTimeline(room, _get_monday(day), options), context)

    def _render(
        self,
        request: HttpRequest,
        timeline: CenterTimeline | RoomWeekTimeline | None,
        context: dict[str, Any],
    ) -> HttpResponseBase:
        """The page. Its script gets the rows only, or 304 if it shows the same already."""
        is_fragment = is_fragment_request(request)
        etag = timeline.data.compute_etag() if timeline else None
        if is_fragment and (unchanged := get_conditional_response(request, etag)):
            return unchanged
        context |= {
            "timeline": timeline.build() if timeline else None,
            "etag": etag,
            # A page that only asks for news must not take the messages of another one.
            "has_messages": is_fragment and "If-None-Match" not in request.headers,
        }
        if is_fragment:
            template = "admin/reservations/timeline_rows.html"
            headers = {"ETag": etag} if etag else None
            return TemplateResponse(request, template, context, headers=headers)
        context = {
            **self.site.each_context(request),
            "content_title": context["title"],
            "media": context["form"].media if "form" in context else "",
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


class CenterWeekForm(CenterDayForm):
    """Selects the center and the week."""

    date = forms.DateField(label="Week of", widget=DateTextInput)


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


def _get_center(request: HttpRequest, centers: QuerySet[Center]) -> Center | None:
    """The center of the query; without one the last that the user has seen, or the first."""
    centers = centers.prefetch_related("opening_hours", "rooms")
    if not request.GET.get("center"):
        last = centers.filter(pk=request.session.get(LAST_CENTER, 0)).first()
        return last or centers.order_by("rank", "name_folded", "pk").first()
    center = centers.filter(pk=parse_id(request.GET["center"]) or 0).first()
    if center is None:
        raise Http404("Not found.")
    _remember_center(request, center.pk)
    return center


def _remember_center(request: HttpRequest, center_id: int) -> None:
    # A page that refreshes in another tab is not what the user has seen last.
    if is_fragment_request(request):
        return
    if request.session.get(LAST_CENTER) != center_id:
        request.session[LAST_CENTER] = center_id


def _get_room(request: HttpRequest) -> MeetingRoom:
    rooms = MeetingRoom.objects.filter(
        roles.get_center_filter(request.user, VIEW_PERMISSIONS, "center"),
        pk=parse_id(request.GET.get("room")) or 0,
    )
    room = rooms.select_related("center").prefetch_related("center__opening_hours").first()
    if room is None:
        raise Http404("Not found.")
    _remember_center(request, room.center_id)
    return room


def _get_day(request: HttpRequest, center: Center, options: TimelineOptions) -> dt.date:
    """The day of the query; today at the center if there is none, or no valid one."""
    today = options.now.astimezone(center.zone).date()
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
        can_change=roles.has_permission(user, roles.CHANGE_RESERVATION, center.pk),
        can_add=roles.has_permission(user, roles.ADD_RESERVATION, center.pk),
        can_override_hours=roles.has_permission(user, OVERRIDE_OPENING_HOURS, center.pk),
    )


def _get_monday(day: dt.date) -> dt.date:
    return day - day.weekday() * DAY


def _format_week(name: str, day: dt.date) -> str:
    monday = _get_monday(day)
    return f"{name}, {dates.format_day(monday)} - {dates.format_day(monday + 6 * DAY)}"


def _describe_page(
    center: Center, day: dt.date, options: TimelineOptions, view: str
) -> dict[str, object]:
    """The context of a page; ``view`` is day, center-week or room-week."""
    noon = dt.datetime.combine(day, dt.time(12), tzinfo=center.zone)
    unit, step, this = ("day", DAY, "Today") if view == "day" else ("week", WEEK, "This week")
    return {
        "center": center,
        "day": day,
        "zone_name": format_time_zone(center, noon),
        "whole_day": options.whole_day,
        "view": view,
        "heading": "Day" if view == "room-week" else "Room",
        "day_links": [
            (f"Previous {unit}", "chevron_left", day - step),
            (this, "", options.now.astimezone(center.zone).date()),
            (f"Next {unit}", "chevron_right", day + step),
        ],
    }
