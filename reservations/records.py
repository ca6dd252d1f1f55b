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
    CenterRecord,
    CenterRow,
    RoomRecord,
    build_room_record,
    load_related,
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
from reservations.pricing.allowances import AllowanceBalances, AvailableAllowance
from roombook.db.compiled_queries import compiled_query, int_list_param, int_param
from roombook.errors import NotFound

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.models import User
    from reservations.models.querysets import ReservationQuerySet


class AllowanceRecord(NamedTuple):
    id: int
    description: str


@dataclass(frozen=True, slots=True)
class AllowanceUsageRecord:
    """An allowance as a booking uses it, or as it would use it if it were the only one."""

    reservation: "ReservationRecord"
    allowance: AllowanceRecord
    number_of_hours: int
    discount_applied: Decimal
    in_use: bool
    hours_left: int


@dataclass(frozen=True, slots=True)
class ServiceOptionRecord:
    """A service that can be had with the room, chosen or not."""

    service_id: int
    service_name: str
    selected: bool
    needs_duration: bool
    needs_quantity: bool
    duration_hours: Decimal | None = None
    quantity: int | None = None


class AttendeeRecord(NamedTuple):
    id: int
    name: str
    email_address: str
    company_name: str
    is_creator: bool


class LineItemRecord(NamedTuple):
    amount: str
    description: str
    total: Decimal
    type: str
    rate: str
    service_id: int | None
    allowance_id: int | None


class ChosenServiceRow(NamedTuple):
    """What the customer said of a service, and what the service is by now."""

    duration_hours: Decimal | None
    quantity: int | None
    service_id: int
    name: str
    position: int
    needs_duration: bool
    needs_quantity: bool


class AllowanceUseRow(NamedTuple):
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


RESERVATION_COLUMN_COUNT = len(ReservationRow._fields)
CENTER_COLUMN_COUNT = len(CENTER_COLUMNS)
RECORD_COLUMNS = (
    *ReservationRow._fields[:-1],
    "promo_code__code",
    *(f"room__center__{name}" for name in CENTER_COLUMNS if name != "is_favorite"),
    "is_favorite",
    *(f"room__{name}" for name in ROOM_COLUMNS),
)


