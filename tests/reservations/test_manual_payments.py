"""Payments in cash, at a card terminal or on account, and bookings of what has just begun (B26)."""

from decimal import Decimal

import pytest
from django.core.management import call_command

from accounts.act import Act
from accounts.models import OutboxMessage
from centers.models import Rate
from payments import manual_payments, refunds
from payments.models import InvalidPaymentTransition, Payment, PaymentState, Refund, RefundState
from reservations.booking import (
    alerts,
    amendments,
    approval,
    charging,
    checkout,
    expiry,
    integrity,
    payment_links,
)
from reservations.booking.amendments import ChangeRequest
from reservations.booking.cancellation import cancel
from reservations.booking.checkout import ALREADY_BOOKED, NOT_PERMITTED, book_draft
from reservations.models.status import Status
from reservations.notifications import confirmation
from roombook.errors import InvalidRequest, ReservationNotOpen, SlotUnavailable
from tests.factories_people import StaffFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    PaymentFactory,
    PromoCodeFactory,
    get_current_status,
    make_booking,
    make_draft,
    make_room,
    update_promo_code,
)
from tests.reservations.payment_link_pages import find_link
from tests.reservations.rescheduling_helpers import adjust

pytestmark = pytest.mark.django_db


LATER = NOW + 15 * 24 * HOUR


@pytest.fixture
def customer():
    return UserFactory(credit_limit=200)


def take(draft, root, gateway="terminal", *, now=NOW):
    return book_draft(
        Act(root, now, is_staff=True),
        draft.pk,
        gateway=gateway,
        reference="Slip 17",
        shown_total=draft.total_cost,
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
def test_paid_request_is_confirmed_or_refunded(root, customer, gateway):
    room = make_room(is_live_inventory=False)
    other = take(make_draft(customer, room, start=START + 24 * HOUR), root, "cash")
    approved = approval.approve(Act(root, NOW, is_staff=True), other.pk)
    assert approved.status == Status.CONFIRMED
    request = take(make_draft(customer, room), root, gateway)
    assert request.status == Status.PENDING
    assert has_no_problems(NOW + 2 * HOUR)

    approval.decline(Act(root, NOW, is_staff=True), request.pk)

    # What was never received is credited at once.
    state = RefundState.STARTED if gateway == "cash" else RefundState.DONE
    assert Refund.objects.get().state == state
    assert has_no_problems(NOW + 2 * HOUR)


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


# --- Staff book what has just begun, and take its payment a quarter of an hour later (B26.10) -----


# 11:46 in Denver, on a grid of 15 minutes.
QUARTER_TO = START + 2 * HOUR + 45 * MINUTE
AT = QUARTER_TO + MINUTE


def walk_in(room, root, start=QUARTER_TO, **fields):
    return make_draft(room=room, start=start, hours=1, now=AT, created_by=root, **fields)


@pytest.mark.parametrize("minutes", [0, 15])
def test_staff_book_the_running_slot_and_the_one_before_it(room, root, minutes):
    draft = walk_in(room, root, QUARTER_TO - minutes * MINUTE)
    assert draft.is_held_at(AT)
    assert take(draft, root, now=AT + 2 * MINUTE).status == Status.CONFIRMED
    assert not list(integrity.find_problems(now=AT + 3 * MINUTE))


def test_what_began_earlier_is_over_or_a_customer_asks_for_has_passed(room, root):
    with pytest.raises(SlotUnavailable, match="passed"):
        walk_in(room, root, QUARTER_TO - 30 * MINUTE)
    with pytest.raises(SlotUnavailable, match="passed"):
        make_draft(room=room, start=QUARTER_TO, hours=1, now=AT)
    room.minimum_minutes = 15
    room.save()
    with pytest.raises(SlotUnavailable, match="passed"):
        make_draft(room=room, start=QUARTER_TO - 15 * MINUTE, hours=0.25, now=AT, created_by=root)


@pytest.mark.parametrize("start", [QUARTER_TO, QUARTER_TO - 15 * MINUTE, START + 4 * HOUR])
def test_draft_by_staff_is_paid_until_15_minutes_after_its_start_or_creation(room, root, start):
    late = max(start, AT) + 15 * MINUTE
    draft = walk_in(room, root, start)
    assert draft.payable_until == late
    assert not [each for each in expiry.close_overdue(now=late - MINUTE) if each == draft]
    assert not list(integrity.find_problems(now=late - MINUTE))
    assert take(draft, root, now=late - MINUTE).status == Status.CONFIRMED


@pytest.mark.parametrize("minutes", [15, 16])
def test_draft_that_is_not_paid_in_time_expires(room, root, minutes):
    draft = walk_in(room, root)
    late = AT + minutes * MINUTE
    with pytest.raises(ReservationNotOpen, match="time has passed"):
        take(draft, root, now=late)
    assert [each.status for each in expiry.close_overdue(now=late)] == [Status.EXPIRED]


def test_draft_is_never_paid_after_its_end(room, root):
    room.minimum_minutes = 15
    room.save()
    draft = make_draft(
        room=room, start=QUARTER_TO - 15 * MINUTE, hours=0.5, now=AT, created_by=root
    )
    assert draft.payable_until == draft.end == QUARTER_TO + 15 * MINUTE


def test_payment_link_of_a_walk_in_is_open_as_long_as_it_says(client, clock, room, root):
    clock.move_to(AT)
    draft = walk_in(room, root)
    act = Act(root, AT, is_staff=True)
    payment_links.send_link(act, draft.pk, base_url="https://rooms.example.com")
    link = find_link(OutboxMessage.objects.get(kind="payment link"))
    draft.refresh_from_db()
    assert draft.payment_link_until == draft.payable_until
    assert client.get(link).status_code == 200
    assert payment_links.can_cancel_links(draft, now=AT)
    clock.move_to(draft.payable_until)
    assert client.get(link).status_code == 410


def test_payment_at_the_bank_waits_no_longer_than_it_can_book(room, root):
    draft = walk_in(room, root)
    late = draft.payable_until - 2 * MINUTE
    payment = PaymentFactory(reservation=draft, state="started", at=late)
    charging._wait_for_customer(draft, payment)
    assert payment.action_until == draft.payable_until


def test_request_of_a_walk_in_is_approved_until_15_minutes_after_its_start(room, root):
    room.is_live_inventory = False
    room.save()
    requests = [walk_in(room, root, QUARTER_TO + hours * HOUR) for hours in (0, 2)]
    for request in requests:
        assert take(request, root, now=AT + MINUTE).status == Status.PENDING
    running, later = requests
    assert not [*expiry.close_overdue(now=AT + 2 * MINUTE)]
    act = Act(root, AT + 3 * MINUTE, is_staff=True)
    assert approval.approve(act, running.pk).status == Status.CONFIRMED
    too_late = later.start + 15 * MINUTE
    assert [each.pk for each in expiry.close_overdue(now=too_late) if each.pk == later.pk]


@pytest.mark.parametrize("by_staff", [True, False])
def test_draft_is_moved_to_the_running_slot_only_if_staff_made_it(room, root, by_staff):
    created_by = root if by_staff else None
    draft = make_draft(room=room, start=START + 5 * HOUR, hours=1, now=AT, created_by=created_by)
    request = ChangeRequest(room.pk, QUARTER_TO, QUARTER_TO + HOUR)
    act = Act(root, AT, is_staff=True)
    if by_staff:
        moved = amendments.amend(act, draft.pk, request).reservation
        assert moved.is_held_at(AT)
    else:
        with pytest.raises(SlotUnavailable, match="passed"):
            amendments.amend(act, draft.pk, request)
