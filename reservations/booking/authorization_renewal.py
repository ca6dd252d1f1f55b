"""Renews the authorization of a request before it expires unanswered (B16.10).

Only a card that a setup saved may be authorized again while its customer is away. The second
authorization has a key of its own, `Payment.spare_key`, which is stored before the first call. If
it succeeds, the two keys change places under the locks of the reservation and the payment. Whatever
is authorized under the spare key is then voided; only `Payment.key` is ever captured.

After a crash at any step, the next run voids what is under the spare key, and the one after it
begins again. After a decline, no run does.
"""

import datetime as dt
from uuid import UUID, uuid4

from django.db.models import F, Q, QuerySet

from payments import gateways, lifecycle
from payments.gateway_results import lock_payment
from payments.gateways.base import GatewayPayment, GatewayRefused
from payments.models import Payment, PaymentState, SavedCard
from reservations.booking.locks import lock_reservation
from reservations.models.status import Status
from roombook.db.transactions import in_transaction

# An authorization is renewed when it expires this soon. After a decline, it is not tried again.
RENEWAL_NOTICE = dt.timedelta(hours=24)


def get_due(payments: QuerySet[Payment], *, now: dt.datetime) -> QuerySet[Payment]:
    """Return the payments to renew, and those of which a renewal has left an authorization."""
    was_not_tried = Q(renewal_tried_at__isnull=True) | Q(
        renewal_tried_at__lt=F("authorized_until") - RENEWAL_NOTICE
    )
    # The same card, so that nobody is surprised by a charge to another one.
    saved_card = "reservation__user__saved_card"
    expiring = payments.filter(
        was_not_tried,
        state=PaymentState.AUTHORIZED,
        authorized_until__lte=now + RENEWAL_NOTICE,
        reservation__status=Status.PENDING,
        **{
            f"{saved_card}__saved_by_setup": True,
            f"{saved_card}__gateway": F("gateway"),
            f"{saved_card}__brand": F("card_brand"),
            f"{saved_card}__last4": F("card_last4"),
        },
    )
    left_over = payments.filter(
        is_spare_due=True, renewal_tried_at__lte=now - lifecycle.get_lease()
    )
    return Payment.objects.filter(
        Q(pk__in=expiring.values("pk")) | Q(pk__in=left_over.values("pk"))
    )


def renew_authorization(payment: Payment, *, now: dt.datetime) -> Payment:
    """Authorize the amount again and void the old authorization, or void a leftover.

    If the bank declines, nothing changes. Raises GatewayUnavailable: the next run begins again.
    """
    if payment.is_spare_due:
        return _void_spare(payment, is_leftover=True, now=now)
    gateway = gateways.get_gateway(payment.gateway)
    begun = _begin(payment, now=now) if gateway.is_live == payment.is_live else None
    if begun is None:
        return payment
    key, card_reference = begun
    result = gateway.authorize(
        key=key,
        amount=payment.amount,
        currency=payment.currency,
        source=card_reference,
        description=f"Reservation {payment.reservation_id}",
    )
    _exchange_keys(payment, key, result, now=now)
    return _void_spare(payment, now=now)


@in_transaction
def _begin(payment: Payment, *, now: dt.datetime) -> tuple[UUID, str] | None:
    """Store the spare key, and return it with the gateway's reference of the card.

    Returns None if the payment is not to be renewed any more, or another card was saved meanwhile.
    """
    reservation = lock_reservation(payment.reservation_id)
    locked = lock_payment(payment.pk)
    is_authorized = locked.state == PaymentState.AUTHORIZED
    if reservation.status != Status.PENDING or not is_authorized or locked.is_spare_due:
        return None
    card = SavedCard.objects.filter(
        user=reservation.user_id,
        saved_by_setup=True,
        gateway=locked.gateway,
        brand=locked.card_brand,
        last4=locked.card_last4,
    ).first()
    if card is None:
        return None
    spare_key = uuid4()
    locked.spare_key, locked.is_spare_due, locked.renewal_tried_at = spare_key, True, now
    locked.save(update_fields=["spare_key", "is_spare_due", "renewal_tried_at"])
    return spare_key, card.reference


@in_transaction
def _exchange_keys(
    payment: Payment, spare_key: UUID, result: GatewayPayment, *, now: dt.datetime
) -> None:
    """Rely on the new authorization from now on, if the request is still open.

    Another process may have begun to void it meanwhile: it has changed `renewal_tried_at`.
    """
    reservation = lock_reservation(payment.reservation_id)
    locked = lock_payment(payment.pk)
    is_open = reservation.status == Status.PENDING and locked.state == PaymentState.AUTHORIZED
    is_ours = (locked.spare_key, locked.renewal_tried_at) == (spare_key, now)
    if not (is_open and is_ours and result.state == "authorized"):
        return
    locked.key, locked.spare_key = spare_key, locked.key
    locked.reference = result.reference
    locked.authorized_at = now
    locked.authorized_until = result.authorized_until
    locked.save(
        update_fields=["key", "spare_key", "reference", "authorized_at", "authorized_until"]
    )


def _void_spare(payment: Payment, *, is_leftover: bool = False, now: dt.datetime) -> Payment:
    """Void what is authorized under the spare key. After a leftover, a renewal may begin again.

    Raises GatewayRefused if somebody has captured it in the gateway's dashboard.
    """
    spare_key = _claim_spare(payment, now=now)
    if spare_key is not None:
        result = gateways.get_gateway(payment.gateway).void(spare_key)
        if result.held:
            raise GatewayRefused(f"{spare_key}, a former authorization, was captured: refund it.")
        done = Payment.objects.filter(pk=payment.pk, spare_key=spare_key)
        done.update(is_spare_due=False)
        if is_leftover and result.state != "declined":
            done.update(renewal_tried_at=None)
    payment.refresh_from_db()
    return payment


@in_transaction
def _claim_spare(payment: Payment, *, now: dt.datetime) -> UUID | None:
    """Return the spare key if it is to be voided. From now on nobody exchanges the keys."""
    locked = lock_payment(payment.pk)
    if not locked.is_spare_due:
        return None
    locked.renewal_tried_at = now + dt.timedelta(microseconds=1)
    locked.save(update_fields=["renewal_tried_at"])
    return locked.spare_key
