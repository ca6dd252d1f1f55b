"""Checks that a booking is what its room, its history, its e-mails and its bill say."""

import datetime as dt
import re
from decimal import Decimal
from typing import Any

from django.conf import settings
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
from django.db.models.functions import Cast, Coalesce, Concat, Greatest

from accounts.models import OutboxMessage, User
from accounts.models.account_erasure import UNREAD
from accounts.models.outbox_message import RECEIPT_KIND
from centers.models import Center, MeetingRoom, Rate
from centers.rates import PRICE_FIELDS, format_hours
from payments.models import Payment, PaymentState
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
    BookingChange,
    ChangeState,
    ChosenService,
    LineItem,
    LineItemType,
    PriceAdjustment,
    PromoRedemption,
    Reservation,
    WebhookEndpoint,
    WebhookEvent,
)
from reservations.models.querysets import LATE_PAYMENT
from reservations.models.status import BOOKED_STATUSES, HOLDING_STATUSES, Status
from reservations.models.webhooks import RETENTION
from reservations.pricing.quote import to_hours
from reservations.pricing.taxes import calculate_tax, sum_by_tax
from reservations.pricing.terms import ALL, RefundTerms
from roombook import money
from roombook.backoffice.models import AuditEntry
from roombook.db.sums import sum_of_related
from roombook.places import is_time_zone

CHECKS = CheckList()


@CHECKS.add("reservations {pk} and {conflict} both hold room {room}")
def overlapping_holders(now: dt.datetime) -> Rows:
    slots = Reservation.slots.filter(holds_slot=True).annotate(holder=Coalesce("holds_for", "pk"))
    conflicts = slots.filter(
        ~Q(holder=OuterRef("holder")), room=OuterRef("room"), pk__gt=OuterRef("pk")
    ).filter(
        Q(start__lt=OuterRef("occupied_until"), occupied_until__gt=OuterRef("start"))
        | Q(occupied_from__lt=OuterRef("end"), end__gt=OuterRef("occupied_from"))
    )
    rows = slots.annotate(conflict=Subquery(conflicts.order_by("pk").values("pk")[:1]))
    return rows.filter(conflict__isnull=False)


@CHECKS.add("room {room} is held for a change of reservation {holds_for} that does not wait")
def slots_held_for_no_change(now: dt.datetime) -> Rows:
    waiting = BookingChange.objects.filter(
        reservation=OuterRef("holds_for"), payment=None, state=ChangeState.STARTED
    )
    return Reservation.slots.filter(~Exists(waiting), holds_for__isnull=False)


@CHECKS.add("reservation {pk} is Processing without a payment under way")
def processing_without_payment(now: dt.datetime) -> Rows:
    paying = Payment.objects.filter(reservation=OuterRef("pk"), state=PaymentState.STARTED)
    return Reservation.objects.filter(status=Status.PROCESSING).exclude(Exists(paying))


@CHECKS.add("reservation {pk} is New and held until {hold_until}")
def drafts_held_too_long(now: dt.datetime) -> Rows:
    latest = now + dt.timedelta(hours=settings.HOLD_HOURS_STAFF) + OVERDUE_AFTER
    is_too_long = Q(hold_until__gt=latest) | Q(
        hold_until__gt=Greatest("start", "created_at") + LATE_PAYMENT
    )
    is_too_long |= Q(hold_until__gt=F("start"), created_by=None)
    return Reservation.objects.filter(is_too_long, status=Status.NEW)


@CHECKS.add("reservation {pk} is {status}, from {start} to {end}, booked at {booked_at}")
def statuses_off_their_times(now: dt.datetime) -> Rows:
    long_ago = now - dt.timedelta(days=5)
    unanswered = long_ago - dt.timedelta(hours=settings.PENDING_HOURS)
    wrong = Q(status__in=[Status.COMPLETED, Status.NO_SHOW], start__gt=now)
    wrong |= Q(status=Status.CONFIRMED, end__lt=long_ago)
    wrong |= Q(status=Status.PENDING) & (Q(booked_at__lt=unanswered) | Q(start__lt=long_ago))
    return Reservation.objects.filter(wrong)


@CHECKS.add("reservation {} has {} minutes of turnaround, and is occupied from {} until {}")
def turnaround_off_its_minutes(now: dt.datetime) -> Rows:
    rows = Reservation.slots.order_by()
    # One query for each, because SQLite multiplies no intervals.
    for minutes in rows.values_list("turnaround_minutes", flat=True).distinct():
        length = dt.timedelta(minutes=minutes)
        wrong = rows.filter(turnaround_minutes=minutes).exclude(
            occupied_from=F("start") - length, occupied_until=F("end") + length
        )
        yield from wrong.values_list("pk", "turnaround_minutes", "occupied_from", "occupied_until")


@CHECKS.add(
    "reservation {reservation}: no room is held for its change, which waits until {link_until}"
)
def changes_off_their_slot(now: dt.datetime) -> Rows:
    own = Reservation.slots.filter(
        holds_for=OuterRef("reservation"),
        **{name: OuterRef(name) for name in ("room", "start", "end")},
    )
    return BookingChange.objects.filter(
        ~Exists(own), state=ChangeState.STARTED, payment=None, link_until__gt=now, start__gt=now
    )


@CHECKS.add(
    "reservation {pk}: room {room} has no price, or an unknown zone: {room__center__time_zone_id}"
)
def bookings_without_a_price_or_a_time(now: dt.datetime) -> Rows:
    # Staff can take a room out of use by removing its rate; the audit log has that.
    rows = Reservation.objects.filter(status__in=sorted(HOLDING_STATUSES), end__gt=now)
    prices = [name for names in PRICE_FIELDS.values() for name in names]
    no_price = Q(room__rate=None) | Q(**{f"room__rate__{name}": None for name in prices})
    by_staff = may_be_changed(now, MeetingRoom, "room", "rate")
    by_staff |= may_be_changed(now, Rate, "room__rate", *prices)
    zones = Center.objects.order_by().values_list("time_zone_id", flat=True).distinct()
    unknown = [zone for zone in zones if not is_time_zone(zone)]
    return rows.filter(Q(no_price, ~by_staff) | Q(room__center__time_zone_id__in=unknown))


