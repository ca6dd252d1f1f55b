"""E-get_emails to customers about their reservations, and the calendar files in them."""

import datetime as dt
from email.utils import parseaddr
from html import unescape
from zoneinfo import ZoneInfo

import pytest
from django.db import transaction
from django.urls import reverse
from icalendar import Calendar

from accounts import emails as account_mail
from accounts.models import OutboxMessage
from reservations.booking import (
    approval,
    authorization,
    cancellation,
    checkout,
    payment_recovery,
    reminders,
)
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.notifications import calendar, emails
from roombook.errors import CardDeclined, ReservationNotOpen, ServiceUnavailable
from tests.factories_people import StaffFactory, UserFactory
from tests.factories_reservations import (
    DECLINED_NUMBER,
    HOUR,
    MINUTE,
    NOW,
    START,
    make_booking,
    make_draft,
    make_payment_method,
    make_pending_booking,
    make_room,
)

pytestmark = pytest.mark.django_db

DENVER = ZoneInfo("America/Denver")
DAY = dt.timedelta(days=1)
NASTY = "<b>\"Ada\" & 'Co'</b>\r\nBcc: eve@example.com; a\\n,b"


@pytest.fixture(autouse=True)
def _sender(settings):
    settings.DEFAULT_FROM_EMAIL = "Rooms & Desks <rooms@example.com>"
    settings.SUPPORT_EMAIL = "help@example.com"


def get_emails(reservation):
    return list(OutboxMessage.objects.about(emails.get_subject_key(reservation)))


def get_email(reservation, kind):
    [message] = [each for each in get_emails(reservation) if each.kind == kind]
    return message


def get_kinds(reservation):
    return [each.kind for each in get_emails(reservation)]


def get_event(message):
    parsed = Calendar.from_ical(message.calendar)
    [event] = parsed.walk("VEVENT")
    assert parsed["METHOD"] == message.calendar_method
    assert not event.errors
    return event


def get_visible_text(html):
    """Return the visible text of an HTML e-mail in one line."""
    import re

    return " ".join(unescape(re.sub(r"<style.*?</style>|<[^>]+>", " ", html, flags=re.S)).split())


# --- When e-get_emails are sent ------------------------------------------------------------------


def test_booking_sends_confirmation_email():
    reservation = make_booking()

    assert get_kinds(reservation) == ["confirmed"]
    assert get_emails(reservation)[0].to == reservation.user.email


def test_pending_request_and_approval_send_emails():
    reservation = make_pending_booking()
    approval.approve(reservation.pk, now=NOW + HOUR)

    assert get_kinds(reservation) == ["request received", "approved"]


def test_declined_request_sends_email():
    reservation = make_pending_booking()
    approval.decline(reservation.pk, now=NOW + HOUR)

    assert get_kinds(reservation) == ["request received", "declined"]


def test_expired_request_sends_email():
    reservation = make_pending_booking(start=START + 7 * DAY)
    list(approval.close_overdue(now=NOW + 3 * DAY))

    assert get_kinds(reservation) == ["request received", "request expired"]


def test_cancellation_repeated_sends_one_email():
    reservation = make_booking()
    for _ in range(2):
        cancellation.cancel(reservation.pk, now=NOW + HOUR)

    assert get_kinds(reservation) == ["confirmed", "cancelled"]


def test_cancelled_or_expired_draft_sends_no_email():
    cancellation.cancel(make_draft().pk, now=NOW)
    make_draft()
    list(approval.close_overdue(now=START + HOUR))

    assert not OutboxMessage.objects.exists()


def test_completed_or_no_show_reservation_sends_no_email():
    reservation = make_booking()
    list(approval.close_overdue(now=START + DAY))
    approval.mark_no_show(reservation.pk, now=START + DAY)

    assert get_kinds(reservation) == ["confirmed"]


def test_repeated_checkout_sends_no_second_email():
    reservation = make_booking()
    for _ in range(2):
        checkout.check_out(
            reservation.pk, user=reservation.user, payment_method=make_payment_method(), now=NOW
        )

    assert get_kinds(reservation) == ["confirmed"]


def test_dry_run_sends_no_email():
    reservation = make_draft()
    checkout.dry_run(
        reservation.pk, user=reservation.user, payment_method=make_payment_method(), now=NOW
    )

    assert not OutboxMessage.objects.exists()


def test_declined_card_sends_no_email():
    reservation = make_draft()
    with pytest.raises(CardDeclined):
        checkout.check_out(
            reservation.pk,
            user=reservation.user,
            payment_method=make_payment_method(DECLINED_NUMBER),
            now=NOW,
        )

    assert not OutboxMessage.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_booking_rolled_back_sends_no_email(monkeypatch):
    """The e-mail is stored in the transaction that books and is rolled back with it."""
    reservation = make_draft()
    book = authorization.book

    def book_and_die(*args, **how):
        book(*args, **how)
        assert OutboxMessage.objects.count() == 1
        raise ServiceUnavailable

    monkeypatch.setattr(authorization, "book", book_and_die)
    with pytest.raises(ServiceUnavailable):
        checkout.check_out(
            reservation.pk, user=reservation.user, payment_method=make_payment_method(), now=NOW
        )

    assert Reservation.objects.get().status == Status.PROCESSING
    assert Reservation.objects.get().calendar_sequence == 0
    assert not OutboxMessage.objects.exists()


