"""Payment links: a draft is paid on a page of this service, by anybody who has the link (B26.7).

A link is a signed secret that names the draft and its own end. So nothing is stored: the state of
the draft decides what its page shows. The room is held until the link ends.
"""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.core.signing import BadSignature, Signer
from django.urls import reverse

from accounts import emails
from accounts.models import User
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
from roombook.errors import CardDeclined, InvalidRequest

# For how long the page shows why the last card was declined.
DECLINE_SHOWN_FOR = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class PaymentLink:
    """A link with the reservation that it pays for."""

    reservation: Reservation
    until: dt.datetime

    def is_payable(self, now: dt.datetime) -> bool:
        """Whether a payment can begin."""
        reservation = self.reservation
        is_open = reservation.is_new and now < min(self.until, reservation.start)
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
    secret = _get_signer().sign_object([reservation.uid.hex, until.timestamp()])
    url = base_url + reverse("payment-link", args=[secret])
    deadline = format_local_time(reservation.room.center, until)
    emails.enqueue_email(
        user_id=reservation.user_id,
        to=reservation.user.email,
        kind=PAYMENT_LINK_KIND,
        about=f"payment link {reservation.pk}",
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
    history.record_changes(reservation, {"payment_link": (None, until)}, by=by, now=now)
    return until


def get_end(draft: Reservation, *, now: dt.datetime) -> dt.datetime:
    """Return the time until which a link that is sent now can be paid: the longest hold."""
    latest = hold_extension.get_latest_hold_end(draft, now=now)
    if draft.hold_until is None or not draft.is_held_at(now):
        return latest
    return max(latest, draft.hold_until)


def find_link(secret: str) -> PaymentLink | None:
    """Return the link with this secret; None unless we have signed it, and its draft exists."""
    try:
        uid, until = _get_signer().unsign_object(secret)
    except BadSignature:
        return None
    rows = Reservation.objects.select_related("room__center", "user")
    reservation = rows.filter(uid=UUID(uid)).first()
    if reservation is None:
        return None
    return PaymentLink(reservation, dt.datetime.fromtimestamp(until, dt.UTC))


def _get_signer() -> Signer:
    return Signer(salt="reservations.payment_links")


def pay(
    reservation: Reservation, setup: PaymentSetup, *, shown_total: Decimal | None, now: dt.datetime
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
            payment_method=checkout.PaymentMethod(one_time_card=card),
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
