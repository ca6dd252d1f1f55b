"""The forms in which staff enter a booking, and change one."""

import datetime as dt
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldBooleanWidget,
)

from accounts import roles
from centers.hours import MINUTE
from centers.models import Center, MeetingRoom, Service
from centers.requested_span import resolve_span
from centers.span import Span
from payments.gateways.manual import TERMINAL
from reservations import alternatives, availability
from reservations.alternatives import AlternativeSearch
from reservations.booking import amendments
from reservations.booking.amendments import ADJUST_PRICE
from reservations.desk.action_forms import SAVED_CARD, PaymentForm, get_saved_card
from reservations.desk.find_room import FoundRooms, find_rooms
from reservations.desk.forms import (
    MAX_EMAIL_LENGTH,
    MAX_NAME_LENGTH,
    LocalTimeField,
    build_search_box,
    localize_input,
)
from reservations.models import Attendee, ChosenService, PriceAdjustment, Reservation
from reservations.models.booking_fields import (
    BOOKING_FIELDS,
    AttendeeInput,
    BookingField,
    BookingValues,
    ExtraInput,
    FieldKind,
    ServiceInput,
)
from reservations.pricing.services import MAX_DURATION_HOURS, MAX_QUANTITY
from roombook.backoffice.widgets import StaffTextField
from roombook.texts import clean_text

EXTENSION = dt.timedelta(minutes=30)
EMAIL_PATTERN = re.compile(r"\S+@\S+")
EXTRA_PATTERN = re.compile(r"(?P<text>.+?)[,:]?\s+(?P<amount>\d{1,6}(\.\d{1,2})?)")
# An amount that may have a space between its thousands: Dinner 1 500.
THOUSANDS_PATTERN = re.compile(r"\d,?\s+\d{3}(\.\d{1,2})?$")
MAX_REASON_LENGTH: Any = PriceAdjustment._meta.get_field("reason").max_length
CHANGE_ONLY = {FieldKind.EXTRAS, FieldKind.PROMO_CODE}
# Services have a form field each.
ENTERED_FIELDS = [each for each in BOOKING_FIELDS if each.kind not in {None, FieldKind.SERVICES}]


class LinesField(forms.CharField):
    """A list, one item on each line, which `parse` reads."""

    def __init__(self, parse: Callable[[str], Any], **options: Any) -> None:
        widget = UnfoldAdminTextareaWidget({"rows": 3})
        super().__init__(max_length=20_000, widget=widget, **options)
        self.parse = parse

    def clean(self, value: object) -> list[Any]:
        lines = clean_text(super().clean(value)).splitlines()
        return [self.parse(line.strip()) for line in lines if line.strip()]


def _parse_extra(line: str) -> ExtraInput:
    """Parse ``Lunch for ten 150.00``."""
    match = EXTRA_PATTERN.fullmatch(line)
    if match is None or len(match["text"]) > MAX_REASON_LENGTH:
        raise ValidationError("End each line with an amount, for example: Lunch for ten 150.00")
    if THOUSANDS_PATTERN.search(line):
        # Both readings are possible, and only one of them is the price.
        raise ValidationError(
            f"Write “{line[:100]}” with a colon before the amount, and the amount without spaces:"
            " Dinner: 1500 or Dinner 1: 500"
        )
    return {"text": match["text"], "amount": Decimal(match["amount"])}


def _parse_attendee(line: str) -> AttendeeInput:
    """Parse ``Ada King <ada@example.com>``, ``Ada King, ada@example.com``, or one of the two."""
    match = EMAIL_PATTERN.search(line)
    email = match.group().strip("<>,;()") if match else ""
    name = line.replace(match.group(), "") if match else line
    name = name.strip(" ,;<>\t")
    if len(name) > MAX_NAME_LENGTH or len(email) > MAX_EMAIL_LENGTH:
        raise ValidationError("One of these lines is too long.")
    return {"name": name, "email_address": email}


def build_form_field(field: BookingField) -> forms.Field:
    options: dict[str, Any] = {
        "label": field.label,
        "help_text": field.staff_help,
        "required": False,
    }
    match field.kind:
        case FieldKind.NUMBER:
            widget = UnfoldAdminIntegerFieldWidget()
            return forms.IntegerField(min_value=1, widget=widget, **options)
        case FieldKind.ATTENDEES:
            return LinesField(_parse_attendee, **options)
        case FieldKind.EXTRAS:
            return LinesField(_parse_extra, **options)
        case FieldKind.PROMO_CODE:
            return StaffTextField(max_length=50, **options)
    return StaffTextField(max_length=field.max_length, **options)


class ServiceWidget(forms.MultiWidget):
    """A checkbox with the name and the price of a service, and inputs for how much of it."""

    template_name = "admin/reservations/service.html"

    def __init__(self, service: Service, widgets: dict[str, Any]) -> None:
        super().__init__(widgets)
        self.service = service

    def get_context(self, *args: Any) -> dict[str, Any]:
        return {**super().get_context(*args), "service": self.service}


