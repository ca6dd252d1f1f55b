"""The forms of a new reservation."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import QueryDict
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from unfold.widgets import (
    UnfoldAdminTextInputWidget,
)

from accounts import roles
from accounts.customer_access import find_bookable_account
from accounts.models import User, canonicalize_email
from accounts.profile import EMAIL_TAKEN
from centers.models import Center, MeetingRoom
from reservations.booking.drafts import OVERRIDE_OPENING_HOURS
from reservations.desk.booking_form import ENTERED_FIELDS, BookingForm
from reservations.desk.forms import (
    MAX_EMAIL_LENGTH,
    MAX_NAME_LENGTH,
    LocalTimeField,
)
from reservations.free_times import find_next_bookings
from reservations.models import Reservation
from roombook.backoffice.widgets import INPUT_CLASSES, StaffTextField
from roombook.ids import parse_id

NEW_CUSTOMER_FIELDS = ("email", "phone_number", "first_name", "last_name", "company_name")
# Names in errors of the domain -> names of the form's fields.
FORM_FIELD_NAMES = {
    "start_date": "start",
    "end_date": "end",
    **{each.error_path: each.name for each in ENTERED_FIELDS},
}


def get_bookable_centers(staff: User) -> QuerySet[Center]:
    """The centers at which the user may create reservations."""
    return Center.objects.filter(roles.get_center_filter(staff, roles.ADD_RESERVATION, ""))


def format_customer(customer: User) -> str:
    address = customer.known_email or customer.phone_number
    parts = (customer.get_full_name(), address, customer.company_name)
    return ", ".join(part for part in parts if part)


class CustomerSelect(AutocompleteSelect):
    """Finds customers by typing.

    Its values are e-mail addresses: users who know the whole address may book for the customer.
    """

    def __init__(self) -> None:
        super().__init__(Reservation._meta.get_field("user"), admin.site)

    def get_url(self) -> str:
        return reverse("admin:reservations_draft_customers")

    # Django's own method finds the selected rows by their ids.
    optgroups = forms.Select.optgroups  # type: ignore[assignment]  # only the stubs differ


class CustomerField(forms.CharField):
    """A customer by e-mail address, or by id if the user may see them."""

    def __init__(self) -> None:
        super().__init__(
            label="Customer",
            required=False,
            max_length=MAX_EMAIL_LENGTH,
            widget=CustomerSelect(),
            help_text="A name, a company, an e-mail address or a phone number.",
        )
        self.staff: User | None = None

    def clean(self, value: object) -> User | None:
        text = super().clean(value)
        if not text:
            return None
        customer = find_bookable_account(self.staff, text)
        if customer is None:
            raise ValidationError("Customer not found. Enter their e-mail address.")
        self.select(customer)
        return customer

    def select(self, customer: User) -> None:
        """Make the widget show the customer."""
        label = format_customer(customer)
        self.widget.choices = [("", ""), (customer.email, label), (str(customer.pk), label)]


class DraftRoomField(forms.ModelChoiceField):
    """A room of the center, with its capacity and price."""

    def label_from_instance(self, obj: MeetingRoom) -> str:
        parts = [f"{obj.capacity} people", obj.lowest_rate or "no price"]
        parts += ["not active"] if not obj.is_active else []
        parts += ["out of service"] if obj.is_blocked else []
        return f"{obj.name} ({', '.join(parts)})"


def _build_text_field(label: str, max_length: int, **attrs: str) -> forms.CharField:
    widget = UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", **attrs})
    return forms.CharField(label=label, max_length=max_length, required=False, widget=widget)


class NewReservationForm(BookingForm):
    """A new reservation at a center, in its local time, for an existing or a new customer.

    After validation, either ``customer`` or ``new_customer`` (the data of a new account) is set.
    """

    user = CustomerField()
    email = _build_text_field("E-mail address", MAX_EMAIL_LENGTH, inputmode="email")
    phone_number = _build_text_field("Telephone number", 50, inputmode="tel")
    first_name = _build_text_field("First name", MAX_NAME_LENGTH)
    last_name = _build_text_field("Last name", MAX_NAME_LENGTH)
    company_name = _build_text_field("Company", MAX_NAME_LENGTH)
    room = DraftRoomField(
        MeetingRoom.objects.none(),
        error_messages={"invalid_choice": "This center has no such room."},
        widget=forms.Select({"class": INPUT_CLASSES}),
    )
    start = LocalTimeField()
    end = LocalTimeField()
    hours_override_reason = StaffTextField(
        label="Reason to book outside opening hours", max_length=255, required=False
    )

    def __init__(
        self,
        center: Center,
        staff: User,
        data: QueryDict | None,
        query: Mapping[str, str],
        *,
        now: dt.datetime,
    ) -> None:
        """`query` is that of the URL, whose invalid values are ignored."""
        names = ("user", "room", "number_of_attendees")
        super().__init__(data, initial={name: parse_id(query.get(name)) for name in names})
        self.add_booking_fields(center)
        self.staff = staff
        self.can_add_customers = roles.has_permission(staff, roles.ADD_USER, center.pk)
        self.can_override_hours = roles.has_permission(staff, OVERRIDE_OPENING_HOURS, center.pk)
        user: Any = self.fields["user"]
        user.staff = staff
        selected = find_bookable_account(staff, str(self.initial.get("user")))
        self.initial["user"] = selected.email if selected else None
        if selected:
            user.select(selected)
        room: Any = self.fields["room"]
        rows = center.rooms.select_related("rate", "center").prefetch_related("rate__price_lists")
        room.queryset = rows.order_by("name", "pk")
        if not self.can_override_hours:
            del self.fields["hours_override_reason"]
        if not self.can_add_customers:
            for name in NEW_CUSTOMER_FIELDS[1:]:
                del self.fields[name]
        self.customer: User | None = None
        self.new_customer: dict[str, str] | None = None
        # The proposed start and end by the room's id: a script fills them in with the room.
        self.next_times: dict[int, list[str]] = {}
        if start := _parse_local_datetime(query.get("start")):
            end = _parse_local_datetime(query.get("end")) or start + dt.timedelta(hours=1)
            self.initial["start"], self.initial["end"] = start, end
        elif not self.is_bound and center.is_active:
            rooms = list(room.queryset.on_offer())
            self._propose_time(rooms, selected, now, is_walk_in="walk_in" in query)

    def _propose_time(
        self,
        rooms: Sequence[MeetingRoom],
        customer: User | None,
        now: dt.datetime,
        *,
        is_walk_in: bool,
    ) -> None:
        """Propose the next time of the selected room, or else of any that is large enough.

        For somebody who walks in, also propose the first room that is free now.
        """
        selected, people = self.initial["room"], self.initial["number_of_attendees"] or 0
        suitable = []
        found = find_next_bookings(rooms, user=customer, now=now, is_walk_in=is_walk_in)
        for room, span in found:
            times = span.to_local(room.center.zone)
            self.next_times[room.pk] = [at.isoformat(timespec="minutes") for at in times]
            if room.pk == selected or (selected is None and room.capacity >= people):
                suitable.append((*times, room.pk))
        if suitable:
            self.initial["start"], self.initial["end"], first = min(suitable)
            if is_walk_in:
                self.initial["room"] = first

    def clean(self) -> dict[str, object]:
        super().clean()
        cleaned = self.cleaned_data
        if "user" in self.errors or "email" in self.errors:
            return cleaned
        entered = {name: cleaned.get(name, "") for name in NEW_CUSTOMER_FIELDS}
        if not any(entered.values()):
            self.customer = cleaned.get("user")
            if self.customer is None:
                self.add_error("user", "Choose a customer, or enter an e-mail address.")
        elif cleaned.get("user"):
            self.add_error("user", "Choose a customer or enter a new one, not both.")
        elif error := self._resolve_customer(**entered):
            self.add_error("email", error)
        return cleaned

    def _resolve_customer(self, *, email: str, **names: str) -> str:
        """Set the customer by e-mail address, or the data of a new one. Returns an error or ""."""
        if not (email or names["phone_number"]):
            return "Enter an e-mail address or a telephone number."
        existing = User.objects.filter(email=canonicalize_email(email)).first()
        if existing is not None:
            if not existing.is_active:
                return "The account with this e-mail address is deactivated."
            if find_bookable_account(self.staff, existing.email) is None:
                return "Only administrators can book for a member of staff."
            if any(names.values()):
                return f"{EMAIL_TAKEN} To book for it, leave the names empty."
            self.customer = existing
            return ""
        if not self.can_add_customers:
            return "There is no account with this e-mail address."
        if not (names["first_name"] and names["last_name"]):
            problem = "There is no account with this e-mail address. " if email else ""
            return f"{problem}Enter both names to create one."
        self.new_customer = {"email": email, **names}
        return ""

    @property
    def override_reason(self) -> str:
        return str(self.cleaned_data.get("hours_override_reason", "")).strip()

    @property
    def draft(self) -> dict[str, Any]:
        """The arguments of the draft, apart from its customer and its room."""
        times = {name: self.cleaned_data.get(name) for name in ("start", "end")}
        return {**times, "hours_override_reason": self.override_reason, **self.get_values()}

    def add_errors(self, errors: Mapping[str, str]) -> None:
        """Add the domain's errors, by field path, to the fields that have none yet."""
        for path, message in errors.items():
            name, *rest = path.split(".")
            if name == "service_options":
                name = self.selected[int(rest[0])].name
            elif name == "attendees" and rest:
                message = f"Guest {int(rest[0]) + 1}: {message}"
            else:
                name = FORM_FIELD_NAMES.get(name) or (rest[-1] if name == "customer" else name)
            if name not in self.errors:
                self.add_error(name if name in self.fields else None, message)

    @property
    def problems(self) -> list[str]:
        """What is wrong with the booking, for readers who see no fields."""
        fields = [(each.label, each) for each in (self["start"], self["end"], *self.booking_fields)]
        fields += [(each.label, each) for each in self.services]
        return [f"{label}: {error}" for label, field in fields for error in field.errors]


def _parse_local_datetime(text: str | None) -> dt.datetime | None:
    try:
        value = parse_datetime(text or "")
    except ValueError:
        return None
    return value and value.replace(tzinfo=None)
