"""What staff type to move a reservation, to change its price, to keep its room for longer."""

import datetime as dt
from decimal import Decimal
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts import roles
from accounts.models import User
from centers.hours import NonexistentLocalTime, localize
from centers.models import MeetingRoom
from reservations.admin.forms import HIGHEST_ADJUSTMENT, LocalTimeField, build_search_box
from reservations.booking import drafts, rescheduling
from reservations.booking.price_adjustments import ADJUST_PRICE
from reservations.models import PriceAdjustment, Reservation
from roombook import dates, money

CHANGE = "reservations.change_reservation"


class ActionForm(forms.Form):
    """What a step asks of whom takes it; nothing, mostly."""

    # Whether what is filled in beforehand is worth being judged at once.
    is_complete = False

    def __init__(
        self, *args: Any, reservation: Reservation, user: User, now: dt.datetime, **kwargs: Any
    ) -> None:
        self.reservation, self.user, self.now = reservation, user, now
        super().__init__(*args, **kwargs)
        self.prepare()

    def prepare(self) -> None:
        """Fill in what is known."""


class RescheduleRoomField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.full_name)


class RescheduleForm(ActionForm):
    """Another room, another time, or both."""

    room = RescheduleRoomField(
        MeetingRoom.objects.select_related("center"), widget=build_search_box(Reservation, "room")
    )
    start = LocalTimeField(help_text="On the clock of the center it moves to.")
    end = LocalTimeField(help_text="On the clock of the center it moves to.")
    waiver = forms.CharField(
        label="Waive what it costs more",
        max_length=255,
        required=False,
        widget=UnfoldAdminTextInputWidget,
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
        # Whether they may at both centers is judged once it is known to which it moves.
        if row.is_new or not roles.has_permission(self.user, ADJUST_PRICE):
            del self.fields["waiver"]

    def clean_room(self) -> MeetingRoom:
        room: MeetingRoom = self.cleaned_data["room"]
        if not roles.has_permission(self.user, CHANGE, room.center_id):
            raise forms.ValidationError("That center is not one of yours.")
        return room

    def clean_waiver(self) -> str:
        waiver: str = self.cleaned_data["waiver"]
        room = self.cleaned_data.get("room")
        if waiver and room:
            refusal = rescheduling.get_waiver_refusal(self.user, self.reservation.room, room)
            if refusal:
                raise forms.ValidationError(refusal)
        return waiver


class PriceAdjustmentForm(ActionForm):
    """What staff add to a price or take off it."""

    amount = forms.DecimalField(
        min_value=-HIGHEST_ADJUSTMENT,
        max_value=HIGHEST_ADJUSTMENT,
        max_digits=10,
        decimal_places=2,
        help_text=PriceAdjustment._meta.get_field("amount").help_text,
        widget=UnfoldAdminTextInputWidget(attrs={"inputmode": "text", "autocomplete": "off"}),
    )
    reason = forms.CharField(
        max_length=255, widget=UnfoldAdminTextInputWidget, help_text="The bill shows it."
    )

    def prepare(self) -> None:
        if not self.reservation.is_new:
            self.fields[
                "amount"
            ].help_text = (
                "Negative: it is paid already, so that it can only become cheaper. Before tax."
            )

    def clean_amount(self) -> Decimal:
        amount: Decimal = self.cleaned_data["amount"]
        if not amount:
            raise forms.ValidationError("The amount is what is added or taken off: not 0.")
        if money.round_amount(amount) != amount:
            raise forms.ValidationError("That is less than the smallest coin.")
        return amount


class HoldExtensionForm(ActionForm):
    """Until when."""

    is_complete = True

    until = LocalTimeField(label="Hold until", help_text="On the center's clock.")

    def prepare(self) -> None:
        zone = self.reservation.room.center.zone
        latest = drafts.get_latest_hold_end(self.reservation, now=self.now).astimezone(zone)
        self.initial = {"until": latest.replace(tzinfo=None, second=0, microsecond=0)}
        self.fields[
            "until"
        ].help_text = f"On the center's clock; {dates.format_datetime(latest, zone)} at most."

    def clean_until(self) -> dt.datetime:
        try:
            return localize(self.cleaned_data["until"], self.reservation.room.center.zone)
        except NonexistentLocalTime:
            raise forms.ValidationError("The clock skips this time at the center.") from None
