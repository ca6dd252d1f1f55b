"""What staff can do with a reservation: approve, cancel, move it, and so on.

The page of an action shows a preview first; only what is confirmed there is done. Whether or not an
action is offered, the domain checks it again under its locks, and refuses it with a message.
"""

import datetime as dt

from accounts.models import User
from reservations.desk.actions.amendment_actions import (
    ChangeServicesAction,
    ExtendAction,
    RescheduleAction,
)
from reservations.desk.actions.base import Action
from reservations.desk.actions.command_actions import (
    AdjustPriceAction,
    ApproveAction,
    CancelAction,
    CancelLinkAction,
    CheckInAction,
    DeclineAction,
    ExtendHoldAction,
    MarkNoShowAction,
    ResendEmailAction,
    SendLinkAgainAction,
    TakePaymentAction,
    UndoCheckInAction,
    UndoNoShowAction,
)
from reservations.models import Reservation

# By name, in the order in which a page offers them.
ACTIONS: dict[str, Action] = {
    action.name: action
    for action in (
        ApproveAction(),
        DeclineAction(),
        CheckInAction(),
        UndoCheckInAction(),
        TakePaymentAction(),
        SendLinkAgainAction(),
        CancelLinkAction(),
        RescheduleAction(),
        ChangeServicesAction(),
        ExtendAction(),
        AdjustPriceAction(),
        ExtendHoldAction(),
        ResendEmailAction(),
        MarkNoShowAction(),
        UndoNoShowAction(),
        CancelAction(),
    )
}


def get_available_actions(
    user: User, reservation: Reservation, *, now: dt.datetime
) -> list[Action]:
    """The actions that the user may take on the reservation now."""
    return [
        action
        for action in ACTIONS.values()
        if action.is_permitted(user, reservation) and action.is_available(reservation, now=now)
    ]
