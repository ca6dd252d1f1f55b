"""Checkout: what it books, charges and refuses."""

import pytest
from django.db import connection

from accounts.act import Act
from accounts.models import AttemptWindow
from payments import lifecycle
from payments.gateways.base import GatewayPayment
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxCard, SandboxPayment
from payments.models import Payment
from reservations.booking import charging, checkout, expiry
from reservations.booking.cancellation import cancel
from reservations.booking.charging import PaymentMethod
from reservations.models import Reservation, history
from reservations.models.status import Status
from roombook.errors import (
    CardDeclined,
    InvalidRequest,
    NoSavedCard,
    ReservationNotOpen,
    SlotUnavailable,
)
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import (
    DAY,
    DECLINED_NUMBER,
    HOUR,
    MINUTE,
    NOW,
    START,
    AllowanceFactory,
    PartnerFactory,
    get_current_status,
    make_booking,
    make_draft,
    make_payment_method,
    make_room,
    pay,
)
from tests.reservations.checkout.helpers import (
    LEASE_OVER,
    count_charges,
    fault,
    get_benefits,
    has_no_problems,
    pay_with_saved_card,
)

pytestmark = pytest.mark.django_db


# --- Without failures -----------------------------------------------------------------------------


def test_checkout_repeated_returns_same_status_without_gateway_call(drafted):
    first = pay(drafted)
    fault("*", "timeout_before", times=None)
    for number in ("4242424242424242", DECLINED_NUMBER):
        assert pay(drafted, number, now=NOW + HOUR).status == first.status
    # A payment method is no longer required.
    again = pay_with_saved_card(drafted, method=PaymentMethod(), now=NOW + HOUR)
    assert again.booked_at == NOW
    assert count_charges() == 1


@pytest.mark.parametrize("fields", [None, {"exp_year": 2027, "exp_month": 2}, {"gateway": "other"}])
def test_checkout_without_usable_saved_card_is_refused(ada, fields):
    if fields:
        SavedCardFactory(user=ada, **fields)
    with pytest.raises(NoSavedCard):
        pay_with_saved_card(make_draft(ada))
    assert not Payment.objects.exists()


@pytest.mark.parametrize(
    "payment_method",
    [PaymentMethod(), PaymentMethod(use_saved_card=True), make_payment_method(DECLINED_NUMBER)],
)
def test_free_checkout_ignores_the_payment_method(ada, payment_method):
    AllowanceFactory(user=ada)
    reservation = make_draft(ada)
    assert reservation.total_cost == 0
    assert pay_with_saved_card(reservation, method=payment_method).status == Status.CONFIRMED
    assert not Payment.objects.exists()
    assert not SandboxPayment.objects.exists()


def test_checkout_with_expired_hold_fails_if_room_is_held_by_another(ada):
    room = make_room()
    mine = make_draft(ada, room)
    competing = make_draft(room=room, now=NOW + 15 * MINUTE)

    with pytest.raises(SlotUnavailable):
        pay(mine, now=NOW + 16 * MINUTE)

    assert pay(competing, now=NOW + 16 * MINUTE).status == Status.CONFIRMED
    assert count_charges() == 1


def test_checkout_validates_partner_before_charging_and_ignores_case(ada):
    partner = PartnerFactory(code="acme")
    PartnerFactory(code="GONE", is_active=False)
    reservation = make_draft(ada)
    for code in ("GONE", "NONESUCH"):
        with pytest.raises(InvalidRequest) as error:
            pay(reservation, partner_code=code)
        assert error.value.fields == {"partner_code": "There is no such partner."}
    assert not Payment.objects.exists()

    pay(reservation, partner_code=" Acme ")
    reservation.refresh_from_db()
    assert reservation.partner == partner

    # A repeated checkout returns the booking, also if the partner has left.
    partner.is_active = False
    partner.save()
    assert pay(reservation, partner_code="ACME").status == Status.CONFIRMED


def test_card_is_saved_only_after_authorization(ada):
    reservation = make_draft(ada)
    with pytest.raises(CardDeclined):
        pay(reservation, DECLINED_NUMBER, save_card=True)
    assert not SandboxCard.objects.exists()

    pay(reservation, save_card=True)
    ada.refresh_from_db()
    assert ada.saved_card.last4 == "4242"


def test_failed_card_save_does_not_affect_the_booking(ada):
    fault("store", "timeout_before")
    assert pay(make_draft(ada), save_card=True).status == Status.CONFIRMED
    assert not SandboxCard.objects.exists()


def test_card_that_was_not_charged_is_not_saved(ada, monkeypatch):
    """A second request with another card finds the status New and then loses the race."""
    reservation = make_draft(ada)
    claim = checkout._claim

    def overtaken(*args, **kwargs):
        monkeypatch.setattr(checkout, "_claim", claim)
        pay(reservation)
        return claim(*args, **kwargs)

    monkeypatch.setattr(checkout, "_claim", overtaken)
    outcome = pay(reservation, "5555555555554444", save_card=True)

    assert outcome.status == Status.CONFIRMED
    assert count_charges() == 1
    assert not SandboxCard.objects.exists()


def get_status_changes(reservation):
    return [
        (row.actor, *row.changes["status"])
        for row in reversed(history.get_changes(reservation))
        if "status" in row.changes
    ]


