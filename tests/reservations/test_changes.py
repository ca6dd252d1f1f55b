"""Changes of confirmed bookings by customers and staff, and their payments (B27)."""

from decimal import Decimal

import pytest
from django.core.management import call_command

from accounts.models import AttemptWindow, OutboxMessage
from payments.gateways.sandbox import SandboxGateway, confirm_payment, refuse_payment
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, Refund
from reservations.booking import cancellation, change_authorization, changes, rescheduling
from reservations.booking.checkout import PaymentMethod
from reservations.booking.payment_action import get_payment_action
from reservations.booking.payment_recovery import resolve_payments
from reservations.models import BookingChange, Reservation
from reservations.models.status import Status
from roombook.errors import (
    CardDeclined,
    InvalidRequest,
    NotFound,
    ReservationNotOpen,
    SlotUnavailable,
)
from tests.factories_centers import ServiceFactory
from tests.factories_people import SavedCardFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    make_booking,
    make_draft,
    make_payment_method,
    make_pending_booking,
    make_room,
)
from tests.reservations.rescheduling_helpers import (
    build_request,
    change,
    get_money,
    make_room_at_rate,
    reschedule,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.time_machine(NOW, tick=False),
    pytest.mark.usefixtures("data_is_consistent"),
]

DECLINED_NUMBER = "4000000000009995"


def get_values(booking):
    return Reservation.objects.filter(pk=booking.pk).values().get()


@pytest.fixture
def booking():
    """Three hours at 25."""
    return make_booking(room=make_room_at_rate(make_room(), 25))


# --- By customers --------------------------------------------------------------------------------


def test_longer_booking_charges_the_difference_and_a_repetition_does_nothing(booking):
    preview = changes.preview_change(
        booking.pk, build_request(booking, hours=5), user=booking.user, now=NOW
    )
    before = get_values(booking)
    first = change(booking, hours=5, total=125)
    second = change(booking, hours=5, total=125)

    assert (preview.old_total, preview.new_total, preview.difference) == (75, 125, 50)
    assert before["total_cost"] == 75  # the preview has changed nothing
    assert (first.is_applied, first.charge, second.is_applied, second.charge) == (True, 50, True, 0)
    booking.refresh_from_db()
    assert (booking.end, booking.total_cost) == (START + 5 * HOUR, 125)
    assert get_money() == [(75, 0), (50, 0)]
    message = OutboxMessage.objects.get(kind="moved")
    assert "$50.00 more is charged to Visa ending 4242." in message.text


def test_cheaper_change_after_a_longer_one_refunds_the_latest_payment_first(booking):
    change(booking, hours=5, total=125)

    cheaper = change(booking, hours=2, total=50)
    booking.refresh_from_db()

    assert (cheaper.refund, booking.reduced_by) == (75, 75)
    assert get_money() == [(75, 25), (50, 50)]
    terms = cancellation.cancel(booking.pk, user=booking.user, now=NOW)
    assert (terms.refund, get_money()) == (50, [(75, 75), (50, 50)])
    assert "$50.00 is refunded to Visa ending 4242." in terms.message


def test_late_cancellation_fee_is_the_sum_of_both_payments(booking):
    change(booking, hours=5, total=125)

    terms = cancellation.get_terms(Reservation.objects.get(), now=START - HOUR)

    assert (terms.refund, terms.fee) == (0, 125)


def test_services_and_attendees_change_together_with_the_time(booking):
    lunch = ServiceFactory(center=booking.room.center)  # 15

    change(
        booking,
        hours=4,
        services=[{"service_id": lunch.pk}],
        attendees=[{"name": "Grace", "email_address": "grace@example.com"}],
        total=115,
    )

    booking.refresh_from_db()
    assert (booking.total_cost, booking.number_of_attendees) == (115, 2)
    assert [each.service for each in booking.chosen_services.all()] == [lunch]
    assert booking.attendees.filter(name="Grace").exists()
    assert BookingChange.objects.get().attendees is None  # no personal data is kept


def test_attendees_alone_do_not_change_the_price_of_a_booking(booking):
    booking.room.rate.hourly = 100
    booking.room.rate.save()

    change(booking, number_of_attendees=4, total=75, method=PaymentMethod())
    change(booking, attendees=[{"name": "Grace"}], total=75, method=PaymentMethod())
    booking.refresh_from_db()
    assert (booking.number_of_attendees, booking.total_cost) == (4, 75)