def test_stale_payment_resolved_sends_confirmation_email(monkeypatch):
    reservation = make_draft()
    with monkeypatch.context() as patch:
        patch.setattr(authorization, "apply_authorization", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            checkout.check_out(
                reservation.pk, user=reservation.user, payment_method=make_payment_method(), now=NOW
            )
    later = NOW + 2 * MINUTE
    payment_recovery.resolve_stale_payments(reservation.pk, user=reservation.user, now=later)

    assert get_kinds(reservation) == ["confirmed"]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (emails, "render_email"),
        (calendar, "render_invitation"),
        (emails, "format_time_range"),
        (OutboxMessage, "enqueue"),
    ],
)
def test_email_error_does_not_affect_the_booking(module, name, monkeypatch, caplog):
    monkeypatch.setattr(module, name, lambda *_, **__: 1 / 0)

    reservation = make_booking()
    cancellation.cancel(reservation.pk, now=NOW)

    assert Reservation.objects.get().status == Status.CANCELLED
    assert not OutboxMessage.objects.exists()
    assert f"The e-mail about reservation {reservation.pk} could not be written." in caplog.text


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
    with transaction.atomic():
        account_mail.send_password_changed(confirmed.user.pk, confirmed.user.email, now=NOW)
    return OutboxMessage.objects.order_by("pk")