class ServiceField(forms.MultiValueField):
    """Whether a service is chosen and, if it needs that, how much: a ServiceInput, or None.

    One that was deactivated stays as it is, or is removed.
    """

    def __init__(self, service: Service, own: ChosenService | None) -> None:
        parts: dict[str, forms.Field] = {"chosen": forms.BooleanField(widget=UnfoldBooleanWidget())}
        if service.needs_duration:
            parts["duration_hours"] = forms.DecimalField(
                min_value=0,
                max_value=MAX_DURATION_HOURS,
                decimal_places=2,
                widget=UnfoldAdminIntegerFieldWidget(
                    {"step": "0.25", "aria-label": f"{service.name}: hours"}
                ),
            )
        if service.needs_quantity:
            label = {"aria-label": f"{service.name}: how many"}
            parts["quantity"] = forms.IntegerField(
                min_value=1, max_value=MAX_QUANTITY, widget=UnfoldAdminIntegerFieldWidget(label)
            )
        for name, part in parts.items():
            part.required, part.disabled = False, name != "chosen" and not service.is_active
            if part.disabled:
                part.widget.attrs["disabled"] = True
        self.service, self.names = service, [*parts]
        super().__init__(
            list(parts.values()),
            require_all_fields=False,
            required=False,
            label=service.name,
            initial=[own is not None, *(getattr(own, name, None) for name in self.names[1:])],
            widget=ServiceWidget(service, {name: each.widget for name, each in parts.items()}),
        )

    def compress(self, data_list: list[Any]) -> ServiceInput | None:
        entered = dict(zip(self.names, data_list, strict=False))
        if not entered.get("chosen"):
            return None
        if not self.service.is_active:
            entered = dict(zip(self.names, self.initial, strict=True))
        return {
            "service_id": self.service.pk,
            "duration_hours": entered.get("duration_hours"),
            "quantity": entered.get("quantity"),
        }


class BookingForm(forms.Form):
    """The fields of a booking, which a subclass adds by `add_booking_fields` first of all.

    `booking` is the reservation that is changed. Without one, a new reservation is entered.
    """

    booking: Reservation | None = None
    services: Sequence[forms.BoundField] = ()

    def add_booking_fields(self, center: Center, booking: Reservation | None = None) -> None:
        self.booking = booking
        chosen = (
            {each.service_id: each for each in booking.chosen_services.all()} if booking else {}
        )
        offered = Q(is_active=True) | Q(pk__in=chosen)
        services = center.services.filter(offered).select_related("rate")
        self.fields |= {
            f"service-{each.pk}": ServiceField(each, chosen.get(each.pk)) for each in services
        }
        self.services = [self[name] for name in self.fields if name.startswith("service-")]
        for field in ENTERED_FIELDS:
            if field.kind in CHANGE_ONLY and not booking:
                continue
            assert field.name not in self.fields, f"{field.name} is another field of this form"
            self.fields[field.name] = build_form_field(field)
            if booking and field.is_column:
                self.fields[field.name].initial = getattr(booking, field.name)
        if booking:
            self.guests = list(booking.attendees.filter(is_creator=False).order_by("pk"))
            self.fields["attendees"].initial = _format_guests(self.guests)
            self.fields["promo_code"].initial = booking.promo_code

    @property
    def booking_fields(self) -> list[forms.BoundField]:
        """The fields of the booking but its services."""
        return [self[each.name] for each in ENTERED_FIELDS if each.name in self.fields]

    @property
    def selected(self) -> list[forms.BoundField]:
        """The services that are chosen."""
        return [each for each in self.services if self.cleaned_data.get(each.name)]

    def get_values(self) -> BookingValues:
        """Return what was entered and is valid; for a change only what differs."""
        names = set(self.changed_data if self.booking else self.fields)
        values = {
            each.name: self.cleaned_data[each.name]
            for each in ENTERED_FIELDS
            if each.name in names and self.cleaned_data.get(each.name) is not None
        }
        if self.booking:
            known = {(each.name, each.email_address): each.company_name for each in self.guests}
            for guest in values.get("attendees", ()):
                key = guest["name"], guest["email_address"]
                guest["company_name"] = known.get(key, "")
        if any(each.name in names for each in self.services):
            values["services"] = [self.cleaned_data[each.name] for each in self.selected]
        return cast("BookingValues", values)


class RescheduleRoomField(forms.ModelChoiceField):
    def label_from_instance(self, obj: MeetingRoom) -> str:
        return str(obj.full_name)


