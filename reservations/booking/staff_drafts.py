"""Drafts that staff create for customers: the preview while they edit, and new customers.

The preview runs the same checks as creating the draft, in the same order, and changes nothing.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from accounts.act import Act
from accounts.models import User
from accounts.profile import create_customer
from centers.models import MeetingRoom
from centers.requested_span import resolve_span
from centers.span import Span
from reservations import availability
from reservations.availability import Reason
from reservations.booking import booking_values, drafts
from reservations.models import Reservation
from reservations.models.booking_fields import BookingValues
from reservations.pricing import bill, services
from reservations.pricing.quote import Quote
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest, RateNotConfigured


@dataclass(frozen=True, slots=True)
class DraftPreview:
    """The preview of a draft: why the room is not available, and the lines of its price.

    `problems` are the invalid fields. `span` is None if the times are among them. `quote` is None
    if there is no price; `price_problem` says why.
    """

    problems: Mapping[str, str]
    span: Span | None = None
    reasons: tuple[Reason, ...] = ()
    is_outside_hours: bool = False
    quote: Quote | None = None
    price_problem: str = ""

    @property
    def is_available(self) -> bool:
        return self.span is not None and not self.reasons


def preview_draft(
    user: User | None,
    room: MeetingRoom,
    *,
    start: dt.datetime,
    end: dt.datetime,
    hours_override_reason: str = "",
    now: dt.datetime,
    **values: Unpack[BookingValues],
) -> DraftPreview:
    """Preview a draft for a customer, or for no customer while none is selected.

    With a customer, the price is the price of the draft, with the included hours that apply
    automatically. Without a customer, it is the list price. With a reason, the opening hours are
    overridden.
    """
    problems: dict[str, str] = {}
    try:
        booking_values.resolve_new(user, room, values)
    except InvalidRequest as error:
        problems |= error.fields
    span, selections = None, []
    try:
        span = resolve_span(room.center, start, end)
    except InvalidRequest as error:
        problems |= error.fields
    try:
        selections = services.select_services(room.center, values.get("services", ()), span)
    except InvalidRequest as error:
        problems |= error.fields
    if span is None:
        return DraftPreview(problems)
    result = availability.evaluate(
        room,
        span,
        now=now,
        for_user=user,
        ignore_opening_hours=bool(hours_override_reason),
        by_staff=True,
    )
    quote, price_problem = None, ""
    try:
        quote = bill.quote_draft(user, room, span, selections)
    except RateNotConfigured as error:
        price_problem = error.message
    return DraftPreview(
        problems=problems,
        span=span,
        reasons=result.reasons,
        is_outside_hours=availability.is_outside_opening_hours(room, span),
        quote=quote,
        price_problem=price_problem,
    )


@in_transaction
def create_draft_for_new_customer(
    act: Act, customer: Mapping[str, str], **draft: Any
) -> Reservation:
    """Create an account for a customer and their first draft, in one transaction.

    `customer` contains the arguments of `create_customer`, whose problems are reported as
    `customer.<field>`; `draft` contains the arguments of `create_draft`.
    """
    try:
        user = create_customer(**customer)
    except InvalidRequest as error:
        problems = {f"customer.{name}": problem for name, problem in error.fields.items()}
        raise InvalidRequest(problems) from error
    return drafts.create_draft(act, user, **draft)
