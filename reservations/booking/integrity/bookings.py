"""Checks that a booking is what its history, its events, its e-mails and its bill say."""

import datetime as dt
import re
from decimal import Decimal
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db.models import (
    Count,
    Exists,
    F,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
)
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Concat

from accounts.models import OutboxMessage, User
from accounts.models.account_erasure import UNREAD
from accounts.models.outbox_message import RECEIPT_KIND
from centers.models import MeetingRoom
from centers.rates import format_hours
from reservations.booking.integrity.common import (
    OVERDUE_AFTER,
    CheckList,
    Rows,
    approximately,
    get_history,
    get_kept_since,
    may_be_changed,
)
from reservations.models import (
    ChosenService,
    LineItem,
    LineItemType,
    PriceAdjustment,
    PromoRedemption,
    Reservation,
    WebhookEndpoint,
    WebhookEvent,
)
from reservations.models.status import BOOKED_STATUSES, HOLDING_STATUSES, Status
from reservations.models.webhooks import RETENTION
from reservations.pricing.quote import to_hours
from reservations.pricing.taxes import calculate_tax, sum_by_tax
from reservations.pricing.terms import ALL, RefundTerms
from roombook import money
from roombook.backoffice.models import AuditEntry
from roombook.db.sums import sum_of_related

CHECKS = CheckList()

# The key of a reservation's e-mails: `emails.get_subject_key`.
SUBJECT = Concat(Value("reservation "), Cast("pk", TextField()))


# --- History, events and e-mails ------------------------------------------------------------------


@CHECKS.add("reservation {} is {}, its history says {}")
def statuses_off_their_history(now: dt.datetime) -> Rows:
    """Find reservations in another status than their history says, or without a history."""
    steps = get_history(Reservation).filter(changes__has_key="status").order_by("-pk")
    last = Subquery(steps.annotate(status=KT("changes__status__1")).values("status")[:1])
    is_lost = Q(last=None, created_at__gt=get_kept_since("AUDIT_LOG_DAYS", now))
    rows = Reservation.objects.annotate(last=last)
    rows = rows.filter(
        (is_lost & ~Q(status=Status.NEW)) | (Q(last__isnull=False) & ~Q(last=F("status")))
    )
    return rows.values_list("pk", "status", "last")


@CHECKS.add("reservation {}: its last event says {}, and not {}")
def bookings_off_their_last_event(now: dt.datetime) -> Rows:
    """Find bookings with another room, time or status than their last event has."""
    last = get_history(Reservation).filter(changes__has_any_keys=["status", "room", "start", "end"])
    last = last.order_by("-pk")[:1]
    events = WebhookEvent.objects.filter(version=OuterRef("entry"))
    rows = Reservation.objects.filter(start__gt=now - RETENTION)
    rows = rows.annotate(
        entry=Subquery(last.values("pk")),
        waiting=Subquery(last.values("unpublished_event")),
        published=Subquery(events.values("data")),
    ).exclude(waiting__isnull=True, published__isnull=True)
    for row in rows.only("room", "start", "end", "status").iterator():
        event = row.waiting or row.published
        stored = {
            "RoomId": row.room_id,
            "Status": row.status,
            "Start": row.start.astimezone(dt.UTC).isoformat(),
            "End": row.end.astimezone(dt.UTC).isoformat(),
        }
        told = {name: event.get(name) for name in stored}
        if told != stored:
            changed = [name for name in stored if told[name] != stored[name]]
            yield row.pk, [told[name] for name in changed], [stored[name] for name in changed]


@CHECKS.add("reservation {}: the event of entry {} of its history is gone")
def events_missing(now: dt.datetime) -> Rows:
    """Find changes of status whose event was published, and that no event tells."""
    since = WebhookEndpoint.objects.aggregate(since=Min("created_at"))["since"]
    if since is None:
        return []
    since = max(since, now - RETENTION)
    entries = AuditEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(Reservation),
        timestamp__range=(since, now - OVERDUE_AFTER),
        unpublished_event__isnull=True,
        changes__has_key="status",
    )
    rows = entries.exclude(Exists(WebhookEvent.objects.filter(version=OuterRef("pk"))))
    return rows.values_list("object_id", "pk")


