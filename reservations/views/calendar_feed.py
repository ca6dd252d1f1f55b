"""The feed that customers' calendars read regularly: all meetings of an account (B24)."""

import datetime as dt
import hashlib

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import etag, require_safe

from accounts.limits import CALENDAR_FEED
from accounts.models import CalendarAddress
from reservations.models import Reservation
from reservations.notifications import calendar
from roombook.middleware import secret_page

PAST = dt.timedelta(days=90)


@csrf_exempt
@secret_page
@require_safe
def show_calendar(request: HttpRequest, secret: str) -> HttpResponse:
    """Return the calendar: 304 if the client has it, 404 if the secret is not valid."""
    now = timezone.now()
    account = CalendarAddress.find_account(secret)
    if account is None:
        raise Http404
    rows = Reservation.objects.in_calendar(now - PAST).filter(user=account)
    feed = calendar.render_feed(list(rows.select_related("room__center")))
    tag = f'"{hashlib.sha256(feed.encode()).hexdigest()}"'

    @etag(lambda _: tag)
    def render(_: HttpRequest) -> HttpResponse:
        CALENDAR_FEED.attempt(account, now=now)
        return HttpResponse(feed, "text/calendar; charset=utf-8")

    response = render(request)
    # A cache must ask again each time, because the address may have been revoked.
    response["Cache-Control"] = "private, no-cache"
    return response
