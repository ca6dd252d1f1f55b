"""An action of staff on a reservation: who may take it and when, what it would do, and doing it."""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from accounts import roles
from accounts.models import OutboxMessage, User
from payments.gateways import declines
from reservations.booking.amendments import Amendment
from reservations.booking.commands import Command
from reservations.booking.price_adjustments import Adjustment
from reservations.desk.action_forms import ActionForm
from reservations.desk.find_room import FoundRooms
from reservations.models import LineItem, LineItemType, Reservation
from reservations.models.status import Status
from reservations.pricing.quote import QuoteLine
from roombook import money
from roombook.errors import CardDeclined, DomainError, InvalidRequest, SlotUnavailable

BANK_ASKS = (
    "The card's bank asks the customer for a confirmation. Nothing was charged. Choose another way"
    " of payment."
)

# The line of a preview that says who gets an e-mail.
E_MAIL_TO = "E-mail to"


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """A line of a bill, or its total, before and after. The amount is "" where there is no line.

    ``old_description`` is "" if the description stays the same.
    """

    description: str
    old_description: str
    old_amount: str
    new_amount: str
    change: str


@dataclass(slots=True)
class ActionPreview:
    """What an action would do, in words, or in ``problems`` why it is not possible.

    ``result`` is that of the command, which is refused if there is a ``refusal``. ``bill`` has the
    lines of both bills, and the total as the last one. ``email`` is the e-mail as it would go to
    the customer; it is not stored. ``confirm_label`` is the label of the button, if it is not that
    of the action. The expected values come back with the confirmation, so that the action fails if
    they changed. If the action moves no money and can be undone, ``undo`` is what to submit for
    that. ``found`` is what is free instead of a room and time that are not available.
    """

    form: ActionForm
    result: Any = None
    refusal: str = ""
    facts: list[tuple[str, str]] = field(default_factory=list)
    bill: list[ComparedLine] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    email: OutboxMessage | None = None
    expected_amount: Decimal | None = None
    expected_version: int | None = None
    confirm_label: str = ""
    undo: dict[str, str] = field(default_factory=dict)
    found: FoundRooms | None = None


class Condition(Protocol):
    def __call__(self, reservation: Reservation, /, *, now: dt.datetime) -> bool: ...


Call = tuple[Command[..., Any], Mapping[str, Any]]
always: Condition = lambda _, *, now: True  # noqa: E731
never: Condition = lambda _, *, now: False  # noqa: E731


def add_nothing(preview: ActionPreview) -> None:
    """Leave a preview as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that staff can do with a reservation: a command with its form and its preview.

    ``call`` returns the command and its arguments. The preview says what the same call would do;
    ``describe`` adds what is particular. ``report`` says what it has done. ``execute`` is there if
    something else is done than is previewed, because a gateway is asked.
    """

    name: str
    label: str
    icon: str
    # The heading of the page.
    title: str
    # The label of the button that confirms it, if it is another one.
    confirm_label: str = ""
    call: Callable[[ActionForm], Call]
    describe: Callable[[ActionPreview], None] = add_nothing
    report: Callable[[Any], str] = str
    execute: Callable[[ActionForm], str] | None = None
    form_class: type[ActionForm] = ActionForm
    permission: str = roles.CHANGE_RESERVATION
    is_available: Condition
    # No money moves and another action always undoes it, so one click does it without a preview.
    is_immediate: Condition = never
    is_primary: bool = False
    is_dangerous: bool = False
    # Afterwards the user stands on the next request, if there is one.
    leads_to_next_request: bool = False
    # What the e-mail to the customer of a booking has; None if the action sends none.
    email: str | None = None
    shows_email: bool = False

    def is_permitted(self, user: User, reservation: Reservation) -> bool:
        return roles.has_permission(user, self.permission, reservation.room.center_id)

    def preview(self, form: ActionForm) -> ActionPreview:
        """Return what the action would do, or why it is not possible. Changes nothing."""
        row = form.reservation
        try:
            command, options = self.call(form)
            would = command.preview(form.act, row.pk, **options)
            preview = ActionPreview(form, would.result, would.problem)
            after = getattr(would.result, "reservation", would.result)
            if isinstance(after, Reservation) and after.status != row.status:
                preview.facts.append(("New status", Status(after.status).label))
            self.describe(preview)
        except DomainError as error:
            found = form.find_instead() if isinstance(error, SlotUnavailable) else None
            return ActionPreview(form, problems=list_problems(error), found=found)
        if not preview.problems and E_MAIL_TO not in dict(preview.facts):
            preview.facts.append(describe_email(row, self.email if row.booked_at else None))
        if self.shows_email:
            preview.email = would.email
        return preview

    def take(self, form: ActionForm) -> str:
        """Take the action, and return a message that says what was done. Raises DomainError."""
        if self.execute is not None:
            return self.execute(form)
        command, options = self.call(form)
        return self.report(command(form.act, form.reservation.pk, **options))


def list_problems(error: DomainError) -> list[str]:
    """All that is wrong, for staff: the messages of the fields, or the reasons, if it has any."""
    if isinstance(error, SlotUnavailable):
        return [*error.staff_texts]
    if isinstance(error, CardDeclined) and error.message == declines.REQUIRES_ACTION:
        return [BANK_ASKS]
    fields = error.fields.values() if isinstance(error, InvalidRequest) else ()
    return [*fields] or [error.message]


def describe_email(reservation: Reservation, content: str | None = "") -> tuple[str, str]:
    """The line of a preview that says who gets an e-mail; None is no e-mail."""
    if content is None:
        return E_MAIL_TO, "Nobody"
    if not reservation.user.known_email:
        return E_MAIL_TO, "Nobody: the customer has no e-mail address"
    recipient = reservation.user.get_full_name() or "the customer"
    return E_MAIL_TO, f"{recipient}{f', {content}' if content else ''}"


# --- Bills before and after -----------------------------------------------------------------------


def compare_bills(bill: Amendment | Adjustment) -> list[ComparedLine]:
    """Match each new line with the old one that it replaces; then removed lines, and the total."""
    unmatched: dict[tuple[object, ...], list[LineItem]] = {}
    for old in bill.old_lines:
        unmatched.setdefault(_get_key(old), []).append(old)
    lines = []
    for new in bill.new_lines:
        candidates = unmatched.get(_get_key(new))
        lines.append(_compare(candidates.pop(0) if candidates else None, new))
    lines += [_compare(line, None) for removed in unmatched.values() for line in removed]
    old_total, new_total = map(money.format_amount, (bill.old_total, bill.new_total))
    change = _format_change(bill.new_total - bill.old_total)
    return [*lines, ComparedLine("Total", "", old_total, new_total, change)]


def _get_key(line: LineItem | QuoteLine) -> tuple[object, ...]:
    """What the old and the new version of a line have in common."""
    if line.type in {LineItemType.ADJUSTMENT, LineItemType.EXTRA}:
        return (line.type, line.description)
    service, allowance = (getattr(line, name, None) for name in ("service_id", "allowance_id"))
    return (str(line.type), service, allowance)


def _compare(old: LineItem | None, new: LineItem | QuoteLine | None) -> ComparedLine:
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
