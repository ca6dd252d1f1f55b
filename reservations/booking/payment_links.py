"""Payment links: anybody who has one can pay, on a page of this service (B26.7, B27.7).

A link pays for a draft, or for a change of a booking that costs more. It is a signed secret
that names the reservation, its own end, and its number or the change. It is not stored: the state
of the draft or of the change decides what its page shows. The room is held until the link ends.
Staff cancel all links of a draft by increasing their number.
"""

import copy
import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.core.signing import BadSignature, Signer
from django.urls import reverse

from accounts import emails
from accounts.act import Act
from accounts.models import OutboxMessage
from accounts.models.outbox_message import PAYMENT_LINK_KIND
from payments import one_time_cards
from payments.models import PaymentPurpose, PaymentSetup, PaymentState
from reservations import availability
from reservations.booking import amendments, checkout, differences, drafts
from reservations.booking.amendments import ChangeRequest
from reservations.booking.charging import PaymentMethod
from reservations.booking.commands import Obstacle, command
from reservations.booking.locks import lock_draft, lock_reservation
from reservations.models import BookingChange, ChangeState, Reservation, history
from reservations.models.status import BOOKED_STATUSES, Status
from reservations.notifications.confirmation import describe_booking
from reservations.notifications.formatting import format_local_time
from reservations.pricing.terms import get_changed_terms
from roombook import money
from roombook.errors import CardDeclined, InvalidRequest, ReservationNotOpen

LINK_PRICE_HAS_CHANGED = (
    "The price has changed since the link was sent. You were not charged. Please ask the center for"
    " a new link."
)
NO_LINK = "There is no payment link that could be paid."
# For how long the page shows why the last card was declined.
DECLINE_SHOWN_FOR = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class DraftLink:
    """A link that pays for a draft, which is booked then."""

    reservation: Reservation
    until: dt.datetime
    number: int

    @property
    def outcome(self) -> Reservation:
        """The reservation as it is once this is paid. Not to be saved."""
        return self.reservation

    @property
    def amount(self) -> Decimal:
        return self.reservation.total_cost

    def is_cancelled(self) -> bool:
        return self.number != self.reservation.payment_link_number

    def is_paid(self) -> bool:
        return self.reservation.status in BOOKED_STATUSES

    def has_payment_in_progress(self) -> bool:
        """Whether a payment is not resolved yet."""
        return self.reservation.status == Status.PROCESSING

    def is_open(self, now: dt.datetime) -> bool:
        """Whether what it pays for still waits for that."""
        return self.reservation.is_new and now < self.reservation.payable_until

    def require_payable(self, shown_total: Decimal, *, now: dt.datetime) -> None:
        """Raise DomainError unless this total, which the payer was shown, can be paid now."""
        draft = self.reservation
        checkout.require_current_price(draft, Act(draft.user, now), shown_total=shown_total)
        answer = availability.evaluate_reservation(draft, now=now, for_user=draft.user)
        answer.raise_if_unavailable()

    def charge(
        self, payment_method: PaymentMethod, *, shown_total: Decimal | None, now: dt.datetime
    ) -> None:
        """Charge the card that the payer has entered. Raises DomainError."""
        checkout.check_out(
            Act(self.reservation.user, now),
            self.reservation.pk,
            payment_method=payment_method,
            shown_total=shown_total,
            link_number=self.reservation.payment_link_number,
        )


@dataclass(frozen=True, slots=True)
class ChangeLink:
    """A link that pays for a change of a booking, which is applied then: as `DraftLink`."""

    reservation: Reservation
    until: dt.datetime
    change: BookingChange

    @property
    def amount(self) -> Decimal:
        return self.change.difference

    @property
    def outcome(self) -> Reservation:
        return build_changed_booking(self.change)

    def is_cancelled(self) -> bool:
        return self.change.state == ChangeState.ABANDONED

    def is_paid(self) -> bool:
        return self.change.state == ChangeState.APPLIED

    def has_payment_in_progress(self) -> bool:
        return self.reservation.payments.filter(
            purpose=PaymentPurpose.CHANGE, state=PaymentState.STARTED, is_by_link=True
        ).exists()

    def is_open(self, now: dt.datetime) -> bool:
        is_waiting = self.change.state == ChangeState.STARTED
        return is_waiting and self.reservation.is_confirmed_or_completed

    def require_payable(self, shown_total: Decimal, *, now: dt.datetime) -> None:
        # The difference was fixed when the link was sent.
        change, act = self.change, Act(self.change.by, now, is_staff=True)
        request = amendments.read_request(change)
        amendment = differences.preview_change(act, change.reservation_id, request, link=change)
        if (amendment.old_total, amendment.new_total) != (change.old_total, change.new_total):
            raise ReservationNotOpen(LINK_PRICE_HAS_CHANGED)

    def charge(
        self, payment_method: PaymentMethod, *, shown_total: Decimal | None, now: dt.datetime
    ) -> None:
        change = self.change
        differences.change_booking(
            Act(change.by, now, is_staff=True),
            change.reservation_id,
            amendments.read_request(change),
            payment_method,
            expected_total=change.new_total,
            link=change,
        )


