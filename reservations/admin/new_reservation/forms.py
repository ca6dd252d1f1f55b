"""What staff type to make a draft at a center."""

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from accounts import customer_access, roles
from accounts.actions import EMAIL_TAKEN
from accounts.models import User, canonicalize_email
from centers.models import Center, MeetingRoom, Service
from reservations.admin.forms import LocalTimeField
from reservations.booking.drafts import OVERRIDE_OPENING_HOURS
from reservations.models import Reservation
from roombook.backoffice.model_admin import INPUT_CLASSES, AutocompleteWidget
from roombook.ids import parse_id

ADD = "reservations.add_reservation"
MAX_NAME_LENGTH, MAX_EMAIL_LENGTH = 255, 254
EMAIL_PATTERN = re.compile(r"\S+@\S+")


class CenterChoiceForm(forms.Form):
    """At which center, where that is not known yet: found by typing."""

    center = forms.ModelChoiceField(Center.objects.none())

    def __init__(self, site: AdminSite, staff: User) -> None:
        super().__init__()
        field: Any = self.fields["center"]
        field.queryset = get_bookable_centers(staff)
        # Any column that points to a center will do.
        field.widget = AutocompleteWidget(MeetingRoom._meta.get_field("center"), site)
        field.widget.choices = field.choices


def format_customer(customer: User) -> str:
    parts = (customer.get_full_name(), customer.email, customer.company_name)
    return ", ".join(part for part in parts if part)


