"""A reservation as its customer sees it: everything that one answer shows, read in one go."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from centers.models import Center, MeetingRoom, Service
from reservations import pricing
from reservations.allowances import AllowanceBook, Offer
from reservations.models import Allowance, Attendee, LineItem, Reservation
from reservations.status import Status
from roombook.errors import NotFound

if TYPE_CHECKING:
    from accounts.models import User
    from reservations.querysets import ReservationQuerySet


@dataclass(frozen=True, slots=True)
class AllowanceUsage:
    """An allowance as a booking uses it, or as it would use it if it were the only one."""

    reservation: "Details"
    allowance: Allowance
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


class Details:
    """One reservation with all that it shows. Times are on the center's clock."""

    def __init__(self, reservation: Reservation, offers: Sequence[Offer]) -> None:
        self.row = reservation
        self.offers = offers

    @property
    def id(self) -> int:
        return self.row.pk

    @property
    def status(self) -> str:
        return self.row.status

    @property
    def start(self) -> dt.datetime:
        return self.row.start.astimezone(self.center.zone)

    @property
    def end(self) -> dt.datetime:
        return self.row.end.astimezone(self.center.zone)

    @property
    def center(self) -> Center:
        return self.row.room.center

    @property
    def meeting_room(self) -> MeetingRoom:
        return self.row.room

    @property
    def services(self) -> list[Option]:
        """What was chosen, and what else the center offers."""
        chosen = {each.service_id: each for each in self.row.chosen_services.all()}
        offered = {service.pk: service for service in self.center.services_on_offer}
        services = offered | {pk: each.service for pk, each in chosen.items()}
        ordered = sorted(services.values(), key=lambda each: (each.position, each.name, each.pk))
        return [_option(service, chosen.get(service.pk)) for service in ordered]

    @property
    def attendees(self) -> list[Attendee]:
        return sorted(self.row.attendees.all(), key=lambda each: each.pk)

    @property
    def total_cost(self) -> Decimal:
        return self.row.total_cost

    @property
    def room_cost(self) -> Decimal:
        return self.row.room_cost

    @property
    def line_items(self) -> list[LineItem]:
        return sorted(self.row.line_items.all(), key=lambda each: each.position)

    @property
    def number_of_attendees(self) -> int:
        return self.row.number_of_attendees

    @property
    def promotion(self) -> str:
        return self.row.promo_code.code if self.row.promo_code else ""

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
        in_use = {use.allowance_id: use for use in self.row.allowance_uses.all() if use.hours}
        left = {offer.allowance.pk: offer.hours_left for offer in self.offers}
        used = [
            AllowanceUsage(
                reservation=self,
                allowance=use.allowance,
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
        discount = pricing.share(self.room_cost, hours, billable)
        return AllowanceUsage(
            reservation=self,
            allowance=offer.allowance,
            number_of_hours=hours,
            discount_applied=discount,
            in_use=False,
            hours_left=offer.hours_left,
        )


def get(reservation_id: int, *, user: "User") -> Details:
    """One of the account's own reservations, or NotFound."""
    found = listed(Reservation.objects.of(user).filter(pk=reservation_id), user=user)
    if not found:
        raise NotFound
    return found[0]


def listed(reservations: "ReservationQuerySet", *, user: "User") -> list[Details]:
    """These reservations of the account, in a number of queries that does not grow with them."""
    rows: Iterable[Any] = reservations.with_details(user)
    book = AllowanceBook(user)
    return [Details(row, book.valid_for(row.room, row.span)) for row in rows]


def _option(service: Service, chosen: Any) -> Option:
    return Option(
        service_id=service.pk,
        service_name=service.name,
        selected=chosen is not None,
        needs_duration=service.needs_duration,
        needs_quantity=service.needs_quantity,
        duration_hours=chosen.duration_hours if chosen else None,
        quantity=chosen.quantity if chosen else None,
    )