@CHECKS.add("reservation {} was booked, and there is no e-mail about it")
def bookings_without_confirmation(now: dt.datetime) -> Rows:
    """Find bookings whose customer got no e-mail."""
    emails = OutboxMessage.objects.filter(about=OuterRef("subject")).exclude(kind=RECEIPT_KIND)
    since = get_kept_since("EMAIL_DAYS", now)
    rows = Reservation.objects.filter(status__in=sorted(BOOKED_STATUSES), booked_at__gt=since)
    rows = rows.annotate(subject=SUBJECT).exclude(Exists(emails))
    # Nor if nobody read the address then: its e-mails were deleted instead of sent.
    rows = rows.exclude(may_be_changed(now, User, "user", "email"))
    for domain in UNREAD:
        rows = rows.exclude(user__email__endswith=domain)
    return rows.values_list("pk")


@CHECKS.add("reservation {} is of account {}, and another account has booked it")
def bookings_of_another_account(now: dt.datetime) -> Rows:
    """Find reservations of another account than e-mails, the history or a promo use say."""
    emails = OutboxMessage.objects.filter(about=OuterRef("subject"), user__isnull=False)
    uses = PromoRedemption.objects.filter(reservation=OuterRef("pk"), given_back_at=None)
    # Customers, who have no address in the history, also once they are staff.
    acts = get_history(Reservation).filter(
        actor__is_active=True, actor__is_staff=False, actor_email=""
    )
    rows = Reservation.objects.annotate(subject=SUBJECT).filter(
        Exists(emails.exclude(user=OuterRef("user")))
        | Exists(uses.exclude(user=OuterRef("user")))
        | Exists(acts.exclude(actor=OuterRef("user")))
    )
    return rows.values_list("pk", "user")


# --- What is booked -------------------------------------------------------------------------------


@CHECKS.add("reservation {} is for {} people, its room for {}")
def attendees_above_capacity(now: dt.datetime) -> Rows:
    """Find reservations for more people than the room holds, unless staff have changed that."""
    rows = Reservation.objects.filter(number_of_attendees__gt=F("room__capacity"))
    rows = rows.exclude(may_be_changed(now, MeetingRoom, "room", "capacity"))
    return rows.values_list("pk", "number_of_attendees", "room__capacity")


@CHECKS.add("reservation {} is for {} people, and lists {}, {} of them its customer")
def attendees_off_their_number(now: dt.datetime) -> Rows:
    """Find reservations that list more people than attend, or not their customer."""
    rows = Reservation.objects.annotate(
        listed=Count("attendees"), creators=Count("attendees", filter=Q(attendees__is_creator=True))
    )
    rows = rows.filter(Q(listed__gt=F("number_of_attendees")) | Q(creators=0))
    return rows.values_list("pk", "number_of_attendees", "listed", "creators")


@CHECKS.add("reservation {} takes {}, and is billed {:.2f} h")
def hours_off_their_span(now: dt.datetime) -> Rows:
    """Find reservations that are billed for other hours than they take.

    A started quarter hour can be billed as an hour, and a center's new time zone can make a booking
    an hour longer or shorter.
    """
    rows = Reservation.objects.values_list("pk", "start", "end", "billable_hours")
    for pk, start, end, billed in rows.iterator():
        hours = to_hours(end - start)
        if not hours - 1 <= billed <= 4 * hours + 1:
            yield pk, format_hours(hours), billed


@CHECKS.add("reservation {} has service {}, and no line for it on its bill")
def services_off_their_lines(now: dt.datetime) -> Rows:
    """Find services without a line on the bill."""
    own = LineItem.objects.filter(
        type=LineItemType.SERVICE, reservation=OuterRef("reservation"), service=OuterRef("service")
    )
    rows = ChosenService.objects.exclude(Exists(own))
    return rows.values_list("reservation", "service__name")


