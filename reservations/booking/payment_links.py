"""Payment links: a draft is paid on a page of this service, by anybody who has the link (B26.7).

A link is a signed secret that names the draft, its own end and its number. It is not stored: the
state of the draft decides what its page shows. The room is held until the link ends. Staff cancel
all links of a draft by increasing their number.
"""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.core.signing import BadSignature, Signer
from django.urls import reverse

from accounts import emails
from accounts.models import OutboxMessage, User
from accounts.models.outbox_message import PAYMENT_LINK_KIND
from payments import one_time_cards
from payments.models import PaymentSetup, PaymentState
from reservations.booking import checkout, hold_extension
from reservations.booking.drafts import lock_draft
from reservations.models import Reservation, history
from reservations.notifications.confirmation import describe_booking
from reservations.notifications.formatting import format_local_time
from roombook import money
from roombook.db.transactions import in_transaction
from roombook.errors import CardDeclined, InvalidRequest, ReservationNotOpen

# For how long the page shows why the last card was declined.
DECLINE_SHOWN_FOR = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class PaymentLink:
    """A link with the reservation that it pays for."""

    reservation: Reservation
    until: dt.datetime
    number: int

    def has_ended(self, now: dt.datetime) -> bool:
        """Whether its time is over, or staff have cancelled it."""
        return self.until <= now or self.number != self.reservation.payment_link_number

    def is_payable(self, now: dt.datetime) -> bool:
        """Whether a payment can begin."""
        reservation = self.reservation
        is_open = reservation.is_new and now < reservation.start and not self.has_ended(now)
        return is_open and reservation.user.is_active


@in_transaction
def send_link(draft: Reservation, *, base_url: str, by: User, now: dt.datetime) -> dt.datetime:
    """E-mail the customer a payment link, and hold the room until it ends; return that time.

    `base_url` is the URL of this service. Raises SlotUnavailable, ReservationNotOpen or
    InvalidRequest.
    """
    until = get_end(draft, now=now)
    if draft.is_held_at(now) and draft.hold_until == until:
        reservation = lock_draft(draft.pk)
    else:
        reservation = hold_extension.extend_hold(draft.pk, until=until, by=by, now=now)
    if not reservation.total_cost:
        raise InvalidRequest({"way": "There is nothing to pay."})
    number = reservation.payment_link_number
    secret = _get_signer().sign_object([reservation.uid.hex, until.timestamp(), number])
    url = base_url + reverse("payment-link", args=[secret])
    deadline = format_local_time(reservation.room.center, until)
    emails.enqueue_email(
        user_id=reservation.user_id,
        to=reservation.user.email,
        kind=PAYMENT_LINK_KIND,
        about=_get_subject(reservation),
        heading=f"Please pay for your room: {describe_booking(reservation)}",
        paragraphs=[
            f"We hold {describe_booking(reservation)} for you until {deadline}. It costs"
            f" {money.format_amount(reservation.total_cost)}. Please pay by card on this page:",
            url,
            "Who has this link can pay, but sees no other data of yours. The card is not saved.",
        ],
        expires_at=until,
        now=now,
    )
    reservation.payment_link_until = until
    reservation.save(update_fields=["payment_link_until"])
    history.record_changes(reservation, {"payment_link": (None, until)}, by=by, now=now)
    return until


def can_cancel_links(draft: Reservation, *, now: dt.datetime) -> bool:
    """Return whether a link that was sent can still be paid."""
    until = draft.payment_link_until
    return draft.is_new and until is not None and now < min(until, draft.start)


@in_transaction
def cancel_links(draft_id: int, *, by: User, now: dt.datetime) -> None:
    """Let none of the links of a draft be paid any more. The room stays held.

    Raises ReservationNotOpen if there is none: perhaps it was paid meanwhile.
    """
    reservation = lock_draft(draft_id)
    if not can_cancel_links(reservation, now=now):
        raise ReservationNotOpen("There is no payment link that could be paid.")
    until, reservation.payment_link_until = reservation.payment_link_until, None
    reservation.payment_link_number += 1
    reservation.save(update_fields=["payment_link_until", "payment_link_number"])
    # An e-mail that was not sent yet is not sent.
    OutboxMessage.objects.about(_get_subject(reservation)).waiting().update(expires_at=now)
    history.record_changes(reservation, {"payment_link": (until, None)}, by=by, now=now)


def _get_subject(reservation: Reservation) -> str:
    return f"payment link {reservation.pk}"


def get_end(draft: Reservation, *, now: dt.datetime) -> dt.datetime:
    """Return the time until which a link that is sent now can be paid: the longest hold."""
    latest = hold_extension.get_latest_hold_end(draft, now=now)
    if draft.hold_until is None or not draft.is_held_at(now):
        return latest
    return max(latest, draft.hold_until)


def find_link(secret: str) -> PaymentLink | None:
    """Return the link with this secret; None unless we have signed it, and its draft exists."""
    try:
        uid, until, number = _get_signer().unsign_object(secret)
    except BadSignature:
        return None
    rows = Reservation.objects.select_related("room__center", "user")
    reservation = rows.filter(uid=UUID(uid)).first()
    if reservation is None:
        return None
    return PaymentLink(reservation, dt.datetime.fromtimestamp(until, dt.UTC), number)


def _get_signer() -> Signer:
    return Signer(salt="reservations.payment_links")


def pay(
    reservation: Reservation,
    setup: PaymentSetup,
    *,
    shown_total: Decimal | None,
    network_address: str = "",
    now: dt.datetime,
) -> Reservation:
    """Charge the card that the payer has entered in the setup, and book the reservation.

    Safe to repeat: it is one checkout. A card that is declined is discarded; `reconcile_payments`
    discards the others.

    Raises PaymentSetupNotComplete, or the errors of `check_out`.
    """
    card = one_time_cards.fetch_card(setup, now=now)
    try:
        return checkout.check_out(
            reservation.pk,
            user=reservation.user,
            payment_method=checkout.PaymentMethod(
                one_time_card=card,
                link_number=reservation.payment_link_number,
                network_address=network_address,
            ),
            shown_total=shown_total,
            now=now,
        )
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
