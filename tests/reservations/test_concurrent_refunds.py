"""Refunds that an event reports while a request of staff or of the customer refunds as well."""

import threading
from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import connection

from payments import gateway_events, refunds
from payments.gateways.sandbox import SandboxGateway
from payments.models import Payment
from reservations.booking.cancellation import cancel
from reservations.booking.price_adjustments import adjust_price
from reservations.models import Reservation
from tests.factories_reservations import NOW, make_booking

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]


@pytest.fixture
def event(monkeypatch):
    """An event about a refund of 5 in the dashboard arrives when the request creates its refund."""
    create_refund = refunds.create_refund

    def process():
        try:
            gateway_events.refresh_with_refunds(Payment.objects.get(), now=NOW)
        finally:
            connection.close()

    thread = threading.Thread(target=process)

    def wait_and_create(payment, **fields):
        if thread.ident is None:
            thread.start()
            thread.join(0.5)
        return create_refund(payment, **fields)

    monkeypatch.setattr(refunds, "create_refund", wait_and_create)
    return thread


@pytest.mark.parametrize(
    "change",
    [
        lambda booking: cancel(booking.pk, now=NOW),
        lambda booking: adjust_price(
            booking.pk, amount=Decimal(-75), reason="Noise", by=booking.user, now=NOW
        ),
    ],
    ids=["cancel", "adjust price"],
)
def test_event_waits_for_the_refund_of_a_request(event, change):
    booking = make_booking()
    payment = Payment.objects.get()
    SandboxGateway().refund(key=payment.key, refund_key=uuid4(), amount=Decimal(5))

    change(booking)
    event.join()

    # The gateway has only 70 left, so it refuses the 75: staff refund the rest.
    assert sorted(payment.refunds.values_list("amount", "state")) == [(5, "done"), (75, "refused")]
    retry = refunds.create_retry_refund(payment.refunds.get(state="refused"), now=NOW)
    assert retry.amount == 70
    assert Reservation.objects.get().payments.count() == 1
