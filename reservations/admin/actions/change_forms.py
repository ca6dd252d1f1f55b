"""The forms of the actions that change the room or the time of a reservation."""

import datetime as dt
from typing import Any

from django import forms

from accounts import roles
from centers.models import MeetingRoom
from payments.gateways.manual import TERMINAL
from reservations.admin.actions.payment_form import SAVED_CARD, PaymentForm, get_saved_card
from reservations.admin.forms import LocalTimeField, build_search_box, localize_input
from reservations.booking import rescheduling
from reservations.booking.change_request import build_slot_key
from reservations.booking.price_adjustments import ADJUST_PRICE
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.backoffice.widgets import StaffTextField

EXTENSION = dt.timedelta(minutes=30)


class RescheduleRoomField(forms.ModelChoiceField):
    def label_from_instance(self, obj: MeetingRoom) -> str:
        return str(obj.full_name)


class DifferenceForm(PaymentForm):
    """How the customer of a booking pays if it costs more."""

    expected_slot = forms.CharField(required=False, widget=forms.HiddenInput)

    def prepare(self) -> None:
        """Offer the ways of payment for a booking; a draft and a request have no difference."""
        slot = build_slot_key(self.reservation.room_id, self.reservation.span)
        self.initial = {"expected_slot": slot, **self.initial}
        if self.reservation.status != Status.CONFIRMED:
            for name in ("way", "reference", "consent"):
                del self.fields[name]
            return
        self.prepare_ways()
        field: Any = self.fields["way"]
        field.label, field.required = "If it costs more, the customer pays", False
        field.choices = [("", "Choose if it costs more"), *field.choices]

    def clean(self) -> None:
        """Leave what is missing to the preview, which shows the difference first."""


class RescheduleForm(DifferenceForm):
    """Another room, another time, or both."""

    field_order = ("room", "start", "end", "way", "reference", "consent", "waiver")

    room = RescheduleRoomField(
        MeetingRoom.objects.none(),
        error_messages={"invalid_choice": "There is no such room that you may book."},
        widget=build_search_box(Reservation, "room"),
    )
    start = LocalTimeField(help_text="Local time of the center it moves to.")
    end = LocalTimeField(help_text="Local time of the center it moves to.")
    waiver = StaffTextField(
        label="Waive the additional price",
        max_length=255,
        required=False,
        help_text="The reason, which the bill shows. Leave empty to waive nothing.",
    )

    def prepare(self) -> None:
        row = self.reservation
        zone = row.room.center.zone
        self.initial = {
            "room": row.room_id,
            "start": row.start.astimezone(zone).replace(tzinfo=None),
            "end": row.end.astimezone(zone).replace(tzinfo=None),
            **self.initial,
        }
        super().prepare()
        # The page would name a refused room, so rooms of other centers are no choice.
        permitted = roles.get_center_filter(self.user, roles.CHANGE_RESERVATION, "center")
        field: Any = self.fields["room"]
        field.queryset = MeetingRoom.objects.filter(permitted).select_related("center")
        # clean_waiver checks the permission at both centers.
        if row.is_new or not roles.has_permission(self.user, ADJUST_PRICE):
            del self.fields["waiver"]

    def clean_waiver(self) -> str:
        waiver: str = self.cleaned_data["waiver"]
        room = self.cleaned_data.get("room")
        if waiver and room:
            refusal = rescheduling.get_waiver_refusal(self.user, self.reservation.room, room)
            if refusal:
                raise forms.ValidationError(refusal)
        return waiver


class ExtendForm(DifferenceForm):
    """A later end, half an hour later if nothing else is entered."""

    is_complete = True

    end = LocalTimeField(label="New end", help_text="Local time of the center.")
    field_order = ("end", "way", "reference", "consent")

    def prepare(self) -> None:
        row = self.reservation
        end = (row.end + EXTENSION).astimezone(row.room.center.zone)
        self.initial = {
            "end": end.replace(tzinfo=None),
            "way": SAVED_CARD if get_saved_card(row, now=self.now) else TERMINAL.name,
            **self.initial,
        }
        super().prepare()

    def clean_end(self) -> dt.datetime:
        end = localize_input(self.cleaned_data["end"], self.reservation.room.center)
        if end <= self.reservation.end:
            raise forms.ValidationError("Choose a time after the present end.")
        return end