# The key of a reservation's e-mails: `emails.get_subject_key`.
SUBJECT = Concat(Value("reservation "), Cast("pk", TextField()))


# --- History, events and e-mails ------------------------------------------------------------------


@CHECKS.add("reservation {pk} is {status}, its history says {last}")
def statuses_off_their_history(now: dt.datetime) -> Rows:
    steps = get_history(Reservation).filter(changes__has_key="status").order_by("-pk")
    last = Subquery(steps.annotate(status=KT("changes__status__1")).values("status")[:1])
    is_lost = Q(last=None, created_at__gt=get_kept_since("AUDIT_LOG_DAYS", now))
    rows = Reservation.objects.annotate(last=last)
    return rows.filter(
        (is_lost & ~Q(status=Status.NEW)) | (Q(last__isnull=False) & ~Q(last=F("status")))
    )


@CHECKS.add("reservation {}: its last event says {}, and not {}")
def bookings_off_their_last_event(now: dt.datetime) -> Rows:
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


@CHECKS.add("reservation {object_id}: the event of entry {pk} of its history is gone")
def events_missing(now: dt.datetime) -> Rows:
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
    return entries.exclude(Exists(WebhookEvent.objects.filter(version=OuterRef("pk"))))


@CHECKS.add("reservation {pk} was booked, and there is no e-mail about it")
def bookings_without_confirmation(now: dt.datetime) -> Rows:
    emails = OutboxMessage.objects.filter(about=OuterRef("subject")).exclude(kind=RECEIPT_KIND)
    since = get_kept_since("EMAIL_DAYS", now)
    rows = Reservation.objects.filter(status__in=sorted(BOOKED_STATUSES), booked_at__gt=since)
    rows = rows.annotate(subject=SUBJECT).exclude(Exists(emails))
    # Nor if nobody read the address then: its e-mails were deleted instead of sent.
    rows = rows.exclude(may_be_changed(now, User, "user", "email"))
    for domain in UNREAD:
        rows = rows.exclude(user__email__endswith=domain)
    return rows


@CHECKS.add("reservation {pk} is of account {user}, and another account has booked it")
def bookings_of_another_account(now: dt.datetime) -> Rows:
    emails = OutboxMessage.objects.filter(about=OuterRef("subject"), user__isnull=False)
    uses = PromoRedemption.objects.filter(reservation=OuterRef("pk"), given_back_at=None)
    # Customers, who have no address in the history, also once they are staff.
    acts = get_history(Reservation).filter(
        actor__is_active=True, actor__is_staff=False, actor_email=""
    )
    return Reservation.objects.annotate(subject=SUBJECT).filter(
        Exists(emails.exclude(user=OuterRef("user")))
        | Exists(uses.exclude(user=OuterRef("user")))
        | Exists(acts.exclude(actor=OuterRef("user")))
    )


# --- What is booked -------------------------------------------------------------------------------


@CHECKS.add("reservation {pk} is for {number_of_attendees} people, its room for {room__capacity}")
def attendees_above_capacity(now: dt.datetime) -> Rows:
    rows = Reservation.objects.filter(number_of_attendees__gt=F("room__capacity"))
    return rows.exclude(may_be_changed(now, MeetingRoom, "room", "capacity"))


@CHECKS.add(
    "reservation {pk} is for {number_of_attendees}, and lists {listed}, {creators} its customer"
)
def attendees_off_their_number(now: dt.datetime) -> Rows:
    rows = Reservation.objects.annotate(
        listed=Count("attendees"), creators=Count("attendees", filter=Q(attendees__is_creator=True))
    )
    return rows.filter(Q(listed__gt=F("number_of_attendees")) | Q(creators=0))


@CHECKS.add("reservation {} takes {}, and is billed {:.2f} h")
def hours_off_their_span(now: dt.datetime) -> Rows:
    # A started quarter hour can be billed as an hour, and a center's new time zone can make a
    # booking an hour longer or shorter.
    rows = Reservation.objects.values_list("pk", "start", "end", "billable_hours")
    for pk, start, end, billed in rows.iterator():
        hours = to_hours(end - start)
        if not hours - 1 <= billed <= 4 * hours + 1:
            yield pk, format_hours(hours), billed


@CHECKS.add("reservation {reservation} has service {service__name}, and no line for it on its bill")
def services_off_their_lines(now: dt.datetime) -> Rows:
    own = LineItem.objects.filter(
        type=LineItemType.SERVICE, reservation=OuterRef("reservation"), service=OuterRef("service")
    )
    return ChosenService.objects.exclude(Exists(own))


@CHECKS.add(
    "reservation {pk} has extras of {extras:.2f} and adjustments of {lowered:.2f}, its lines"
    " {extra_lines:.2f}, {lowering_lines:.2f}"
)
def adjustments_off_their_lines(now: dt.datetime) -> Rows:
    # A bill never goes below zero, so its lines can take off less than the adjustments say.

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
    return rows.filter(
        ~Q(extra_lines__range=approximately(F("extras")))
        | ~Q(is_limited) & ~Q(lowering_lines__range=approximately(F("lowered")))
    )


@CHECKS.add("reservation {}: its line {} says {}, and is {}")
def lines_off_their_texts(now: dt.datetime) -> Rows:
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
    # Each adjustment after the first price can have rounded it once more.
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
