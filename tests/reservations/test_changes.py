"""Changes of confirmed bookings by customers and staff, and their payments (B27)."""

from decimal import Decimal
from itertools import cycle

import pytest
from django.core.management import call_command

from accounts.act import Act
from accounts.models import AttemptWindow, OutboxMessage, User
from payments.gateways.base import GatewayUnavailable
from payments.gateways.sandbox import SandboxGateway, confirm_payment, refuse_payment
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, Refund
from reservations.booking import (
    amendments,
    cancellation,
    charging,
    differences,
    expiry,
    price_adjustments,
)
from reservations.booking.charging import (
    PaymentMethod,
    get_payment_action,
    resolve_payments,
)
from reservations.models import BookingChange, LineItemType, Reservation, history
from reservations.models.status import Status
from reservations.notifications import confirmation, emails
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
    ReservationFactory,
    make_booking,
    make_draft,
    make_payment_method,
    make_pending_booking,
    make_room,
)
from tests.reservations.rescheduling_helpers import (
    adjust,
    build_request,
    change,
    charge,
    get_money,
    get_net_payment,
    get_stored_values,
    make_room_at_rate,
    preview_reschedule,
    reschedule,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.time_machine(NOW, tick=False),
    pytest.mark.usefixtures("data_is_consistent"),
]


DECLINED_NUMBER = "4000000000009995"


@pytest.fixture
def booking():
    """Three hours at 25."""
    return make_booking(room=make_room_at_rate(make_room(), 25))


# --- By customers ---------------------------------------------------------------------------------


def test_longer_booking_charges_the_difference_and_a_repetition_does_nothing(booking):
    preview = differences.preview_change(
        Act(booking.user, NOW), booking.pk, build_request(booking, hours=5)
    )
    before = get_stored_values(booking)
    first = change(booking, hours=5, total=125)
    second = change(booking, hours=5, total=125)

    assert (preview.old_total, preview.new_total, preview.difference) == (75, 125, 50)
    assert before[0]["total_cost"] == 75  # the preview has changed nothing
    assert (first.is_applied, first.charge, second.is_applied, second.charge) == (True, 50, True, 0)
    booking.refresh_from_db()
    assert (booking.end, booking.total_cost) == (START + 5 * HOUR, 125)
    assert get_money() == [(75, 0), (50, 0)]
    message = OutboxMessage.objects.get(kind="moved")
    assert "$50.00 more is charged to Visa ending 4242." in message.text


def test_cheaper_change_after_a_longer_one_refunds_the_latest_payment_first(booking):
    change(booking, hours=5, total=125)

    cheaper = change(booking, hours=2, total=50)

    assert cheaper.refund == 75
    assert get_money() == [(75, 25), (50, 50)]
    terms = cancellation.cancel(Act(booking.user, NOW), booking.pk)
    assert (terms.refund, get_money()) == (50, [(75, 75), (50, 50)])
    assert "$50.00 is refunded to Visa ending 4242." in terms.message


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
    before = get_stored_values(booking)

    with pytest.raises(problem) as error:
        change(booking, **{"hours": 5, "total": 125, **request_})

    fields = getattr(error.value, "fields", {})
    assert message in " ".join([error.value.message, *fields.values()])
    assert get_stored_values(booking) == before
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


# --- The customer's bank --------------------------------------------------------------------------


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
    method = PaymentMethod(use_saved_card=True)
    assert change(waiting, hours=5, total=125, method=method, now=NOW + MINUTE).is_applied
    assert get_money() == [(75, 0), (50, 0)]


@pytest.mark.parametrize("is_known", [True, False])
def test_change_refused_at_the_bank_is_declined_once_and_then_begins_again(waiting, is_known):
    method = PaymentMethod(use_saved_card=True)
    refuse_payment(SandboxPayment.objects.get(key=Payment.objects.waiting().get().key).secret)
    if is_known:  # as by a webhook
        call_command("reconcile_payments")
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
    call_command("reconcile_payments")

    waiting.refresh_from_db()
    assert (waiting.end, waiting.total_cost) == (START + 3 * HOUR, 75)
    assert BookingChange.objects.get().state == "abandoned"
    assert Payment.objects.get(purpose="change").state == "voided"
    assert other.status == Status.CONFIRMED
    # Nobody waits for the answer of the job.
    reason = BookingChange.objects.get().message
    assert history.get_changes(waiting)[0].changes == {"change_not_made": [None, reason]}
    email = OutboxMessage.objects.get(kind="not changed")
    assert f"{reason} You were not charged" in email.text
    assert "9:00 AM - 12:00 PM" in email.text


