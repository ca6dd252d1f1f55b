"""Concurrent HTTP requests, each in its own thread with its own database connection.

SQLite serializes writers, so on SQLite these tests prove less: that no request fails because the
database is locked, and that the counts are right.
"""

from collections import Counter
from datetime import timedelta

import pytest
from django.db.models import Sum
from django.test import Client

from centers.models import MeetingRoom
from payments.gateways.sandbox_models import FaultKind, SandboxFault, SandboxPayment
from payments.models import Payment, Refund
from reservations import availability
from reservations.availability import Availability
from reservations.booking import approval, locks
from reservations.booking.cancellation import cancel
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.errors import ReservationNotOpen, ServiceUnavailable
from tests.concurrency import run_concurrently
from tests.factories_centers import MeetingRoomFactory
from tests.factories_people import UserFactory, issue_token
from tests.factories_reservations import (
    CARD,
    DECLINED_NUMBER,
    HOUR,
    MINUTE,
    NOW,
    START,
    AllowanceFactory,
    PromoCodeFactory,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
    update_promo_code,
)
from tests.http import post

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.time_machine(NOW, tick=False),
    pytest.mark.usefixtures("data_is_consistent"),
]

MANY = 16
CHECKOUT = "/api/reservations/checkout"


def count_responses(path, bodies):
    """Count the responses by the status in their body or their error code."""

    def ask(body):
        response = post(Client(raise_request_exception=False), path, body)
        answer = response.json()
        assert response.status_code < 500, answer
        return answer.get("Status", "Success") if answer["Success"] else answer["Error"]["Summary"]

    return Counter(run_concurrently([lambda body=body: ask(body) for body in bodies]))


def checkout_of(reservation, **fields):
    return {
        "Token": issue_token(reservation.user),
        "ReservationId": reservation.pk,
        "PaymentInfo": CARD,
        **fields,
    }


def captures():
    return SandboxPayment.objects.aggregate(sum=Sum("captures"))["sum"] or 0


@pytest.fixture
def competing_drafts():
    """Drafts of many customers for one slot; only the last hold has not expired."""
    room = make_room()
    return [
        make_draft(UserFactory(), room, now=NOW - (MANY - index) * 16 * MINUTE)
        for index in range(MANY)
    ]


def test_concurrent_checkouts_of_one_slot_book_once(competing_drafts):
    answers = count_responses(CHECKOUT, [checkout_of(each) for each in competing_drafts])

    assert answers == {"Confirmed": 1, "SlotUnavailable": MANY - 1}
    assert captures() == 1
    assert Payment.objects.count() == SandboxPayment.objects.count() == 1
    assert Reservation.objects.filter(status=Status.NEW).count() == MANY - 1


@pytest.mark.postgres
def test_concurrent_checkouts_without_row_locks_book_once(competing_drafts, monkeypatch):
    """Without availability check and room lock, the constraint still prevents overlaps."""

    def unlocked(room_id):
        return MeetingRoom.objects.select_related("center", "rate").get(pk=room_id)

    monkeypatch.setattr(locks, "lock_room", unlocked)
    monkeypatch.setattr(availability, "evaluate", lambda *args, **kwargs: Availability(()))
    answers = count_responses(CHECKOUT, [checkout_of(each) for each in competing_drafts])

    assert answers == {"Confirmed": 1, "SlotUnavailable": MANY - 1}
    assert captures() == 1
    assert Payment.objects.count() == 1


def test_concurrent_checkouts_of_one_reservation_charge_once():
    reservation = make_draft()
    answers = count_responses(CHECKOUT, [checkout_of(reservation)] * MANY)

    assert answers["Confirmed"] >= 1
    assert answers["Confirmed"] + answers["Processing"] == MANY
    assert captures() == 1
    assert Payment.objects.count() == SandboxPayment.objects.count() == 1


def test_concurrent_declines_of_one_reservation_stay_within_the_limit():
    reservation = make_draft()
    answers = count_responses(
        CHECKOUT,
        [checkout_of(reservation, PaymentInfo={**CARD, "CreditCardNumber": DECLINED_NUMBER})]
        * MANY,
    )

    assert answers.keys() <= {"CardDeclined", "Processing", "TooManyRequests"}
    assert 1 <= answers["CardDeclined"] == Payment.objects.count() <= 6
    reservation.refresh_from_db()
    assert reservation.status == Status.NEW


def test_concurrent_declines_across_reservations_stay_within_the_limit():
    ada, room = UserFactory(), make_room()
    drafts = [make_draft(ada, room, start=START + day * timedelta(days=1)) for day in range(10)]
    bad = {**CARD, "CreditCardNumber": DECLINED_NUMBER}

    answers = count_responses(CHECKOUT, [checkout_of(each, PaymentInfo=bad) for each in drafts])

    assert answers == {"CardDeclined": 6, "TooManyRequests": 4}
    assert SandboxPayment.objects.count() == 6


@pytest.fixture
def slow_gateway():
    """Each call takes long enough for all calls to be in flight at the same time."""
    SandboxFault.objects.create(operation="*", kind=FaultKind.SLOW, seconds=0.3, times=None)


