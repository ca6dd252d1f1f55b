"""Pages of a customer's reservations, in the order of start and id (B17, List reservations)."""

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass

from django.core.signing import BadSignature, Signer

from accounts.models import User
from reservations.models import Reservation
from reservations.records import ReservationRecord, list_records, mark_prices_as_shown
from roombook.errors import InvalidRequest

MAX_PAGE_SIZE = 100


@dataclass(frozen=True, slots=True)
class ReservationPage:
    """A page, and the cursor of the next one, which is None on the last page."""

    reservations: list[ReservationRecord]
    next_cursor: str | None


def list_page(
    user: User,
    *,
    start: dt.datetime | None,
    end: dt.datetime | None,
    statuses: Collection[str],
    page_size: int,
    cursor: str,
) -> ReservationPage:
    """Return the reservations after the cursor that overlap the time and have one of the statuses.

    A page begins after the last reservation of the page before it, wherever that now stands in the
    list. So reservations that are created or cancelled between two pages move no other.

    Raises InvalidRequest unless the cursor was given to this account for these filters.
    """
    signer = _get_signer(user, start, end, statuses)
    rows = Reservation.objects.for_user(user).between(start, end)
    if statuses:
        rows = rows.filter(status__in=statuses)
    if cursor:
        last_start, last_id = _read_cursor(signer, cursor)
        rows = rows.filter(start__gte=last_start).exclude(start=last_start, pk__lte=last_id)
    # One more shows whether there is a next page.
    found = list_records(rows.order_by("start", "pk")[: page_size + 1], user=user)
    page = found[:page_size]
    mark_prices_as_shown(page)
    has_more = len(found) > page_size
    return ReservationPage(page, _build_cursor(signer, page[-1]) if has_more else None)


def _get_signer(
    user: User,
    start: dt.datetime | None,
    end: dt.datetime | None,
    statuses: Collection[str],
) -> Signer:
    """Return a signer whose signatures are valid only for this account and these filters."""
    times = (at.astimezone(dt.UTC).isoformat() if at else "" for at in (start, end))
    return Signer(salt="|".join(["reservations", str(user.pk), *times, *sorted({*statuses})]))


def _build_cursor(signer: Signer, last: ReservationRecord) -> str:
    return signer.sign_object([last.span.start.isoformat(), last.id])


def _read_cursor(signer: Signer, cursor: str) -> tuple[dt.datetime, int]:
    try:
        start, pk = signer.unsign_object(cursor)
    except BadSignature:
        raise InvalidRequest({"cursor": "This cursor is not valid for this request."}) from None
    return dt.datetime.fromisoformat(start), pk
