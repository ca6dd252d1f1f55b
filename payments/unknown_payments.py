"""Compares the payments of a gateway with ours, and releases those that no booking has (B16.9).

After a restore, the gateway has payments, captures and refunds that are newer than the backup.
"""

from datetime import datetime, timedelta
from uuid import NAMESPACE_URL, UUID, uuid5

from django.db.models import Q, QuerySet

from payments import gateways
from payments.gateways.base import Gateway, GatewayPayment, GatewayRefund
from payments.models import (
    GatewayCheckpoint,
    Payment,
    PaymentState,
    Refund,
    RefundState,
    UnknownPayment,
)
from payments.refunds import UNCONFIRMED_STATES, get_refund_key

# Clocks differ, and a payment can take a while from its creation at the gateway to its listing.
OVERLAP = timedelta(minutes=5)
# The resolution of a payment that staff do not want to release.
KEPT = "kept"
NO_MONEY_HELD = "no money held"
# Payments in these states hold no money as far as we know.
WITHOUT_MONEY = (PaymentState.DECLINED, PaymentState.VOIDED)


def get_comparison_start(gateway: Gateway, *, now: datetime) -> datetime:
    """The end of the last comparison; before the first one, the time of the newest payment."""
    checkpoint = GatewayCheckpoint.objects.filter(gateway=gateway.name).first()
    if checkpoint:
        return checkpoint.compared_until - OVERLAP
    newest = Payment.objects.filter(gateway=gateway.name).order_by("-created_at").first()
    return (newest.created_at if newest else now) - OVERLAP


def compare(gateway: Gateway, *, since: datetime, now: datetime) -> QuerySet[Payment]:
    """Store the payments that we do not know; return ours that have changed at the gateway.

    A payment that waits for its customer, but for no booking here, is voided.

    The caller processes these and then calls `finish_comparison`; until then, the next comparison
    begins where this one did. Raises GatewayUnavailable or GatewayRefused.
    """
    changed: set[int] = set()
    listed = dict(gateway.list_payments(since))
    ours = Payment.objects.in_bulk(listed, field_name="key")
    for key, status in listed.items():
        payment = ours.get(key)
        if status.state == "action_required":
            # Nobody waits for it, but its customer could still confirm it.
            if payment is None or payment.state in WITHOUT_MONEY:
                store_unknown_payment(gateway.name, key, gateway.void(key), now=now)
        elif payment is None:
            store_unknown_payment(gateway.name, key, status, now=now)
        elif payment.state in WITHOUT_MONEY:
            store_if_held(gateway, key, now=now)
        elif payment.state == PaymentState.AUTHORIZED and status.state != "authorized":
            changed.add(payment.pk)
    changed |= _find_payments_with_new_refunds(gateway, since=since)
    return Payment.objects.filter(pk__in=changed).exclude(state=PaymentState.STARTED)


def finish_comparison(gateway: Gateway, *, now: datetime) -> None:
    """Let the next comparison begin where this one ended."""
    GatewayCheckpoint.objects.update_or_create(
        gateway=gateway.name, defaults={"compared_until": now}
    )


def _find_payments_with_new_refunds(gateway: Gateway, *, since: datetime) -> set[int]:
    """The ids of our payments with refunds whose outcome we do not have."""
    reported = gateway.list_recent_refunds(since)
    refunds = Refund.objects.in_bulk(
        [get_refund_key(refund) for _, refund in reported], field_name="key"
    )
    keys = {
        key
        for key, refund in reported
        if not _is_stored(refund, refunds.get(get_refund_key(refund)))
    }
    payments = Payment.objects.in_bulk(keys, field_name="key")
    return {payment.pk for payment in payments.values()}


def _is_stored(reported: GatewayRefund, ours: Refund | None) -> bool:
    """Whether our row has the outcome that the gateway reports."""
    if ours is None:
        return reported.failed
    if reported.failed:
        return ours.state in {RefundState.REFUSED, RefundState.OUTSIDE}
    return ours.state not in UNCONFIRMED_STATES


def get_recently_captured(gateway: Gateway, *, since: datetime) -> QuerySet[Payment]:
    """Our payments that a backup of that time may show in an older state than the gateway."""
    return Payment.objects.filter(
        Q(state=PaymentState.AUTHORIZED) | Q(state=PaymentState.CAPTURED, captured_at__gte=since),
        gateway=gateway.name,
    )