@pytest.mark.parametrize(
    ("request_", "problem", "message"),
    [
        ({"total": 100}, ReservationNotOpen, "price has changed"),
        ({"method": PaymentMethod()}, InvalidRequest, "A card is needed"),
        ({"user": "stranger"}, NotFound, ""),
        ({"now": START - HOUR}, ReservationNotOpen, "no longer be free"),
        ({"hours": 12}, SlotUnavailable, ""),
        ({"number_of_attendees": 9}, InvalidRequest, "holds 8"),
        ({"method": make_payment_method(DECLINED_NUMBER)}, CardDeclined, "funds"),
    ],
)
def test_refused_change_leaves_the_booking_and_the_money_as_they_were(
    booking, request_, problem, message
):
    if request_.get("user"):
        request_ = {"user": UserFactory()}
    before = get_values(booking)

    with pytest.raises(problem) as error:
        change(booking, **{"hours": 5, "total": 125, **request_})

    fields = getattr(error.value, "fields", {})
    assert message in " ".join([error.value.message, *fields.values()])
    assert get_values(booking) == before
    assert get_money()[0] == (75, 0)
    assert sum(captured for captured, _ in get_money()) == 75


def test_customer_cannot_change_a_request_or_evade_the_approval_of_a_center(booking):
    with pytest.raises(ReservationNotOpen, match="Only a confirmed booking"):
        change(make_pending_booking(), hours=5, total=125)

    room = make_room_at_rate(booking.room, 10)
    room.is_live_inventory = False
    room.save()
    with pytest.raises(ReservationNotOpen, match="approve"):
        change(booking, room=room, total=30)


# --- The customer's bank -------------------------------------------------------------------------


@pytest.fixture
def waiting(booking):
    SavedCardFactory(user=booking.user, outcome="requires_action", saved_by_setup=True)
    outcome = change(booking, hours=5, total=125, method=PaymentMethod(use_saved_card=True))
    assert (outcome.is_applied, outcome.charge) == (False, 50)
    return booking


def confirm():
    confirm_payment(SandboxPayment.objects.get(key=Payment.objects.waiting().get().key).secret)


def test_change_confirmed_at_the_bank_is_applied_when_the_client_asks(waiting):
    _, action = get_payment_action(waiting.pk, user=waiting.user, now=NOW)
    assert action.expires_at == NOW + 15 * MINUTE
    # The new time is not held meanwhile.
    waiting.refresh_from_db()
    assert waiting.end == START + 3 * HOUR

    confirm()
    again = change(
        waiting, hours=5, total=125, method=PaymentMethod(use_saved_card=True), now=NOW + MINUTE
    )

    assert again.is_applied
    assert get_money() == [(75, 0), (50, 0)]


@pytest.mark.parametrize("is_known", [True, False])
def test_change_refused_at_the_bank_is_declined_once_and_then_begins_again(waiting, is_known):
    method = PaymentMethod(use_saved_card=True)
    refuse_payment(SandboxPayment.objects.get(key=Payment.objects.waiting().get().key).secret)
    if is_known:  # as by a webhook
        call_command("reconcile_payments", older_than=0)
        assert Payment.objects.latest("pk").state == "declined"

    # Another change, and another card, are not answered with it.
    shorter = change(waiting, hours=2, total=50, method=method)
    assert (shorter.is_applied, shorter.refund) == (True, 25)
    for _ in range(2):
        with pytest.raises(CardDeclined, match="not confirmed"):
            change(waiting, hours=5, total=125, method=method)
        again = change(waiting, hours=5, total=125, method=method)
        assert (again.is_applied, again.charge) == (False, 75)
        refuse_payment(SandboxPayment.objects.get(key=Payment.objects.waiting().get().key).secret)
    assert [payment.amount for payment in Payment.objects.filter(state="captured")] == [75]


def test_change_confirmed_after_its_slot_is_gone_is_voided(waiting):
    other = make_booking(room=waiting.room, start=START + 4 * HOUR, hours=1)

    confirm()
    call_command("reconcile_payments", older_than=0)

    waiting.refresh_from_db()
    assert (waiting.end, waiting.total_cost) == (START + 3 * HOUR, 75)
    assert BookingChange.objects.get().state == "abandoned"
    assert Payment.objects.get(purpose="change").state == "voided"
    assert other.status == Status.CONFIRMED


def test_cancelling_calls_off_a_change_that_waits_for_the_bank(waiting):
    assert cancellation.cancel(waiting.pk, user=waiting.user, now=NOW).refund == 75

    assert Payment.objects.get(purpose="change").state == "voided"
    assert get_money() == [(75, 75), (0, 0)]


def test_change_that_nobody_confirms_is_abandoned_and_counts_as_a_decline(waiting):
    resolve_payments(waiting.pk, user=None, now=NOW + 16 * MINUTE)

    assert BookingChange.objects.get().state == "abandoned"
    assert get_money() == [(75, 0), (0, 0)]
    attempts = AttemptWindow.objects.get(scope="card-declined", key=waiting.user_id)
    assert (attempts.count, Payment.objects.get(purpose="change").state) == (1, "voided")


# --- Crashes and concurrent requests -------------------------------------------------------------


class Killed(BaseException):
    """Ends a request as the death of its worker does."""


def crash_after(monkeypatch, owner, name, *, before=False):
    real = getattr(owner, name)

    def crash(*args, **kwargs):
        if not before:
            real(*args, **kwargs)
        monkeypatch.setattr(owner, name, real)
        raise Killed

    monkeypatch.setattr(owner, name, crash)


