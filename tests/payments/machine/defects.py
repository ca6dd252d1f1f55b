"""Planted defects: each breaks one rule of docs/checkout.md, and the machine has to find it."""

import dataclasses
import datetime as dt
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Any, TypeAlias
from unittest.mock import patch

from django.db.models import F
from hypothesis import strategies as st

from payments import (
    gateway_events,
    gateways,
    lifecycle,
    refunds,
    saved_cards,
    setups,
)
from payments.gateways.base import GatewayPayment, GatewaySetup, GatewayUnavailable
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxPayment
from payments.ledger.accounts import Account
from payments.ledger.facts import Movements
from payments.models import Payment, PaymentSetup, PaymentState, RefundState, SavedCard
from reservations.booking import cancellation, charging, expiry
from reservations.booking.commands import Command
from reservations.models import PromoCode, Reservation
from reservations.models.status import Status
from reservations.pricing import bill
from roombook.errors import ReservationNotOpen
from tests.payments.machine.beginnings import DIRECTED, Beginning, any_beginning

Defect: TypeAlias = Callable[[], AbstractContextManager[Any]]
DEFECTS: dict[str, Defect] = {}
# The beginnings (of beginnings.py) that lead to defects which other examples rarely reach.
DIRECTIONS = {
    "book_after_the_start_of_the_meeting": "nobody asks until the meeting",
    "cancel_although_it_is_refused": "a booking is cancelled after its start",
    "charge_no_cancellation_fee": "a booking is cancelled late",
    "close_requests_too_early": "a request is expired too early",
    "delete_the_new_card": "a setup completes twice",
    "end_a_setup_only_here": "a setup is never finished",
    "end_a_setup_twice": "a setup completes twice",
    "hold_longer_with_each_checkout": "the first Checkout dies, and a later one waits",
    "keep_the_former_card": "a setup completes twice",
    "let_an_old_setup_replace_a_newer_card": "an old setup ends after a newer card was saved",
    "refund_under_a_new_key": "a cancellation dies while it refunds",
    "take_a_missing_refund_for_done": "the gateway is silent during a cancellation",
    "void_without_calling_off": "the customer confirms what is called off",
}


def get_beginning(name: str) -> st.SearchStrategy[Beginning]:
    """How the examples begin that are to find the defect."""
    return DIRECTED[DIRECTIONS[name]] if name in DIRECTIONS else any_beginning


