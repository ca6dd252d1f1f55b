"""No text that staff enter about a payment, refund or booking is stored with a card number."""

import pytest
from django.core.exceptions import ValidationError

from payments.admin.refunds import ManualRefundForm, RefundByHandForm
from reservations.desk.action_forms import (
    CancellationForm,
    MessageForm,
    PaymentForm,
    PriceAdjustmentForm,
)
from reservations.desk.booking_form import ChangeForm
from reservations.desk.new_reservation.forms import NewReservationForm
from reservations.desk.notes import NoteForm


@pytest.mark.parametrize(
    ("form", "names"),
    [
        (PaymentForm, ["reference"]),
        (PriceAdjustmentForm, ["reason"]),
        (MessageForm, ["message"]),
        (CancellationForm, ["reason", "message"]),
        (ChangeForm, ["reference", "waiver"]),
        (NewReservationForm, ["hours_override_reason"]),
        (NoteForm, ["text"]),
        (ManualRefundForm, ["method", "reference"]),
        (RefundByHandForm, ["reference"]),
    ],
)
def test_card_number_is_refused_and_the_number_of_a_slip_is_not(form, names):
    for name in names:
        field = form.base_fields[name]
        with pytest.raises(ValidationError) as refused:
            field.clean("Card 4242 4242-4242 4242")
        assert refused.value.messages == ["This must not contain a card number."]
        assert field.clean("Slip 1234567890123456") == "Slip 1234567890123456"
