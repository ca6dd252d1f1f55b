"""The content of e-mails to customers."""

import datetime as dt

import pytest
from django.db import transaction
from icalendar import Calendar

from accounts import emails as account_mail
from accounts.models import OutboxMessage
from reservations.booking import approval, cancellation, reminders
from tests.factories_people import StaffFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
)
from tests.reservations.emails.helpers import (
    DAY,
    book_across_dst_change,
    get_email,
    get_event,
    get_visible_text,
)

pytestmark = pytest.mark.django_db

NASTY = "<b>\"Ada\" & 'Co'</b>\r\nBcc: eve@example.com; a\\n,b"


# --- Content -------------------------------------------------------------------------------------


def test_confirmation_email_text_is_complete():
    reservation = make_booking(
        UserFactory(email="ada@example.com"), service_options=[], number_of_attendees=4
    )
    message = get_email(reservation, "confirmed")

    assert message.subject == ("Booked: Boardroom at Glenarm, Wed, Mar 3, 2027, 9:00 AM - 12:00 PM")
    assert message.text == (
        "Your room is booked\n\n"
        "We look forward to seeing you.\n\n"
        "$75.00 is charged to Visa ending 4242.\n\n"
        "Room: Boardroom, for 4 people\n"
        "Where: Glenarm, 1600 Glenarm Place, Denver, CO 80202, United States\n"
        "When: Wednesday, March 3, 2027, 9:00 AM - 12:00 PM (Mountain Standard Time)\n"
        f"Reservation number: {reservation.pk}\n\n"
        "Boardroom, 3 hours ($25.00/hour): $75.00\n"
        "Total: $75.00\n\n"
        "Cancelling is free until Tuesday, March 2, 2027, 9:00 AM (Mountain Standard Time)."
        " After that, nothing is refunded.\n\n"
        "Questions? Write to help@example.com.\n\n"
        "--\nRooms & Desks\n"
    )


def send_all_kinds():
    """Return one e-mail of each kind."""
    confirmed = make_booking()
    cancellation.cancel(confirmed.pk, now=NOW)
    approval.approve(make_pending_booking(start=START + 7 * DAY).pk, now=NOW)
    approval.decline(make_pending_booking(start=START + 7 * DAY).pk, now=NOW)
    make_pending_booking(start=START + 7 * DAY)
    list(approval.close_overdue(now=NOW + 3 * DAY))
    make_draft(created_by=StaffFactory(), now=NOW - 23 * HOUR)
    list(reminders.send_hold_reminders(now=NOW))
    make_booking(start=START + DAY)
    list(reminders.send_meeting_reminders(now=START))
    with transaction.atomic():
        account_mail.send_password_changed(confirmed.user.pk, confirmed.user.email, now=NOW)
    return OutboxMessage.objects.order_by("pk")


def test_every_email_has_the_same_content_as_text_and_html():
    messages = {each.kind: each for each in send_all_kinds()}

    assert set(messages) == {
        *("confirmed", "cancelled", "request received", "approved", "declined"),
        *("request expired", "hold expiring", "reminder", "password changed"),
    }
    for message in messages.values():
        read = get_visible_text(message.html)
        for line in filter(None, message.text.splitlines()):
            for part in line.split(": ") if ": " in line else [line.strip("-")]:
                bare = part.removesuffix(")").split(" ($")[0].removesuffix(".")
                assert bare in read, (message.kind, bare)


def test_email_html_loads_no_external_resources():
    for message in send_all_kinds():
        for forbidden in ("http:", "https:", "<img", "<link", "<script", "url(", "@import"):
            assert forbidden not in message.html
        assert "max-width:600px" in message.html
        assert 'name="viewport"' in message.html


def test_names_in_email_are_escaped_and_on_one_line():
    user = UserFactory(first_name=NASTY)
    room = make_room(name=NASTY)
    room.center.name = NASTY
    room.center.save()
    reservation = make_booking(user, room)
    message = get_email(reservation, "confirmed")

    plain = "<b>\"Ada\" & 'Co'</b> Bcc: eve@example.com; a\\n,b"
    assert f"Room: {plain}\n" in message.text
    assert "<b>" not in message.html
    assert "&lt;b&gt;&quot;Ada&quot; &amp; &#x27;Co&#x27;&lt;/b&gt; Bcc" in message.html
    assert "\n" not in message.subject
    assert plain in message.subject
    event = get_event(message)
    assert event["SUMMARY"] == f"{plain} at {plain}"
    assert str(event["LOCATION"]).startswith(f"{plain}, 1600 Glenarm Place")
    # A parameter cannot contain a quote: RFC 6868 encodes it.
    assert "BCC" not in [name for name, _ in event.property_items()]
    assert len(Calendar.from_ical(message.calendar).walk("VEVENT")) == 1


