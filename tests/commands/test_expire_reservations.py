"""The expire_reservations command: automatic transitions."""

import datetime as dt

import pytest
import time_machine
from django.core.management import CommandError

from payments.models import PaymentState
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_reservations import (
    HOUR,
    START,
    make_booking,
    make_draft,
    make_pending_booking,
)

pytestmark = pytest.mark.django_db


def test_changed_reservations_are_printed_and_counted(run):
    new, confirmed, pending = make_draft(), make_booking(), make_pending_booking()
    later = make_draft(start=START + dt.timedelta(days=2))

    with time_machine.travel(START + 4 * HOUR, tick=False):
        said = run("expire_reservations").splitlines()
        again = run("expire_reservations").splitlines()

    day = "Boardroom at Glenarm, Wed, Mar 3, 2027, 9:00 AM - 12:00 PM"
    assert [line for line in said if day in line] == [
        f"Reservation {new.pk} is Expired: {day}",
        f"Reservation {pending.pk} is Expired: {day}",
        f"Reservation {confirmed.pk} is Completed: {day}",
    ]
    assert said[-1] == "2 reservations Expired, 1 reservation Completed"
    assert again == ["0 reservations Expired, 0 reservations Completed"]
    later.refresh_from_db()
    assert later.status == Status.NEW
    assert pending.payments.get().state == PaymentState.VOIDED


def test_failed_reservation_does_not_stop_the_others(run, monkeypatch, caplog):
    new, confirmed, pending = make_draft(), make_booking(), make_pending_booking()
    move_to = Reservation.transition_to

    def poisoned(self, *args, **also):
        if self.pk in {new.pk, pending.pk}:
            raise ZeroDivisionError
        move_to(self, *args, **also)

    monkeypatch.setattr(Reservation, "transition_to", poisoned)

    with (
        time_machine.travel(START + 4 * HOUR, tick=False),
        pytest.raises(CommandError, match=f"Reservations {new.pk}, {pending.pk}: see the log"),
    ):
        run("expire_reservations")

    confirmed.refresh_from_db()
    assert confirmed.status == Status.COMPLETED
    assert f"Reservation {new.pk} could not be expired or completed" in caplog.text
