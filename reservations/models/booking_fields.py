"""What a booking is, apart from its room and its time: each of its fields is declared here, once.

Commands, requests of the API, stored changes, the history, webhook events, exports, and the forms
and pages of staff iterate over these declarations. CONTRIBUTING.md says how to add a field.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, TypedDict

from roombook.naming import to_snake_case

if TYPE_CHECKING:
    from reservations.models.reservation import Reservation


class ServiceInput(TypedDict, total=False):
    """A service as the customer selects it. `service_id` is required if `selected` is not False."""

    service_id: int
    selected: bool
    duration_hours: Decimal | None
    quantity: int | None


class AttendeeInput(TypedDict, total=False):
    """An attendee as the customer enters them, with a name or an e-mail address."""

    name: str
    email_address: str
    company_name: str


class ExtraInput(TypedDict):
    """What staff add to a bill: a text, and an amount as the prices of the center."""

    text: str
    amount: Decimal


class BookingValues(TypedDict, total=False):
    """What somebody enters. What a change does not contain stays as it is."""

    services: Sequence[ServiceInput]
    number_of_attendees: int | None
    attendees: Sequence[AttendeeInput]
    extras: Sequence[ExtraInput]
    promo_code: str


class FieldKind(Enum):
    """How a field is entered when a booking is created or changed."""

    NUMBER = auto()
    TEXT = auto()
    SERVICES = auto()
    ATTENDEES = auto()
    # Staff enter these when a booking is changed.
    EXTRAS = auto()
    PROMO_CODE = auto()


@dataclass(frozen=True, slots=True)
class BookingField:
    """A field of a booking.

    `name` is its name in commands, forms, stored changes and the history, and that of its column
    if `is_column`; `contract_name` that in requests, responses and events. Without a `kind`, an
    operation or a page of its own sets it. Customers can set it if the texts for the requests that
    create and that change a booking say how. The history and events never have the value of a
    personal field. `max_length` is that of a text. `export_width` is that of the column in the
    exported list; 0: it is not exported.
    """

    name: str
    contract_name: str
    label: str
    kind: FieldKind | None = None
    create_help: str = ""
    change_help: str = ""
    staff_help: str = ""
    max_length: int = 0
    is_column: bool = False
    is_personal: bool = False
    is_in_history: bool = False
    is_in_events: bool = False
    export_width: int = 0

    @property
    def error_path(self) -> str:
        """Its name in errors of the domain, which the API converts to the contract's."""
        return to_snake_case(self.contract_name)


SERVICES = BookingField(
    "services",
    "ServiceOptions",
    "Services",
    FieldKind.SERVICES,
    create_help="The selected services of the center, each once.",
    change_help="All services from now on; empty: none; absent: the same.",
    is_in_history=True,
)
BOOKING_FIELDS = (
    SERVICES,
    BookingField(
        "number_of_attendees",
        "NumberOfAttendees",
        "Number of attendees",
        FieldKind.NUMBER,
        create_help="At most the capacity of the room; if absent, the number of Attendees with the"
        " account itself.",
        change_help="At most the capacity of the room; absent: the same, or more if more are"
        " listed.",
        staff_help="At least the customer and all guests.",
        is_column=True,
        is_in_history=True,
        export_width=10,
    ),
    BookingField(
        "attendees",
        "Attendees",
        "Guests",
        FieldKind.ATTENDEES,
        create_help="Who attends; the account itself is added if it is not listed.",
        change_help="Who attends from now on; the account itself is added if it is not listed;"
        " absent: the same.",
        staff_help="One on each line: a name, an e-mail address, or both.",
        is_personal=True,
        is_in_history=True,
    ),
    BookingField(
        "extras",
        "Extras",
        "Extras",
        FieldKind.EXTRAS,
        staff_help="Added to the bill. One on each line: a text, and an amount with or without tax,"
        " as the prices of the center are. Example: Lunch for ten 150.00",
        is_in_history=True,
    ),
    BookingField(
        "promo_code",
        "Promotion",
        "Promo code",
        FieldKind.PROMO_CODE,
        staff_help="Empty: none.",
        is_in_history=True,
        is_in_events=True,
    ),
    BookingField(
        "allowances", "Allowances", "Included hours", is_in_history=True, is_in_events=True
    ),
    BookingField(
        "hours_override_reason",
        "OutsideOpeningHours",
        "Outside opening hours",
        is_column=True,
        is_in_history=True,
    ),
    # Those of staff, which customers never see.
    BookingField("notes", "Notes", "Notes", is_personal=True),
)

COLUMN_FIELDS = tuple(each for each in BOOKING_FIELDS if each.is_column)
PERSONAL_NAMES = frozenset(each.name for each in BOOKING_FIELDS if each.is_personal)


def split_values(values: BookingValues) -> tuple[BookingValues, BookingValues]:
    """Return the values without the personal ones, and these."""
    others: Any = {name: each for name, each in values.items() if name not in PERSONAL_NAMES}
    personal: Any = {name: each for name, each in values.items() if name in PERSONAL_NAMES}
    return others, personal


def describe_columns(reservation: "Reservation") -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each column that has a value."""
    for field in COLUMN_FIELDS:
        if text := str(getattr(reservation, field.name)):
            yield field.label, text