@pytest.mark.usefixtures("slow_gateway")
def test_concurrent_checkouts_in_flight_do_not_count_as_declines():
    ada, room = UserFactory(), make_room()
    drafts = [make_draft(ada, room, start=START + day * timedelta(days=1)) for day in range(10)]

    answers = count_responses(CHECKOUT, [checkout_of(each) for each in drafts])

    assert answers == {"Confirmed": 10}


@pytest.mark.usefixtures("slow_gateway")
def test_concurrent_saves_of_cards_do_not_count_as_declines():
    body = {"Token": issue_token(UserFactory()), "PaymentInfo": CARD}

    assert count_responses("/api/account/update-payment-info", [body] * 8) == {"Success": 8}


@pytest.mark.usefixtures("slow_gateway")
def test_concurrent_declines_of_saved_cards_stay_within_the_limit():
    bad = {**CARD, "CreditCardNumber": DECLINED_NUMBER}
    body = {"Token": issue_token(UserFactory()), "PaymentInfo": bad}

    answers = count_responses("/api/account/update-payment-info", [body] * 10)

    assert answers == {"CardDeclined": 6, "TooManyRequests": 4}


@pytest.mark.parametrize("uses", [1, 3])
def test_concurrent_checkouts_never_exceed_promo_code_uses(uses):
    promo = PromoCodeFactory(code="LAST", max_uses=uses)
    center = make_room().center
    drafts = [make_draft(room=MeetingRoomFactory(center=center)) for _ in range(8)]
    for each in drafts:
        update_promo_code(each.pk, "LAST", user=each.user, now=NOW)

    answers = count_responses(CHECKOUT, [checkout_of(each) for each in drafts])

    assert answers == {"Confirmed": uses, "PromoCodeInvalid": 8 - uses}
    assert captures() == uses
    promo.refresh_from_db()
    assert promo.uses == uses


def test_concurrent_checkouts_never_exceed_allowance_hours():
    ada, center = UserFactory(), make_room().center
    plan = AllowanceFactory(user=ada, hours=5)
    drafts = [make_draft(ada, MeetingRoomFactory(center=center), hours=3) for _ in range(4)]
    plan.hours = 3
    plan.save()

    answers = count_responses(CHECKOUT, [checkout_of(each) for each in drafts])

    assert answers == {"Confirmed": 1, "AllowanceExhausted": 3}
    assert plan.entries.get().hours == -3


def test_concurrent_drafts_of_one_slot_hold_once():
    room = make_room()
    body = {
        "MeetingRoomId": room.pk,
        "StartDate": START.isoformat(),
        "EndDate": (START + 3 * HOUR).isoformat(),
    }
    answers = count_responses(
        "/api/reservations/create",
        [{**body, "Token": issue_token(UserFactory())} for _ in range(MANY)],
    )

    assert answers == {"Success": 1, "SlotUnavailable": MANY - 1}
    assert Reservation.objects.get().holds_slot


def test_concurrent_drafts_by_one_customer_have_one_hold():
    room, token = make_room(), issue_token(UserFactory())
    body = {
        "Token": token,
        "MeetingRoomId": room.pk,
        "StartDate": START.isoformat(),
        "EndDate": (START + 3 * HOUR).isoformat(),
    }
    assert count_responses("/api/reservations/create", [body] * 8) == {"Success": 8}
    assert Reservation.objects.filter(holds_slot=True).count() == 1


def test_concurrent_cancellations_refund_once():
    reservation = make_booking()
    body = {"Token": issue_token(reservation.user), "ReservationId": reservation.pk}

    assert count_responses("/api/reservations/cancel", [body] * 8) == {"Success": 8}

    assert Refund.objects.get().amount == 75
    assert SandboxPayment.objects.get().refunded == 75


def test_concurrent_answers_to_one_request_one_succeeds():
    reservation = make_pending_booking()

    def answer(act):
        try:
            act()
        except ReservationNotOpen:
            return False
        return True

    acts = [
        lambda: approval.approve(reservation.pk, now=NOW),
        lambda: approval.decline(reservation.pk, now=NOW),
        lambda: approval.approve(reservation.pk, now=NOW),
        lambda: approval.decline(reservation.pk, now=NOW),
    ]
    won = run_concurrently([lambda act=act: answer(act) for act in acts])

    assert won.count(True) == 1
    reservation.refresh_from_db()
    state = reservation.payments.get().state
    assert (reservation.status, state, captures()) in {
        (Status.CONFIRMED, "captured", 1),
        (Status.DECLINED, "voided", 0),
    }


def test_concurrent_approval_and_cancellation_keep_the_money_consistent():
    reservation = make_pending_booking()

    def answer(act):
        try:
            act()
        except (ReservationNotOpen, ServiceUnavailable):
            # Confirmed and not captured yet: the payment must be resolved before a cancellation.
            return False
        return True

    run_concurrently(
        [
            lambda: answer(lambda: approval.approve(reservation.pk, now=NOW)),
            lambda: answer(lambda: cancel(reservation.pk, user=reservation.user, now=NOW)),
        ]
    )

    reservation.refresh_from_db()
    gateway = SandboxPayment.objects.get()
    if reservation.status == Status.CANCELLED:
        assert gateway.refunded == (75 if gateway.captures else 0)
        assert gateway.state in {"voided", "refunded"}
    else:
        assert (reservation.status, gateway.state) == (Status.CONFIRMED, "captured")
