"""The pages of the timeline: a day or a week of a center, and a week of a room."""

import datetime as dt
from typing import Any

from django import forms
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
from reservations.booking.drafts import OVERRIDE_OPENING_HOURS
from reservations.desk.forms import CenterSearchField
from reservations.desk.timeline import geometry
from reservations.desk.timeline.timeline import STATUS_SIGNS, Timeline, TimelineOptions
from reservations.display import format_time_zone
from roombook import dates
from roombook.backoffice.model_admin import is_fragment_request
from roombook.backoffice.widgets import INPUT_CLASSES, DayField, parse_day
from roombook.ids import parse_id

# One of these permissions is enough.
VIEW_PERMISSIONS = (roles.VIEW_RESERVATION, roles.CHANGE_RESERVATION)
# In the session: the center that the user has seen last.
LAST_CENTER = "timeline_center"
DAY, WEEK = dt.timedelta(days=1), dt.timedelta(days=7)
LEGEND = [(status.value, sign, status.label) for status, sign in STATUS_SIGNS.items()]


class TimelinePages:
    """The pages of the timeline on an admin site."""

    def __init__(self, site: AdminSite) -> None:
        self.site = site

    def urls(self) -> list[URLPattern]:
        center = self.site.admin_view(self.show_center)
        room = self.site.admin_view(self.show_room_week)
        return [
            path("timeline/", center, {"view": "day"}, "reservations_timeline"),
            path("timeline/center/", center, {"view": "center-week"}, "reservations_timeline_week"),
            path("timeline/week/", room, name="reservations_room_week"),
        ]

    def show_center(self, request: HttpRequest, *, view: str) -> HttpResponseBase:
        """The rooms of a center on a day or, from Monday on, a week.

        Without parameters, it is the last center, and today.
        """
        roles.require_permission(request, *VIEW_PERMISSIONS)
        centers = Center.objects.filter(roles.get_center_filter(request.user, VIEW_PERMISSIONS, ""))
        center = _get_center(request, centers)
        if center is None:
            return self._render(request, None, {"title": "Timeline"})
        field: Any = CenterSearchField()
        field.queryset = centers
        return self._show(request, view, center, list(center.rooms.all()), field)

    def show_room_week(self, request: HttpRequest) -> HttpResponseBase:
        """A room on the days of a week, from Monday on."""
        room = _get_room(request)
        field = forms.ModelChoiceField(
            room.center.rooms.order_by("name", "pk"),
            empty_label=None,
            widget=forms.Select({"class": INPUT_CLASSES}),
        )
        return self._show(request, "room-week", room.center, [room], field)

    def _show(
        self,
        request: HttpRequest,
        view: str,
        center: Center,
        rooms: list[MeetingRoom],
        field: forms.Field,
    ) -> HttpResponseBase:
        """The page; ``field`` selects the center or the room."""
        room = rooms[0] if view == "room-week" else None
        place = room or center
        options = _get_options(request, center)
        today = options.now.astimezone(center.zone).date()
        label = "Date" if view == "day" else "Week of"
        text = request.GET.get("date") or today.isoformat()
        form = TimelineForm({"room" if room else "center": field}, place.pk, text, label)
        day = parse_day(text)
        if day is None:
            # Not today: the free times of another day would look like the answer.
            context = {"title": place.name, "center": center, "form": form, "problem": True}
            return self._render(request, None, context)
        unit, step, days, this = "day", DAY, [day], "Today"
        if view != "day":
            monday = day - day.weekday() * DAY
            days = [monday + number * DAY for number in range(7)]
            unit, step, this = "week", WEEK, "This week"
        shown = " - ".join(dates.format_day(each) for each in dict.fromkeys((days[0], days[-1])))
        axes = [axis for each in days if (axis := geometry.build_axis(each, center.zone))]
        by_day = room is not None
        timeline = Timeline(center, rooms, axes, options, rows_are_days=by_day) if axes else None
        noon = dt.datetime.combine(day, dt.time(12), tzinfo=center.zone)
        context = {
            "title": f"{place.name}, {shown}",
            "form": form,
            "room": room,
            "center": center,
            "day": day,
            "zone_name": format_time_zone(center, noon),
            "whole_day": options.whole_day,
            "view": view,
            "heading": "Day" if room else "Room",
            "day_links": [
                (f"Previous {unit}", "chevron_left", day - step),
                (this, "", today),
                (f"Next {unit}", "chevron_right", day + step),
            ],
        }
        return self._render(request, timeline, context)

    def _render(
        self, request: HttpRequest, timeline: Timeline | None, context: dict[str, Any]
    ) -> HttpResponseBase:
        """The page. Its script gets the rows only, or 304 if it shows the same already."""
        is_fragment = is_fragment_request(request)
        etag = timeline.compute_etag() if timeline else None
        if is_fragment and (unchanged := get_conditional_response(request, etag)):
            return unchanged
        context |= {
            "timeline": timeline,
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


class TimelineForm(forms.Form):
    """Selects a center or a room, and the day or the week."""

    date = DayField()

    def __init__(self, place: dict[str, forms.Field], pk: int, day: str, label: str) -> None:
        super().__init__(initial={**dict.fromkeys(place, pk), "date": day}, auto_id="timeline-%s")
        self.fields = {**place, "date": self.fields["date"]}
        self.fields["date"].label = label


# --- Query parameters ----------------------------------------------------------------------------


def _get_center(request: HttpRequest, centers: QuerySet[Center]) -> Center | None:
    """The center of the query; without one the last that the user has seen, or the first."""
    centers = centers.prefetch_related("rooms")
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
    room = rooms.select_related("center").first()
    if room is None:
        raise Http404("Not found.")
    _remember_center(request, room.center_id)
    return room


def _get_options(request: HttpRequest, center: Center) -> TimelineOptions:
    user = request.user
    return TimelineOptions(
        now=timezone.now(),
        whole_day=request.GET.get("hours") == "all",
        can_change=roles.has_permission(user, roles.CHANGE_RESERVATION, center.pk),
        can_add=roles.has_permission(user, roles.ADD_RESERVATION, center.pk),
        can_override_hours=roles.has_permission(user, OVERRIDE_OPENING_HOURS, center.pk),
    )
