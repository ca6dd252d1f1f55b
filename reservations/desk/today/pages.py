"""The page "Today": who comes, what to prepare, and the day sheet to print (B18.1)."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils import timezone

from accounts import roles
from centers.models import Center
from reservations.desk.find_room import FindRoomForm
from reservations.desk.forms import CenterSearchField
from reservations.desk.today.arrivals import load_day
from reservations.local_days import DAY
from roombook import dates
from roombook.backoffice.pages import BackofficePages
from roombook.backoffice.widgets import DayField

# The key in the session of the center that was chosen last; None is all centers.
LAST_CENTER = "today_center"


class DayFilterForm(forms.Form):
    """Selects a center, or all, and a day."""

    center = CenterSearchField()
    date = DayField(required=False)

    def __init__(self, data: Mapping[str, object], centers: QuerySet[Center]) -> None:
        super().__init__(data, auto_id="today-%s")
        field: Any = self.fields["center"]
        field.queryset, field.required, field.label = centers, False, "Center (empty: all)"


class TodayPage(BackofficePages):
    """The page of a day."""

    pages = (("today/", "show", "reservations_today"),)

    def show(self, request: HttpRequest) -> HttpResponse:
        """The meetings of a day. Without parameters today, at the center that was chosen last."""
        user = roles.require_permission(request, roles.VIEW_RESERVATION)
        centers = Center.objects.filter(roles.get_center_filter(user, roles.VIEW_RESERVATION, ""))
        now = timezone.now()
        only, *others = centers.order_by("pk")[:2] or [None]
        last = centers.filter(pk=request.session.get(LAST_CENTER) or 0).first()
        last = last or (None if others else only)
        form = DayFilterForm({"center": last and last.pk, **request.GET.dict()}, centers)
        form.full_clean()
        center: Center | None = form.cleaned_data.get("center")
        day = form.cleaned_data.get("date")
        is_chosen = "center" in request.GET and "center" not in form.errors
        if is_chosen and center != last:
            request.session[LAST_CENTER] = center and center.pk
        # Other meetings than those that were asked for would look like the answer.
        meetings = None if form.errors else load_day(user, center, day, now=now)
        today = meetings.local_days if meetings else [now.date()]
        days = [day] if day else today
        title = (
            " and ".join(dates.format_day(each) for each in days) if meetings else "Nothing shown"
        )
        if meetings and days == today:
            title = f"Today, {title}"
        can_book = (
            center is not None
            and meetings is not None
            and day is None
            and roles.has_permission(user, roles.ADD_RESERVATION, center.pk)
        )
        find_form = FindRoomForm(QueryDict(), centers, center, now)
        find_form.fields["center"].widget = forms.HiddenInput()
        context = {
            "title": title,
            "form": form,
            "media": form.media,
            "center": center,
            "meetings": meetings,
            "can_book": can_book,
            "find_form": find_form,
            "day_links": [
                ("Previous day", "chevron_left", days[0] - DAY),
                ("Today", "", None),
                ("Next day", "chevron_right", days[0] + DAY),
            ],
        }
        return self.render(request, "admin/reservations/today.html", context)