@CHECKS.add(
    "reservation {} has extras of {:.2f} and adjustments of {:.2f}, its lines {:.2f}, {:.2f}"
)
def adjustments_off_their_lines(now: dt.datetime) -> Rows:
    """Find extras and adjustments that are not those on the bill.

    A bill never goes below zero, so its lines can take off less than the adjustments say.
    """

    def sum_lines(*types: LineItemType) -> Coalesce:
        return sum_of_related(LineItem.objects.filter(type__in=types), "total", by="reservation")

    stored = PriceAdjustment.objects
    rows = Reservation.objects.annotate(
        extras=sum_of_related(stored.filter(amount__gt=0), "amount", by="reservation"),
        lowered=sum_of_related(stored.filter(amount__lt=0), "amount", by="reservation"),
        extra_lines=sum_lines(LineItemType.EXTRA),
        lowering_lines=sum_lines(LineItemType.ADJUSTMENT),
        others=sum_lines(*(set(LineItemType) - {LineItemType.EXTRA, LineItemType.TAX})),
    )
    is_limited = Q(lowering_lines__gt=F("lowered"), others__lte=money.ROUNDING_TOLERANCE)
    rows = rows.filter(
        ~Q(extra_lines__range=approximately(F("extras")))
        | ~Q(is_limited) & ~Q(lowering_lines__range=approximately(F("lowered")))
    )
    return rows.values_list("pk", "extras", "lowered", "extra_lines", "lowering_lines")


@CHECKS.add("reservation {}: its line {} says {}, and is {}")
def lines_off_their_texts(now: dt.datetime) -> Rows:
    """Find lines of bills that are not in the ledger yet, whose texts say something else."""
    for line in _get_open_lines(now):
        is_stated = line.type == LineItemType.TAX or (line.service_id and not line.total)
        amount = money.format_amount(line.total, line.reservation.currency)
        if not is_stated and _get_digits(line.amount) != _get_digits(amount):
            yield line.reservation_id, line.position, line.amount, amount
        room = line.reservation.room.name
        if line.type == LineItemType.ROOM and not (
            line.is_room_renamed or line.description.startswith(f"{room}, ")
        ):
            yield line.reservation_id, line.position, line.description, room


@CHECKS.add("reservation {}: its {} is {}, of {}")
def taxes_off_their_rate(now: dt.datetime) -> Rows:
    """Find taxes of bills that are not in the ledger yet, at another rate than their label says.

    Each adjustment after the first price can have rounded it once more.
    """
    bills: dict[int, list[LineItem]] = {}
    for line in _get_open_lines(now):
        bills.setdefault(line.reservation_id, []).append(line)
    for pk, lines in bills.items():
        for label, found in sum_by_tax(lines).items():
            percent = re.search(r"([\d.]+)%", label)
            rate = Decimal(percent[1]) if percent else money.ZERO
            expected = calculate_tax(found.base, rate, is_contained=bool(found.contained))
            if abs(expected.tax - found.tax) > money.from_hundredths(len(lines)):
                yield pk, label or "tax", found.tax, found.base


def _get_open_lines(now: dt.datetime) -> QuerySet[Any]:
    """Return the lines of what can still be paid or approved."""
    is_renamed = may_be_changed(
        now, MeetingRoom, "reservation__room", "name", made="reservation__created_at"
    )
    statuses = [Status.NEW, Status.PROCESSING, Status.PENDING]
    lines = LineItem.objects.filter(reservation__status__in=statuses, reservation__end__gt=now)
    lines = lines.select_related("reservation__room").order_by("reservation", "position")
    return lines.annotate(is_room_renamed=is_renamed)


def _get_digits(text: str) -> str:
    return re.sub(r"\D", "", text)


@CHECKS.add("reservation {}: its terms of cancellation are {}")
def terms_that_cannot_be_read(now: dt.datetime) -> Rows:
    """Find terms of bookings to come that do not say what comes back."""
    rows = Reservation.objects.filter(status__in=sorted(HOLDING_STATUSES), end__gt=now)
    for pk, stored in rows.values_list("pk", "cancellation_terms").iterator():
        try:
            terms = RefundTerms.read(stored)
        except (KeyError, TypeError):
            yield pk, stored
            continue
        percents = [terms.no_show_percent, *(each.percent for each in terms.steps)]
        if not all(0 <= each <= ALL for each in percents):
            yield pk, stored
