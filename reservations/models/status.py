"""The statuses of a reservation, which of them hold its room, and the allowed transitions."""

from django.db import models


class Status(models.TextChoices):
    """The contract's ReservationStatuses. The stored value is the value in the API."""

    NEW = "New", "Draft"  # not paid
    PROCESSING = "Processing"  # a payment is in progress or its outcome is unknown
    PENDING = "Pending", "Awaiting approval"  # the money is authorized
    CONFIRMED = "Confirmed"
    DECLINED = "Declined"  # by the center
    CANCELLED = "Cancelled"
    EXPIRED = "Expired"  # its time passed, or the center did not answer
    COMPLETED = "Completed"
    NO_SHOW = "NoShow", "No-show"


# These always hold their room; a New reservation holds it only until its hold expires.
HOLDING_STATUSES = frozenset({Status.PROCESSING, Status.PENDING, Status.CONFIRMED})

# The meeting is over, and the room was held for it.
FINISHED_STATUSES = frozenset({Status.COMPLETED, Status.NO_SHOW})

# A repeated checkout returns these without calling the gateway.
BOOKED_STATUSES = frozenset({Status.PENDING, Status.CONFIRMED, Status.COMPLETED, Status.NO_SHOW})

# The total counts as revenue: the center has approved, and the time was or will be used.
REVENUE_STATUSES = BOOKED_STATUSES - {Status.PENDING}

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.NEW: frozenset(
        # Directly to Confirmed or Pending if there is nothing to pay.
        {Status.PROCESSING, Status.CONFIRMED, Status.PENDING, Status.CANCELLED, Status.EXPIRED}
    ),
    Status.PROCESSING: frozenset({Status.NEW, Status.CONFIRMED, Status.PENDING}),
    Status.PENDING: frozenset(
        {Status.CONFIRMED, Status.DECLINED, Status.CANCELLED, Status.EXPIRED}
    ),
    Status.CONFIRMED: frozenset({Status.CANCELLED, Status.COMPLETED, Status.NO_SHOW}),
    # Confirmed again if it is extended: its customer has the room until its new end.
    Status.COMPLETED: frozenset({Status.CONFIRMED, Status.NO_SHOW}),
    # Confirmed again before its end: the customer came, and needs the room until then.
    Status.NO_SHOW: frozenset({Status.CONFIRMED, Status.COMPLETED}),
}


class InvalidStatusTransition(Exception):
    """Raised if code requests a transition that is not allowed, which is a defect."""


def can_transition(old: str, new: str) -> bool:
    return new in TRANSITIONS.get(Status(old), frozenset())