class CustomerSelect(forms.Select):
    """Finds customers by typing. Its values are addresses: who has the whole of one may book."""

    def __init__(self) -> None:
        super().__init__(
            {
                "class": "admin-autocomplete",
                "data-ajax--cache": "true",
                "data-ajax--delay": 250,
                "data-ajax--type": "GET",
                "data-theme": "admin-autocomplete",
                "data-allow-clear": "true",
                "data-placeholder": "",
                # What the theme's script asks of every such box.
                "data-app-label": "accounts",
                "data-model-name": "user",
                "data-field-name": "user",
            }
        )

    @property
    def media(self) -> forms.Media:
        return AutocompleteWidget(Reservation._meta.get_field("user"), admin.site).media

    def build_attrs(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        address = reverse("admin:reservations_draft_customers")
        return {**super().build_attrs(*args, **kwargs), "data-ajax--url": address}


class CustomerField(forms.CharField):
    """A customer by their whole address, or by number where they are one of those known."""

    def __init__(self) -> None:
        super().__init__(
            label="Customer",
            required=False,
            max_length=MAX_EMAIL_LENGTH,
            widget=CustomerSelect(),
            help_text="How a name, a company or an e-mail address begins.",
        )
        self.staff: User | None = None

    def customer(self, value: Any) -> User | None:
        rows = User.objects.filter(is_active=True)
        if "@" in str(value):
            return rows.filter(email=canonicalize_email(str(value))).first()
        pk = parse_id(str(value))
        return rows.filter(customer_access.get_customer_filter(self.staff), pk=pk or 0).first()

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        customer = self.customer(text)
        if customer is None:
            raise ValidationError("That is no customer of yours: type their e-mail address.")
        self.show(customer)
        return customer

    def show(self, customer: User) -> None:
        """Let the box show who is chosen."""
        label = format_customer(customer)
        self.widget.choices = [("", ""), (customer.email, label), (str(customer.pk), label)]


class DraftRoomField(forms.ModelChoiceField):
    """A room of the center, told with what staff choose by."""

    def label_from_instance(self, room: Any) -> str:
        parts = [f"{room.capacity} people", room.lowest_rate or "no price"]
        parts += ["not active"] if not room.is_active else []
        parts += ["out of service"] if room.is_blocked else []
        return f"{room.name} ({', '.join(parts)})"

    def to_python(self, value: Any) -> Any:
        if value not in self.empty_values and parse_id(str(value)) is None:
            raise ValidationError("That is no room.")
        return super().to_python(value)


def _text_field(label: str, most: int, **attrs: Any) -> forms.CharField:
    widget = UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", **attrs})
    return forms.CharField(label=label, max_length=most, required=False, widget=widget)


class NewReservationForm(forms.Form):
    """A new reservation at a center, on its clock; for a customer found, or made on the spot."""

    user = CustomerField()
    email = _text_field("E-mail address", MAX_EMAIL_LENGTH, inputmode="email")
    first_name = _text_field("First name", MAX_NAME_LENGTH)
    last_name = _text_field("Last name", MAX_NAME_LENGTH)
    company_name = _text_field("Company", MAX_NAME_LENGTH)
    room = DraftRoomField(
        MeetingRoom.objects.none(),
        error_messages={"invalid_choice": "This center has no such room."},
        widget=forms.Select({"class": INPUT_CLASSES}),
    )
    start = LocalTimeField()
    end = LocalTimeField()
    number_of_attendees = forms.IntegerField(
        label="How many come",
        min_value=1,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget(),
        help_text="Empty: the customer and everybody who is listed.",
    )
    attendees = forms.CharField(
        label="Who comes besides the customer",
        required=False,
        max_length=20_000,
        widget=UnfoldAdminTextareaWidget({"rows": 3}),
        help_text="One a line: a name, an e-mail address, or both.",
    )
    hours_override_reason = _text_field("Reason to book outside opening hours", 255)

    def __init__(
        self,
        center: Center,
        staff: User,
        data: Any = None,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=dict(initial or {}))
        self.may_add_customers = roles.has_permission(staff, customer_access.ADD, center.pk)
        self.may_override_hours = roles.has_permission(staff, OVERRIDE_OPENING_HOURS, center.pk)
        user: Any = self.fields["user"]
        user.staff = staff
        chosen = user.customer(parse_id(str(self.initial.get("user"))))
        self.initial["user"] = chosen.email if chosen else None
        if chosen:
            user.show(chosen)
        room: Any = self.fields["room"]
        room.queryset = center.rooms.select_related("rate", "center").order_by("name", "pk")
        if not self.may_override_hours:
            del self.fields["hours_override_reason"]
        if not self.may_add_customers:
            for name in ("first_name", "last_name", "company_name"):
                del self.fields[name]
        # The account that it is for, or what is typed of one to be made.
        self.customer: User | None = None
        self.new_customer: dict[str, str] | None = None

    def clean_attendees(self) -> list[dict[str, str]]:
        lines = self.cleaned_data["attendees"].splitlines()
        return [_parse_attendee(line) for line in lines if line.strip()]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        typed = {
            name: cleaned.get(name, "")
            for name in ("email", "first_name", "last_name", "company_name")
        }
        if "user" in self.errors or "email" in self.errors:
            return cleaned
        if cleaned.get("user") and any(typed.values()):
            self.add_error("user", "Choose a customer or type one, not both.")
        elif cleaned.get("user"):
            self.customer = cleaned["user"]
        elif any(typed.values()):
            self._typed_customer(**typed)
        else:
            self.add_error("user", "Choose a customer, or type an e-mail address.")
        return cleaned

    def _typed_customer(self, *, email: str, **names: str) -> None:
        """By their whole address: an account that is there, or one to be made with a name."""
        known = User.objects.filter(email=canonicalize_email(email)).first()
        if not email.strip():
            self.add_error("email", "An e-mail address is needed.")
        elif known is not None and not known.is_active:
            self.add_error("email", "The account with this e-mail address is switched off.")
        elif known is not None and any(names.values()):
            words = f"{EMAIL_TAKEN} To book for it, leave the names empty."
            self.add_error("email", words)
        elif known is not None:
            self.customer = known
        elif not self.may_add_customers:
            self.add_error("email", "There is no account with this e-mail address.")
        elif not (names["first_name"] and names["last_name"]):
            words = "There is no account with this e-mail address. To make one, type both names."
            self.add_error("email", words)
        else:
            self.new_customer = {"email": email, **names}

    @staticmethod
    def initial_from(query: Mapping[str, str], *, now: dt.datetime) -> dict[str, Any]:
        """What an address may fill in beforehand; what cannot be read is left out.

        Without a time the next full hour. `now` is on the center's clock.
        """
        initial: dict[str, Any] = {
            name: parse_id(query.get(name)) for name in ("user", "room", "number_of_attendees")
        }
        initial["start"] = _parse_local_datetime(query.get("start")) or _round_up_to_hour(now)
        initial["end"] = _parse_local_datetime(query.get("end"))
        if initial["end"] is None:
            initial["end"] = initial["start"] + dt.timedelta(hours=1)
        return initial


class ServiceOptionForm(forms.Form):
    """A service that the center offers, ticked or not."""

    chosen = forms.BooleanField(required=False, widget=UnfoldBooleanWidget())
    duration_hours = forms.DecimalField(
        min_value=0,
        max_digits=5,
        decimal_places=2,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget({"step": "0.25"}),
    )
    quantity = forms.IntegerField(
        min_value=1, max_value=1000, required=False, widget=UnfoldAdminIntegerFieldWidget()
    )

    def __init__(self, service: Service, data: Any = None) -> None:
        super().__init__(data, prefix=f"service-{service.pk}")
        self.service = service
        self.fields["chosen"].label = service.name
        for name, is_needed in (
            ("duration_hours", service.needs_duration),
            ("quantity", service.needs_quantity),
        ):
            self.fields[name].widget.attrs["aria-label"] = f"{service.name}: {AMOUNT_UNITS[name]}"
            if not is_needed:
                del self.fields[name]

    @property
    def option(self) -> dict[str, Any] | None:
        """What is asked for, as the domain takes it; None where it is not ticked."""
        fields = getattr(self, "cleaned_data", {})
        if not fields.get("chosen"):
            return None
        amounts = {name: fields[name] for name in AMOUNT_UNITS if fields.get(name) is not None}
        return {"service_id": self.service.pk, **amounts}


AMOUNT_UNITS = {"duration_hours": "hours", "quantity": "pieces"}


@dataclass(frozen=True, slots=True)
class NewReservationForms:
    """All that was typed for one draft."""

    form: NewReservationForm
    services: list[ServiceOptionForm]

    def is_valid(self) -> bool:
        return all([self.form.is_valid(), *(each.is_valid() for each in self.services)])

    @property
    def options(self) -> list[tuple[ServiceOptionForm, dict[str, Any]]]:
        """The ticked services, each with its box."""
        return [(each, each.option) for each in self.services if each.option is not None]

    def refuse(self, problems: Mapping[str, str]) -> None:
        """Tell what the domain says of its fields beside the boxes that they were typed into."""
        for path, why in problems.items():
            name, *rest = path.split(".")
            if name == "service_options" and rest and rest[0].isdecimal():
                box, _ = self.options[int(rest[0])]
                field = rest[-1] if rest[-1] in box.fields else None
                box.add_error(field, why)
            elif name == "attendees" and rest:
                self.form.add_error("attendees", f"Person {int(rest[0]) + 1}: {why}")
            else:
                field = FORM_FIELD_NAMES.get(name) or (rest[-1] if name == "customer" else name)
                self.form.add_error(field if field in self.form.fields else None, why)


# Where the domain's names and the form's differ.
FORM_FIELD_NAMES = {"start_date": "start", "end_date": "end"}


def get_bookable_centers(staff: User) -> QuerySet[Center]:
    return Center.objects.filter(roles.get_center_filter(staff, ADD, ""))


def _parse_attendee(line: str) -> dict[str, str]:
    """`Ada King <ada@example.com>`, `Ada King, ada@example.com`, or one of the two."""
    found = EMAIL_PATTERN.search(line)
    address = found.group().strip("<>,;()") if found else ""
    name = line.replace(found.group(), "") if found else line
    attendee = {"name": name.strip(" ,;<>\t"), "email_address": address}
    if len(attendee["name"]) > MAX_NAME_LENGTH or len(address) > MAX_EMAIL_LENGTH:
        raise ValidationError("One of these lines is too long.")
    return attendee


def _parse_local_datetime(text: str | None) -> dt.datetime | None:
    try:
        moment = parse_datetime(text or "")
    except ValueError:
        return None
    return moment and moment.replace(tzinfo=None)


def _round_up_to_hour(now: dt.datetime) -> dt.datetime:
    return (now + dt.timedelta(hours=1)).replace(minute=0, second=0, microsecond=0, tzinfo=None)