def test_request_email_has_authorized_amount_and_deadline():
    text = get_email(make_pending_booking(), "request received").text

    assert "answered, within 72 hours at most." in text
    assert "$75.00 is reserved on Visa ending 4242 and charged only when the center agrees." in text
    assert "Until the center has answered, cancelling costs nothing." in text


def test_declined_and_expired_emails_mention_the_released_amount():
    declined, silent = (make_pending_booking(start=START + 7 * DAY) for _ in range(2))
    approval.decline(declined.pk, now=NOW)
    list(approval.close_overdue(now=NOW + 3 * DAY))
    let_go = "Nothing was charged. The hold of $75.00 on Visa ending 4242 is released."

    assert let_go in get_email(declined, "declined").text
    assert let_go in get_email(silent, "request expired").text


def test_cancellation_email_in_time_has_the_refund():
    reservation = make_booking()
    cancellation.cancel(reservation.pk, now=NOW + HOUR)

    text = get_email(reservation, "cancelled").text
    assert "The reservation is cancelled: $75.00 is refunded to Visa ending 4242." in text
    assert "fee" not in text


def test_late_cancellation_email_has_the_fee():
    reservation = make_booking()
    cancellation.cancel(reservation.pk, now=START - HOUR)

    text = get_email(reservation, "cancelled").text
    assert "less than 24 hours before its start, so nothing is refunded." in text
    assert "The fee for the cancellation is $75.00." in text


def test_cancelled_request_email_has_no_refund():
    reservation = make_pending_booking()
    cancellation.cancel(reservation.pk, now=NOW)

    text = get_email(reservation, "cancelled").text
    assert "is released" in text
    assert "refund" not in text


def test_email_cancellation_terms_match_the_preview():
    late = make_booking(start=NOW + 5 * HOUR)
    within_grace = get_email(late, "confirmed").text
    late_request = make_pending_booking(start=NOW + 5 * HOUR)
    approval.approve(late_request.pk, now=NOW + HOUR)

    # Booked at 9:00 for the afternoon: cancellation is free for 15 minutes only.
    assert "free until Monday, March 1, 2027, 9:15 AM (Mountain Standard Time)" in within_grace
    assert "until it begins, but nothing is refunded." in get_email(late_request, "approved").text
    for at in (
        late.free_cancellation_until,
        late.free_cancellation_until + dt.timedelta(seconds=1),
    ):
        late.refresh_from_db()
        refund = cancellation.preview(late, now=at).refund
        assert bool(refund) == (at == late.free_cancellation_until)


def test_free_booking_email_has_nothing_to_pay():
    room = make_room()
    room.rate.is_flat_rate, room.rate.flat_rate = True, 0
    room.rate.save()

    text = get_email(make_booking(room=room), "confirmed").text

    assert "There is nothing to pay." in text
    assert "You can cancel until it begins; there is nothing to pay." in text
    assert "Total: $0.00" in text


def test_email_without_support_address_omits_it(settings):
    settings.SUPPORT_EMAIL = ""

    message = get_email(make_booking(), "confirmed")

    assert "Questions" not in message.text + message.html


# --- Time zones ----------------------------------------------------------------------------------


def test_email_times_are_local_times_of_the_center():
    room = make_room(time_zone_id="Asia/Tokyo")
    start = dt.datetime(2027, 3, 3, 1, tzinfo=dt.UTC)

    message = get_email(make_booking(room=room, start=start), "confirmed")

    assert "Wednesday, March 3, 2027, 10:00 AM - 1:00 PM (Japan Standard Time)" in message.text
    assert get_event(message)["DTSTART"].params["TZID"] == "Asia/Tokyo"


def test_email_time_range_across_dst_change_names_both_zones():
    text = get_email(book_across_dst_change(), "confirmed").text

    assert (
        "When: Saturday, March 13, 2027, 12:00 PM (Mountain Standard Time)"
        " - Sunday, March 14, 2027, 12:00 PM (Mountain Daylight Time)\n"
    ) in text
