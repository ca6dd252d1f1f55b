"""What staff can do to a reservation: each step with who may take it, when it is offered, what it
would do, and the doing.

The page of a step tells the effect first; only what is confirmed there is done. Whatever is offered
or not, the domain judges again under its locks: a step that is forced by hand is refused in words.
"""

import datetime as dt
from typing import TYPE_CHECKING

from reservations.admin.actions.base import Step
from reservations.admin.actions.changes import Adjust, ExtendHold, Move, Resend
from reservations.admin.actions.outcomes import Approve, Cancel, Decline, NoShow
from reservations.models import Reservation

if TYPE_CHECKING:
    from accounts.models import User

STEPS: dict[str, Step] = {
    step.name: step
    for step in (
        *(Approve(), Decline(), Move(), Adjust(), ExtendHold(), Resend(), NoShow(), Cancel()),
    )
}


def offered_to(user: "User", reservation: Reservation, *, now: dt.datetime) -> list[Step]:
    """The steps that this member of staff can take with it now."""
    return [
        step
        for step in STEPS.values()
        if step.may(user, reservation) and step.is_offered(reservation, now=now)
    ]