def plant(owner: Any, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Replace a function while the defect is planted. The replacement gets the original first."""

    def decorate(replacement: Callable[..., Any]) -> Callable[..., Any]:
        original = getattr(owner, name)

        def broken(*args: Any, **kwargs: Any) -> Any:
            return replacement(original, *args, **kwargs)

        DEFECTS[replacement.__name__] = lambda: patch.object(owner, name, broken)
        return replacement

    return decorate


def plant_value(name: str, owner: Any, attribute: str, value: Any) -> None:
    DEFECTS[name] = lambda: patch.object(owner, attribute, value)


def forge(payment: Payment, state: str) -> GatewayPayment:
    """An answer that the gateway has not given."""
    return GatewayPayment(state=state, reference="forged", amount=payment.amount)


# --- Money before the booking, or without one -----------------------------------------------------


@plant(lifecycle, "authorize_payment")
def capture_before_the_booking_is_committed(original, payment, *args, **kwargs):
    result = original(payment, *args, **kwargs)
    if result.state == "authorized":
        result = gateways.get_gateway(payment.gateway).capture(payment.key)
    return result


@plant(lifecycle, "authorize_payment")
def authorize_under_a_new_key(original, payment, *args, **kwargs):
    payment.key = uuid.uuid4()
    return original(payment, *args, **kwargs)


@plant(lifecycle, "authorize_payment")
def take_a_missing_answer_for_a_decline(original, payment, *args, **kwargs):
    try:
        return original(payment, *args, **kwargs)
    except GatewayUnavailable:
        return forge(payment, "declined")


@plant(lifecycle, "authorize_payment")
def take_a_missing_answer_for_an_authorization(original, payment, *args, **kwargs):
    try:
        return original(payment, *args, **kwargs)
    except GatewayUnavailable:
        return forge(payment, "authorized")


plant_value(
    "capture_for_every_status",
    *(charging, "CAPTURE_DUE_STATUSES", frozenset(Status)),
)
plant_value("capture_nothing", charging, "CAPTURE_DUE_STATUSES", frozenset())


@plant(charging, "release")
def void_nothing(original, payments):
    """The payments of a request that ended, or of a cancelled booking, still count."""


@plant(charging, "settle")
def leave_out_the_settlement(original, reservation_id, *, now):
    """`reconcile_payments` does it a minute later."""


@plant(charging, "_try_settle")
def leave_out_the_settlement_of_a_charge(original, payment, *, now):
    """`reconcile_payments` does it a minute later."""


@plant(lifecycle, "capture_payment")
def take_a_missing_capture_for_done(original, payment, *, now):
    try:
        return original(payment, now=now)
    except GatewayUnavailable:
        return lifecycle.store_gateway_status(payment, forge(payment, "captured"), now=now)


# --- Waiting for the customer ---------------------------------------------------------------------


@plant(lifecycle, "fetch_gateway_status")
def release_before_the_void(original, payment, **kwargs):
    result = gateways.get_gateway(payment.gateway).find_payment(payment.key)
    now = kwargs["now"]
    if result is None or (
        result.state == "action_required" and lifecycle.get_action_deadline(payment) <= now
    ):
        # The void would follow, if the process lived so long.
        return forge(payment, "voided")
    return result


@plant(lifecycle, "_is_to_be_voided")
def wait_for_ever(original, payment, result, **kwargs):
    return original(payment, result, **kwargs) if result is None else False


@plant(lifecycle, "_mark_called_off")
def void_without_calling_off(original, payment):
    return True


@plant(charging, "_wait_for_customer")
def hold_longer_with_each_checkout(original, reservation, payment):
    until = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=15)
    payment.action_until = payment.lease_until = until
    payment.save(update_fields=["action_until", "lease_until"])


@plant(charging, "conclude")
def book_after_the_start_of_the_meeting(original, payment, result, act, **kwargs):
    if result.state == "authorized":
        now = min(act.now, payment.reservation.start - dt.timedelta(seconds=1))
        act = dataclasses.replace(act, now=now)
    return original(payment, result, act, **kwargs)


@plant(gateway_events, "refresh")
def trust_the_webhook_without_asking(original, payment, *, now):
    if payment.state != PaymentState.STARTED or payment.action_until is None:
        return original(payment, now=now)
    charging._finish(payment, forge(payment, "authorized"), now=now)
    return payment


@plant(lifecycle, "_is_to_be_voided")
def void_what_the_customer_has_confirmed(original, payment, result, **kwargs):
    return result is None or result.state in {"action_required", "authorized"}


@plant(SandboxGateway, "find_payment")
def take_a_refused_confirmation_for_given(original, self, key):
    result = original(self, key)
    if result is not None and result.state == "declined":
        return dataclasses.replace(result, state="authorized")
    return result


@plant(charging, "conclude")
def book_without_waiting_for_the_customer(original, payment, result, *args, **kwargs):
    if result.state == "action_required":
        result = dataclasses.replace(result, state="authorized")
    return original(payment, result, *args, **kwargs)


@plant(charging, "conclude")
def keep_the_room_after_a_decline(original, payment, result, act, **kwargs):
    if result.state != "declined":
        return original(payment, result, act, **kwargs)
    return payment.reservation, lifecycle.record_gateway_result(payment, result, now=act.now)


@plant(charging, "_finish")
def conclude_differently_after_a_crash(original, payment, result, *, now):
    with patch.object(bill, "return_benefits"):
        return original(payment, result, now=now)


@plant(SandboxGateway, "void")
def void_no_unknown_key(original, self, key):
    if SandboxPayment.objects.filter(key=key).exists():
        return original(self, key)
    return GatewayPayment(state="voided", reference="", amount=Decimal(0))


# --- The ledger (tests/payments/test_ledger_defects.py has more) ----------------------------------


@plant(Movements, "__init__")
def post_to_the_account_of_cash(original, self, *rows):
    """The checks read the facts in the same way: only the gateway's own list tells."""
    original(self, *rows)
    self.account = Account.CASH


# --- Promo codes, included hours, refunds ---------------------------------------------------------


@plant(bill, "return_benefits")
def keep_promo_code_and_hours(original, reservation, *, now):
    pass


@plant(bill, "consume_benefits")
def use_promo_code_and_hours_for_free(original, reservation, **kwargs):
    pass


@plant(bill, "consume_benefits")
def count_the_promo_code_twice(original, reservation, **kwargs):
    original(reservation, **kwargs)
    PromoCode.objects.filter(pk=reservation.promo_code_id).update(max_uses=None)
    PromoCode.objects.filter(pk=reservation.promo_code_id).update(uses=F("uses") + 1)


@plant(refunds, "create_refund")
def cancel_without_a_refund(original, payment, **kwargs):
    pass


@plant(refunds, "execute_refund")
def refund_under_a_new_key(original, refund, *, now):
    refund.key = uuid.uuid4()
    return original(refund, now=now)


@plant(refunds, "execute_refund")
def take_a_missing_refund_for_done(original, refund, *, now):
    try:
        return original(refund, now=now)
    except GatewayUnavailable:
        return refunds._close_refund(refund, RefundState.DONE, now)


@plant(cancellation, "_calculate_outcome")
def charge_no_cancellation_fee(original, reservation, payment, *, now):
    reservation.cancellation_terms |= {"steps": [[0, 100]]}
    return original(reservation, payment, now=now)


# --- Bookings that their customers know of --------------------------------------------------------


@plant(cancellation, "cancel")
def cancel_although_it_is_refused(original, act, reservation_id, **kwargs):
    try:
        return original(act, reservation_id, **kwargs)
    except ReservationNotOpen:
        booked = Reservation.objects.filter(pk=reservation_id, status=Status.CONFIRMED)
        booked.update(status=Status.CANCELLED, cancelled_at=act.now)
        raise


@plant(Command, "preview")
def do_what_is_only_previewed(original, self, act, reservation_id, **kwargs):
    preview = original(self, act, reservation_id, **kwargs)
    self(act, reservation_id, **kwargs)
    return preview


@plant(expiry, "_find")
def close_requests_too_early(original, rows):
    # The other steps ignore requests.
    return [*original(rows), *original(Reservation.objects.filter(status=Status.PENDING))]


# --- Payment setups -------------------------------------------------------------------------------


@plant(SandboxGateway, "cancel_setup")
def end_a_setup_only_here(original, self, reference):
    found = self.find_setup(reference)
    return found if found.card else GatewaySetup("expired", reference)


@plant(setups, "_replace_saved_card")
def delete_the_new_card(original, setup, card, **kwargs):
    original(setup, card, **kwargs)
    return setup.gateway, card.reference


@plant(setups, "resolve_setup")
def let_an_old_setup_replace_a_newer_card(original, setup, *, now, keeps_newer_card=False):
    return original(setup, now=now)


@plant(setups, "_end_setup")
def end_a_setup_twice(original, setup, state, message):
    PaymentSetup.objects.filter(pk=setup.pk).update(state=state, message=message)
    return True


@plant(saved_cards, "replace_saved_card")
def keep_the_former_card(original, saved):
    return original(saved) if not SavedCard.objects.filter(user=saved.user).exists() else None