@pytest.fixture
def stranded(booking, clerk, clock, monkeypatch):
    """Staff charge the saved card for two more hours; the worker dies, and its lease expires."""
    SavedCardFactory(user=booking.user)
    real = SandboxGateway.authorize

    def die(*args, **kwargs):
        real(*args, **kwargs)
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(SandboxGateway, "authorize", die)
        with pytest.raises(KeyboardInterrupt):
            charge(booking, clerk, total=125, hours=5)
    return booking


@pytest.mark.parametrize("first", [NOW, NOW + 2 * MINUTE], ids=["within its lease", "later"])
def test_cancellation_voids_the_payment_of_a_change_whose_worker_died(stranded, clock, first):
    for now in (first, NOW + 2 * MINUTE):
        clock.move_to(now)
        cancelled = cancellation.cancel(Act(stranded.user, now), stranded.pk)
        assert cancelled.refund == 75
    assert cancelled.is_repeated
    assert Payment.objects.get(purpose="change").state == "voided"


def test_refused_cancellation_keeps_the_change_whose_worker_died(stranded, clerk, clock):
    clock.move_to(NOW + 2 * MINUTE)
    act = Act(clerk, NOW + 2 * MINUTE, is_staff=True)

    with pytest.raises(ReservationNotOpen):
        cancellation.cancel(act, stranded.pk, expected_refund=Decimal(1))

    assert Payment.objects.get(purpose="change").state == "started"
    call_command("reconcile_payments")
    stranded.refresh_from_db()
    assert stranded.total_cost == 125


def test_customer_is_not_told_that_a_change_failed_which_staff_made_otherwise(
    stranded, clerk, clock
):
    reschedule(stranded, clerk, hours=5, taken=amendments.TakenPayment("cash"))

    clock.move_to(NOW + 2 * MINUTE)
    call_command("reconcile_payments")

    assert Payment.objects.filter(purpose="change", state="voided").count() == 1
    assert list(OutboxMessage.objects.values_list("kind", flat=True)) == ["confirmed", "moved"]


OTHERS = {
    "cancel": lambda booking, clerk: cancellation.cancel(
        Act(clerk, NOW, is_staff=True), booking.pk
    ),
    "move": lambda booking, clerk: reschedule(booking, clerk, start=START + 24 * HOUR),
    "shorten": lambda booking, clerk: reschedule(booking, clerk, hours=2),
    "extend at the desk": lambda booking, clerk: reschedule(
        booking, clerk, hours=4, taken=amendments.TakenPayment("cash")
    ),
    "adjust": lambda booking, clerk: adjust(booking, clerk, -5),
    "charge": lambda booking, clerk: charge(booking, clerk, total=50, hours=2),
    "book the time": lambda booking, clerk: make_booking(
        room=booking.room, start=START + 3 * HOUR, hours=1
    ),
}


def interfere(monkeypatch, owner, name, call, *, before):
    """Let another request act once, before or after this function is called."""
    real = getattr(owner, name)

    def run(*args, **kwargs):
        monkeypatch.setattr(owner, name, real)
        if before:
            call()
        result = real(*args, **kwargs)
        if not before:
            call()
        return result

    monkeypatch.setattr(owner, name, run)


@pytest.mark.parametrize(
    ("other", "outcome", "when"),
    [
        *((other, "requires_action", "waiting") for other in list(OTHERS)[:-1]),
        # The others before or after the answer, of both kinds of cards in turn.
        *zip(
            *(OTHERS, cycle(["succeeds", "requires_action"]), cycle(["before", "after", "after"])),
            strict=False,
        ),
    ],
)
def test_change_is_called_off_by_what_others_do_before_it_is_paid(
    booking, clerk, monkeypatch, outcome, when, other
):
    """While the payment waits for the bank, or before or after the gateway has answered."""
    SavedCardFactory(user=booking.user, outcome=outcome, saved_by_setup=True)
    wanted = {"hours": 5, "total": 125, "method": PaymentMethod(use_saved_card=True)}
    if when == "waiting":
        assert not change(booking, **wanted).is_applied
        OTHERS[other](booking, clerk)
    else:
        interfere(
            *(monkeypatch, SandboxGateway, "authorize", lambda: OTHERS[other](booking, clerk)),
            before=when == "before",
        )
        reason = "" if other == "book the time" else "changed meanwhile.* "
        with pytest.raises(ReservationNotOpen, match=f"{reason}You were not charged"):
            change(booking, **wanted)

    payment = Payment.objects.get(amount=50, purpose="change")
    assert (payment.state, payment.change.state) == ("voided", "abandoned")
    status = Reservation.objects.get(pk=booking.pk).status
    assert get_payment_action(booking.pk, user=booking.user, now=NOW) == (status, None)


