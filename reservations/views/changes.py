"""The operations that change a confirmed booking of the signed-in account (B27)."""

import datetime as dt
from decimal import Decimal
from typing import Any, Unpack

from django.utils import timezone

from accounts.act import Act
from accounts.limits import count_declined_cards
from accounts.models import User
from payments.cards import CardFields
from payments.serializers import AccountPaymentInfo
from reservations import records
from reservations.booking import differences
from reservations.booking.amendments import ChangeRequest
from reservations.booking.charging import PaymentMethod
from reservations.models.booking_fields import BookingValues
from reservations.models.reservation import get_own_reservation
from reservations.notifications import confirmation
from reservations.serializers import (
    EXAMPLE_BOOKED,
    ChangeInput,
    LineItemInfo,
    ReservationInfo,
)
from reservations.views.bookings import Checkout
from roombook.api.fields import (
    BooleanField,
    DecimalField,
    TextField,
)
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.errors import (
    AllowanceExhausted,
    NotFound,
    PromoCodeInvalid,
    RateNotConfigured,
    ReservationNotOpen,
    SlotUnavailable,
)
from roombook.middleware import get_client_address

EXAMPLE_CHANGE = {"ReservationId": EXAMPLE_BOOKED, "NumberOfAttendees": 4}


class PreviewChange(Operation):
    """Return what a change of a confirmed booking would cost. Nothing is changed or charged.

    If the change is not possible, the response is the error that Change reservation would give.
    """

    errors = (
        NotFound,
        SlotUnavailable,
        ReservationNotOpen,
        PromoCodeInvalid,
        AllowanceExhausted,
        RateNotConfigured,
    )
    example = EXAMPLE_CHANGE
    Input = ChangeInput

    class Output(ContractSerializer):
        OldTotal = DecimalField(help_text="What the booking costs now.")
        NewTotal = DecimalField(help_text="What it would cost: the ExpectedTotal of the change.")
        Difference = DecimalField(
            help_text="NewTotal less OldTotal: what would be charged, or below 0 refunded."
        )
        LineItems = LineItemInfo(many=True, help_text="The bill after the change.")

    def perform(self, user: User, *, reservation_id: int, **fields: Any) -> dict[str, object]:
        request = _build_request(reservation_id, user, **fields)
        result = differences.preview_change(Act(user, timezone.now()), reservation_id, request)
        return {
            "old_total": result.old_total,
            "new_total": result.new_total,
            "difference": result.difference,
            "line_items": result.new_lines or result.old_lines,
        }


class ChangeReservation(Operation):
    """Change the time, room, services or attendees of a confirmed booking.

    A higher price is charged as in a Checkout, a lower one is refunded. Repeat the request whenever
    in doubt: if the booking is already as it should be, nothing is charged. IsApplied is `false`
    while the result of the payment is not known: wait, then repeat. Or the customer has to confirm
    the payment at the bank: see Payment action. Another change is refused until then.
    """

    errors = Checkout.errors
    example = {**EXAMPLE_CHANGE, "ExpectedTotal": 83.78}

    class Input(ChangeInput):
        ExpectedTotal = DecimalField(
            required=True, min_value=0, help_text="The NewTotal that the customer has seen."
        )
        UseSavedPaymentInfo = BooleanField(help_text="Pay a difference with the saved card.")
        PaymentInfo = AccountPaymentInfo(help_text="Pay a difference with this card.")

    class Output(ContractSerializer):
        Message = TextField(help_text="For the customer: what is booked, charged and refunded.")
        IsApplied = BooleanField(help_text="`false` while the payment is not resolved.")
        Charge = DecimalField(help_text="What is charged for the difference.")
        Refund = DecimalField(help_text="What is refunded.")
        Reservation = ReservationInfo(help_text="The reservation after that.")

    def perform(
        self,
        user: User,
        *,
        reservation_id: int,
        expected_total: Decimal,
        use_saved_payment_info: bool = False,
        payment_info: CardFields | None = None,
        **fields: Any,
    ) -> dict[str, object]:
        request = _build_request(reservation_id, user, **fields)
        network_address, now = get_client_address(self.request), timezone.now()
        with count_declined_cards(network_address, now=now):
            outcome = differences.change_booking(
                Act(user, now),
                reservation_id,
                request,
                PaymentMethod(
                    use_saved_payment_info, payment_info, network_address=network_address
                ),
                expected_total=expected_total,
            )
        reservation = get_own_reservation(reservation_id, user)
        message = confirmation.get_change_message(
            reservation,
            is_applied=outcome.is_applied,
            charge=outcome.charge,
            refund=outcome.refund,
        )
        return {
            "message": message,
            "is_applied": outcome.is_applied,
            "charge": outcome.charge,
            "refund": outcome.refund,
            "reservation": records.get_record(reservation_id, user=user),
        }


def _build_request(
    reservation_id: int,
    user: User,
    *,
    meeting_room_id: int | None = None,
    start_date: dt.datetime | None = None,
    end_date: dt.datetime | None = None,
    **values: Unpack[BookingValues],
) -> ChangeRequest:
    """Return what the booking should be, with its own room and times for what is absent."""
    booking = get_own_reservation(reservation_id, user)
    return ChangeRequest(
        meeting_room_id or booking.room_id,
        start_date or booking.start,
        end_date or booking.end,
        values,
        expected_version=booking.version,
    )
