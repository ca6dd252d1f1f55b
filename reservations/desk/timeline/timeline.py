"""The timeline of rooms: their bookings, and the free time in which staff can start a new one.

What can be booked comes from the calendars of the rooms. Of customers, only the names are read.
"""

import datetime as dt
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib.auth.models import AnonymousUser
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag

from accounts import roles
from accounts.models import User
from centers.models import Center, MeetingRoom
from centers.requested_span import MAX_SPAN
from centers.rooms import get_booking_rules
from centers.span import Span, find_gaps, get_local_midnight
from reservations.availability import (
    RoomCalendar,
    check_state,
    get_earliest_start,
    load_calendars,
)
from reservations.booking import amendments
from reservations.booking.drafts import OVERRIDE_OPENING_HOURS
from reservations.desk.forms import CenterSearchField
from reservations.desk.timeline import geometry
from reservations.desk.timeline.geometry import TimelineAxis
from reservations.display import format_time_zone, get_reservation_url
from reservations.models import Reservation
from reservations.models.status import Status
from roombook import dates
from roombook.backoffice.model_admin import is_fragment_request
from roombook.backoffice.pages import BackofficePages
from roombook.backoffice.widgets import INPUT_CLASSES, DayField, parse_day
from roombook.ids import parse_id

# Statuses are distinguished by a sign as well as by color.
STATUS_SIGNS = {
    Status.NEW: "✎",
    Status.PROCESSING: "⟳",
    Status.PENDING: "?",
    Status.CONFIRMED: "✓",
    Status.COMPLETED: "■",
    Status.NO_SHOW: "✕",
}
# A timeline that is requested again shows a current time that is at most this old.
NOW_STEP = dt.timedelta(minutes=5)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# One of these permissions is enough.
VIEW_PERMISSIONS = (roles.VIEW_RESERVATION, roles.CHANGE_RESERVATION)
# In the session: the center that the user has seen last.
LAST_CENTER = "timeline_center"
DAY, WEEK = dt.timedelta(days=1), dt.timedelta(days=7)
LEGEND = [(status.value, sign, status.label) for status, sign in STATUS_SIGNS.items()]


# What a template shows: a row of tracks, a track, or an item of it.
Part = dict[str, Any]


