"""The content of e-mails to customers."""

import datetime as dt
from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from django.db import transaction
from icalendar import Calendar

from accounts import emails as account_mail
from accounts.act import Act
from accounts.models import OutboxMessage
from reservations.booking import approval, cancellation, expiry, reminders
from reservations.notifications import calendar, confirmation
from tests.factories_people import StaffFactory, UserFactory
from tests.factories_reservations import (
    DAY,
    HOUR,
    NOW,
    START,
    AllowanceFactory,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
)
from tests.reservations.emails.helpers import (
    get_email,
    get_event,
    get_visible_text,
)

pytestmark = pytest.mark.django_db


NASTY = "<b>\"Ada\" & 'Co'</b>\r\nBcc: eve@example.com; a\\n,b"


# --- Content --------------------------------------------------------------------------------------


def test_confirmation_email_text_is_complete():
    reservation = make_booking(
        UserFactory(email="ada@example.com"), services=[], number_of_attendees=4
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
        "Cancel free of charge until Tue, Mar 2, 2027, 9:00 AM. After that, nothing.\n\n"
        "Questions? Write to help@example.com.\n\n"
        "--\nRooms & Desks\n"
    )


def send_all_kinds():
    """Return one e-mail of each kind."""
    confirmed = make_booking()
    cancellation.cancel(Act(None, NOW), confirmed.pk)
    approval.approve(Act(None, NOW), make_pending_booking(start=START + 7 * DAY).pk)
    approval.decline(Act(None, NOW), make_pending_booking(start=START + 7 * DAY).pk)
    make_pending_booking(start=START + 7 * DAY)
    list(expiry.close_overdue(now=NOW + 3 * DAY))
    make_draft(created_by=StaffFactory(), now=NOW - 23 * HOUR)
    list(reminders.send_hold_reminders(now=NOW))
    make_booking(start=START + DAY)
    list(reminders.send_meeting_reminders(now=START))
    with transaction.atomic():
        account_mail.send_password_changed(confirmed.user.pk, confirmed.user.email, now=NOW)
    return OutboxMessage.objects.order_by("pk")


def test_every_email_has_the_same_content_as_text_and_html_and_loads_nothing():
    messages = {each.kind: each for each in send_all_kinds()}

    assert set(messages) == {
        *("confirmed", "cancelled", "request received", "approved", "declined"),
        *("request expired", "hold expiring", "reminder", "password changed"),
    }
    for message in messages.values():
        for external in ("http:", "https:", "<img", "<link", "<script", "url(", "@import"):
            assert external not in message.html
        read = get_visible_text(message.html)
        for line in filter(None, message.text.splitlines()):
            for part in line.split(": ") if ": " in line else [line.strip("-")]:
                bare = part.removesuffix(")").split(" ($")[0].removesuffix(".")
                assert bare in read, (message.kind, bare)


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


def book_and_cancel(now):
    reservation = make_booking()
    cancellation.cancel(Act(None, now), reservation.pk)
    return reservation


def request_and(answer):
    reservation = make_pending_booking(start=START + 7 * DAY)
    answer(Act(None, NOW), reservation.pk)
    return reservation


RELEASED = "Nothing was charged. The hold of $75.00 on Visa ending 4242 is released."


@pytest.mark.parametrize(
    ("make", "kind", "lines", "absent"),
    [
        (
            make_pending_booking,
            "request received",
            [
                "answered, within 72 hours at most.",
                "$75.00 is reserved on Visa ending 4242 and charged only when the center agrees.",
                "Until the center has answered, cancelling costs nothing.",
            ],
            "is refunded to",
        ),
        (lambda: request_and(approval.decline), "declined", [RELEASED], "refund"),
        (lambda: request_and(cancellation.cancel), "cancelled", ["is released"], "refund"),
        (
            lambda: book_and_cancel(START - HOUR),
            "cancelled",
            ["so nothing is refunded.", "The fee for the cancellation is $75.00."],
            "is refunded to",
        ),
    ],
)
def test_email_says_what_happened_to_the_money(make, kind, lines, absent):
    text = get_email(make(), kind).text

    assert [line for line in lines if line not in text] == []
    assert absent not in text


# --- Time zones -----------------------------------------------------------------------------------