PaymentLink = DraftLink | ChangeLink


def has_ended(link: PaymentLink, now: dt.datetime) -> bool:
    """Return whether its time is over, or staff have cancelled it."""
    return link.until <= now or link.is_cancelled()


def is_payable(link: PaymentLink, now: dt.datetime) -> bool:
    """Return whether a payment can begin."""
    return link.reservation.user.is_active and link.is_open(now) and not has_ended(link, now)


@command
def send_link(act: Act, draft_id: int, *, base_url: str) -> tuple[Reservation, Obstacle]:
    """E-mail the customer a payment link, and hold the room until it ends.

    `base_url` is the URL of this service. Raises SlotUnavailable, ReservationNotOpen or
    InvalidRequest.
    """
    draft = Reservation.objects.get(pk=draft_id)
    until = get_end(draft, now=act.now)
    if draft.is_held_at(act.now) and draft.hold_until == until:
        reservation = lock_draft(draft_id)
    else:
        reservation, _ = drafts.extend_hold.body(act, draft_id, until=until)
    if not reservation.total_cost:
        raise InvalidRequest({"way": "There is nothing to pay."})
    deadline = format_local_time(reservation.room.center, until)
    _enqueue(
        reservation,
        until,
        f"Please pay for your room: {describe_booking(reservation)}",
        f"We hold {describe_booking(reservation)} for you until {deadline}. It costs"
        f" {money.format_amount(reservation.total_cost)}.",
        base_url=base_url,
        now=act.now,
    )
    reservation.payment_link_until = until
    reservation.save(update_fields=["payment_link_until"])
    history.record_changes(reservation, {"payment_link_until": (None, until)}, act)
    return reservation, None


@command
def send_change_link(
    act: Act,
    reservation_id: int,
    request: ChangeRequest,
    *,
    expected_total: Decimal,
    base_url: str,
) -> tuple[BookingChange, Obstacle]:
    """E-mail the customer a link to pay for a change, and hold its slot until the link ends.

    The change is applied once it is paid. Raises what `hold_for_link` raises.
    """
    change = differences.hold_for_link(act, reservation_id, request, expected_total=expected_total)
    booking, until = change.reservation, change.link_until
    assert until is not None  # because it was created for a link
    _enqueue(
        booking,
        until,
        f"Please pay for the change of your booking: {describe_booking(booking)}",
        f"We can change your booking to {describe_change(change)}. It costs"
        f" {money.format_amount(change.difference)} more. Until"
        f" {format_local_time(change.room.center, until)} we hold that for you, and your booking"
        " changes as soon as this is paid.",
        change=change,
        base_url=base_url,
        now=act.now,
    )
    history.record_changes(booking, {"payment_link_until": (None, until)}, act)
    return change, None


@command
def send_change_link_again(
    act: Act, reservation_id: int, *, base_url: str
) -> tuple[BookingChange, Obstacle]:
    """Send a link for the same change again, also if the last one has ended. That one ends."""
    change = find_waiting_change(Reservation.objects.get(pk=reservation_id))
    if change is None:
        raise ReservationNotOpen(NO_LINK)
    return send_change_link.body(
        act,
        reservation_id,
        amendments.read_request(change),
        expected_total=change.new_total,
        base_url=base_url,
    )


def find_waiting_change(booking: Reservation) -> BookingChange | None:
    """Return the change that waits for its payment by a link; its link may have ended."""
    return booking.waiting_change if booking.is_confirmed_or_completed else None


@command
def cancel_link(act: Act, reservation_id: int) -> tuple[Reservation, Obstacle]:
    """Let no link of a draft be paid any more, and keep its hold; or end a change that waits.

    Raises ReservationNotOpen if there is none, or if somebody is paying: perhaps it is paid.
    """
    reservation = lock_reservation(reservation_id)
    change, until = find_waiting_change(reservation), reservation.payment_link_until
    if change is not None:
        if reservation.is_paying_for_change:
            raise ReservationNotOpen(differences.CHANGE_UNDER_WAY)
        until = change.link_until
        reservation.end_waiting_change(message="Staff cancelled it.", now=act.now)
    elif can_cancel_links(reservation, now=act.now):
        reservation.payment_link_until = None
        reservation.payment_link_number += 1
        reservation.save(update_fields=["payment_link_until", "payment_link_number"])
        # An e-mail that was not sent yet is not sent.
        OutboxMessage.objects.about(reservation.link_subject).waiting().update(expires_at=act.now)
    else:
        raise ReservationNotOpen(NO_LINK)
    history.record_changes(reservation, {"payment_link_until": (until, None)}, act)
    return reservation, None


