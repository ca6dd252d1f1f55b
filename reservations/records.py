"""A reservation as its customer sees it: everything that one answer shows, read in one go."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Exists, OuterRef

from centers.models import Favorite
from centers.records import (
    CENTER_COLUMNS,
    ROOM_COLUMNS,
    CenterRow,
    ShownCenter,
    ShownRoom,
    furnished,
    room_from,
)
from centers.span import Span
from reservations.models import (
    AllowanceUse,
    Attendee,
    ChosenService,
    LineItem,
    LineItemType,
    Reservation,
)
from reservations.models.status import Status
from reservations.pricing import quote
from reservations.pricing.allowances import AllowanceBook, Offer
from roombook.db.compiled_queries import number, numbers, prepared
from roombook.errors import NotFound

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.models import User
    from reservations.models.querysets import ReservationQuerySet


class ShownAllowance(NamedTuple):
    id: int
    description: str


@dataclass(frozen=True, slots=True)
class AllowanceUsage:
    """An allowance as a booking uses it, or as it would use it if it were the only one."""

    reservation: "Details"
    allowance: ShownAllowance
    number_of_hours: int
    discount_applied: Decimal
    in_use: bool
    hours_left: int


@dataclass(frozen=True, slots=True)
class Option:
    """A service that can be had with the room, chosen or not."""

    service_id: int
    service_name: str
    selected: bool
    needs_duration: bool
    needs_quantity: bool
    duration_hours: Decimal | None = None
    quantity: int | None = None


class ShownAttendee(NamedTuple):
    id: int
    name: str
    email_address: str
    company_name: str
    is_creator: bool


class ShownLine(NamedTuple):
    amount: str
    description: str
    total: Decimal
    type: str
    rate: str
    service_id: int | None
    allowance_id: int | None


class ChosenRow(NamedTuple):
    """What the customer said of a service, and what the service is by now."""

    duration_hours: Decimal | None
    quantity: int | None
    service_id: int
    name: str
    position: int
    needs_duration: bool
    needs_quantity: bool


class UseRow(NamedTuple):
    """Hours of an allowance that the reservation counts on."""

    hours: int
    discount: Decimal
    allowance_id: int
    description: str


class ReservationRow(NamedTuple):
    """The columns of a reservation that answers show."""

    id: int
    start: dt.datetime
    end: dt.datetime
    status: str
    total_cost: Decimal
    billable_hours: Decimal
    number_of_attendees: int
    promotion: str | None


OWN = len(ReservationRow._fields)
CENTER = len(CENTER_COLUMNS)
COLUMNS = (
    *ReservationRow._fields[:-1],
    "promo_code__code",
    *(f"room__center__{name}" for name in CENTER_COLUMNS if name != "is_favorite"),
    "is_favorite",
    *(f"room__{name}" for name in ROOM_COLUMNS),
)


class Details:
    """One reservation with all that it shows. Times are on the center's clock."""

    def __init__(self, row: ReservationRow, center: ShownCenter, room: ShownRoom) -> None:
        self.row = row
        self.center = center
        self.meeting_room = room
        self.line_items: list[ShownLine] = []
        self.attendees: list[ShownAttendee] = []
        self.chosen: list[ChosenRow] = []
        self.uses: list[UseRow] = []
        self.offers: Sequence[Offer] = ()

    @property
    def id(self) -> int:
        return self.row.id

    @property
    def status(self) -> str:
        return self.row.status

    @cached_property
    def start(self) -> dt.datetime:
        return self.row.start.astimezone(self.center.zone)

    @cached_property
    def end(self) -> dt.datetime:
        return self.row.end.astimezone(self.center.zone)

    @property
    def services(self) -> list[Option]:
        """What was chosen, and what else the center offers."""
        chosen = {each.service_id: each for each in self.chosen}
        options = [
            ((each.position, each.name, each.id), _option(each, chosen.get(each.id)))
            for each in self.center.services_on_offer
        ]
        offered = {each.id for each in self.center.services_on_offer}
        options += [
            ((each.position, each.name, pk), _option(each, each))
            for pk, each in chosen.items()
            if pk not in offered
        ]
        return [option for _, option in sorted(options, key=lambda each: each[0])]

    @property
    def total_cost(self) -> Decimal:
        return self.row.total_cost

    @property
    def room_cost(self) -> Decimal:
        """The room's line before discounts."""
        lines = (line.total for line in self.line_items if line.type == LineItemType.ROOM)
        return sum(lines, Decimal(0))

    @property
    def number_of_attendees(self) -> int:
        return self.row.number_of_attendees

    @property
    def promotion(self) -> str:
        return self.row.promotion or ""

    @property
    def allowances(self) -> list[AllowanceUsage]:
        """Those in use."""
        return [usage for usage in self.all_allowances if usage.in_use]

    @property
    def usable_allowances(self) -> list[AllowanceUsage]:
        """The valid ones that are not in use and have an hour left."""
        return [each for each in self.all_allowances if not each.in_use and each.hours_left]

    @property
    def can_apply_allowances(self) -> bool:
        return self.row.status == Status.NEW and bool(self.usable_allowances)

    @cached_property
    def all_allowances(self) -> list[AllowanceUsage]:
        """Every allowance in use or valid for this booking, in the order of their use."""
        in_use = {use.allowance_id: use for use in self.uses if use.hours}
        left = {offer.allowance.pk: offer.hours_left for offer in self.offers}
        used = [
            AllowanceUsage(
                reservation=self,
                allowance=ShownAllowance(pk, use.description),
                number_of_hours=use.hours,
                discount_applied=use.discount,
                in_use=True,
                hours_left=left.get(pk, 0),
            )
            for pk, use in in_use.items()
        ]
        return used + [
            self._possible(offer) for offer in self.offers if offer.allowance.pk not in in_use
        ]

    def _possible(self, offer: Offer) -> AllowanceUsage:
        billable = self.row.billable_hours
        hours = min(offer.hours_left, int(billable)) if self.room_cost else 0
        discount = quote.share(self.room_cost, hours, billable)
        return AllowanceUsage(
            reservation=self,
            allowance=ShownAllowance(offer.allowance.pk, offer.allowance.description),
            number_of_hours=hours,
            discount_applied=discount,
            in_use=False,
            hours_left=offer.hours_left,
        )