def store_unknown_payment(
    gateway: str, key: UUID, status: GatewayPayment, *, now: datetime
) -> None:
    if status.held:
        UnknownPayment.objects.update_or_create(
            key=key,
            defaults=_to_columns(status),
            create_defaults={"gateway": gateway, "found_at": now, **_to_columns(status)},
        )
        # The bank may have returned the refund of a payment that was released.
        released = UnknownPayment.objects.filter(key=key).exclude(resolution=KEPT)
        released.update(resolved_at=None, resolution="")


def store_if_held(gateway: Gateway, key: UUID, *, now: datetime) -> bool:
    """Store a payment without money for us if the gateway still says that it holds some.

    It may have been voided after it was listed. Raises GatewayUnavailable or GatewayRefused.
    """
    status = gateway.find_payment(key)
    if status is None or not status.held:
        return False
    store_unknown_payment(gateway.name, key, status, now=now)
    return True


def remember_unknown_payment(gateway: str, key: UUID, reference: str, *, now: datetime) -> bool:
    """Remember a payment that a webhook mentioned; reconcile_payments asks the gateway for it.

    If it was resolved, its state at the gateway decides: the bank may have returned its refund.
    Returns whether staff have to resolve it. Raises GatewayUnavailable or GatewayRefused.
    """
    unknown, _ = UnknownPayment.objects.get_or_create(
        key=key, defaults={"gateway": gateway, "reference": reference, "found_at": now}
    )
    if unknown.resolved_at is None:
        return True
    if unknown.resolution == KEPT:
        return False
    return store_if_held(gateways.get_gateway(gateway), key, now=now)


def get_unresolved() -> QuerySet[UnknownPayment]:
    return UnknownPayment.objects.filter(resolved_at=None).order_by("found_at", "pk")


def refresh_unknown_payment(unknown: UnknownPayment, *, release: bool, now: datetime) -> str:
    """Ask the gateway for the payment, and void or refund it if `release` is set.

    Returns the outcome in words. Raises GatewayUnavailable or GatewayRefused.
    """
    # Read again, because staff or another run may have resolved it while others were processed.
    try:
        unknown.refresh_from_db()
    except UnknownPayment.DoesNotExist:
        unknown.pk = None  # As if this run had deleted it.
        return NO_MONEY_HELD
    if unknown.resolved_at:
        return unknown.resolution
    gateway = gateways.get_gateway(unknown.gateway)
    status = gateway.find_payment(unknown.key)
    if Payment.objects.filter(key=unknown.key).exclude(state__in=WITHOUT_MONEY).exists():
        return _resolve(unknown, "known again", now=now)
    if status is None or not status.held:
        return _resolve(unknown, NO_MONEY_HELD, now=now)
    columns = _to_columns(status)
    for name, value in columns.items():
        setattr(unknown, name, value)
    unknown.save(update_fields=columns)
    # Gateways have other decimal places than our columns.
    unknown.refresh_from_db()
    if not release:
        return "for no booking"
    return _resolve(unknown, _release(gateway, unknown.key, status), now=now)


def keep(unknown: UnknownPayment, *, now: datetime) -> None:
    """Decide that the payment is not released, and is not reported any more."""
    _save_resolution(unknown, KEPT, now=now)


def _resolve(unknown: UnknownPayment, resolution: str, *, now: datetime) -> str:
    if unknown.currency:
        _save_resolution(unknown, resolution, now=now)
    else:
        # A late webhook mentioned it, and there never was money to return.
        unknown.delete()
    return resolution


def _save_resolution(unknown: UnknownPayment, resolution: str, *, now: datetime) -> None:
    unknown.resolved_at = now
    unknown.resolution = resolution
    unknown.save(update_fields=["resolved_at", "resolution"])


def _release(gateway: Gateway, key: UUID, status: GatewayPayment) -> str:
    """Return the money: void an authorization, refund a capture. Safe to repeat."""
    if status.state == "authorized":
        status = gateway.void(key)
        if not status.held:
            return "voided"
    # A refund that the bank returned keeps its key, so another one needs another key.
    failures = sum(refund.failed for refund in gateway.list_refunds(key))
    refund_key = uuid5(NAMESPACE_URL, f"release:{key}:{status.refunded}:{failures}")
    gateway.refund(key=key, refund_key=refund_key, amount=status.held)
    return "refunded"


def _to_columns(status: GatewayPayment) -> dict[str, object]:
    return {
        "reference": status.reference,
        "description": status.description,
        "amount": status.held,
        "currency": status.currency,
        "created_at": status.created_at,
    }
