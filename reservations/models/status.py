"""What a reservation can be, what each state means for its room, and who may follow whom."""

from django.db import models


class Status(models.TextChoices):
    """The contract's ReservationStatuses; the stored value is the one on the wire."""

    NEW = "New", "Draft"  # not paid
    PROCESSING = "Processing"  # a payment is under way or in doubt
    PENDING = "Pending", "Awaiting approval"  # the money is reserved, the center has yet to agree
    CONFIRMED = "Confirmed"
    DECLINED = "Declined"  # by the center
    CANCELLED = "Cancelled"
    EXPIRED = "Expired"  # its time passed, or nobody answered
    COMPLETED = "Completed"
    NO_SHOW = "NoShow", "No-show"


# A New reservation holds its room only as long as its hold lasts; these hold it whatever the time.
HOLDING_STATUSES = frozenset({Status.PROCESSING, Status.PENDING, Status.CONFIRMED})

# Over, and the room was kept for it.
FINISHED_STATUSES = frozenset({Status.COMPLETED, Status.NO_SHOW})

# What a repeated checkout is answered with, without asking the gateway.
BOOKED_STATUSES = frozenset({Status.PENDING, Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW})

# Those whose total counts as revenue: the center has agreed, and the time was or will be used.
REVENUE_STATUSES = BOOKED_STATUSES - {Status.PENDING}

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.NEW: frozenset(
        # Straight to Confirmed or Pending where nothing is to be paid.
        {Status.PROCESSING, Status.CONFIRMED, Status.PENDING, Status.CANCELLED, Status.EXPIRED}
    ),
    Status.PROCESSING: frozenset({Status.NEW, Status.CONFIRMED, Status.PENDING}),
    Status.PENDING: frozenset(
        {Status.CONFIRMED, Status.DECLINED, Status.CANCELLED, Status.EXPIRED}
    ),
    Status.CONFIRMED: frozenset({Status.CANCELLED, Status.COMPLETED, Status.NO_SHOW}),
    Status.COMPLETED: frozenset({Status.NO_SHOW}),
    Status.NO_SHOW: frozenset({Status.COMPLETED}),
}


class InvalidStatusTransition(Exception):
    """A defect: code asked for a change of status that the table does not have."""


def can_transition(old: str, new: str) -> bool:
    return new in TRANSITIONS.get(Status(old), frozenset())