def get(reservation_id: int, *, user: "User") -> Details:
    """One of the account's own reservations, or NotFound."""
    found = _furnished(one_of(reservation=reservation_id, user=user.pk), user)
    if not found:
        raise NotFound
    return found[0]


def listed(reservations: "ReservationQuerySet", *, user: "User") -> list[Details]:
    """These reservations of the account, in a number of queries that does not grow with them."""
    return _furnished(list(shown(reservations, user.pk)), user)


def shown(reservations: "ReservationQuerySet", user_id: Any) -> "QuerySet[Any, Any]":
    """The rows that `_furnished` takes."""
    mine = Favorite.objects.filter(user=user_id, center=OuterRef("room__center"))
    return reservations.annotate(is_favorite=Exists(mine)).values_list(*COLUMNS)


def _furnished(rows: Sequence[Any], user: "User") -> list[Details]:
    """Reservations with their centers, of which several may share one, and their lists."""
    found = []
    centers: dict[int, ShownCenter] = {}
    for row in rows:
        its_center = CenterRow._make(row[OWN : OWN + CENTER])
        center = centers.setdefault(its_center.id, ShownCenter(its_center))
        room = room_from(row[OWN + CENTER :], center.services_on_offer)
        found.append(Details(ReservationRow._make(row[:OWN]), center, room))
    if not found:
        return found
    furnished(list(centers.values()))
    by_id = {details.row.id: details for details in found}
    ids = list(by_id)
    for pk, *line in lines_of(reservations=ids):
        by_id[pk].line_items.append(ShownLine._make(line))
    for pk, *attendee in attendees_of(reservations=ids):
        by_id[pk].attendees.append(ShownAttendee._make(attendee))
    for pk, *chosen in chosen_of(reservations=ids):
        by_id[pk].chosen.append(ChosenRow._make(chosen))
    for pk, *use in uses_of(reservations=ids):
        by_id[pk].uses.append(UseRow._make(use))
    book = AllowanceBook(user)
    for details in found:
        span = Span(details.row.start, details.row.end)
        details.offers = book.valid_for(details.meeting_room, span, zone=details.center.zone)
    return found


def _option(service: Any, chosen: ChosenRow | None) -> Option:
    return Option(
        service_id=service.id if chosen is None else chosen.service_id,
        service_name=service.name,
        selected=chosen is not None,
        needs_duration=service.needs_duration,
        needs_quantity=service.needs_quantity,
        duration_hours=chosen.duration_hours if chosen else None,
        quantity=chosen.quantity if chosen else None,
    )


# --- The questions, each for any number of reservations -------------------------------------------


@prepared
def one_of() -> "QuerySet[Any, Any]":
    mine = Reservation.objects.filter(pk=number("reservation"), user=number("user"))
    return shown(mine, number("user"))


@prepared
def lines_of() -> "QuerySet[Any, Any]":
    rows = LineItem.objects.filter(reservation__any_of=numbers("reservations"))
    return rows.order_by("position").values_list("reservation_id", *ShownLine._fields)


@prepared
def attendees_of() -> "QuerySet[Any, Any]":
    rows = Attendee.objects.filter(reservation__any_of=numbers("reservations"))
    return rows.order_by("pk").values_list("reservation_id", *ShownAttendee._fields)


@prepared
def chosen_of() -> "QuerySet[Any, Any]":
    rows = ChosenService.objects.filter(reservation__any_of=numbers("reservations"))
    of_service = (f"service__{name}" for name in ChosenRow._fields[3:])
    return rows.values_list("reservation_id", *ChosenRow._fields[:3], *of_service)


@prepared
def uses_of() -> "QuerySet[Any, Any]":
    rows = AllowanceUse.objects.filter(reservation__any_of=numbers("reservations"))
    own = ("reservation_id", *UseRow._fields[:3])
    return rows.order_by("pk").values_list(*own, "allowance__description")