@pytest.mark.parametrize("is_called_off", [True, False])
def test_change_begun_while_its_booking_is_cancelled_waits_only_without_the_call_off(
    booking, monkeypatch, is_called_off
):
    """The change begins after the cancellation has looked for payments, and before its lock."""
    SavedCardFactory(user=booking.user, outcome="requires_action", saved_by_setup=True)
    if not is_called_off:
        monkeypatch.setattr(cancellation, "call_off_changes", lambda *_, **__: [])
    interfere(
        *(monkeypatch, charging, "resolve_payments"),
        lambda: change(booking, hours=5, total=125, method=PaymentMethod(use_saved_card=True)),
        before=False,
    )

    cancellation.cancel(Act(booking.user, NOW), booking.pk)

    assert Payment.objects.waiting().exists() != is_called_off
    # A final status offers no action in any case.
    expected = (Status.CANCELLED, None)
    assert get_payment_action(booking.pk, user=booking.user, now=NOW) == expected


def test_change_that_nobody_confirms_is_abandoned_and_counts_as_a_decline(waiting):
    later = NOW + 16 * MINUTE
    attempts = AttemptWindow.objects.get(scope="card-declined", key=waiting.user_id)
    assert attempts.count == 0
    resolve_payments(waiting.pk, user=None, now=later)

    assert BookingChange.objects.get().state == "abandoned"
    assert get_money() == [(75, 0), (0, 0)]
    attempts.refresh_from_db()
    assert (attempts.count, Payment.objects.get(purpose="change").state) == (1, "voided")


# --- By staff -------------------------------------------------------------------------------------


@pytest.mark.parametrize("gateway", ["cash", "terminal", "account"])
def test_staff_take_the_difference_at_the_desk(booking, root, gateway):
    User.objects.filter(pk=booking.user_id).update(credit_limit=50)
    taken = amendments.TakenPayment(gateway, "slip 7")

    done = reschedule(booking, root, hours=5, taken=taken, expected_total=Decimal(125))

    assert (done.charge, done.new_total) == (50, 125)
    payment = Payment.objects.get(purpose="change")
    assert (payment.gateway, payment.state, payment.amount) == (gateway, "captured", 50)
    # The refund of a cheaper change goes the same way back, manually, or is credited at once.
    reschedule(booking, root, hours=4)
    refund = Refund.objects.get()
    state = "done" if gateway == "account" else "started"
    assert (refund.payment, refund.amount, refund.state) == (payment, 25, state)


def test_running_meeting_cannot_move_or_be_extended_into_the_next_booking(booking, clerk):
    make_booking(room=booking.room, start=START + 4 * HOUR, hours=1)
    running = START + 2 * HOUR

    with pytest.raises(ReservationNotOpen, match="no longer be moved"):
        reschedule(booking, clerk, start=START + HOUR, now=running)
    with pytest.raises(SlotUnavailable):
        reschedule(booking, clerk, hours=5, now=running)
    with pytest.raises(ReservationNotOpen, match="no longer be moved"):
        reschedule(booking, clerk, hours=4, now=START + 3.5 * HOUR)


def test_bank_is_not_queried_while_the_customer_is_away(booking, clerk):
    SavedCardFactory(user=booking.user, outcome="requires_action", saved_by_setup=True)

    with pytest.raises(CardDeclined):
        charge(booking, clerk, total=125, hours=5)


# --- Changes that are repeated, or followed by others, before their payment is resolved (B27.5) ---


def test_change_without_an_answer_of_the_gateway_stays_open_until_it_is_known(monkeypatch):
    booking = make_booking(room=make_room_at_rate(make_room(), 25))
    real = SandboxGateway.authorize

    def lose_answer(*args, **kwargs):
        real(*args, **kwargs)
        raise GatewayUnavailable

    monkeypatch.setattr(SandboxGateway, "authorize", lose_answer)
    lunch = ServiceFactory(center=booking.room.center)
    wanted = {
        "hours": 5,
        "services": [{"service_id": lunch.pk}],
        "attendees": [{"name": "Grace", "email_address": "grace@example.com"}],
        "total": 140,
    }
    for _ in range(2):
        outcome = change(booking, **wanted)
        assert (outcome.is_applied, outcome.charge, outcome.refund) == (False, 65, 0)
    for other in (
        {"hours": 6, "total": 150},
        {"hours": 2, "total": 50},
        {"number_of_attendees": 4, "total": 75},
        {**wanted, "attendees": []},
    ):
        with pytest.raises(ReservationNotOpen, match="of a change is under way"):
            change(booking, **other)

    assert change(booking, **wanted, now=NOW + 2 * MINUTE).is_applied
    assert get_money() == [(75, 0), (65, 0)]
    booking.refresh_from_db()
    assert (booking.total_cost, booking.number_of_attendees) == (140, 2)
    assert booking.chosen_services.exists()
    assert booking.attendees.filter(name="Grace").exists()
    assert BookingChange.objects.get().personal_values is None  # no personal data is kept
    assert history.get_changes(booking)[0].changes["services"] == [None, lunch.name]


