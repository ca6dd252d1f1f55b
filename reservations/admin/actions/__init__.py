"""What staff can do to a reservation: each step with who may take it, when it is offered, what it
would do, and the doing.

The page of a step tells the effect first; only what is confirmed there is done. Whatever is offered
or not, the domain judges again under its locks: a step that is forced by hand is refused in words.
"""

import datetime as dt
from typing import TYPE_CHECKING

from reservations.admin.actions.base import Action
from reservations.admin.actions.changes import (
    AdjustPriceAction,
    ExtendHoldAction,
    RescheduleAction,
    ResendEmailAction,
)
from reservations.admin.actions.outcomes import (
    ApproveAction,
    CancelAction,
    DeclineAction,
    NoShowAction,
)
from reservations.models import Reservation

if TYPE_CHECKING:
    from accounts.models import User

ACTIONS: dict[str, Action] = {
    step.name: step
    for step in (
        *(
            ApproveAction(),
            DeclineAction(),
            RescheduleAction(),
            AdjustPriceAction(),
            ExtendHoldAction(),
            ResendEmailAction(),
            NoShowAction(),
            CancelAction(),
        ),
    )
}


def get_available_actions(
    user: "User", reservation: Reservation, *, now: dt.datetime
) -> list[Action]:
    """The steps that this member of staff can take with it now."""
    return [
        step
        for step in ACTIONS.values()
        if step.may(user, reservation) and step.is_offered(reservation, now=now)
    ]