class Timeline:
    """The rooms of a center on some days, each with the axis of its 24 hours.

    A row is a room, or a day if ``rows_are_days``. Either there are ``columns``, one for each day,
    or hours at the head. Inactive rooms are shown only if they are booked. Everything is read at
    first, so that ``compute_etag`` says whether anything has changed before the rows are built.
    """

    def __init__(
        self,
        center: Center,
        rooms: list[MeetingRoom],
        axes: list[TimelineAxis],
        *,
        user: User | AnonymousUser,
        now: dt.datetime,
        whole_day: bool = False,
        rows_are_days: bool = False,
    ) -> None:
        self.center, self.rooms, self.now = center, rooms, now
        self.whole_day, self.rows_are_days = whole_day, rows_are_days
        self.can_change, self.can_add, self.can_override_hours = (
            roles.has_permission(user, permission, center.pk)
            for permission in (
                roles.CHANGE_RESERVATION,
                roles.ADD_RESERVATION,
                OVERRIDE_OPENING_HOURS,
            )
        )
        self.has_columns = len(axes) > 1 and not rows_are_days
        self.day_axes = axes
        span = Span(axes[0].span.start, axes[-1].span.end)
        self.calendars = load_calendars(rooms, span, user=None, now=now)
        self.bookings: dict[int, list[Reservation]] = defaultdict(list)
        for booking in self._load_bookings(span):
            self.bookings[booking.room_id].append(booking)
        self.shown_rooms = [room for room in rooms if room.is_active or self.bookings[room.pk]]
        self.shown_rooms.sort(key=_get_natural_sort_key)

    def _load_bookings(self, span: Span) -> Iterable[Reservation]:
        """Read what is shown: also finished bookings, whose time can be booked again."""
        rows = Reservation.slots.filter(
            room__in=[room.pk for room in self.rooms],
            # No booking is longer, so the index is not read from its beginning.
            start__gt=span.start - MAX_SPAN - dt.timedelta(days=1),
            start__lt=span.end,
            end__gt=span.start,
        )
        rows = rows.occupying_time(self.now).select_related("user").order_by("start", "pk")
        return rows.only(
            *("room_id", "start", "end", "status", "hold_until", "holds_for_id", "version"),
            *("checked_in_at", "user__first_name", "user__last_name"),
        )

    def compute_etag(self) -> str:
        """The ETag of everything that was read, and of the time in steps."""
        bookings = list(chain.from_iterable(self.bookings.values()))
        calendars = self.calendars.values()
        rows: list[Model] = [self.center, *self.rooms, *bookings]
        rows += (booking.user for booking in bookings)
        rows += (closure for calendar in calendars for closure in calendar.closures)
        times = [(calendar.opening_hours, calendar.held) for calendar in calendars]
        step = (self.now - EPOCH) // NOW_STEP
        may = (self.can_change, self.can_add, self.can_override_hours)
        content = (may, self.whole_day, step, times, [_get_values(row) for row in rows])
        return quote_etag(sha256(repr(content).encode()).hexdigest())

    @cached_property
    def axes(self) -> list[TimelineAxis]:
        """The days, without the hours in which nothing is open or booked, unless wanted."""
        if self.whole_day:
            return self.day_axes
        spans = [booking.span for room in self.shown_rooms for booking in self.bookings[room.pk]]
        for calendar in list(self.calendars.values())[:1]:  # All have the hours of the center.
            spans += (span for axis in self.day_axes for span in calendar.get_open_spans(axis.span))
        visible = [
            geometry.get_visible_hours(axis.span, axis.zone, spans) for axis in self.day_axes
        ]
        hours = (min(first for first, _ in visible), max(last for _, last in visible))
        cropped = (geometry.build_axis(axis.day, axis.zone, hours) for axis in self.day_axes)
        return [axis for axis in cropped if axis]

    # --- The head and the rows -------------------------------------------------------------------

    @property
    def header(self) -> TimelineAxis:
        """The hours at the head: those of the first day. Days with others have their own."""
        return self.axes[0]

    @property
    def hours(self) -> float:
        """The length of the axis."""
        return self.header.span.duration / geometry.HOUR

    @property
    def hour_lines(self) -> str:
        """CSS that draws the full hours behind the rows."""
        return "" if self.has_columns else _format_hour_lines(self.header)

    @property
    def note(self) -> str:
        has_one_day = not self.has_columns and not self.rows_are_days
        return describe_clock_change(self.header.day, self.header.zone) if has_one_day else ""

    @cached_property
    def columns(self) -> list[Part]:
        return [self._build_day(axis) for axis in self.axes] if self.has_columns else []

    @cached_property
    def rows(self) -> list[Part]:
        """A room with a track for each day, or a day with one track."""
        if self.rows_are_days:
            return [
                self._build_day(axis, [self._build_track(axis, room)])
                for axis in self.axes
                for room in self.rooms
            ]
        return [
            {
                "title": room.name,
                "href": _build_url(
                    "reservations_room_week", room=room.pk, date=self.day_axes[0].day
                ),
                "link_title": f"Week of {room.name}",
                "subtitle": f"{room.capacity} people",
                "note": _describe_room_state(room),
                "tracks": [self._build_track(axis, room) for axis in self.axes],
            }
            for room in self.shown_rooms
        ]

    def _build_day(self, axis: TimelineAxis, tracks: Sequence[Part] = ()) -> Part:
        return {
            "title": dates.format_day(axis.day),
            "href": _build_url("reservations_timeline", center=self.center.pk, date=axis.day),
            "link_title": f"{self.center.name} on this day",
            "subtitle": describe_clock_change(axis.day, axis.zone),
            "is_today": axis.day == self.now.astimezone(axis.zone).date(),
            "tracks": tracks,
        }

    # --- The track of a room on a day ------------------------------------------------------------

    def _build_track(self, axis: TimelineAxis, room: MeetingRoom) -> Part:
        """Bookings, links to new ones at free times, and marks: the kind, the CSS and the text.

        The rest is for the script: the length of the axis in ``minutes``, that from which staff can
        book (``earliest``), the ``clock`` of the axis, and ``new_url``, the page of a new
        reservation, or "" if the user can make none.
        """
        calendar, now = self.calendars[room.pk], self.now
        bookings = [each for each in self.bookings[room.pk] if each.span.overlaps(axis.span)]
        new_url = self._get_new_url(axis, room)
        slots = list(self._find_slots(axis, calendar)) if new_url and not self.has_columns else []
        # The rest of a no-show's time is free: its links are in a lane below the bar.
        spans = [*(booking.span for booking in bookings), *(slot.piece for slot in slots)]
        lanes = geometry.assign_lanes(spans)
        styles = (
            f"{axis.format_style(span)};--lane:{lane}"
            for span, lane in zip(spans, lanes, strict=True)
        )
        items: list[Part] = [
            *(self._build_booking(axis, booking, next(styles), room) for booking in bookings),
            *(_build_free_slot(axis, slot, next(styles), room, new_url) for slot in slots),
        ]
        items.sort(key=lambda item: item["start"])
        earliest = get_earliest_start(get_booking_rules(room), now, axis.zone)
        is_now_on_axis = axis.span.start <= now < axis.span.end
        has_own_hours = self.rows_are_days and (
            _get_tick_positions(axis) != _get_tick_positions(self.header)
        )
        return {
            "room": room,
            "day": axis.day,
            "minutes": axis.span.duration // geometry.MINUTE,
            "earliest": max(0, (earliest - axis.span.start) // geometry.MINUTE),
            "clock": json.dumps(axis.clock, separators=(",", ":")),
            "slot_minutes": get_booking_rules(room).slot_minutes,
            "new_url": new_url,
            "lanes": max(lanes, default=0) + 1,
            "marks": list(_find_marks(axis, calendar)),
            "items": items,
            "now_style": f"left:{axis.get_left(now):.4f}%" if is_now_on_axis else "",
            # Only if its hours differ from those of the header.
            "ticks": axis.ticks if has_own_hours else (),
            "hour_lines": _format_hour_lines(axis) if has_own_hours else "",
        }

    def _build_booking(
        self, axis: TimelineAxis, booking: Reservation, style: str, room: MeetingRoom
    ) -> Part:
        """``label`` describes it for screen readers; what can be moved here has a ``move_url``."""
        status = Status(booking.status)
        label = status_label = "Checked in" if booking.is_checked_in else status.label
        if booking.holds_for_id is not None:
            label = "Held for its change"
        if booking.hold_until is not None:
            label += f", held until {dates.format_datetime(booking.hold_until, axis.zone)}"
        name = booking.user.get_full_name() or "No name"
        time = geometry.format_span(booking.span, axis).replace(" - ", "-")
        # A slot that is held for a change belongs to its booking.
        reservation_id = booking.holds_for_id or booking.pk
        can_move = (
            self.can_change
            and booking.holds_for_id is None
            and axis.span.contains(booking.span)
            and amendments.can_reschedule(booking, now=self.now)
        )
        move_page, args = "reservations_reservation_action", (booking.pk, "move")
        return {
            "href": get_reservation_url(reservation_id),
            "style": style,
            "status": status.value,
            "status_label": status_label,
            "sign": STATUS_SIGNS[status],
            "name": name,
            "time": time,
            # It contains the visible text, so that it can be spoken to select the link.
            "label": f"{name} {time} {label}, {room.name}, reservation {reservation_id}",
            "starts_before": booking.start < axis.span.start,
            "ends_after": booking.end > axis.span.end,
            "start": booking.start,
            "move_url": reverse(f"admin:{move_page}", args=args) if can_move else "",
            "first": (booking.start - axis.span.start) // geometry.MINUTE,
            "last": (booking.end - axis.span.start) // geometry.MINUTE,
            "version": booking.version,
        }

    def _get_new_url(self, axis: TimelineAxis, room: MeetingRoom) -> str:
        """The page of a new reservation of the room; "" if none can be made on that day."""
        now = self.now
        last_day = get_booking_rules(room).get_last_day(now, axis.zone)
        is_bookable = now < axis.span.end and axis.day <= last_day and not check_state(room)
        if not self.can_add or room.rate_id is None or not is_bookable:
            return ""
        return f"{reverse('admin:reservations_reservation_add')}?room={room.pk}"

    def _find_slots(
        self, axis: TimelineAxis, calendar: RoomCalendar
    ) -> Iterator[geometry.TimelineSlot]:
        """The free time of a room; outside opening hours only if the user can override them."""
        for is_closed in (False, True) if self.can_override_hours else (False,):
            free = calendar.find_free_times(
                axis.span,
                now=self.now,
                outside_opening_hours=is_closed,
                by_staff=True,
            )
            rules = get_booking_rules(calendar.room)
            yield from geometry.find_slots(axis, free, rules, is_closed=is_closed)


def _build_free_slot(
    axis: TimelineAxis, slot: geometry.TimelineSlot, style: str, room: MeetingRoom, page: str
) -> Part:
    start, end = slot.proposed.to_local(axis.zone)
    time = geometry.format_span(slot.proposed, axis)
    label = f"New draft: {room.name}, {dates.format_day(axis.day)}, {time}"
    return {
        "href": f"{page}&start={start:%Y-%m-%dT%H:%M}&end={end:%Y-%m-%dT%H:%M}",
        "style": style,
        "label": f"{label} (outside opening hours)" if slot.is_closed else label,
        "is_closed": slot.is_closed,
        "start": slot.piece.start,
    }


def _find_marks(axis: TimelineAxis, calendar: RoomCalendar) -> Iterator[tuple[str, str, str]]:
    """What limits the bookings of a room on an axis: closed hours, closures and turnaround."""
    has_support = calendar.room.center.is_after_hours_support_enabled
    closed = "after-hours" if has_support else "closed"
    marked = [
        (span, closed, "") for span in find_gaps(axis.span, calendar.get_open_spans(axis.span))
    ]
    for closure in calendar.closures:
        time = geometry.format_span(closure.span, axis)
        marked.append((closure.span, "closure", f"{closure.reason or 'Closed'}, {time}"))
    for held in calendar.held:
        around = find_gaps(held.span, [Span(held.start, held.end)])
        marked += ((span, "turnaround", "") for span in around)
    for span, kind, text in marked:
        if axis.span.overlaps(span):
            yield kind, axis.format_style(span), text
    if calendar.room.is_blocked:
        yield "blocked", "left:0%;width:100%", ""


def _describe_room_state(room: MeetingRoom) -> str:
    if not room.is_active:
        return "not active"
    if room.is_blocked:
        return "out of service"
    return "no price" if room.rate_id is None else ""


def _get_natural_sort_key(room: MeetingRoom) -> list[tuple[int, str]]:
    """Sorts Room 2 before Room 10."""
    parts = re.split(r"(\d+)", room.name.casefold())
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _get_values(row: Model) -> list[tuple[str, object]]:
    return [(name, value) for name, value in vars(row).items() if not name.startswith("_")]


def _get_tick_positions(axis: TimelineAxis) -> tuple[tuple[str, str, float], ...]:
    return tuple((tick.label, tick.zone_name, round(tick.left, 3)) for tick in axis.ticks)


def _format_hour_lines(axis: TimelineAxis) -> str:
    """A CSS background with a line at each full hour."""
    color = "linear-gradient(var(--timeline-line), var(--timeline-line))"
    return ", ".join(f"{color} {tick.left:.4f}% 0 / 1px 100% no-repeat" for tick in axis.ticks)


def describe_clock_change(day: dt.date, zone: dt.tzinfo) -> str:
    """A note if the clocks change on this day, else ""."""
    start, end = get_local_midnight(day, zone), get_local_midnight(day + dt.timedelta(1), zone)
    change = (end - start) - dt.timedelta(hours=geometry.HOURS_PER_DAY)
    if not change:
        return ""
    minutes = abs(change) // dt.timedelta(minutes=1)
    direction = "back" if change > dt.timedelta() else "forward"
    return f"The clock goes {direction} by {minutes} minutes."


def _build_url(page: str, **query: object) -> str:
    return f"{reverse(f'admin:{page}')}?{urlencode(query)}"


# --- The pages: a day or a week of a center, and a week of a room ---------------------------------


class TimelinePages(BackofficePages):
    """The pages of the timeline."""

    pages = (
        ("timeline/", "show_center", "reservations_timeline", {"view": "day"}),
        (
            "timeline/center/",
            "show_center",
            "reservations_timeline_week",
            {"view": "center-week"},
        ),
        ("timeline/week/", "show_room_week", "reservations_room_week"),
    )

    def show_center(self, request: HttpRequest, *, view: str) -> HttpResponseBase:
        """The rooms of a center on a day or, from Monday on, a week.

        Without parameters, it is the last center, and today.
        """
        roles.require_permission(request, *VIEW_PERMISSIONS)
        centers = Center.objects.filter(roles.get_center_filter(request.user, VIEW_PERMISSIONS, ""))
        center = _get_center(request, centers)
        if center is None:
            return self._render(request, None, {"title": "Timeline"})
        field = CenterSearchField(centers)
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
        now = timezone.now()
        today = now.astimezone(center.zone).date()
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
        whole_day, timeline = request.GET.get("hours") == "all", None
        if axes:
            timeline = Timeline(
                center,
                rooms,
                axes,
                user=request.user,
                now=now,
                whole_day=whole_day,
                rows_are_days=bool(room),
            )
        noon = dt.datetime.combine(day, dt.time(12), tzinfo=center.zone)
        context = {
            "title": f"{place.name}, {shown}",
            "form": form,
            "room": room,
            "center": center,
            "day": day,
            "zone_name": format_time_zone(center, noon),
            "whole_day": whole_day,
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
            "content_title": context["title"],
            "media": context["form"].media if "form" in context else "",
            "legend": LEGEND,
            **context,
        }
        return self.render(request, "admin/reservations/timeline.html", context)


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