@pytest.mark.time_machine(NOW, tick=False)
def test_checkout_history_names_the_customer_and_what_happens_by_itself_nobody():
    booking, late = make_booking(), make_draft(start=START + 4 * HOUR)
    fault("authorize", "timeout_after")
    resolved = make_booking()
    charging.resolve_payment(resolved.payments.get(), now=NOW + HOUR)
    list(expiry.close_overdue(now=START + DAY))

    ada = booking.user
    assert get_status_changes(booking) == [
        (ada, "New", "Processing"),
        (ada, "Processing", "Confirmed"),
        (None, "Confirmed", "Completed"),
    ]
    assert history.get_changes(booking).last().timestamp == NOW
    assert get_status_changes(late) == [(None, "New", "Expired")]
    assert get_status_changes(resolved)[1] == (None, "Processing", "Confirmed")


# --- Declined -------------------------------------------------------------------------------------


def test_declined_checkout_resets_draft_with_ten_minute_hold(drafted, plan, promo):
    with pytest.raises(CardDeclined, match="You were not charged"):
        pay(drafted, DECLINED_NUMBER)

    drafted.refresh_from_db()
    assert (drafted.status, drafted.holds_slot) == (Status.NEW, True)
    assert drafted.hold_until == NOW + 10 * MINUTE
    assert drafted.payments.get().state == "declined"
    assert get_benefits(plan, promo) == (0, 0)
    with pytest.raises(SlotUnavailable):
        make_draft(room=drafted.room, now=NOW + 9 * MINUTE)
    make_draft(room=drafted.room, now=NOW + 10 * MINUTE)
    assert has_no_problems(NOW)


# --- The dry run of a checkout changes nothing ----------------------------------------------------


def dump_rows():
    """Return every row of every table except those of rate limits."""
    dump = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table == AttemptWindow._meta.db_table:
                continue
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            dump[table] = sorted(map(repr, cursor.fetchall()))
    return dump


def test_dry_run_that_succeeds_or_fails_changes_no_rows(drafted):
    PartnerFactory(code="ACME")
    # Its bank would ask for a confirmation.
    SavedCardFactory(user=drafted.user, outcome="requires_action", saved_by_setup=True)
    make_draft(drafted.user, drafted.room)  # takes over the hold
    act, before = Act(drafted.user, NOW), dump_rows()

    for method in (make_payment_method(save_card=True), PaymentMethod(use_saved_card=True)):
        outcome = checkout.dry_run(act, drafted.pk, payment_method=method, partner_code="ACME")
        assert outcome.status == Status.NEW
    for method, partner, error in (
        (make_payment_method(DECLINED_NUMBER), "ACME", CardDeclined),
        (make_payment_method("4242424242424241"), "ACME", InvalidRequest),
        (PaymentMethod(), "ACME", InvalidRequest),
        (make_payment_method(), "NONESUCH", InvalidRequest),
    ):
        with pytest.raises(error):
            checkout.dry_run(act, drafted.pk, payment_method=method, partner_code=partner)
    assert dump_rows() == before

    Reservation.objects.release_holds(NOW)
    make_booking(room=drafted.room)
    with pytest.raises(SlotUnavailable):
        checkout.dry_run(act, drafted.pk, payment_method=make_payment_method())


# --- Gateway timeouts -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["timeout_before", "timeout_after"])
def test_unresolved_payment_is_processing_until_retry_after_lease(drafted, plan, promo, kind):
    fault("authorize", kind)
    reservation = pay(drafted)
    assert (reservation.status, reservation.holds_slot) == (Status.PROCESSING, True)
    assert get_benefits(plan, promo) == (1, 1)

    # The payment is not resolved while its lease is active.
    for number in ("4242424242424242", DECLINED_NUMBER):
        assert pay(drafted, number, now=NOW + MINUTE / 2).status == Status.PROCESSING
    assert SandboxPayment.objects.count() == (kind == "timeout_after")
    with pytest.raises(SlotUnavailable):
        make_draft(room=drafted.room, now=NOW + HOUR)

    assert pay(drafted, now=LEASE_OVER).status == Status.CONFIRMED

    assert count_charges() == 1
    assert get_benefits(plan, promo) == (1, 1)
    states = [each.state for each in drafted.payments.order_by("pk")]
    assert states == (["captured"] if kind == "timeout_after" else ["voided", "captured"])
    assert has_no_problems(LEASE_OVER)


@pytest.mark.parametrize("answers", [True, False])
def test_slow_worker_after_cancellation_does_not_charge(drafted, monkeypatch, answers):
    authorize = lifecycle.authorize_payment

    def late(payment, source, **kwargs):
        charging.resolve_payment(payment, now=LEASE_OVER)
        cancel(Act(drafted.user, LEASE_OVER), drafted.pk)
        if not answers:
            fault("authorize", "timeout_before")
        return authorize(payment, source, **kwargs)

    monkeypatch.setattr(lifecycle, "authorize_payment", late)
    with pytest.raises(ReservationNotOpen, match="You were not charged"):
        pay(drafted)
    assert count_charges() == 0


def test_authorization_of_a_slow_worker_before_the_void_does_not_book(drafted, monkeypatch):
    fault("authorize", "timeout_before")
    payment, void = pay(drafted).payments.get(), SandboxGateway.void

    def answer_before(self, key):
        answer = GatewayPayment("authorized", "late", payment.amount)
        charging.conclude(payment, answer, Act(drafted.user, LEASE_OVER))
        return void(self, key)

    monkeypatch.setattr(SandboxGateway, "void", answer_before)
    assert charging.resolve_payment(payment, now=LEASE_OVER).state == "voided"
    assert get_current_status(drafted) == Status.NEW
