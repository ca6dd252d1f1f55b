"""The base of all actions: who may take it, when it is available, its preview, and doing it."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

from accounts import roles
from accounts.act import Act
from accounts.models import OutboxMessage, User
from reservations.admin.actions.forms import ActionForm
from reservations.admin.bill_comparison import BillComparison
from reservations.models import Reservation
from roombook import money
from roombook.errors import DomainError, InvalidRequest, SlotUnavailable


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """What a member of staff asks for.

    ``data`` is the cleaned data of the action's form. ``expected_amount`` (the new total or the
    refund) and ``expected_version`` are those of the preview, if it had any. A preview
    has the e-mail unless ``has_email`` is false: to write it takes a transaction.
    """

    reservation: Reservation
    by: User
    now: dt.datetime
    data: Mapping[str, Any] = field(default_factory=dict)
    expected_amount: Decimal | None = None
    expected_version: int | None = None
    has_email: bool = True
    # The URL of this service, without a slash at the end.
    base_url: str = ""

    @property
    def act(self) -> Act:
        return Act(self.by, self.now, is_staff=True)

    def require_shown_amount(self) -> Decimal:
        """Return the expected amount. Raises InvalidRequest if no preview has shown one."""
        if self.expected_amount is None:
            problem = "The amount that you have seen is missing. Please open the page again."
            raise InvalidRequest({"expected_amount": problem})
        return self.expected_amount


@dataclass(slots=True)
class ActionPreview:
    """What an action would do, in words, or in ``problems`` why it is not possible.

    ``email`` is the e-mail as it would go to the customer; it is not stored.
    The expected values come back with the confirmation, so that the action fails if they changed.
    If the action moves no money and can be undone, ``undo`` is what to submit for that.
    """

    facts: list[tuple[str, str]] = field(default_factory=list)
    bill: BillComparison | None = None
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    email: OutboxMessage | None = None
    expected_amount: Decimal | None = None
    expected_version: int | None = None
    undo: dict[str, str] = field(default_factory=dict)


class Action:
    """Something that staff can do with a reservation."""

    name: ClassVar[str]
    label: ClassVar[str]
    icon: ClassVar[str]
    # The heading of the page, and the label of its button.
    title: ClassVar[str]
    confirm_label: ClassVar[str]
    is_primary: ClassVar[bool] = False
    is_dangerous: ClassVar[bool] = False
    # No money moves and another action always undoes it, so it is done without a preview.
    is_immediate: ClassVar[bool] = False
    permission: ClassVar[str] = roles.CHANGE_RESERVATION
    form_class: ClassVar[type[ActionForm]] = ActionForm

    def is_permitted(self, user: User, reservation: Reservation) -> bool:
        return roles.has_permission(user, self.permission, reservation.room.center_id)

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        raise NotImplementedError

    def is_immediate_for(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        """Return whether one click does it, without a preview."""
        return self.is_immediate

    def preview(self, request: ActionRequest) -> ActionPreview:
        """What the action would do, or why it is not possible. Changes nothing."""
        try:
            return self.build_preview(request)
        except DomainError as error:
            return ActionPreview(problems=list_problems(error))

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        """What the action would do. Raises DomainError if it is not possible."""
        raise NotImplementedError

    def execute(self, request: ActionRequest) -> str:
        """Do it, and return a message that says what was done. Raises DomainError."""
        raise NotImplementedError


def list_problems(error: DomainError) -> list[str]:
    """All that is wrong, for staff: the messages of the fields, or the reasons, if it has any."""
    if isinstance(error, SlotUnavailable):
        return [*error.staff_texts]
    fields = error.fields.values() if isinstance(error, InvalidRequest) else ()
    return [*fields] or [error.message]


def format_refund(amount: Decimal) -> str:
    return money.format_amount(amount) if amount else "None"


def describe_due_refund(refund: Decimal) -> str:
    """The end of a message that says what is refunded, if anything."""
    return f" {money.format_amount(refund)} will be refunded." if refund else ""


def describe_email(reservation: Reservation, content: str = "") -> tuple[str, str]:
    """The line of a preview that says who gets an e-mail."""
    recipient = reservation.user.get_full_name() or "the customer"
    return "E-mail to", f"{recipient}{f', {content}' if content else ''}"
