"""Validates, compares and stores what somebody enters for the fields of a booking."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, cast

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from accounts.models import User, canonicalize_email
from accounts.validators import (
    CARD_NUMBER_IN_EMAIL,
    CARD_NUMBER_IN_NAME,
    email_contains_card_number,
)
from centers.models import MeetingRoom
from centers.span import Span
from reservations.models import Attendee, ChosenService, Reservation
from reservations.models.booking_fields import (
    BOOKING_FIELDS,
    AttendeeInput,
    BookingField,
    BookingValues,
    ExtraInput,
    FieldKind,
)
from reservations.pricing import bill, promo_codes, services
from reservations.pricing.quote import ServiceSelection
from roombook import money
from roombook.card_numbers import has_digits_of_a_card, refuse_card_number
from roombook.errors import InvalidRequest
from roombook.texts import clean_line


@dataclass(frozen=True, slots=True)
class ChangedValues:
    """What a change stores. Services and attendees are None if they stay as they are.

    `columns` has the promo code too, which is None if it is removed.
    """

    services: tuple[ServiceSelection, ...] | None = None
    attendees: tuple[Attendee, ...] | None = None
    extras: tuple[ExtraInput, ...] = ()
    columns: Mapping[str, object] = field(default_factory=dict)

    @property
    def labels(self) -> list[str]:
        """The labels of the fields that change."""
        is_changed = {
            "services": self.services is not None,
            "attendees": self.attendees is not None,
            "extras": bool(self.extras),
            **dict.fromkeys(self.columns, True),
        }
        return [each.label for each in BOOKING_FIELDS if is_changed.get(each.name)]


NO_CHANGES = ChangedValues()
MAX_EXTRA = Decimal(100_000)
# Of one booking, with those that it has already.
MAX_EXTRAS, MAX_EXTRAS_TOTAL = 20, Decimal(1_000_000)


def resolve_new(
    user: User | None, room: MeetingRoom, values: BookingValues
) -> tuple[dict[str, object], list[Attendee]]:
    """Return the columns and the attendees of a new booking. Raises InvalidRequest."""
    attendees = add_creator(user, values.get("attendees", ()))
    count = values.get("number_of_attendees")
    count = _validate_count(room, len(attendees) if count is None else count, attendees)
    return {"number_of_attendees": count, **clean_texts(values)}, attendees


def find_changes(
    reservation: Reservation, room: MeetingRoom, span: Span, values: BookingValues
) -> ChangedValues:
    """Return the values that differ from those of the reservation. Raises InvalidRequest.

    `room` and `span` are those after the change.
    """
    selected = attendees = None
    if (options := values.get("services")) is not None:
        booked = bill.get_selected_services(reservation)
        found = services.select_services(room.center, options, span, booked=booked)
        selected = None if found == booked else tuple(found)
    if (entered := values.get("attendees")) is not None:
        wanted = add_creator(reservation.user, entered)
        is_same = _describe(wanted) == _describe(reservation.attendees.all())
        attendees = None if is_same else tuple(wanted)
    columns = clean_texts(values)
    count, old_count = values.get("number_of_attendees"), reservation.number_of_attendees
    if attendees is not None or count not in {None, old_count}:
        listed = attendees or tuple(reservation.attendees.all())
        count = max(old_count, len(listed)) if count is None else count
        columns["number_of_attendees"] = _validate_count(room, count, listed)
    if (code := values.get("promo_code")) is not None and code != str(reservation.promo_code or ""):
        columns["promo_code"] = promo_codes.get_promo_code(code) if code else None
    differing = {
        name: value for name, value in columns.items() if value != getattr(reservation, name)
    }
    extras = _validate_extras(reservation, values.get("extras", ()))
    return ChangedValues(selected, attendees, extras, differing)


def save_changes(reservation: Reservation, changed: ChangedValues) -> None:
    """Store what has changed; the price is not calculated again here."""
    if changed.services is not None:
        reservation.chosen_services.all().delete()
        save_services(reservation, changed.services)
    if changed.attendees is not None:
        reservation.attendees.all().delete()
        save_attendees(reservation, changed.attendees)
    for name, value in changed.columns.items():
        setattr(reservation, name, value)
    if changed.columns:
        reservation.save(update_fields=[*changed.columns])


def save_services(reservation: Reservation, selections: Iterable[ServiceSelection]) -> None:
    # A list, because Django returns an empty one before it prepares anything.
    ChosenService.objects.bulk_create(
        [
            ChosenService(
                reservation=reservation,
                service=selection.service,
                duration_hours=selection.duration_hours,
                quantity=selection.quantity,
            )
            for selection in selections
        ]
    )


def save_attendees(reservation: Reservation, attendees: Sequence[Attendee]) -> None:
    for attendee in attendees:
        attendee.reservation = reservation
    Attendee.objects.bulk_create(attendees)


# --- Validation -----------------------------------------------------------------------------------


def clean_texts(
    values: BookingValues, fields: Sequence[BookingField] = BOOKING_FIELDS
) -> dict[str, object]:
    """Return the texts as they are stored. Raises InvalidRequest if one has a card number."""
    entered, texts = cast("Mapping[str, Any]", values), dict[str, object]()
    for each in fields:
        if each.kind is FieldKind.TEXT and each.name in entered:
            texts[each.name] = text = clean_line(entered[each.name] or "")
            try:
                refuse_card_number(text)
            except ValidationError as error:
                raise InvalidRequest({each.error_path: str(error.message)}) from error
    return texts


def add_creator(user: User | None, entered: Sequence[AttendeeInput]) -> list[Attendee]:
    """Return the attendees with the customer among them, added first if they are not listed.

    The creator is recognized by the e-mail address; the client's IsCreator is ignored. `user` is
    None if the customer is not known yet, and is added without a name.
    """
    problems = {
        f"attendees.{index}{field}": problem
        for index, attendee in enumerate(entered)
        for field, problem in _validate_attendee(attendee)
    }
    if problems:
        raise InvalidRequest(problems)
    attendees = [
        Attendee(
            name=attendee.get("name", ""),
            email_address=attendee.get("email_address", ""),
            company_name=attendee.get("company_name", ""),
        )
        for attendee in entered
    ]
    if user is None:
        return [Attendee(is_creator=True), *attendees]
    for attendee in attendees:
        if canonicalize_email(attendee.email_address) == canonicalize_email(user.email):
            attendee.is_creator = True
            return attendees
    creator = Attendee(
        name=user.get_full_name(),
        email_address=user.known_email,
        company_name=user.company_name,
        is_creator=True,
    )
    return [creator, *attendees]


def _validate_attendee(attendee: AttendeeInput) -> Iterator[tuple[str, str]]:
    """Yield each problem with its field."""
    names = {"name": attendee.get("name", ""), "company_name": attendee.get("company_name", "")}
    for field_name, name in names.items():
        if has_digits_of_a_card(name):
            yield f".{field_name}", CARD_NUMBER_IN_NAME
    address = attendee.get("email_address", "")
    if address:
        try:
            validate_email(address)
        except ValidationError:
            yield ".email_address", "This is not an e-mail address."
        else:
            if email_contains_card_number(address):
                yield ".email_address", CARD_NUMBER_IN_EMAIL
    elif not clean_line(attendee.get("name", "")):
        yield "", "A name or an e-mail address is needed."


def _validate_count(room: MeetingRoom, count: int, listed: Sequence[Attendee]) -> int:
    if count < len(listed):
        raise InvalidRequest({"number_of_attendees": "Fewer than the attendees listed."})
    if count > room.capacity:
        raise InvalidRequest({"number_of_attendees": f"The room holds {room.capacity} people."})
    return count


def _validate_extras(
    reservation: Reservation, entered: Sequence[ExtraInput]
) -> tuple[ExtraInput, ...]:
    extras = tuple(_validate_extra(each) for each in entered)
    if extras:
        former = reservation.price_adjustments.filter(amount__gt=0).values_list("amount", flat=True)
        amounts = [*former, *(each["amount"] for each in extras)]
        if len(amounts) > MAX_EXTRAS or sum(amounts) > MAX_EXTRAS_TOTAL:
            most = money.format_amount(MAX_EXTRAS_TOTAL)
            problem = f"A booking has at most {MAX_EXTRAS} extras, of at most {most} together."
            raise InvalidRequest({"extras": problem})
    return extras


def _validate_extra(extra: ExtraInput) -> ExtraInput:
    text, amount = clean_line(extra["text"]), Decimal(extra["amount"])
    if not text or not 0 < amount <= MAX_EXTRA or money.round_amount(amount) != amount:
        raise InvalidRequest({"extras": "Each extra needs a text, and an amount greater than 0."})
    try:
        refuse_card_number(text)
    except ValidationError as error:
        raise InvalidRequest({"extras": str(error.message)}) from error
    return {"text": text, "amount": amount}


def _describe(attendees: Iterable[Attendee]) -> list[tuple[str, str, str]]:
    return sorted((each.name, each.email_address, each.company_name) for each in attendees)