def test_every_email_has_the_same_content_as_text_and_html():
    messages = {each.kind: each for each in send_all_kinds()}

    assert set(messages) == {
        *("confirmed", "cancelled", "request received", "approved", "declined"),
        *("request expired", "hold expiring", "password changed"),
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
    assert "The fee for cancelling so late is $75.00." in text


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


def book_across_dst_change():
    """Book from Saturday noon to Sunday noon: 23 hours, because of the DST change."""
    room = make_room()
    room.center.is_after_hours_support_enabled = True
    room.center.save()
    start = dt.datetime(2027, 3, 13, 12, tzinfo=DENVER).astimezone(dt.UTC)
    return make_booking(room=room, start=start, hours=23)


def test_email_time_range_across_dst_change_names_both_zones():
    text = get_email(book_across_dst_change(), "confirmed").text

    assert (
        "When: Saturday, March 13, 2027, 12:00 PM (Mountain Standard Time)"
        " - Sunday, March 14, 2027, 12:00 PM (Mountain Daylight Time)\n"
    ) in text


def test_calendar_event_across_dst_change_has_exact_times():
    reservation = book_across_dst_change()
    event = get_event(get_email(reservation, "confirmed"))

    assert event["DTSTART"].dt.astimezone(dt.UTC) == reservation.start.astimezone(dt.UTC)
    assert event["DTEND"].dt.astimezone(dt.UTC) == reservation.end.astimezone(dt.UTC)
    assert (event["DTSTART"].dt.hour, event["DTEND"].dt.hour) == (12, 12)


# --- The calendar --------------------------------------------------------------------------------


def test_calendar_event_has_all_properties():
    reservation = make_booking(UserFactory(email="ada@example.com"))
    message = get_email(reservation, "confirmed")
    event = get_event(message)

    # The text is exactly what the library generates.
    assert Calendar.from_ical(message.calendar).to_ical().decode() == message.calendar
    assert event["UID"] == str(reservation.uid)
    assert event["SUMMARY"] == "Boardroom at Glenarm"
    assert event["LOCATION"] == ("Glenarm, 1600 Glenarm Place, Denver, CO 80202, United States")
    assert event["STATUS"] == "CONFIRMED"
    assert event["DTSTAMP"].dt == NOW
    assert event["DTSTART"].dt == START
    assert event["DTEND"].dt == START + 3 * HOUR
    assert event["DTSTART"].params["TZID"] == "America/Denver"
    assert event["ORGANIZER"] == "mailto:rooms@example.com"
    assert event["ORGANIZER"].params["CN"] == "Rooms & Desks"
    # There is one attendee: several would be parsed as a list.
    assert event["ATTENDEE"] == "mailto:ada@example.com"
    assert event["ATTENDEE"].params["CN"] == "Ada Lovelace"


def test_calendar_includes_its_time_zone():
    parsed = Calendar.from_ical(get_email(make_booking(), "confirmed").calendar)

    [zone] = parsed.walk("VTIMEZONE")
    assert zone["TZID"] == "America/Denver"
    assert parsed.get_missing_tzids() == set()


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


def test_calendar_event_of_request_is_tentative_until_approved():
    reservation = make_pending_booking()
    approval.approve(reservation.pk, now=NOW + HOUR)
    received, approved = map(get_event, get_emails(reservation))

    assert (received["STATUS"], approved["STATUS"]) == ("TENTATIVE", "CONFIRMED")
    assert received["UID"] == approved["UID"]
    assert received["SEQUENCE"] < approved["SEQUENCE"]


@pytest.mark.parametrize("end", ["cancel", "decline", "expire"])
def test_calendar_event_of_closed_reservation_is_cancelled(end):
    if end == "cancel":
        reservation = make_booking()
        cancellation.cancel(reservation.pk, now=NOW)
    elif end == "decline":
        reservation = make_pending_booking()
        approval.decline(reservation.pk, now=NOW)
    else:
        reservation = make_pending_booking(start=START + 7 * DAY)
        list(approval.close_overdue(now=NOW + 3 * DAY))
    first, last = get_emails(reservation)
    begun, ended = get_event(first), get_event(last)

    assert (first.calendar_method, last.calendar_method) == ("REQUEST", "CANCEL")
    assert (ended["STATUS"], ended["UID"]) == ("CANCELLED", begun["UID"])
    assert ended["SEQUENCE"] > begun["SEQUENCE"]
    for name in ("DTSTART", "DTEND", "ORGANIZER", "ATTENDEE"):
        assert ended[name].to_ical() == begun[name].to_ical()


def test_calendar_organizer_is_the_sender_of_the_email(settings):
    settings.DEFAULT_FROM_EMAIL = "plain@example.com"
    event = get_event(get_email(make_booking(), "confirmed"))

    assert event["ORGANIZER"] == f"mailto:{parseaddr(settings.DEFAULT_FROM_EMAIL)[1]}"
    assert event["ORGANIZER"].params["CN"] == "plain@example.com"


# --- Hold reminders ------------------------------------------------------------------------------


def make_draft_by_staff(**fields):
    return make_draft(created_by=StaffFactory(), start=START + 7 * DAY, **fields)


def remind(now):
    return [each.pk for each in reminders.send_hold_reminders(now=now)]


def test_hold_reminder_for_draft_by_staff_is_sent_once():
    reservation = make_draft_by_staff()

    assert remind(NOW + 21 * HOUR) == []
    assert remind(NOW + 22 * HOUR) == [reservation.pk]
    assert remind(NOW + 22 * HOUR) == []

    message = get_email(reservation, "hold expiring")
    assert message.to == reservation.user.email
    assert "until Tuesday, March 2, 2027, 9:00 AM (Mountain Standard Time)" in message.text
    assert "Total: $75.00" in message.text
    assert message.calendar == ""


def test_hold_reminder_for_own_or_booked_draft_is_not_sent():
    make_draft()
    paid = make_draft_by_staff()
    checkout.check_out(paid.pk, user=paid.user, payment_method=make_payment_method(), now=NOW)
    gone = make_draft_by_staff()
    cancellation.cancel(gone.pk, now=NOW)

    assert remind(NOW + 10 * MINUTE) == []
    assert remind(NOW + 23 * HOUR) == []


def test_hold_reminder_after_expiry_is_not_sent():
    make_draft_by_staff()

    assert remind(NOW + 24 * HOUR) == []


# --- Back office ---------------------------------------------------------------------------------


def test_reservation_page_lists_its_emails(admin_client):
    reservation = make_booking()
    OutboxMessage.objects.update(state="sent", sent_at=NOW, next_attempt_at=None)
    cancellation.cancel(reservation.pk, now=NOW + HOUR)
    address = reverse("admin:reservations_reservation_change", args=[reservation.pk])

    text = get_visible_text(admin_client.get(address).content.decode())

    # Times are local to the center, as on the rest of the page.
    to = reservation.user.email
    sent, waiting = "Sent Mon 2027-03-01 09:00", "Waiting Mon 2027-03-01 10:00"
    assert f"Confirmed {to} {sent} Cancelled {to} {waiting}" in text


# --- Resending -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("data_is_consistent")
def test_resend_last_email_uses_the_current_address(clerk):
    reservation = make_booking()
    with pytest.raises(ReservationNotOpen, match="waiting to be sent already"):
        reminders.resend_last_email(reservation.pk, by=clerk, now=NOW)
    OutboxMessage.objects.update(state="sent", sent_at=NOW, next_attempt_at=None)
    reservation.user.email = "new@example.com"
    reservation.user.save()

    reminders.resend_last_email(reservation.pk, by=clerk, now=NOW)

    first, again = OutboxMessage.objects.about(emails.get_subject_key(reservation))
    assert (again.kind, again.to, again.state) == ("confirmed", "new@example.com", "waiting")
    assert again.calendar == first.calendar
    assert again.key != first.key


@pytest.mark.usefixtures("data_is_consistent")
def test_resend_last_email_that_failed_is_queued_again(clerk):
    reservation = make_booking()
    OutboxMessage.objects.update(state="given up", next_attempt_at=None)

    reminders.resend_last_email(reservation.pk, by=clerk, now=NOW)

    assert OutboxMessage.objects.get().state == "waiting"
