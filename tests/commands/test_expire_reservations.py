"""The expire_reservations command: automatic transitions."""

import pytest
import time_machine
from django.core.management import CommandError

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
