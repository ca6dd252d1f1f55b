"""Captures that are still due long after the booking."""

import pytest

from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment
from reservations.booking import payment_recovery
from reservations.models import Reservation
from reservations.models.status import HOLDING_STATUSES, Status
from tests.factories_reservations import NOW, make_pending_booking

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", [Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW])
def test_reconcile_captures_an_authorization_after_the_meeting(status):
    reservation = make_pending_booking()
    Reservation.objects.filter(pk=reservation.pk).update(
        status=status, holds_slot=status in HOLDING_STATUSES
    )

    payment = payment_recovery.fulfil_obligations(Payment.objects.get(), now=NOW)

    assert payment.state == "captured"
    assert SandboxPayment.objects.get().captures == 1
