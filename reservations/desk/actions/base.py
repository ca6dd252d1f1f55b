"""The base of all actions: who may take it, when it is available, its preview, and doing it."""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, Protocol

from accounts import roles
from accounts.act import Act
from accounts.models import OutboxMessage, User
from reservations.booking.commands import Command, Preview
from reservations.desk.actions.forms import ActionForm
from reservations.desk.find_room import FoundRooms
from reservations.models import LineItemType, Reservation
from roombook import money
from roombook.errors import DomainError, InvalidRequest, SlotUnavailable


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """What a member of staff asks for.

    ``data`` is the cleaned data of the action's form. ``expected_amount`` (the new total or the
    refund) and ``expected_version`` come with a confirmation: they are those of its preview.
    """

    reservation: Reservation
    act: Act
    data: Mapping[str, Any] = field(default_factory=dict)
    expected_amount: Decimal | None = None
    expected_version: int | None = None
    # The URL of this service, without a slash at the end.
    base_url: str = ""

    def require_shown_amount(self) -> Decimal:
        """Return the expected amount. Raises InvalidRequest if no preview has shown one."""
        if self.expected_amount is None:
            problem = "The amount that you have seen is missing. Please open the page again."
            raise InvalidRequest({"expected_amount": problem})
        return self.expected_amount


class ComparableLine(Protocol):
    """A line of a bill, stored or only calculated."""

    @property
    def type(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def total(self) -> Decimal: ...


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """A line as the page shows it. The amount is "" in the bill that has no such line.

    ``old_description`` is "" if the description stays the same.
    """

    description: str
    old_description: str
    old_amount: str
    new_amount: str
    change: str


@dataclass(frozen=True, slots=True)
class BillComparison:
    lines: list[ComparedLine]
    old_total: str
    new_total: str
    change: str


@dataclass(slots=True)
class ActionPreview:
    """What an action would do, in words, or in ``problems`` why it is not possible.

    ``confirm_label`` is the label of the button, if it is not that of the action.
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
    confirm_label: str = ""
    undo: dict[str, str] = field(default_factory=dict)
    found: FoundRooms | None = None


class Action:
    """Something that staff can do with a reservation: a command with its page.

    The preview shows what the same command would do with the same arguments.
    """

    command: ClassVar[Command[..., Any]]
    name: ClassVar[str]
    label: ClassVar[str]
    icon: ClassVar[str]
    # The heading of the page, and the label of its button.
    title: ClassVar[str]
    confirm_label: ClassVar[str]
    # The message once it is done.
    done: ClassVar[str] = ""
    is_primary: ClassVar[bool] = False
    is_dangerous: ClassVar[bool] = False
    # No money moves and another action always undoes it, so it is done without a preview.
    is_immediate: ClassVar[bool] = False
    # Afterwards the user stands on the next request, if there is one.
    leads_to_next_request: ClassVar[bool] = False
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
        except SlotUnavailable as error:
            return ActionPreview(problems=list_problems(error), found=self.find_instead(request))
        except DomainError as error:
            return ActionPreview(problems=list_problems(error))

    def find_instead(self, request: ActionRequest) -> FoundRooms | None:
        """What is free instead of a room and time that are not available."""
        return None

    def build_preview(self, request: ActionRequest) -> ActionPreview:
        """What the action would do. Raises DomainError if it is not possible."""
        options = self.get_options(request)
        would = self.command.preview(request.act, request.reservation.pk, **options)
        return self.describe(request, would)

    def execute(self, request: ActionRequest) -> str:
        """Do it, and return a message that says what was done. Raises DomainError."""
        options = self.get_options(request)
        return self.report(self.command(request.act, request.reservation.pk, **options))

    def get_options(self, request: ActionRequest) -> dict[str, Any]:
        """The arguments of the command."""
        return {}

    def describe(self, request: ActionRequest, would: Preview[Any]) -> ActionPreview:
        """Describe what the command would do."""
        raise NotImplementedError

    def report(self, result: Any) -> str:
        """Say what the command has done."""
        return self.done


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
    if not reservation.user.known_email:
        return "E-mail to", "Nobody: the customer has no e-mail address"
    recipient = reservation.user.get_full_name() or "the customer"
    return "E-mail to", f"{recipient}{f', {content}' if content else ''}"


# --- Bills before and after -----------------------------------------------------------------------


class ChangedBill(Protocol):
    """The bill of a reservation before and after a change."""

    @property
    def old_lines(self) -> Iterable[ComparableLine]: ...
    @property
    def new_lines(self) -> Iterable[ComparableLine]: ...
    @property
    def old_total(self) -> Decimal: ...
    @property
    def new_total(self) -> Decimal: ...


def compare_bills(bill: ChangedBill) -> BillComparison:
    """Match each new line with the old one that it replaces. Removed lines come last."""
    unmatched: dict[tuple[object, ...], list[ComparableLine]] = {}
    for line in bill.old_lines:
        unmatched.setdefault(_get_key(line), []).append(line)
    lines = []
    for line in bill.new_lines:
        candidates = unmatched.get(_get_key(line))
        lines.append(_compare(candidates.pop(0) if candidates else None, line))
    lines += [_compare(line, None) for removed in unmatched.values() for line in removed]
    return BillComparison(
        lines,
        money.format_amount(bill.old_total),
        money.format_amount(bill.new_total),
        _format_change(bill.new_total - bill.old_total),
    )


def _get_key(line: ComparableLine) -> tuple[object, ...]:
    """What the old and the new version of a line have in common."""
    if line.type in {LineItemType.ADJUSTMENT, LineItemType.EXTRA}:
        return (line.type, line.description)
    service, allowance = (getattr(line, name, None) for name in ("service_id", "allowance_id"))
    return (str(line.type), service, allowance)


def _compare(old: ComparableLine | None, new: ComparableLine | None) -> ComparedLine:
    old_text, new_text = (line.description if line else "" for line in (old, new))
    old_amount, new_amount = (line.total if line else money.ZERO for line in (old, new))
    return ComparedLine(
        description=new_text or old_text,
        old_description=old_text if new and old_text != new_text else "",
        old_amount=money.format_amount(old_amount) if old else "",
        new_amount=money.format_amount(new_amount) if new else "",
        change=_format_change(new_amount - old_amount),
    )


def _format_change(amount: Decimal) -> str:
    """``+$5.00``, ``-$5.00``, or "" for 0."""
    if not amount:
        return ""
    return f"+{money.format_amount(amount)}" if amount > 0 else money.format_amount(amount)