def test_email_time_range_across_dst_change_names_both_zones():
    room = make_room()
    room.center.is_after_hours_support_enabled = True
    room.center.save()
    # From Saturday noon to Sunday noon, with a change of the clock between them.
    start = dt.datetime(2027, 3, 13, 19, tzinfo=UTC)
    text = get_email(make_booking(room=room, start=start, hours=23), "confirmed").text

    assert (
        "When: Saturday, March 13, 2027, 12:00 PM (Mountain Standard Time)"
        " - Sunday, March 14, 2027, 12:00 PM (Mountain Daylight Time)\n"
    ) in text


# --- Languages ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("locale", "short", "full", "time"),
    [
        ("en_US", "Wed, Mar 3, 2027", "Wednesday, March 3, 2027", "9:00 AM - 2:00 PM"),
        ("de_DE", "Mi., 3. März 2027", "Mittwoch, 3. März 2027", "09:00 - 14:00"),
        ("ja_JP", "2027年3月3日(水)", "2027年3月3日水曜日", "9:00 - 14:00"),
    ],
)
def test_customers_read_days_and_times_in_the_forms_of_the_locale(
    settings, locale, short, full, time
):
    settings.LOCALE = locale
    reservation = make_booking(hours=5)
    message = get_email(reservation, "confirmed")
    what = f"Boardroom at Glenarm, {short}, {time}"

    assert message.subject == f"Booked: {what}"
    assert f"When: {full}, {time} (" in message.text
    assert f"You have booked {what} (reservation" in confirmation.get_message(reservation)


# --- The message in the response of a checkout ----------------------------------------------------


WHAT = "Boardroom at Glenarm, Wed, Mar 3, 2027, 9:00 AM - 12:00 PM"


@pytest.mark.parametrize("is_free", [False, True])
@pytest.mark.parametrize(
    ("make", "message", "charge", "nothing"),
    [
        (
            make_booking,
            f"You have booked {WHAT} (reservation {{}}).",
            "$75.00 was charged to Visa ending 4242.",
            "There was nothing to pay.",
        ),
        (
            make_pending_booking,
            f"Your request for {WHAT} is with the center (reservation {{}}).",
            "$75.00 is reserved on Visa ending 4242 and charged only when the center agrees.",
            "There is nothing to pay.",
        ),
    ],
)
def test_message_has_room_center_time_and_charge(ada, make, message, charge, nothing, is_free):
    if is_free:
        AllowanceFactory(user=ada)
    reservation = make(ada)

    assert confirmation.get_message(reservation) == (
        f"{message.format(reservation.pk)} {nothing if is_free else charge}"
    )


# --- The calendar ---------------------------------------------------------------------------------


def test_invitation_is_what_the_library_generates_and_names_the_customer():
    """The rest of the event is as in the feed: see test_calendar_feed.py."""
    message = get_email(make_booking(UserFactory(email="ada@example.com")), "confirmed")
    parsed, event = Calendar.from_ical(message.calendar), get_event(message)

    assert parsed.to_ical().decode() == message.calendar
    assert parsed.get_missing_tzids() == set()
    assert event["DTSTART"].params["TZID"] == "America/Denver"
    # There is one attendee: several would be parsed as a list.
    assert event["ATTENDEE"] == "mailto:ada@example.com"
    assert event["ATTENDEE"].params["CN"] == "Ada Lovelace"


@pytest.mark.parametrize(
    "name",
    [
        *("America/Denver", "Africa/Casablanca", "Australia/Lord_Howe", "Europe/Dublin"),
        *("Asia/Kathmandu", "America/Sao_Paulo", "Pacific/Chatham", "UTC"),
    ],
)
def test_calendar_time_zone_matches_zoneinfo(name):
    zone, first, last = ZoneInfo(name), START - 400 * DAY, START + 400 * DAY
    # By RFC 5545, DTSTART of an observance is local time with the previous offset.
    changes = sorted(
        (
            (each["DTSTART"].dt - each["TZOFFSETFROM"].td).replace(tzinfo=dt.UTC),
            each["TZOFFSETTO"].td,
        )
        for each in calendar.build_timezone(zone, first, last).subcomponents
    )

    at = first
    while at <= last:
        in_force = [offset for since, offset in changes if since <= at][-1]
        assert in_force == at.astimezone(zone).utcoffset(), at
        at += HOUR
