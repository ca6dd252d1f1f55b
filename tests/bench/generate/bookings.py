"""The generated reservations, with prices and payments. They do not overlap."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from uuid import UUID

from django.conf import settings

from centers.models import MeetingRoom, Service
from centers.span import Span
from payments.gateways.sandbox_models import SandboxRefund
from payments.models import Payment, PaymentState, Refund, RefundState, SandboxPayment
from reservations.models import (
    AllowanceEntry,
    AllowanceUse,
    Attendee,
    ChosenService,
    LineItem,
    PromoCode,
    PromoRedemption,
    Reservation,
)
from reservations.models.status import BOOKED_STATUSES, HOLDING_STATUSES, Status
from reservations.pricing import quote as pricing
from reservations.pricing.quote import Quote, ServiceSelection
from tests.bench.generate.loading import Loader
from tests.bench.generate.names import FIRST_NAMES, LAST_NAMES
from tests.bench.generate.people import Customer, People
from tests.bench.generate.places import Site

HALF_HOURS = (2, 2, 2, 3, 4, 4, 4, 6, 8, 8, 16, 16)
DAYS_AHEAD = 30
MAX_DAYS_AHEAD = 300
# How many later days are tried if the room is closed or booked.
MAX_ATTEMPTS = 60
PROMO_CODES = (
    *(
        ("SPRING10", Decimal(10), None),
        ("AUTUMN15", Decimal(15), None),
        ("HALF", Decimal(50), None),
    ),
    *(("TENOFF", None, Decimal(10)), ("FIFTYOFF", None, Decimal(50))),
)


@dataclass(slots=True)
class Booking:
    """A reservation before it is written as rows."""

    pk: int
    customer: Customer
    room: MeetingRoom
    span: Span
    status: Status
    created_at: dt.datetime
    extras: list[ServiceSelection]
    quote: Quote
    promo: PromoCode | None
    booked_at: dt.datetime | None = None
    cancelled_at: dt.datetime | None = None
    refund: Decimal | None = None


class ReservationGenerator:
    """Generates the reservations of one center after another."""

    def __init__(self, load: Loader, people: People, *, seed: int, now: dt.datetime) -> None:
        self.random = Random(f"{seed} bookings")
        self.people = people
        self.now = now
        self.promos = _create_promo_codes(load, seed)
        self.add_promo = load.get_instance_adder(PromoCode)
        self.next_id = load.next_id
        self.add_reservation = load.get_row_adder(
            Reservation,
            *("id", "user_id", "room_id", "start", "end", "turnaround_minutes"),
            *("occupied_from", "occupied_until", "status", "holds_slot", "number_of_attendees"),
            *("currency", "total_cost", "billable_hours", "promo_code_id", "uid"),
            *("cancellation_notice_hours", "cancellation_grace_minutes", "created_at"),
            *("created_by_id", "booked_at", "cancelled_at", "refund_promised"),
        )
        self.add_line = load.get_row_adder(
            LineItem,
            *("reservation_id", "position", "type", "description", "amount", "rate", "total"),
            *("service_id", "allowance_id"),
        )
        self.add_attendee = load.get_row_adder(
            Attendee, "reservation_id", "is_creator", "name", "email_address", "company_name"
        )
        self.add_service = load.get_row_adder(
            ChosenService, "reservation_id", "service_id", "duration_hours", "quantity"
        )
        self.add_use = load.get_row_adder(
            AllowanceUse, "reservation_id", "allowance_id", "hours", "discount"
        )
        self.add_entry = load.get_row_adder(
            AllowanceEntry, "allowance_id", "reservation_id", "period", "hours", "reason", "at"
        )
        self.add_redemption = load.get_row_adder(
            PromoRedemption, "promo_code_id", "reservation_id", "user_id", "amount", "taken_at"
        )
        self.add_payment = load.get_row_adder(
            Payment,
            *("id", "reservation_id", "key", "gateway", "amount", "currency", "state", "reference"),
            *("card_brand", "card_last4", "lease_until", "created_at", "authorized_at"),
            *("captured_at", "settled_at"),
        )
        self.add_refund = load.get_row_adder(
            Refund, "payment_id", "key", "amount", "state", "reason", "created_at", "done_at"
        )
        self.add_sandbox_payment = load.get_row_adder(
            SandboxPayment,
            *("id", "key", "state", "amount", "currency", "refunded", "brand", "last4"),
            *("description", "captures", "created_at"),
        )
        self.add_sandbox_refund = load.get_row_adder(
            SandboxRefund, "key", "payment_id", "amount", "created_at"
        )

    def generate(self, site: Site, creation_times: Iterable[tuple[int, dt.datetime]]) -> None:
        """Generates reservations with these ids and creation times in the rooms of the center."""
        booked: dict[int, list[tuple[dt.datetime, dt.datetime]]] = {}
        # The first rooms are the most popular.
        weights = [1 / place for place in range(1, len(site.rooms) + 1)]
        for pk, created_at in creation_times:
            room = self.random.choices(site.rooms, weights)[0]
            span = self._find_free_span(site, room, booked.setdefault(room.pk, []), created_at)
            self._write(self._create_booking(pk, site, room, span, created_at))

    def finish(self) -> None:
        """Writes the promo codes, whose numbers of uses are known at the end."""
        for promo in self.promos:
            self.add_promo(promo)

    def _find_free_span(
        self,
        site: Site,
        room: MeetingRoom,
        booked: list[tuple[dt.datetime, dt.datetime]],
        created_at: dt.datetime,
    ) -> Span | None:
        random = self.random
        ahead = min(int(random.expovariate(1 / DAYS_AHEAD)), MAX_DAYS_AHEAD)
        zone = site.center.zone
        first = created_at.astimezone(zone).date()
        margin = dt.timedelta(minutes=room.turnaround_minutes)
        for later in range(ahead, ahead + MAX_ATTEMPTS):
            day = first + dt.timedelta(days=later)
            intervals = site.meeting_hours.get(day.weekday())
            if not intervals or day in site.closed_on:
                continue
            opens, closes = random.choice(intervals)
            half_hours = min(random.choice(HALF_HOURS), (closes - opens) // 30)
            idle = (closes - opens) // 30 - half_hours
            minute = opens + 30 * int(random.random() * (idle + 1))
            start = dt.datetime(
                day.year, day.month, day.day, minute // 60, minute % 60, tzinfo=zone
            ).astimezone(dt.UTC)
            end = start + dt.timedelta(minutes=30 * half_hours)
            if start <= created_at:
                continue
            if all(end + margin <= a or b + margin <= start for a, b in booked):
                booked.append((start, end))
                return Span(start, end)
        return None

    def _create_booking(
        self, pk: int, site: Site, room: MeetingRoom, span: Span | None, created_at: dt.datetime
    ) -> Booking:
        random = self.random
        customer = self.people.choose_customer(random)
        status = Status.EXPIRED
        if span is None:
            # No time was available: an expired draft.
            span = Span(created_at, created_at + dt.timedelta(hours=1))
        else:
            status = self._choose_status(room, span, created_at)
        is_booked = status in BOOKED_STATUSES
        extras = self._choose_services(site.services, span) if random.random() < 0.3 else []
        promo = random.choice(self.promos) if is_booked and random.random() < 0.05 else None
        offers = customer.get_available_hours(span.start.date()) if is_booked else []
        quote = pricing.calculate_quote(
            room, span, services=extras, allowances=offers, promo_code=promo
        )
        booking = Booking(pk, customer, room, span, status, created_at, extras, quote, promo)
        if is_booked or status in {Status.CANCELLED, Status.DECLINED}:
            booking.booked_at = min(
                created_at + dt.timedelta(minutes=1 + random.random() * 9), span.start
            )
        if status == Status.CANCELLED:
            self._cancel(booking)
        return booking

    def _choose_status(self, room: MeetingRoom, span: Span, created_at: dt.datetime) -> Status:
        chance = self.random.random()
        is_over = span.end <= self.now
        if chance < 0.05:
            return Status.NEW if span.start > self.now else Status.EXPIRED
        if chance < 0.12:
            return Status.CANCELLED
        if not room.is_live_inventory:
            if chance < 0.15:
                return Status.DECLINED
            if span.start > self.now and created_at > self.now - dt.timedelta(days=2):
                return Status.PENDING
        if is_over:
            return Status.NO_SHOW if chance > 0.98 else Status.COMPLETED
        return Status.CONFIRMED

    def _cancel(self, booking: Booking) -> None:
        assert booking.booked_at is not None
        latest = min(booking.span.start, self.now)
        at = booking.booked_at + (latest - booking.booked_at) * self.random.random()
        reservation = Reservation(
            start=booking.span.start,
            booked_at=booking.booked_at,
            cancellation_notice_hours=settings.CANCELLATION_NOTICE_HOURS,
            cancellation_grace_minutes=settings.CANCELLATION_GRACE_MINUTES,
        )
        is_free = at <= reservation.free_cancellation_until
        booking.cancelled_at = at
        booking.refund = booking.quote.total if is_free else Decimal(0)

    def _choose_services(self, services: Sequence[Service], span: Span) -> list[ServiceSelection]:
        random = self.random
        chosen = random.sample(list(services), k=random.randint(1, 2))
        return [
            ServiceSelection(
                service,
                min(pricing.to_hours(span.duration), Decimal(2))
                if service.needs_duration
                else None,
                random.randint(1, 12) if service.needs_quantity else None,
            )
            for service in sorted(chosen, key=lambda each: each.position)
        ]

    def _write(self, booking: Booking) -> None:
        random, pk, span, quote = self.random, booking.pk, booking.span, booking.quote
        customer, room = booking.customer, booking.room
        turnaround = dt.timedelta(minutes=room.turnaround_minutes)
        attendees = random.randint(1, room.capacity)
        self.add_reservation(
            *(pk, customer.pk, room.pk, span.start, span.end, room.turnaround_minutes),
            *(span.start - turnaround, span.end + turnaround, booking.status),
            *(booking.status in HOLDING_STATUSES, attendees, settings.CURRENCY, quote.total),
            quote.room.billable_hours,
            booking.promo.pk if booking.promo else None,
            UUID(int=random.getrandbits(128), version=4),
            settings.CANCELLATION_NOTICE_HOURS,
            settings.CANCELLATION_GRACE_MINUTES,
            booking.created_at,
            random.choice(self.people.staff) if random.random() < 0.03 else None,
            *(booking.booked_at, booking.cancelled_at, booking.refund),
        )
        for position, line in enumerate(quote.lines, start=1):
            self.add_line(
                *(pk, position, line.type, line.description, line.amount, line.rate, line.total),
                *(line.service_id, line.allowance_id),
            )
        self._write_attendees(booking, attendees)
        for extra in booking.extras:
            self.add_service(pk, extra.service.pk, extra.duration_hours, extra.quantity)
        if booking.booked_at is not None:
            self._write_benefits(booking, booking.booked_at)
            if quote.total:
                self._write_payment(booking, booking.booked_at)

    def _write_attendees(self, booking: Booking, attendees: int) -> None:
        random, customer = self.random, booking.customer
        creator = (customer.name, customer.email, customer.company)
        self.add_attendee(booking.pk, *(True, *creator))
        for number in range(min(attendees - 1, random.choice((0, 0, 1, 2)))):
            first, last = random.choice(FIRST_NAMES), random.choice(LAST_NAMES)
            address = f"{first}.{last}.{number}@guests.example".lower()
            self.add_attendee(booking.pk, *(False, f"{first} {last}", address, ""))

    def _write_benefits(self, booking: Booking, at: dt.datetime) -> None:
        pk, customer = booking.pk, booking.customer
        for used in booking.quote.applied_allowances:
            if used.hours:
                month = booking.span.start.date().replace(day=1)
                customer.hours_used[month] += used.hours
                self.add_use(pk, used.allowance_id, used.hours, used.discount)
                reason = f"Used for reservation {pk}"
                self.add_entry(used.allowance_id, pk, month, -used.hours, reason, at)
        discount = booking.quote.promotion_discount
        if booking.promo is not None and discount:
            booking.promo.uses += 1
            booking.promo.spent += discount
            self.add_redemption(booking.promo.pk, pk, customer.pk, discount, at)

    def _write_payment(self, booking: Booking, at: dt.datetime) -> None:
        """Writes the payment and its refund, for the product and for the sandbox gateway."""
        random, amount = self.random, booking.quote.total
        key = UUID(int=random.getrandbits(128), version=4)
        state = PaymentState.CAPTURED
        captured_at: dt.datetime | None = at + dt.timedelta(seconds=1)
        settled_at = None
        if booking.status == Status.PENDING:
            state, captured_at = PaymentState.AUTHORIZED, None
        elif booking.status == Status.DECLINED:
            state, captured_at = PaymentState.VOIDED, None
            settled_at = min(at + dt.timedelta(hours=5), self.now)
        elif booking.refund:
            state, settled_at = PaymentState.REFUNDED, booking.cancelled_at
        pk = self.next_id(Payment)
        brand, last4 = booking.customer.card
        self.add_payment(
            *(pk, booking.pk, key, "sandbox", amount, settings.CURRENCY, state),
            *(f"pay_{key.hex}", brand, last4, at + dt.timedelta(minutes=1), at, at),
            *(captured_at, settled_at),
        )
        sandbox_pk = self.next_id(SandboxPayment)
        refunded = booking.refund or Decimal(0)
        self.add_sandbox_payment(
            *(sandbox_pk, key, state, amount, settings.CURRENCY, refunded, brand, last4),
            *(f"Reservation {booking.pk}", int(captured_at is not None), at),
        )
        if refunded:
            refund_key = UUID(int=random.getrandbits(128), version=4)
            refunded_at = booking.cancelled_at
            self.add_refund(
                pk, refund_key, refunded, RefundState.DONE, "Cancelled", refunded_at, refunded_at
            )
            self.add_sandbox_refund(refund_key, sandbox_pk, refunded, refunded_at)


def _create_promo_codes(load: Loader, seed: int) -> list[PromoCode]:
    return [
        PromoCode(
            pk=load.next_id(PromoCode),
            code=f"{code}-{seed}",
            description="Generated",
            percent=percent,
            amount=amount,
        )
        for code, percent, amount in PROMO_CODES
    ]
