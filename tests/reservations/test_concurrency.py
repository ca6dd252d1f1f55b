"""Concurrent calls, each in its own thread with its own database connection.

SQLite serializes writers, so on SQLite these tests prove less: that no request fails because the
database is locked, and that the counts are right. tests/faults has contests between real
processes, and their controls without locks and constraints.
"""

import threading
from contextlib import suppress
from decimal import Decimal
from functools import partial
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import Sum

from accounts.act import Act
from accounts.models import OutboxMessage
from payments import gateway_events, refunds
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment
from reservations.booking import cancellation
from reservations.booking.cancellation import RefundDecision
from reservations.booking.checkout import book_draft
from reservations.models import RefundOverride, Reservation
from reservations.models.status import Status
from reservations.views import bookings
from roombook.errors import DomainError, InvalidRequest, ReservationNotOpen, TooManyRequests
from tests.concurrency import run_concurrently
from tests.factories_people import AdministratorFactory, SavedCardFactory, UserFactory, issue_token
from tests.factories_reservations import (
    DAY,
    HOUR,
    NOW,
    START,
    make_booking,
    make_draft,
    make_room,
    pay,
)
from tests.gateway_faults import add_fault
from tests.http import post
from tests.reservations.checkout.helpers import pay_with_saved_card
from tests.reservations.rescheduling_helpers import (
    adjust,
    get_net_payment,
    make_room_at_rate,
    make_room_in_same_center,
    reschedule,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.time_machine(NOW, tick=False),
    pytest.mark.usefixtures("data_is_consistent"),
]


def test_change_of_attendees_does_not_undo_a_move_by_staff_at_the_same_time(
    client, clerk, monkeypatch
):
    booking = make_booking(room=make_room_at_rate(make_room(), 25))
    other_room = make_room_at_rate(booking.room, 25)
    real = bookings._build_request

    def build_before_staff_move_it(*args, **fields):
        request = real(*args, **fields)
        reschedule(booking, clerk, room=other_room)
        return request

    monkeypatch.setattr(bookings, "_build_request", build_before_staff_move_it)
    body = {"Token": issue_token(booking.user), "ReservationId": booking.pk}
    body |= {"NumberOfAttendees": 4, "ExpectedTotal": 75}

    answer = post(client, "/api/reservations/change", body)

    assert answer.json()["Error"]["Summary"] == "ReservationNotOpen"
    booking.refresh_from_db()
    assert booking.room == other_room
    assert booking.number_of_attendees != 4


def outcomes(calls, losers=(DomainError,)):
    """Run the calls concurrently; return "done" or the name of the error of each, sorted."""
    ended = run_concurrently(calls, losers=losers)
    return sorted(
        each if each in {error.__name__ for error in losers} else "done" for each in ended
    )


def take_payments(drafts, gateway):
    staff = AdministratorFactory()
    return [
        lambda pk=draft.pk: book_draft(Act(staff, NOW, is_staff=True), pk, gateway=gateway)
        for draft in drafts
    ]


def test_one_draft_paid_by_several_staff_at_once_has_one_payment():
    draft = make_draft()

    answers = outcomes(take_payments([draft] * 6, "cash"), (ReservationNotOpen,))

    assert answers == [*["ReservationNotOpen"] * 5, "done"]
    assert Payment.objects.get().reservation == draft


def test_bookings_on_account_at_once_do_not_exceed_the_limit():
    customer = UserFactory(credit_limit=150)
    drafts = [make_draft(customer) for _ in range(3)]

    answers = outcomes(take_payments(drafts, "account"), (InvalidRequest,))

    assert answers == ["InvalidRequest", "done", "done"]
    assert Payment.objects.aggregate(owed=Sum("amount"))["owed"] == 150


def test_crossing_reschedules_do_not_deadlock(clerk):
    """Two bookings repeatedly change to the room of the other, at a time when it is available."""
    one = make_room()
    two = make_room_in_same_center(one)
    first, second = make_booking(room=one), make_booking(room=two)

    for day in range(1, 5):
        rooms, start = [(one, two)[day % 2], (two, one)[day % 2]], START + day * DAY
        calls = [
            lambda row=row, room=room, start=start: reschedule(row, clerk, room=room, start=start)
            for row, room in zip((first, second), rooms, strict=True)
        ]
        run_concurrently(calls)
        assert [Reservation.objects.get(pk=row.pk).room for row in (first, second)] == rooms


