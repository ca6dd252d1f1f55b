"""A payment that waits until the customer confirms it at the bank, and everything that ends it."""

import pytest

from accounts.act import Act
from accounts.models import AttemptWindow
from payments.gateways import declines
from payments.gateways.sandbox import SandboxGateway, confirm_payment, refuse_payment
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import InvalidPaymentTransition, Payment
from reservations.booking import cancellation, charging
from reservations.booking.charging import get_payment_action
from reservations.desk.actions import ACTIONS
from reservations.display import format_status
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.notifications.confirmation import get_message
from roombook.errors import CardDeclined, ReservationNotOpen, TooManyRequests
from tests.concurrency import run_concurrently
from tests.factories_people import SavedCardFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    make_draft,
    make_payment_method,
    make_room,
)
from tests.reservations.checkout.helpers import (
    count_charges,
    fault,
    get_benefits,
    has_no_problems,
    pay_with_saved_card,
)

pytestmark = pytest.mark.django_db

DEADLINE = NOW + 15 * MINUTE


@pytest.fixture(autouse=True)
def card(ada, time_machine):
    """A card that a setup saved, and whose bank always asks for a confirmation."""
    # It is saved before all payments: a newer card than a declined payment pays at once.
    time_machine.move_to(NOW - HOUR)
    return SavedCardFactory(user=ada, outcome="requires_action", saved_by_setup=True)


@pytest.fixture
def waiting(drafted):
    reservation = pay_with_saved_card(drafted)
    assert reservation.status == Status.PROCESSING
    return reservation


def reload(reservation):
    return Reservation.objects.get(pk=reservation.pk)


def reconcile(now):
    """Do what `reconcile_payments` does with payments whose outcome is unknown."""
    for payment in Payment.objects.resolvable(now).select_related("reservation"):
        charging.resolve_payment(payment, now=now)


def end_by_checkout(reservation, now):
    pay_with_saved_card(reservation, now=now)


def end_by_action(reservation, now):
    get_payment_action(reservation.pk, user=reservation.user, now=now)


def end_by_reconcile(reservation, now):
    reconcile(now)


ENDS = pytest.mark.parametrize("end", [end_by_checkout, end_by_action, end_by_reconcile])


def confirm():
    return confirm_payment(SandboxPayment.objects.latest("pk").secret)


def refuse():
    return refuse_payment(SandboxPayment.objects.latest("pk").secret)


def test_checkout_waits_and_says_what_to_do(waiting, plan, promo):
    payment = Payment.objects.get()
    assert (payment.state, payment.action_until, payment.lease_until) == (
        *("started", DEADLINE),
        DEADLINE,
    )
    assert get_message(waiting).startswith("Your bank asks you to confirm this payment.")
    assert get_benefits(plan, promo) == (1, 1)

    status, action = get_payment_action(waiting.pk, user=waiting.user, now=NOW)

    secret = SandboxPayment.objects.get().secret
    assert (status, action.gateway, action.client_secret) == ("Processing", "sandbox", secret)
    assert (action.url, action.expires_at) == (f"/sandbox/payments/{secret}", DEADLINE)
    # Asking, paying again and reconciling change nothing while the customer has not acted.
    for end in (end_by_checkout, end_by_action, end_by_reconcile):
        end(waiting, DEADLINE - MINUTE)
        assert reload(waiting).status == Status.PROCESSING
    # A payment that waits for its customer is not in doubt.
    assert not Payment.objects.stale(DEADLINE - MINUTE).exists()
    assert has_no_problems(DEADLINE - MINUTE)
    assert (secret in repr(action), secret in repr(SandboxGateway().find_payment(payment.key))) == (
        False,
        False,
    )


@ENDS
def test_confirmed_payment_is_booked_and_charged_once(waiting, plan, promo, end):
    confirm()

    end(waiting, NOW + MINUTE)

    assert reload(waiting).status == Status.CONFIRMED
    for again in (end_by_checkout, end_by_action, end_by_reconcile):
        again(waiting, NOW + 2 * MINUTE)
    assert (reload(waiting).status, count_charges()) == (Status.CONFIRMED, 1)
    assert get_benefits(plan, promo) == (1, 1)
    assert get_payment_action(waiting.pk, user=waiting.user, now=NOW) == ("Confirmed", None)
    assert has_no_problems(NOW + HOUR)


@ENDS
def test_refused_confirmation_is_reported_once_as_a_declined_card(waiting, plan, promo, end):
    refuse()

    if end is not end_by_checkout:
        end(waiting, NOW + MINUTE)
        assert get_benefits(plan, promo) == (0, 0)
    with pytest.raises(CardDeclined) as error:
        end_by_checkout(waiting, NOW + MINUTE)
    assert error.value.message == declines.NOT_CONFIRMED
    draft = reload(waiting)
    assert (draft.status, draft.hold_until) == (Status.NEW, NOW + 11 * MINUTE)
    # Then the customer can begin again.
    end_by_checkout(waiting, NOW + 2 * MINUTE)
    confirm()
    end_by_checkout(waiting, NOW + 3 * MINUTE)
    assert [each.state for each in waiting.payments.order_by("pk")] == ["declined", "captured"]
    assert (count_charges(), get_benefits(plan, promo)) == (1, (1, 1))


