"""Records of reservations: all data that a response shows of them, read with a few queries."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from accounts.models import User
from centers.models import Favorite
from centers.records import (
    CENTER_COLUMNS,
    ROOM_COLUMNS,
    CenterRecord,
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
from reservations.models.querysets import ReservationQuerySet
from reservations.models.status import Status
from reservations.pricing import quote
from reservations.pricing.allowances import AllowanceBalances, AvailableAllowance
from roombook.db.compiled_queries import Row, RowQuerySet, compiled_query, int_param, query_related
from roombook.errors import NotFound


class AllowanceRecord(NamedTuple):
    id: int
    description: str


@dataclass(frozen=True, slots=True)
class AllowanceUsageRecord:
    """The use of an allowance by a reservation, or its possible use if no other were selected."""

    reservation: "ReservationRecord"
    allowance: AllowanceRecord
    number_of_hours: int
    discount_applied: Decimal
    in_use: bool
    # Only of one that is not in use.
    hours_left: int = 0


class ServiceOptionRecord(NamedTuple):
    """A service that is selected with the room, with the customer's input, or can be selected."""

    position: int
    service_name: str
    service_id: int
    needs_duration: bool
    needs_quantity: bool
    duration_hours: Decimal | None
    quantity: int | None
    selected: bool = True


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


class AllowanceUseRow(NamedTuple):
    """Hours of an allowance that the reservation uses."""

    hours: int
    discount: Decimal
    allowance_id: int
    description: str


@dataclass(eq=False)
class ReservationRecord:
    """A reservation with all data that responses show of it.

    `start` and `end` are in the center's local time."""

    center: CenterRecord
    meeting_room: RoomRecord
    # In the order of OWN_COLUMNS.
    id: int
    start: dt.datetime
    end: dt.datetime
    status: str
    total_cost: Decimal
    billable_hours: Decimal
    number_of_attendees: int
    promotion: str | None
    shown_total: Decimal | None
    span: Span = field(init=False)
    line_items: list[LineItemRecord] = field(default_factory=list)
    attendees: list[AttendeeRecord] = field(default_factory=list)
    chosen_services: list[ServiceOptionRecord] = field(default_factory=list)
    allowance_uses: list[AllowanceUseRow] = field(default_factory=list)
    available_allowances: Sequence[AvailableAllowance] = ()

    def __post_init__(self) -> None:
        self.span = Span(self.start, self.end)
        self.start = self.start.astimezone(self.center.zone)
        self.end = self.end.astimezone(self.center.zone)

    @property
    def services(self) -> list[ServiceOptionRecord]:
        """Return the selected services and the others that the center offers, in its order."""
        options = {
            each.id: ServiceOptionRecord(
                *(each.position, each.name, each.id, each.needs_duration, each.needs_quantity),
                duration_hours=None,
                quantity=None,
                selected=False,
            )
            for each in self.center.services_on_offer
        }
        # The center may no longer offer what is selected.
        options |= {each.service_id: each for each in self.chosen_services}
        return sorted(options.values())

    @property
    def room_cost(self) -> Decimal:
        """Return the amount of the room's line before discounts."""
        lines = (line.total for line in self.line_items if line.type == LineItemType.ROOM)
        return sum(lines, Decimal(0))

    @property
    def allowances(self) -> list[AllowanceUsageRecord]:
        """Return the allowances that the reservation uses."""
        return [usage for usage in self.all_allowances if usage.in_use]

    @property
    def usable_allowances(self) -> list[AllowanceUsageRecord]:
        """Return the other valid allowances that have at least one hour left."""
        return [each for each in self.all_allowances if not each.in_use and each.hours_left]

    @property
    def can_apply_allowances(self) -> bool:
        return self.status == Status.NEW and bool(self.usable_allowances)

    @cached_property
    def all_allowances(self) -> list[AllowanceUsageRecord]:
        """Return the allowances in use, then the other valid ones in the order of their use."""
        in_use = {use.allowance_id: use for use in self.allowance_uses if use.hours}
        used = [
            AllowanceUsageRecord(
                self, AllowanceRecord(pk, use.description), use.hours, use.discount, in_use=True
            )
            for pk, use in in_use.items()
        ]
        return used + [
            self._build_possible_usage(each)
            for each in self.available_allowances
            if each.allowance.pk not in in_use
        ]

    def _build_possible_usage(self, available: AvailableAllowance) -> AllowanceUsageRecord:
        hours = min(available.hours_left, int(self.billable_hours)) if self.room_cost else 0
        allowance, left = available.allowance, available.hours_left
        discount = quote.get_allowance_discount(self.room_cost, hours, self.billable_hours)
        record = AllowanceRecord(allowance.pk, allowance.description)
        return AllowanceUsageRecord(self, record, hours, discount, in_use=False, hours_left=left)


