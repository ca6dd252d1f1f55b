"""Transitions between the statuses of reservations."""

from itertools import product

import pytest

from reservations.models.status import (
    BOOKED_STATUSES,
    HOLDING_STATUSES,
    InvalidStatusTransition,
    Status,
    can_transition,
)
from tests.factories_reservations import MINUTE, NOW, ReservationFactory

# A second copy of the whole table: all other transitions are illegal.
LEGAL = {
    ("New", "Processing"),
    ("New", "Confirmed"),
    ("New", "Pending"),
    ("New", "Cancelled"),
    ("New", "Expired"),
    ("Processing", "New"),
    ("Processing", "Confirmed"),
    ("Processing", "Pending"),
    ("Pending", "Confirmed"),
    ("Pending", "Declined"),
    ("Pending", "Cancelled"),
    ("Pending", "Expired"),
    ("Confirmed", "Cancelled"),
    ("Confirmed", "Completed"),
    ("Confirmed", "NoShow"),
    ("Completed", "NoShow"),
    ("NoShow", "Confirmed"),
    ("NoShow", "Completed"),
}
PAIRS = list(product(Status.values, Status.values))


def test_statuses_match_the_contract():
    assert Status.values == [
        *("New", "Processing", "Pending", "Confirmed", "Declined"),
        *("Cancelled", "Expired", "Completed", "NoShow"),
    ]


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_can_transition_matches_the_table_for_every_pair(old, new):
    assert can_transition(old, new) == ((old, new) in LEGAL)


@pytest.mark.django_db
def test_transition_to_follows_the_table():
    row = ReservationFactory()
    for old, new in PAIRS:
        # Set the status without transition_to.
        type(row).objects.filter(pk=row.pk).update(
            status=old, holds_slot=old in HOLDING_STATUSES, hold_until=None
        )
        row.refresh_from_db()
        if (old, new) in LEGAL:
            row.transition_to(Status(new), by=None, now=NOW)
            row.refresh_from_db()
            assert (row.status, row.holds_slot) == (new, new in HOLDING_STATUSES)
        else:
            with pytest.raises(
                InvalidStatusTransition, match=f"is {old} and cannot become {new}|{old}"
            ):
                row.transition_to(Status(new), by=None, now=NOW)
            row.refresh_from_db()
            assert row.status == old


@pytest.mark.django_db
def test_only_drafts_have_a_hold_that_expires():
    row = ReservationFactory(status=Status.PROCESSING)
    row.transition_to(Status.NEW, by=None, now=NOW, hold_until=NOW + MINUTE)
    row.refresh_from_db()
    assert (row.holds_slot, row.hold_until) == (True, NOW + MINUTE)

    row.transition_to(Status.CANCELLED, by=None, now=NOW, cancelled_at=NOW)
    row.refresh_from_db()
    assert (row.holds_slot, row.hold_until, row.cancelled_at) == (False, None, NOW)


def test_processing_pending_and_confirmed_hold_the_room():
    assert {Status.PROCESSING, Status.PENDING, Status.CONFIRMED} == HOLDING_STATUSES


def test_repeated_checkout_is_accepted_for_submitted_statuses():
    assert {Status.PENDING, Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW} == BOOKED_STATUSES
