"""The pages on which staff cancel or decline, with a refund of their choice and a message."""

from decimal import Decimal

import pytest
from django.urls import reverse

from accounts.models import OutboxMessage, User
from payments.models import Refund
from reservations.models import AllowanceEntry, RefundOverride
from reservations.models.status import Status
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import action_url, confirm, reservation_url
from tests.factories_centers import TermsFactory
from tests.factories_reservations import (
    HOUR,
    START,
    AllowanceFactory,
    get_current_status,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

TYPED = {"everything": "on", "reason": "The heating is broken.", "message": "We are <sorry>."}


@pytest.fixture
def late_booking(clock):
    booking = make_booking()
    clock.move_to(START - HOUR)
    return booking


def test_cancel_with_full_refund_and_message_shows_the_email_before_it_goes(
    client, staff, late_booking
):
    manager = staff("Manager", late_booking.room.center)
    User.objects.filter(pk=manager.pk).update(first_name="Mary", last_name="Ager")
    client.force_login(manager)
    first = words(client.get(action_url(late_booking, "cancel")))
    assert "By the policy $0.00, which is refunded if this is empty. At most $75.00." in first
    assert "Refund $0.00 Fee $75.00" in first

    page = client.post(action_url(late_booking, "cancel"), TYPED)

    assert "Refund $75.00 Fee $0.00 By the policy $0.00" in words(page)
    assert "Subject: Cancelled: Boardroom at" in words(page)
    assert "We are &lt;sorry&gt;." in page.text
    assert get_current_status(late_booking) == Status.CONFIRMED
    shown = page.context["preview"].email.text
    done = confirm(client, late_booking, "cancel", expected_amount="75.00", **TYPED)
    again = confirm(client, late_booking, "cancel", expected_amount="75.00", **TYPED)

    assert "$75.00 is refunded to Visa ending 4242." in messages_of(done)[0][1]
    assert "Nothing was changed" in messages_of(again)[-1][1]
    assert Refund.objects.get().amount == Decimal(75)
    sent = OutboxMessage.objects.filter(kind="cancelled")
    assert [each.text for each in sent] == [shown]
    page = words(client.get(reservation_url(late_booking)))
    assert "$75.00 instead of $0.00, by Mary Ager" in page
    assert "The heating is broken." in page
    report = reverse("admin:reservations_report", args=["discounts"])
    table = words(client.get(report, {"since": "2027-03-01", "until": "2027-03-31"}))
    assert "The heating is broken. Mary Ager $0.00 $75.00" in table


def test_cancel_with_full_refund_returns_the_hours_of_a_booking_that_was_not_charged(
    client, staff, clock, ada
):
    room = make_room()
    room.terms = TermsFactory(center=room.center)
    room.save()
    AllowanceFactory(user=ada, hours=3)
    booking = make_booking(ada, room)
    clock.move_to(START - HOUR)
    client.force_login(staff("Manager", room.center))
    form = client.get(action_url(booking, "cancel")).context["form"]
    assert list(form.fields) == ["everything", "reason", "message"]
    page = words(client.post(action_url(booking, "cancel"), TYPED))
    assert "Included hours 3 h are returned" in page

    done = confirm(client, booking, "cancel", expected_amount="0.00", **TYPED)

    assert messages_of(done)[0][1].endswith("is cancelled: nothing was charged.")
    assert [each.hours for each in AllowanceEntry.objects.order_by("pk")] == [-3, 3]
    assert RefundOverride.objects.get().reason == TYPED["reason"]


@pytest.mark.parametrize(
    ("typed", "error"),
    [
        ({"refund": "75.01", "reason": "x"}, "Between 0 and $75.00 can be refunded."),
        ({"refund": "75.00"}, "A refund that the policy does not give needs a reason."),
        ({"refund": "many"}, "Refund: Enter a number."),
        ({"message": "x" * 1001}, "Message to the customer: Ensure this value has at most 1000"),
    ],
)
def test_cancel_with_invalid_refund_or_message_shows_the_error(late_booking, office, typed, error):
    for more in ({}, {"confirmed": "yes"}):
        page = office.post(action_url(late_booking, "cancel"), {**typed, **more})
        shown = words(page) if page.status_code == 200 else messages_of(page)[-1][1]
        assert error in shown
    assert get_current_status(late_booking) == Status.CONFIRMED


def test_desk_cancels_by_the_policy_with_a_message(client, staff, late_booking):
    client.force_login(staff("Desk", late_booking.room.center))
    form = client.get(action_url(late_booking, "cancel")).context["form"]
    assert list(form.fields) == ["message"]

    confirm(client, late_booking, "cancel", expected_amount="0.00", **TYPED)

    assert get_current_status(late_booking) == Status.CANCELLED
    assert not Refund.objects.exists()
    assert not RefundOverride.objects.exists()
    assert "We are <sorry>." in OutboxMessage.objects.get(kind="cancelled").text


def test_cancel_draft_asks_for_nothing(office):
    page = office.get(action_url(make_draft(), "cancel"))
    assert not page.context["form"].fields
    assert page.context["preview"].email is None


def test_decline_with_message_shows_what_is_released_and_the_email_before_it_goes(office):
    request = make_pending_booking()
    first = words(office.get(action_url(request, "decline")))
    assert "$75.00 on Visa ending 4242" in first
    assert "Subject: Declined:" in first

    page = office.post(action_url(request, "decline"), {"message": "We are <sorry>."})
    confirm(office, request, "decline", message="We are <sorry>.")

    assert get_current_status(request) == Status.DECLINED
    email = OutboxMessage.objects.get(kind="declined")
    assert email.text == page.context["preview"].email.text
    assert "We are <sorry>." in email.text