class ReservationRecord:
    """One reservation with all that it shows. Times are on the center's clock."""

    def __init__(self, row: ReservationRow, center: CenterRecord, room: RoomRecord) -> None:
        self.row = row
        self.center = center
        self.meeting_room = room
        self.line_items: list[LineItemRecord] = []
        self.attendees: list[AttendeeRecord] = []
        self.chosen: list[ChosenServiceRow] = []
        self.uses: list[AllowanceUseRow] = []
        self.offers: Sequence[AvailableAllowance] = ()

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
    def services(self) -> list[ServiceOptionRecord]:
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
    def allowances(self) -> list[AllowanceUsageRecord]:
        """Those in use."""
        return [usage for usage in self.all_allowances if usage.in_use]

    @property
    def usable_allowances(self) -> list[AllowanceUsageRecord]:
        """The valid ones that are not in use and have an hour left."""
        return [each for each in self.all_allowances if not each.in_use and each.hours_left]

    @property
    def can_apply_allowances(self) -> bool:
        return self.row.status == Status.NEW and bool(self.usable_allowances)

    @cached_property
    def all_allowances(self) -> list[AllowanceUsageRecord]:
        """Every allowance in use or valid for this booking, in the order of their use."""
        in_use = {use.allowance_id: use for use in self.uses if use.hours}
        left = {offer.allowance.pk: offer.hours_left for offer in self.offers}
        used = [
            AllowanceUsageRecord(
                reservation=self,
                allowance=AllowanceRecord(pk, use.description),
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

    def _possible(self, offer: AvailableAllowance) -> AllowanceUsageRecord:
        billable = self.row.billable_hours
        hours = min(offer.hours_left, int(billable)) if self.room_cost else 0
        discount = quote.get_allowance_discount(self.room_cost, hours, billable)
        return AllowanceUsageRecord(
            reservation=self,
            allowance=AllowanceRecord(offer.allowance.pk, offer.allowance.description),
            number_of_hours=hours,
            discount_applied=discount,
            in_use=False,
            hours_left=offer.hours_left,
        )


def get_record(reservation_id: int, *, user: "User") -> ReservationRecord:
    """One of the account's own reservations, or NotFound."""
    found = _load_records(query_own_reservation(reservation=reservation_id, user=user.pk), user)
    if not found:
        raise NotFound
    return found[0]


def list_records(reservations: "ReservationQuerySet", *, user: "User") -> list[ReservationRecord]:
    """These reservations of the account, in a number of queries that does not grow with them."""
    return _load_records(list(select_columns(reservations, user.pk)), user)


def select_columns(reservations: "ReservationQuerySet", user_id: Any) -> "QuerySet[Any, Any]":
    """The rows that `_furnished` takes."""
    mine = Favorite.objects.filter(user=user_id, center=OuterRef("room__center"))
    return reservations.annotate(is_favorite=Exists(mine)).values_list(*RECORD_COLUMNS)


def _load_records(rows: Sequence[Any], user: "User") -> list[ReservationRecord]:
    """Reservations with their centers, of which several may share one, and their lists."""
    found = []
    centers: dict[int, CenterRecord] = {}
    for row in rows:
        its_center = CenterRow._make(
            row[RESERVATION_COLUMN_COUNT : RESERVATION_COLUMN_COUNT + CENTER_COLUMN_COUNT]
        )
        center = centers.setdefault(its_center.id, CenterRecord(its_center))
        room = build_room_record(
            row[RESERVATION_COLUMN_COUNT + CENTER_COLUMN_COUNT :], center.services_on_offer
        )
        found.append(
            ReservationRecord(ReservationRow._make(row[:RESERVATION_COLUMN_COUNT]), center, room)
        )
    if not found:
        return found
    load_related(list(centers.values()))
    by_id = {details.row.id: details for details in found}
    ids = list(by_id)
    for pk, *line in query_line_items(reservations=ids):
        by_id[pk].line_items.append(LineItemRecord._make(line))
    for pk, *attendee in query_attendees(reservations=ids):
        by_id[pk].attendees.append(AttendeeRecord._make(attendee))
    for pk, *chosen in query_chosen_services(reservations=ids):
        by_id[pk].chosen.append(ChosenServiceRow._make(chosen))
    for pk, *use in query_allowance_uses(reservations=ids):
        by_id[pk].uses.append(AllowanceUseRow._make(use))
    book = AllowanceBalances(user)
    for details in found:
        span = Span(details.row.start, details.row.end)
        details.offers = book.get_available(details.meeting_room, span, zone=details.center.zone)
    return found


def _option(service: Any, chosen: ChosenServiceRow | None) -> ServiceOptionRecord:
    return ServiceOptionRecord(
        service_id=service.id if chosen is None else chosen.service_id,
        service_name=service.name,
        selected=chosen is not None,
        needs_duration=service.needs_duration,
        needs_quantity=service.needs_quantity,
        duration_hours=chosen.duration_hours if chosen else None,
        quantity=chosen.quantity if chosen else None,
    )


# --- The questions, each for any number of reservations -------------------------------------------


@compiled_query(keep_plan=True)
def query_own_reservation() -> "QuerySet[Any, Any]":
    mine = Reservation.objects.filter(pk=int_param("reservation"), user=int_param("user"))
    return select_columns(mine, int_param("user"))


@compiled_query(keep_plan=True)
def query_line_items() -> "QuerySet[Any, Any]":
    rows = LineItem.objects.filter(reservation__any_of=int_list_param("reservations"))
    return rows.order_by("position").values_list("reservation_id", *LineItemRecord._fields)


@compiled_query(keep_plan=True)
def query_attendees() -> "QuerySet[Any, Any]":
    rows = Attendee.objects.filter(reservation__any_of=int_list_param("reservations"))
    return rows.order_by("pk").values_list("reservation_id", *AttendeeRecord._fields)


@compiled_query(keep_plan=True)
def query_chosen_services() -> "QuerySet[Any, Any]":
    rows = ChosenService.objects.filter(reservation__any_of=int_list_param("reservations"))
    of_service = (f"service__{name}" for name in ChosenServiceRow._fields[3:])
    return rows.values_list("reservation_id", *ChosenServiceRow._fields[:3], *of_service)


@compiled_query(keep_plan=True)
def query_allowance_uses() -> "QuerySet[Any, Any]":
    rows = AllowanceUse.objects.filter(reservation__any_of=int_list_param("reservations"))
    own = ("reservation_id", *AllowanceUseRow._fields[:3])
    return rows.order_by("pk").values_list(*own, "allowance__description")
