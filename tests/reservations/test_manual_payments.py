"""Payments in cash, at a card terminal or on account: booked at once, refunded manually (B26)."""

from decimal import Decimal

import pytest
from django.core.management import call_command

from accounts.act import Act
from centers.models import Rate
from payments import manual_payments, refunds
from payments.models import InvalidPaymentTransition, Payment, PaymentState, Refund, RefundState
from reservations.booking import alerts, approval, checkout, integrity
from reservations.booking.cancellation import cancel
from reservations.booking.checkout import ALREADY_BOOKED, NOT_PERMITTED, book_draft
from reservations.models.status import Status
from reservations.notifications import confirmation
from roombook.errors import InvalidRequest, ReservationNotOpen, SlotUnavailable
from tests.factories_people import StaffFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    PromoCodeFactory,
    get_current_status,
    make_booking,
    make_draft,
    make_room,
    update_promo_code,
)
from tests.reservations.rescheduling_helpers import adjust

pytestmark = pytest.mark.django_db


LATER = NOW + 15 * 24 * HOUR


@pytest.fixture
def customer():
    return UserFactory(credit_limit=200)


def take(draft, root, gateway="terminal", **options):
    return book_draft(
        Act(root, NOW, is_staff=True),
        draft.pk,
        gateway=gateway,
        reference="Slip 17",
        shown_total=draft.total_cost,
        **options,
    )


def has_no_problems(now=NOW):
    return not list(integrity.find_problems(now=now))


def get_alerts():
    return [text for _, text in alerts.find_refunds_by_hand(Payment.objects.all())]


def test_payment_at_the_desk_books_the_draft_with_its_benefits(root, customer, mailoutbox):
    draft = make_draft(customer)
    promo = PromoCodeFactory(code="TEN")
    draft = update_promo_code(draft.pk, "TEN", user=customer, now=NOW)

    booked = take(draft, root)

    payment = Payment.objects.get()
    assert booked.status == get_current_status(draft) == Status.CONFIRMED
    assert (payment.state, payment.gateway, payment.reference) == (
        "captured",
        "terminal",
        "Slip 17",
    )
    assert (payment.amount, payment.taken_by) == (draft.total_cost, root)
    assert payment.received_at == payment.captured_at == NOW
    promo.refresh_from_db()
    assert promo.uses == 1
    assert "was paid at the card terminal" in confirmation.get_message(booked)
    assert has_no_problems()
    with pytest.raises(ReservationNotOpen, match=ALREADY_BOOKED):
        take(draft, root)


def test_payment_is_refused_without_its_slot_or_price(root, customer):
    room = make_room()
    draft = make_draft(customer, room)
    with pytest.raises(ReservationNotOpen, match=checkout.PRICE_HAS_CHANGED):
        book_draft(Act(root, NOW, is_staff=True), draft.pk, gateway="cash", shown_total=Decimal(1))
    make_booking(room=room, now=NOW + 30 * HOUR)
    with pytest.raises(SlotUnavailable):
        book_draft(Act(root, NOW + 30 * HOUR, is_staff=True), draft.pk, gateway="cash")

    # Whoever calls it: the form is not the only way in.
    for slip in ("", " ", "-"):
        with pytest.raises(InvalidRequest):
            book_draft(
                Act(root, NOW, is_staff=True),
                make_draft(customer).pk,
                gateway="terminal",
                reference=slip,
            )

    assert get_current_status(draft) == Status.NEW
    assert not Payment.objects.filter(reservation=draft).exists()


def test_outdated_price_is_not_taken(root, customer):
    draft, act = make_draft(customer), Act(root, NOW + 30 * HOUR, is_staff=True)
    Rate.objects.update(hourly=30)
    with pytest.raises(ReservationNotOpen, match=checkout.PRICE_HAS_CHANGED):
        book_draft(act, draft.pk, gateway="cash", shown_total=Decimal(75))
    assert book_draft(act, draft.pk, gateway="cash", shown_total=Decimal(90)).total_cost == 90


