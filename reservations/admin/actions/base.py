"""What a step is: who may take it, when it is offered, what it would do, and the doing."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from accounts import roles
from reservations.admin.actions.forms import CHANGE, ActionForm
from reservations.admin.bill_comparison import ComparedLine
from reservations.models import Reservation
from roombook.errors import DomainError, InvalidRequest

if TYPE_CHECKING:
    from accounts.models import User


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """A step that a member of staff wants to take: with what, and what they know of it."""

    reservation: Reservation
    by: "User"
    now: dt.datetime
    # What was typed into the step's form, by the names of its fields.
    typed: Mapping[str, Any] = field(default_factory=dict)
    # The sums that the page showed, the one before and the one after it; None where it showed none.
    was: Decimal | None = None
    agreed: Decimal | None = None


@dataclass(slots=True)
class ActionPreview:
    """What a step would do, in words; and why it cannot, where it cannot."""

    facts: list[tuple[str, str]] = field(default_factory=list)
    bill: list[ComparedLine] = field(default_factory=list)
    old_total: str = ""
    new_total: str = ""
    change: str = ""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # What was shown, as the step is to do it, and what it would change: sent along with the
    # confirmation.
    agreed: Decimal | None = None
    was: Decimal | None = None


class Action:
    """One thing to do to a reservation."""

    name: ClassVar[str]
    label: ClassVar[str]
    icon: ClassVar[str]
    # What the page asks, and the word on its button.
    question: ClassVar[str]
    confirm: ClassVar[str]
    is_dangerous: ClassVar[bool] = False
    permission: ClassVar[str] = CHANGE
    form_class: ClassVar[type[ActionForm]] = ActionForm

    def may(self, user: "User", reservation: Reservation) -> bool:
        return roles.has_permission(user, self.permission, reservation.room.center_id)

    def is_offered(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        raise NotImplementedError

    def shown(self, asked: ActionRequest) -> ActionPreview:
        """What it would do, or why it cannot; nothing is done."""
        try:
            return self.effect(asked)
        except DomainError as error:
            return ActionPreview(problems=[format_error(error)])

    def effect(self, asked: ActionRequest) -> ActionPreview:
        """What it would do; raises DomainError where that cannot be told."""
        raise NotImplementedError

    def act(self, asked: ActionRequest) -> str:
        """Do it, and say what was done. Raises DomainError."""
        raise NotImplementedError


def format_error(error: DomainError) -> str:
    """A refusal in full: which fields are wrong stands beside its message."""
    return " ".join(error.fields.values() if isinstance(error, InvalidRequest) else ()) or (
        error.message
    )


def describe_email(reservation: Reservation, what: str = "") -> tuple[str, str]:
    to = reservation.user.get_full_name() or "the customer"
    return "Mail", f"goes to {to}{f', {what}' if what else ''}"
