"""A draft that staff make: what it would be while they edit it, and for whom.

The preview asks what making it would ask, in the same order of judgement, and writes nothing.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accounts.profile import create_customer
from centers.models import MeetingRoom
from centers.span import Span
from reservations import availability
from reservations.availability import Reason
from reservations.booking import drafts
from reservations.booking.span import resolve_span
from reservations.models import Reservation
from reservations.pricing import bill, services
from reservations.pricing.quote import Quote
from roombook.db.transactions import in_transaction
from roombook.errors import InvalidRequest, RateNotConfigured

if TYPE_CHECKING:
    from accounts.models import User


@dataclass(frozen=True, slots=True)
class DraftPreview:
    """What a draft would be: why it cannot be had, and what it costs line by line.

    `problems` are fields that make no sense yet, by our names. `span` is None where the times are
    among them, `quote` where there is no price, for the reason in `price_problem`.
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
    user: "User | None",
    room: MeetingRoom,
    *,
    start: dt.datetime,
    end: dt.datetime,
    service_options: Sequence[Mapping[str, Any]] = (),
    number_of_attendees: int | None = None,
    attendees: Sequence[Mapping[str, Any]] = (),
    outside_hours: bool = False,
    now: dt.datetime,
) -> DraftPreview:
    """What a draft of these would be for a customer, or for anybody while none is chosen.

    With a customer the price is the one that the draft will have: included hours that apply by
    themselves come off. Without one it is the list price. `outside_hours`: the opening hours are
    overridden.
    """
    problems: dict[str, str] = {}
    try:
        # Whoever is not known yet comes too.
        guests = drafts.add_creator(user, attendees) if user else [*attendees, None]
        drafts.resolve_attendee_count(room, number_of_attendees, guests)
    except InvalidRequest as error:
        problems |= error.fields
    wanted = []
    try:
        wanted = services.select_services(room.center, service_options)
    except InvalidRequest as error:
        problems |= error.fields
    try:
        span = resolve_span(room.center, start, end)
    except InvalidRequest as error:
        return DraftPreview(problems | error.fields)
    answer = availability.evaluate(room, span, now=now, for_user=user, outside_hours=outside_hours)
    quote, price_problem = None, ""
    try:
        quote = bill.quote_draft(user, room, span, wanted)
    except RateNotConfigured as error:
        price_problem = error.message
    return DraftPreview(
        problems=problems,
        span=span,
        reasons=answer.reasons,
        is_outside_hours=availability.is_outside_hours(room, span),
        quote=quote,
        price_problem=price_problem,
    )


@in_transaction
def create_draft_for_new_customer(customer: Mapping[str, str], **asked: Any) -> Reservation:
    """Make an account for a customer, and their first draft: both or neither.

    `customer` is what `add_customer` takes; what is wrong with it is told by `customer.<field>`.
    """
    try:
        user = create_customer(**customer)
    except InvalidRequest as error:
        raise InvalidRequest({f"customer.{name}": why for name, why in error.fields.items()}) from (
            error
        )
    return drafts.create_draft(user, **asked)