@pytest.mark.parametrize("resolver", ["client", "reconcile"])
@pytest.mark.parametrize(
    ("owner", "name", "before", "is_applied"),
    [
        (SandboxGateway, "authorize", True, False),
        (SandboxGateway, "authorize", False, True),
        (change_authorization, "apply_change_authorization", False, True),
        (SandboxGateway, "capture", False, True),
    ],
)
def test_change_that_crashed_at_any_step_is_resolved_once(
    booking, monkeypatch, time_machine, resolver, owner, name, before, is_applied
):
    crash_after(monkeypatch, owner, name, before=before)
    with pytest.raises(Killed):
        change(booking, hours=5, total=125)

    later = NOW + 2 * MINUTE
    time_machine.move_to(later, tick=False)
    if resolver == "client":
        assert change(booking, hours=5, total=125, now=later).is_applied
        is_applied = True
    call_command("reconcile_payments", older_than=0)

    booking.refresh_from_db()
    assert booking.total_cost == (125 if is_applied else 75)
    assert sum(captured - refunded for captured, refunded in get_money()) == booking.total_cost
    assert not Payment.objects.filter(state__in=["started", "authorized"]).exists()


@pytest.mark.parametrize("other", ["cancel", "reschedule", "book"])
def test_what_others_do_during_the_authorization_wins_and_nothing_is_charged(
    booking, clerk, monkeypatch, other
):
    real = SandboxGateway.authorize

    def interfere(*args, **kwargs):
        monkeypatch.setattr(SandboxGateway, "authorize", real)
        if other == "cancel":
            cancellation.cancel(booking.pk, user=booking.user, now=NOW)
        elif other == "reschedule":
            reschedule(booking, clerk, start=START + 24 * HOUR)
        else:
            make_booking(room=booking.room, start=START + 3 * HOUR, hours=1)
        return real(*args, **kwargs)

    monkeypatch.setattr(SandboxGateway, "authorize", interfere)
    with pytest.raises(ReservationNotOpen, match="You were not charged"):
        change(booking, hours=5, total=125)

    payment = Payment.objects.get(purpose="change")
    assert (payment.state, payment.change.state) == ("voided", "abandoned")
    booking.refresh_from_db()
    assert booking.total_cost == 75


# --- By staff ------------------------------------------------------------------------------------


@pytest.mark.parametrize("gateway", ["cash", "terminal"])
def test_staff_take_the_difference_at_the_desk(booking, clerk, gateway):
    taken = rescheduling.TakenPayment(gateway, "slip 7")

    done = reschedule(booking, clerk, hours=5, taken=taken, expected_total=Decimal(125))

    assert (done.charge, done.new_total) == (50, 125)
    payment = Payment.objects.get(purpose="change")
    assert (payment.gateway, payment.state, payment.amount) == (gateway, "captured", 50)
    # The refund of a cheaper change goes the same way back, manually.
    reschedule(booking, clerk, hours=4)
    refund = Refund.objects.get()
    assert (refund.payment, refund.amount, refund.state) == (payment, 25, "started")


def test_staff_extend_a_running_meeting_and_charge_the_saved_card(booking, clerk):
    SavedCardFactory(user=booking.user)
    request = build_request(booking, hours=3.5)
    running = START + 2 * HOUR

    outcome = changes.charge_change(
        booking.pk, request, expected_total=Decimal("87.50"), by=clerk, now=running
    )

    booking.refresh_from_db()
    assert (outcome.charge, booking.total_cost) == (Decimal("12.50"), Decimal("87.50"))
    assert (booking.start, booking.end) == (START, START + 3.5 * HOUR)


def test_running_meeting_cannot_move_or_be_extended_into_the_next_booking(booking, clerk):
    make_booking(room=booking.room, start=START + 4 * HOUR, hours=1)
    running = START + 2 * HOUR

    with pytest.raises(ReservationNotOpen, match="no longer be moved"):
        reschedule(booking, clerk, start=START + HOUR, now=running)
    with pytest.raises(SlotUnavailable):
        reschedule(booking, clerk, hours=5, now=running)
    with pytest.raises(ReservationNotOpen, match="no longer be moved"):
        reschedule(booking, clerk, hours=4, now=START + 3 * HOUR)


def test_bank_is_not_queried_while_the_customer_is_away(booking, clerk):
    SavedCardFactory(user=booking.user, outcome="requires_action", saved_by_setup=True)

    with pytest.raises(CardDeclined):
        changes.charge_change(
            booking.pk,
            build_request(booking, hours=5),
            expected_total=Decimal(125),
            by=clerk,
            now=NOW,
        )


def test_free_draft_time_before_a_change_is_released_for_it(booking):
    """The customer's own draft does not prevent the change."""
    draft = make_draft(booking.user, booking.room, start=START + 3 * HOUR, hours=1)

    assert change(booking, hours=5, total=125).is_applied

    draft.refresh_from_db()
    assert not draft.holds_slot