class ChangeForm(BookingForm, PaymentForm):
    """What a reservation should be, and how its customer pays if it costs more, or why that is
    waived. What is missing is left to the preview, which shows the difference first.
    """

    field_order = ("room", "start", "end", "way", "reference", "consent", "waiver")
    expected_version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    waiver = StaffTextField(
        label="Waive the additional price",
        max_length=255,
        required=False,
        help_text="The reason, which the bill shows. Leave empty to waive nothing.",
    )

    def prepare(self) -> None:
        """Offer the ways of payment for a booking; a draft and a request have no difference."""
        row = self.reservation
        self.initial = {"expected_version": row.version, **self.initial}
        # `clean` checks the permission at both centers.
        if row.is_new or not roles.has_permission(self.user, ADJUST_PRICE):
            del self.fields["waiver"]
        if not row.is_confirmed_or_completed:
            for name in ("way", "reference", "consent"):
                del self.fields[name]
            return
        self.prepare_ways()
        field: Any = self.fields["way"]
        field.label, field.required = "If it costs more, the customer pays", False
        field.choices = [("", "Choose if it costs more"), *field.choices]

    def clean(self) -> None:
        row, data = self.reservation, self.cleaned_data
        room = data.get("room", row.room)
        if data.get("waiver") and (
            refusal := amendments.get_waiver_refusal(self.user, row.room, room)
        ):
            self.add_error("waiver", refusal)
        data["change"] = amendments.ChangeRequest(
            room.pk,
            data.get("start", row.start),
            data.get("end", row.end),
            self.get_values(),
            expected_version=data.get("expected_version"),
        )


class MoveForm(ChangeForm):
    """Another room, another time, or both."""

    room = RescheduleRoomField(
        MeetingRoom.objects.none(),
        error_messages={"invalid_choice": "There is no such room that you may book."},
        widget=build_search_box(Reservation, "room"),
    )
    start = LocalTimeField(help_text="Local time of the center it moves to.")
    end = LocalTimeField(help_text="Local time of the center it moves to.")

    def prepare(self) -> None:
        if not self.is_bound:
            room, span = self._propose_slot()
            start, end = span.to_local(self.reservation.room.center.zone)
            self.initial = {"room": room, "start": start, "end": end, **self.initial}
        super().prepare()
        # The page would name a refused room, so rooms of other centers are no choice.
        permitted = roles.get_center_filter(self.user, roles.CHANGE_RESERVATION, "center")
        field: Any = self.fields["room"]
        field.queryset = MeetingRoom.objects.filter(permitted).select_related("center")

    def _propose_slot(self) -> tuple[int, Span]:
        """Return the present room and time or, if they cannot be booked, the best alternative."""
        row = self.reservation
        present = availability.evaluate_reservation(row, now=self.now, for_user=row.user)
        if not present.is_available:
            search = AlternativeSearch(row.room, row.span, (), row.user, self.now)
            for found in alternatives.find_at_center(search, has_other_times=True):
                return found.room_id, Span(found.start, found.end)
        return row.room_id, row.span

    def find_instead(self) -> FoundRooms:
        room, data = self.cleaned_data["room"], self.cleaned_data
        span = resolve_span(room.center, data["start"], data["end"])
        search = AlternativeSearch(room, span, (), self.reservation.user, self.now)
        return find_rooms(search, self.user, roles.CHANGE_RESERVATION)


class ExtendForm(ChangeForm):
    """A later end. If none is entered, it is half an hour later or, if that is not possible, one
    slot; of a meeting that is over, it is the end of the running slot.
    """

    is_complete = True

    end = LocalTimeField(label="New end", help_text="Local time of the center.")

    def prepare(self) -> None:
        row = self.reservation
        if not self.is_bound:
            _, end = self._propose_span().to_local(row.room.center.zone)
            way = SAVED_CARD if get_saved_card(row, now=self.now) else TERMINAL.name
            self.initial = {"end": end, "way": way, **self.initial}
        super().prepare()
        self.fields.pop("waiver", None)

    def _propose_span(self) -> Span:
        row = self.reservation
        if row.end <= self.now:  # What was used until now.
            return Span(row.start, amendments.get_end_of_slot(row.room, self.now))
        longer, shortest = (
            Span(row.start, amendments.get_end_of_slot(row.room, row.end + each))
            for each in (EXTENSION, MINUTE)
        )
        has_begun = row.start <= self.now
        result = availability.evaluate(
            row.room, longer, now=self.now, for_user=row.user, excluding=row, has_begun=has_begun
        )
        return longer if result.is_available else shortest

    def clean_end(self) -> dt.datetime:
        end = localize_input(self.cleaned_data["end"], self.reservation.room.center)
        if end <= self.reservation.end:
            raise forms.ValidationError("Choose a time after the present end.")
        return end


class ServicesForm(ChangeForm):
    """Other values of the fields of a booking."""

    # Required, because a form without data is incomplete: it would select no service.
    expected_version = forms.IntegerField(widget=forms.HiddenInput)

    def prepare(self) -> None:
        center = self.reservation.room.center
        self.add_booking_fields(center, self.reservation)
        needed = (roles.VIEW_ATTENDEE, roles.VIEW_USER)
        if not all(roles.has_permission(self.user, each, center.pk) for each in needed):
            del self.fields["attendees"]
        if not roles.has_permission(self.user, amendments.BILL_EXTRA, center.pk):
            del self.fields["extras"]
        super().prepare()
        self.order_fields([each.name for each in self.booking_fields])

    @property
    def plain_fields(self) -> list[forms.BoundField]:
        return [field for field in self.visible_fields() if field not in self.services]


def _format_guests(guests: list[Attendee]) -> str:
    lines = (f"{guest.name} <{guest.email_address}>" for guest in guests)
    # As browsers send it, so that it counts as unchanged.
    return "\r\n".join(line.removesuffix(" <>").strip() for line in lines)