def describe_change(change: BookingChange) -> str:
    """Describe the room and the time of the booking after the change, and what is added."""
    added = ["other services"] if "services" in change.values else []
    added += [each["text"] for each in change.values.get("extras", ())]
    booking = describe_booking(build_changed_booking(change))
    return booking + (f", with {', '.join(added)}" if added else "")


def build_changed_booking(change: BookingChange) -> Reservation:
    """Return the booking after the change, with its price and its terms. Not to be saved."""
    changed = copy.copy(change.reservation)
    changed.room, changed.start, changed.end = change.room, change.start, change.end
    changed.total_cost = change.new_total
    changed.cancellation_terms = get_changed_terms(change.reservation, change.room).to_json()
    return changed


def _enqueue(
    reservation: Reservation,
    until: dt.datetime,
    heading: str,
    text: str,
    *,
    change: BookingChange | None = None,
    base_url: str,
    now: dt.datetime,
) -> None:
    url = base_url + _build_path(reservation, until, change)
    emails.enqueue_email(
        user_id=reservation.user_id,
        to=reservation.user.email,
        kind=PAYMENT_LINK_KIND,
        about=reservation.link_subject,
        heading=heading,
        paragraphs=[
            f"{text} Please pay by card on this page:",
            url,
            "Who has this link can pay, but sees no other data of yours. The card is not saved.",
        ],
        button="Go to the payment page",
        expires_at=until,
        now=now,
    )


def _build_path(reservation: Reservation, until: dt.datetime, change: BookingChange | None) -> str:
    secret = [reservation.uid.hex, until.timestamp(), reservation.payment_link_number]
    secret += [change.pk] if change else []
    return reverse("payment-link", args=[_get_signer().sign_object(secret)])


def find_path(reservation: Reservation, *, now: dt.datetime) -> str:
    """Return the path of the page on which a link that was sent can be paid now, or ""."""
    change, until = find_waiting_change(reservation), reservation.payment_link_until
    if change is not None and change.link_until is not None and change.link_until > now:
        return _build_path(reservation, change.link_until, change)
    if until is not None and can_cancel_links(reservation, now=now):
        return _build_path(reservation, until, None)
    return ""


def can_cancel_links(draft: Reservation, *, now: dt.datetime) -> bool:
    """Return whether a link that was sent can still be paid."""
    until = draft.payment_link_until
    return draft.is_new and until is not None and now < min(until, draft.payable_until)


def get_end(draft: Reservation, *, now: dt.datetime) -> dt.datetime:
    """Return the time until which a link that is sent now can be paid: the longest hold."""
    latest = drafts.get_latest_hold_end(draft, now=now)
    if draft.hold_until is None or not draft.is_held_at(now):
        return latest
    return max(latest, draft.hold_until)


def find_link(secret: str) -> PaymentLink | None:
    """Return the link with this secret; None unless we have signed it, and what it pays exists."""
    try:
        uid, until, number, *change_ids = _get_signer().unsign_object(secret)
    except BadSignature:
        return None
    rows = Reservation.objects.select_related("room__center", "user")
    reservation = rows.filter(uid=UUID(uid)).first()
    if reservation is None:
        return None
    ends_at = dt.datetime.fromtimestamp(until, dt.UTC)
    if not change_ids:
        return DraftLink(reservation, ends_at, number)
    change = reservation.changes.select_related("room__center").get(pk=change_ids[0])
    change.reservation = reservation
    return ChangeLink(reservation, ends_at, change)


def _get_signer() -> Signer:
    return Signer(salt="reservations.payment_links")


def pay(
    link: PaymentLink,
    setup: PaymentSetup,
    *,
    shown_total: Decimal | None,
    network_address: str = "",
    now: dt.datetime,
) -> None:
    """Charge the card that the payer has entered in the setup, and book the draft or the change.

    Safe to repeat: it is one checkout. A card that is declined is discarded; `reconcile_payments`
    discards the others.

    Raises PaymentSetupNotComplete, or the errors of `charge`.
    """
    card = one_time_cards.fetch_card(setup, now=now)
    payment_method = PaymentMethod(one_time_card=card, network_address=network_address)
    try:
        link.charge(payment_method, shown_total=shown_total, now=now)
    except CardDeclined as error:
        one_time_cards.discard(setup, message=error.message)
        raise


def get_decline_message(reservation: Reservation, *, now: dt.datetime) -> str:
    """Return why the last card was declined, if that was a short while ago; else an empty text.

    It is empty if the customer tried to pay in another way meanwhile.
    """
    payment = reservation.payments.order_by("pk").last()
    if payment is None or not payment.is_by_link or payment.state != PaymentState.DECLINED:
        return ""
    return str(payment.message) if payment.created_at > now - DECLINE_SHOWN_FOR else ""