def test_concurrent_reschedule_and_cancellation_keep_the_money_consistent(clerk):
    reservation = make_booking()
    cheap = make_room_at_rate(reservation.room, 15)

    run_concurrently(
        [
            lambda: reschedule(reservation, clerk, room=cheap),
            lambda: cancellation.cancel(Act(None, NOW), reservation.pk),
        ],
        losers=(DomainError,),
    )

    assert Reservation.objects.get().status == Status.CANCELLED
    assert get_net_payment() == 0


def test_checkout_and_cancellation_at_once_book_and_charge_or_neither():
    room = make_room()
    for day in range(6):
        draft = make_draft(room=room, start=START + day * DAY)
        calls = [partial(pay, draft), partial(cancellation.cancel, Act(draft.user, NOW), draft.pk)]
        run_concurrently(calls, losers=(DomainError,))

        status = Reservation.objects.get(pk=draft.pk).status
        paid = Payment.objects.filter(reservation=draft, state="captured").exists()
        assert (status, paid) in {(Status.CONFIRMED, True), (Status.CANCELLED, False)}


@pytest.mark.postgres
@pytest.mark.parametrize("per_hour", [0, 120])
def test_drafts_created_at_once_hold_no_more_rooms_than_an_account_may(settings, per_hour):
    settings.HELD_DRAFTS_MAX, settings.CREATES_PER_HOUR = 3, per_hour
    ada = UserFactory()
    rooms = [make_room() for _ in range(8)]

    run_concurrently([partial(make_draft, ada, room) for room in rooms])

    assert Reservation.objects.filter(holds_slot=True).count() == 3


@pytest.mark.postgres
def test_two_managers_who_cancel_at_the_same_time_refund_once():
    booking, by = make_booking(), AdministratorFactory()

    ended = run_concurrently(
        [
            lambda amount=amount: cancellation.cancel(
                Act(by, START - HOUR, is_staff=True),
                booking.pk,
                decision=RefundDecision(Decimal(amount), "We cannot host."),
            )
            for amount in (20, 75)
        ]
    )

    assert len({each.refund for each in ended}) == 1
    (refunded,) = SandboxPayment.objects.values_list("refunded", flat=True)
    assert refunded == ended[0].refund == RefundOverride.objects.get().refund
    assert OutboxMessage.objects.filter(kind="cancelled").count() == 1


def test_parallel_checkouts_let_no_more_rooms_wait_for_the_bank(settings):
    settings.HELD_DRAFTS_MAX = 2
    ada = UserFactory()
    SavedCardFactory(user=ada, outcome="requires_action", saved_by_setup=True)
    drafts = [make_draft(ada, make_room()) for _ in range(4)]
    add_fault(operation="authorize", kind="slow", seconds=0.3, times=None)

    def check_out(draft):
        with suppress(TooManyRequests):
            pay_with_saved_card(draft)

    run_concurrently([lambda draft=draft: check_out(draft) for draft in drafts])

    assert Payment.objects.waiting().count() == 2


@pytest.mark.postgres
@pytest.mark.inconsistent_data  # Staff still have to refund the rest.
@pytest.mark.parametrize(
    "change",
    [
        lambda booking: cancellation.cancel(Act(None, NOW), booking.pk),
        lambda booking: adjust(booking, booking.user, -75),
    ],
    ids=["cancel", "adjust price"],
)
def test_event_about_a_refund_waits_for_the_refund_of_a_request(change, monkeypatch):
    """An event about a refund of 5 in the dashboard arrives when the request creates its refund."""
    booking = make_booking()
    payment = Payment.objects.get()
    SandboxGateway().refund(key=payment.key, refund_key=uuid4(), amount=Decimal(5))
    create_refund = refunds.create_refund

    def process():
        try:
            gateway_events.refresh_with_refunds(Payment.objects.get(), now=NOW)
        finally:
            connection.close()

    event = threading.Thread(target=process)

    def wait_and_create(payment, **fields):
        if event.ident is None:
            event.start()
            event.join(0.5)
        return create_refund(payment, **fields)

    monkeypatch.setattr(refunds, "create_refund", wait_and_create)
    change(booking)
    event.join()

    # The gateway has only 70 left, so it refuses the 75: staff refund the rest.
    assert sorted(payment.refunds.values_list("amount", "state")) == [(5, "done"), (75, "refused")]
    retry = refunds.create_retry_refund(payment.refunds.get(state="refused"), now=NOW)
    assert retry.amount == 70
    assert Reservation.objects.get().payments.count() == 1
