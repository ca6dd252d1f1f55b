"""A worker is killed while a payment waits for the customer's bank (B21.3).

Afterwards the client's retry resolves everything.
"""

import time
from functools import partial

import pytest
from django.utils import timezone

from payments.gateways.sandbox import confirm_payment
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment
from tests.factories_people import SavedCardFactory
from tests.faults import consistency, figures
from tests.faults.client import BROKEN_CONNECTION, Answer, retry_until_resolved
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG
from tests.faults.world import Customer, World

# The crash of the first Checkout, and of what comes after the customer has confirmed.
CASES = {
    ("after authorize", "in T2"),
    ("after T2", "after the gateway's capture"),
}
ALL_CASES = CASES | {("in T1", "after lookup"), ("after T1", "after T2")}


def make_waiting_draft(service: Service) -> tuple[Customer, int]:
    with service.database.open():
        world = World(service)
        customer = world.customer()
        SavedCardFactory.create(user=customer.user, outcome="requires_action", saved_by_setup=True)
        return customer, world.draft(customer, world.room()).pk


def check_out(customer: Customer, pk: int) -> Answer:
    return customer.client.post("reservations/checkout", ReservationId=pk, UseSavedPaymentInfo=True)


def let_customer_confirm(service: Service, pk: int) -> None:
    with service.database.open():
        payment = Payment.objects.waiting().get(reservation=pk)
        assert payment.action_until > timezone.now()
        confirm_payment(SandboxPayment.objects.get(key=payment.key).secret)


@pytest.mark.parametrize(("first", "second"), sorted(ALL_CASES if LONG else CASES))
def test_confirmation_after_crashes_is_booked_once(
    short_lease_service, check_everything, first, second
):
    service = short_lease_service
    case = "confirmation at the bank crashes, client retries"
    row = figures.get_row(case)
    customer, pk = make_waiting_draft(service)
    with service.database.open():
        captured = consistency.count_captures()
    for point in (first, second):
        service.crash(point)
        answer = check_out(customer, pk)
        assert (service.has_crashed, answer.status) == (True, BROKEN_CONNECTION), point
        row.runs += 1
        if point == first:
            time.sleep(LEASE)
            assert check_out(customer, pk).code == "Processing"
            let_customer_confirm(service, pk)

    received: list[Answer] = []
    last = retry_until_resolved(partial(check_out, customer, pk), received=received)

    row.count_answers(received)
    assert last.code == "Confirmed"
    row.confirmed += 1
    check_everything(service, case)
    with service.database.open():
        captured = consistency.count_captures() - captured
    row.captures += captured
    assert captured == 1


def test_cancellation_that_crashes_after_the_void_is_finished(
    short_lease_service, check_everything
):
    service = short_lease_service
    customer, pk = make_waiting_draft(service)
    assert check_out(customer, pk).code == "Processing"
    service.crash("after the gateway's void")
    assert customer.client.cancel(pk).status == BROKEN_CONNECTION
    assert service.has_crashed

    retry_until_resolved(partial(customer.client.cancel, pk))

    check_everything(service, "cancellation crashes while the payment waits")
    with service.database.open():
        payment = Payment.objects.get(reservation=pk)
        assert (payment.state, payment.reservation.status) == ("voided", "Cancelled")