def test_free_draft_is_booked_without_a_payment(root):
    draft = make_draft()
    adjust(draft, root, -75)
    draft.refresh_from_db()

    assert take(draft, root, "cash").status == Status.CONFIRMED
    assert not Payment.objects.exists()
    assert has_no_problems()


def test_refund_by_hand_is_due_until_staff_confirm_it(root, customer):
    booked = take(make_draft(customer), root, "cash")
    adjust(booked, root, -5)
    result = cancel(Act(root, NOW, is_staff=True), booked.pk)
    call_command("reconcile_payments")

    refund, rest = Refund.objects.order_by("pk")
    assert {refund.state, rest.state} == {RefundState.STARTED}
    assert "refunded in cash" in result.message
    assert len(get_alerts()) == 1
    assert has_no_problems(NOW + 2 * HOUR)
    overdue = [finding.check for finding in integrity.find_problems(now=LATER)]
    assert overdue == ["refunds forgotten"] * 2

    refunds.confirm_refund_by_hand(refund, "Receipt 4", now=NOW)
    done = refunds.confirm_refund_by_hand(rest, "Receipt 5", now=NOW)

    assert (done.state, done.reference) == (RefundState.DONE, "Receipt 5")
    assert Payment.objects.get().state == PaymentState.REFUNDED
    assert not get_alerts()
    assert has_no_problems(LATER)
    with pytest.raises(InvalidPaymentTransition):
        refunds.confirm_refund_by_hand(rest, "Receipt 6", now=NOW)


@pytest.mark.parametrize("gateway", ["cash", "account"])
def test_paid_request_that_is_declined_is_refunded(root, customer, gateway):
    request = take(make_draft(customer, make_room(is_live_inventory=False)), root, gateway)
    assert request.status == Status.PENDING
    assert has_no_problems(NOW + 2 * HOUR)

    approval.decline(Act(root, NOW, is_staff=True), request.pk)

    # What was never received is credited at once.
    state = RefundState.STARTED if gateway == "cash" else RefundState.DONE
    assert Refund.objects.get().state == state
    assert has_no_problems(NOW + 2 * HOUR)


def test_paid_request_that_is_approved_is_confirmed(root, customer):
    request = take(make_draft(customer, make_room(is_live_inventory=False)), root, "cash")

    assert approval.approve(Act(root, NOW, is_staff=True), request.pk).status == Status.CONFIRMED
    assert not Refund.objects.exists()
    assert has_no_problems()


# --- On account -----------------------------------------------------------------------------------


def test_bookings_on_account_are_limited_to_what_the_customer_may_owe(root, customer):
    first = take(make_draft(customer), root, "account")
    second = take(make_draft(customer), root, "account")
    assert manual_payments.get_owed_amount(customer) == 150
    third = make_draft(customer)
    with pytest.raises(InvalidRequest) as refused:
        take(third, root, "account")
    assert "owes $150.00 of at most $200.00" in refused.value.fields["gateway"]

    manual_payments.mark_received(first.paid_payments[0], now=NOW)
    cancel(Act(root, NOW, is_staff=True), second.pk)

    assert manual_payments.get_owed_amount(customer) == 0
    assert take(third, root, "account").status == Status.CONFIRMED
    assert manual_payments.get_owed_amount(customer) == 75
    assert has_no_problems()
    with pytest.raises(InvalidPaymentTransition):
        manual_payments.mark_received(first.paid_payments[0], now=NOW)


def test_account_payment_is_refused_without_a_limit_or_the_permission(root, customer):
    with pytest.raises(InvalidRequest) as refused:
        take(make_draft(), root, "account")
    assert refused.value.fields["gateway"] == manual_payments.NO_CREDIT
    with pytest.raises(InvalidRequest) as refused:
        take(make_draft(customer), StaffFactory(), "account")
    assert refused.value.fields["gateway"] == NOT_PERMITTED
    assert not Payment.objects.exists()