# --- Loading --------------------------------------------------------------------------------------

OWN_COLUMNS = (
    *("id", "start", "end", "status", "total_cost", "billable_hours", "number_of_attendees"),
    *("promo_code__code", "shown_total"),
)
FIRST_CENTER_COLUMN = len(OWN_COLUMNS)
FIRST_ROOM_COLUMN = FIRST_CENTER_COLUMN + len(CENTER_COLUMNS)
RECORD_COLUMNS = (
    *OWN_COLUMNS,
    *(f"room__center__{name}" for name in CENTER_COLUMNS if name != "is_favorite"),
    "is_favorite",
    *(f"room__{name}" for name in ROOM_COLUMNS),
)


# The lists of a record: the class of their elements, and the query for the columns of these.
LISTS = {
    "line_items": (
        LineItemRecord,
        query_related(LineItem.objects.order_by("position"), "reservation", LineItemRecord._fields),
    ),
    "attendees": (
        AttendeeRecord,
        query_related(Attendee.objects.order_by("pk"), "reservation", AttendeeRecord._fields),
    ),
    "chosen_services": (
        ServiceOptionRecord,
        query_related(
            ChosenService.objects.all(),
            "reservation",
            (
                *("service__position", "service__name", "service_id"),
                *("service__needs_duration", "service__needs_quantity"),
                *("duration_hours", "quantity"),
            ),
        ),
    ),
    "allowance_uses": (
        AllowanceUseRow,
        query_related(
            AllowanceUse.objects.order_by("pk"),
            "reservation",
            (*AllowanceUseRow._fields[:3], "allowance__description"),
        ),
    ),
}


def get_record(reservation_id: int, *, user: User, shows_price: bool = True) -> ReservationRecord:
    """Return one of the account's own reservations, or raise NotFound.

    `shows_price`: the response shows its price (see `mark_prices_as_shown`).
    """
    records = _load_records(query_own_reservation(reservation=reservation_id, user=user.pk), user)
    if not records:
        raise NotFound
    if shows_price:
        mark_prices_as_shown(records)
    return records[0]


@compiled_query(keep_plan=True)
def query_own_reservation() -> RowQuerySet:
    own = Reservation.objects.filter(pk=int_param("reservation"), user=int_param("user"))
    return select_columns(own, int_param("user"))


def list_records(reservations: ReservationQuerySet, *, user: User) -> list[ReservationRecord]:
    """Return the records of these reservations of the account.

    The number of queries does not depend on the number of reservations.
    """
    return _load_records(list(select_columns(reservations, user.pk)), user)


def mark_prices_as_shown(records: Sequence[ReservationRecord]) -> None:
    """Let Checkout charge the totals of these records, which a response shows (B15.2).

    Only a total that was changed since the last response is stored. A total that has changed again
    since the record was read stays unseen.
    """
    for record in records:
        if record.shown_total is not None:
            rows = Reservation.objects.filter(pk=record.id, total_cost=record.total_cost)
            rows.update(shown_total=None)


def select_columns(reservations: ReservationQuerySet, user_id: int) -> RowQuerySet:
    """Return the rows that `_load_records` takes."""
    is_favorite = Favorite.objects.exists_for(user_id, center="room__center")
    return reservations.annotate(is_favorite=is_favorite).values_list(*RECORD_COLUMNS)


def _load_records(rows: Sequence[Row], user: User) -> list[ReservationRecord]:
    """Build the records of these rows and load their lists. Rows can share a center."""
    if not rows:
        return []
    centers: dict[int, CenterRecord] = {}
    for row in rows:
        center = CenterRecord(*row[FIRST_CENTER_COLUMN:FIRST_ROOM_COLUMN])
        centers.setdefault(center.id, center)
    rooms = [row[FIRST_ROOM_COLUMN:] for row in rows]
    special_prices = load_related(list(centers.values()), rooms)
    records: dict[int, ReservationRecord] = {}
    for row, room_columns in zip(rows, rooms, strict=True):
        center = centers[row[FIRST_CENTER_COLUMN]]
        room = build_room_record(room_columns, center.services_on_offer, special_prices)
        record = ReservationRecord(center, room, *row[:FIRST_CENTER_COLUMN])
        records[record.id] = record
    ids = list(records)
    for name, (element, query) in LISTS.items():
        for pk, *columns in query(ids=ids):
            getattr(records[pk], name).append(element(*columns))
    balances = AllowanceBalances(user)
    for record in records.values():
        record.available_allowances = balances.get_available(
            record.meeting_room, record.span, zone=record.center.zone
        )
    return list(records.values())