# --- Price adjustments by staff, and their effect on the payment ----------------------------------


def test_adjustment_that_lowers_the_price_refunds_the_difference(clerk):
    room = make_room()
    room.center.tax_rate = Decimal(8)
    room.center.save()
    reservation = make_booking(room=room)
    assert reservation.total_cost == 81
    room.rate.hourly = 99  # the bill is not repriced
    room.rate.save()

    would = price_adjustments.adjust_price.preview(
        Act(clerk, NOW, is_staff=True),
        reservation.pk,
        amount=Decimal(-25),
        reason="Projector broke",
    ).result
    done = adjust(reservation, clerk, -25)

    assert (would.new_total, would.refund) == (done.new_total, done.refund) == (54, 27)
    reservation.refresh_from_db()
    assert (reservation.total_cost, get_net_payment()) == (54, 54)
    assert " 4242, and $27.00 of it given back." in confirmation.describe_payments(reservation)
    assert [line.total for line in reservation.line_items.order_by("position")] == [75, -25, 4]
    assert "Projector broke" in emails.get_last_email(reservation.pk).text


def test_adjustment_after_the_meeting_can_lower_the_price(clerk):
    reservation = make_booking()
    after = START + 4 * HOUR
    list(expiry.close_overdue(now=after))

    assert adjust(reservation, clerk, -200, now=after).refund == 75
    assert get_net_payment() == 0
    with pytest.raises(ReservationNotOpen, match="nothing left"):
        adjust(reservation, clerk, -5, now=after)


@pytest.mark.inconsistent_data
def test_adjustment_of_pending_or_closed_reservation_is_refused(clerk):
    for status in (Status.PENDING, Status.PROCESSING, Status.CANCELLED):
        with pytest.raises(ReservationNotOpen, match="of a draft or of a booking"):
            adjust(ReservationFactory(status=status), clerk, -5)


def get_adjustments(reservation):
    """Return the stored amounts of the adjustments, which add up to those on the bill."""
    amounts = [each.amount for each in reservation.price_adjustments.order_by("pk")]
    types = [LineItemType.ADJUSTMENT, LineItemType.EXTRA]
    lines = reservation.line_items.filter(type__in=types)
    assert sum(amounts) == sum(line.total for line in lines)
    return amounts


def test_adjustment_is_stored_as_applied_and_not_increased_by_reschedule(clerk):
    room = make_room()
    room.center.tax_rate = Decimal("8.82")
    room.center.save()
    room.rate = make_room_at_rate(room, "16.67").rate  # 3 hours with tax: 54.42
    room.save()
    reservation = make_booking(room=room)
    assert reservation.total_cost == Decimal("54.42")

    done = adjust(reservation, clerk, -1000)

    assert (done.new_total, done.refund) == (0, Decimal("54.42"))
    assert get_adjustments(reservation) == [Decimal("-50.01")]
    assert history.get_changes(reservation)[0].changes["adjustment"] == [
        None,
        "-$50.01: Projector broke",
    ]
    would = preview_reschedule(reservation, clerk, room=make_room_at_rate(room, 40))
    assert would.result.new_total == Decimal("76.16")  # 120 - 50.01 and tax
    assert would.result.is_refused


def test_adjustment_submitted_twice_is_applied_once(clerk):
    """Even if the new total equals the expected one and the price can still be reduced."""
    reservation = make_draft()
    seen = {"expected_version": 0, "expected_total": Decimal(0)}
    adjust(reservation, clerk, -1000, **seen)
    adjust(reservation, clerk, 7)
    before = get_stored_values(reservation)

    with pytest.raises(ReservationNotOpen, match="It was changed meanwhile"):
        adjust(reservation, clerk, -1000, **seen)

    assert get_stored_values(reservation) == before
    assert get_adjustments(reservation) == [-75, 7]