@ENDS
def test_abandoned_payment_is_voided_and_releases_its_room(waiting, plan, promo, end):
    if end is end_by_checkout:
        # The customer begins again, with a new payment.
        assert pay_with_saved_card(waiting, now=DEADLINE).status == Status.PROCESSING
        assert [each.state for each in waiting.payments.order_by("pk")] == ["voided", "started"]
        return
    end(waiting, DEADLINE)

    draft = reload(waiting)
    assert (draft.status, draft.holds_slot, draft.hold_until) == (Status.NEW, False, None)
    assert SandboxPayment.objects.get().state == "voided"
    # Nobody can confirm it any more.
    assert confirm().state == "voided"
    assert get_benefits(plan, promo) == (0, 0)
    assert has_no_problems(DEADLINE + HOUR)
    make_draft(UserFactory(), waiting.room, now=DEADLINE)


def test_answer_that_arrives_after_the_call_off_books_nothing(waiting):
    payment = Payment.objects.get()
    confirmed = confirm()
    fault("void", "timeout_before")
    charging.resolve_payments(waiting.pk, user=None, calls_off=True, now=NOW)

    reservation, payment = charging.conclude(payment, confirmed, Act(None, NOW))

    assert (reservation.status, payment.state) == (Status.PROCESSING, "started")
    reconcile(NOW + MINUTE)
    assert (reload(waiting).status, count_charges()) == (Status.NEW, 0)


@pytest.mark.parametrize("is_confirmed", [False, True])
def test_cancelling_calls_the_payment_off(waiting, plan, promo, is_confirmed):
    assert (
        "nothing was charged"
        in cancellation.cancel.preview(Act(None, NOW), waiting.pk).result.message
    )
    if is_confirmed:
        confirm()

    cancelled = cancellation.cancel(Act(waiting.user, NOW + MINUTE), waiting.pk)

    assert (cancelled.refund, reload(waiting).status) == (0, Status.CANCELLED)
    assert (SandboxPayment.objects.get().state, count_charges()) == ("voided", 0)
    assert get_benefits(plan, promo) == (0, 0)
    assert has_no_problems(NOW + HOUR)


def test_payment_waits_until_the_meeting_begins_at_most(ada):
    draft = make_draft(ada)
    waiting = pay_with_saved_card(draft, now=draft.start - 5 * MINUTE)

    assert waiting.waiting_payment.action_until == draft.start
    confirm()
    reconcile(draft.start)

    assert reload(draft).status == Status.NEW
    assert (SandboxPayment.objects.get().state, count_charges()) == ("voided", 0)


def test_card_without_a_setup_is_declined_with_the_way_out(drafted, card):
    card.saved_by_setup = False
    card.save()

    for method in (None, make_payment_method("4000002760003184")):
        with pytest.raises(CardDeclined) as error:
            pay_with_saved_card(drafted, method=method)
        assert error.value.message == declines.REQUIRES_ACTION
        assert "save the card" in error.value.message


def test_staff_see_that_the_payment_waits_and_can_cancel_it(waiting):
    assert format_status(waiting, now=NOW) == "Waiting for the customer's bank"
    assert ACTIONS["cancel"].is_available(waiting, now=NOW)


def test_payments_that_wait_for_the_bank_are_no_attempts_and_count_once_refused(ada):
    """Ten may wait; the limit is six declined cards."""
    drafts = [make_draft(ada, make_room()) for _ in range(10)]

    for draft in drafts:
        assert pay_with_saved_card(draft).status == Status.PROCESSING
    with pytest.raises(TooManyRequests):
        pay_with_saved_card(make_draft(ada, make_room()))
    for draft in drafts:
        assert pay_with_saved_card(draft).status == Status.PROCESSING
    other = pay_with_saved_card(make_draft(ada, make_room()), method=make_payment_method())
    assert other.status == Status.CONFIRMED
    window = AttemptWindow.objects.get(scope="card-declined")
    assert window.count == 0

    for payment in Payment.objects.waiting():
        refuse_payment(SandboxPayment.objects.get(key=payment.key).secret)
    reconcile(NOW)
    reconcile(NOW)
    window.refresh_from_db()
    assert window.count == 10
    with pytest.raises(TooManyRequests):
        pay_with_saved_card(make_draft(ada, make_room()), method=make_payment_method())


@pytest.mark.django_db(transaction=True)
def test_parallel_ends_book_or_void_exactly_once(ada, card):
    """Checkout, reconcile and cancel at the same time, of a payment that was just confirmed."""
    draft = make_draft(ada, make_room())
    pay_with_saved_card(draft)
    confirm()

    calls = [
        lambda: pay_with_saved_card(draft, now=DEADLINE),
        lambda: reconcile(DEADLINE),
        lambda: cancellation.cancel(Act(ada, DEADLINE), draft.pk),
    ]

    run_concurrently([*calls, *calls], losers=(ReservationNotOpen, InvalidPaymentTransition))

    # A Checkout after the void, and before the cancellation, has begun another payment.
    cancellation.cancel(Act(ada, DEADLINE), draft.pk)
    assert reload(draft).status == Status.CANCELLED
    states = list(SandboxPayment.objects.order_by("pk").values_list("state", flat=True))
    assert (set(states) <= {"refunded", "voided"}, count_charges() <= 1) == (True, True)
    assert has_no_problems(DEADLINE + HOUR)
