"""The forms of the actions that change a reservation."""

import datetime as dt
from typing import Any

from django import forms

from accounts import roles
from centers.hours import MINUTE
from centers.models import MeetingRoom
from centers.span import Span
from payments.gateways.manual import TERMINAL
from reservations import alternatives, availability
from reservations.alternatives import AlternativeSearch
from reservations.booking import amendments
from reservations.booking.amendments import ADJUST_PRICE, BILL_EXTRA
from reservations.desk.actions.payment_form import SAVED_CARD, PaymentForm, get_saved_card
from reservations.desk.booking_form import BookingFieldsMixin
from reservations.desk.forms import LocalTimeField, build_search_box, localize_input
from reservations.models import Reservation
from roombook.backoffice.widgets import StaffTextField

EXTENSION = dt.timedelta(minutes=30)


class RescheduleRoomField(forms.ModelChoiceField):
    def label_from_instance(self, obj: MeetingRoom) -> str:
        return str(obj.full_name)


class DifferenceForm(PaymentForm):
    """How the customer of a booking pays if it costs more."""

    expected_version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def prepare(self) -> None:
        """Offer the ways of payment for a booking; a draft and a request have no difference."""
        self.initial = {"expected_version": self.reservation.version, **self.initial}
        if not self.reservation.is_confirmed_or_completed:
            for name in ("way", "reference", "consent"):
                del self.fields[name]
            return
        self.prepare_ways()
        field: Any = self.fields["way"]
        field.label, field.required = "If it costs more, the customer pays", False
        field.choices = [("", "Choose if it costs more"), *field.choices]

    def clean(self) -> None:
        """Leave what is missing to the preview, which shows the difference first."""


class WaivableForm(DifferenceForm):
    """How the customer of a booking pays if it costs more, or why that is waived."""

    waiver = StaffTextField(
        label="Waive the additional price",
        max_length=255,
        required=False,
        help_text="The reason, which the bill shows. Leave empty to waive nothing.",
    )

    def prepare(self) -> None:
        super().prepare()
        # clean_waiver checks the permission at both centers.
        if self.reservation.is_new or not roles.has_permission(self.user, ADJUST_PRICE):
            del self.fields["waiver"]

    def clean_waiver(self) -> str:
        waiver: str = self.cleaned_data["waiver"]
        own_room = self.reservation.room
        room = self.cleaned_data.get("room", own_room)
        if waiver and (refusal := amendments.get_waiver_refusal(self.user, own_room, room)):
            raise forms.ValidationError(refusal)
        return waiver


class RescheduleForm(WaivableForm):
    """Another room, another time, or both."""

    field_order = ("room", "start", "end", "way", "reference", "consent", "waiver")

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


class ServicesForm(BookingFieldsMixin, WaivableForm):
    """Other values of the fields of a booking."""

    # Required, because a form without data is incomplete: it would select no service.
    expected_version = forms.IntegerField(widget=forms.HiddenInput)

    def prepare(self) -> None:
        center = self.reservation.room.center
        self.add_booking_fields(center, self.reservation)
        needed = (roles.VIEW_ATTENDEE, roles.VIEW_USER)
        if not all(roles.has_permission(self.user, each, center.pk) for each in needed):
            del self.fields["attendees"]
        if not roles.has_permission(self.user, BILL_EXTRA, center.pk):
            del self.fields["extras"]
        super().prepare()
        self.order_fields([each.name for each in self.booking_fields])

    @property
    def plain_fields(self) -> list[forms.BoundField]:
        of_services = {field.name for each in self.services for field in each}
        return [field for field in self.visible_fields() if field.name not in of_services]

    def clean(self) -> None:
        self.cleaned_data["values"] = self.get_values()


class ExtendForm(DifferenceForm):
    """A later end. If none is entered, it is half an hour later or, if that is not possible, one
    slot; of a meeting that is over, it is the end of the running slot.
    """

    is_complete = True

    end = LocalTimeField(label="New end", help_text="Local time of the center.")
    field_order = ("end", "way", "reference", "consent")

    def prepare(self) -> None:
        row = self.reservation
        if not self.is_bound:
            _, end = self._propose_span().to_local(row.room.center.zone)
            way = SAVED_CARD if get_saved_card(row, now=self.now) else TERMINAL.name
            self.initial = {"end": end, "way": way, **self.initial}
        super().prepare()

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
