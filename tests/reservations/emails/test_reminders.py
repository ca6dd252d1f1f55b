"""Reminders of meetings (B24.5)."""

import datetime as dt

import pytest
from django.core import mail
from django.core.management import call_command

from accounts import outbox
from accounts.models import OutboxMessage, OutboxState
from reservations.booking import approval, cancellation, reminders, rescheduling
from reservations.booking.change_request import ChangeRequest
from reservations.models import Reservation
from tests.concurrency import run_concurrently
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
)
from tests.reservations.emails.helpers import DAY, get_email, get_emails, get_event

pytestmark = pytest.mark.django_db


def remind(now):
    return [each.pk for each in reminders.send_meeting_reminders(now=now)]


def reschedule(reservation, start, now):
    rescheduling.reschedule(
        reservation.pk,
        ChangeRequest(reservation.room_id, start, start + 3 * HOUR),
        by=AdministratorFactory(),
        now=now,
    )


def send_due(now):
    return [each.kind for each in outbox.send_due_messages(clock=lambda: now)]


def test_reminder_is_sent_once_a_day_before_the_meeting():
    reservation = make_booking()

    assert remind(START - DAY - MINUTE) == []
    assert remind(START - DAY) == [reservation.pk]
    assert remind(START - DAY) == []
    assert remind(START - MINUTE) == []

    message = get_email(reservation, "reminder")
    confirmed = get_event(get_email(reservation, "confirmed"))
    assert message.to == reservation.user.email
    assert message.subject == (
        "Reminder: Boardroom at Glenarm, Wed, Mar 3, 2027, 9:00 AM - 12:00 PM"
    )
    for text in (message.text, message.html):
        assert "Your meeting begins soon" in text
        assert "It begins on Wednesday, March 3, 2027, 9:00 AM (Mountain Standard Time)." in text
    # The file does not change a calendar that has the one of the confirmation.
    for name in ("UID", "SEQUENCE", "DTSTART", "STATUS"):
        assert get_event(message)[name] == confirmed[name]


def test_late_job_sends_no_reminder_after_the_start():
    make_booking()

    assert remind(START) == []
    assert remind(START + MINUTE) == []


def test_hours_before_the_meeting_are_a_setting(settings):
    reservation = make_booking()

    settings.REMINDER_HOURS = 0
    assert remind(START - DAY) == remind(START - MINUTE) == []
    settings.REMINDER_HOURS = 2
    assert remind(START - 3 * HOUR) == []
    assert remind(START - 2 * HOUR) == [reservation.pk]


def test_only_confirmed_meetings_have_a_reminder():
    room = make_room()
    make_draft(room=room)
    make_pending_booking()
    declined = make_pending_booking()
    approval.decline(declined.pk, now=NOW)
    cancelled = make_booking(start=START)
    cancellation.cancel(cancelled.pk, now=NOW)

    assert remind(START - DAY) == []


@pytest.mark.parametrize("change", ["booked", "approved"])
def test_meeting_confirmed_within_the_last_day_has_no_reminder(change):
    """Its customer just got the confirmation."""
    late = START - DAY + MINUTE
    if change == "booked":
        make_booking(now=late)
        in_time = make_booking(now=START - DAY)
    else:
        approval.approve(make_pending_booking().pk, now=late)
        in_time = make_pending_booking()
        approval.approve(in_time.pk, now=START - DAY)

    assert remind(START - HOUR) == [in_time.pk]


def test_moved_meeting_has_a_reminder_before_its_new_start():
    reservation = make_booking()
    later = START + 3 * DAY
    assert remind(START - DAY) == [reservation.pk]
    send_due(START - DAY)
    reschedule(reservation, later, START - DAY + MINUTE)

    assert remind(START - MINUTE) == []
    assert remind(later - DAY) == [reservation.pk]
    first, second = (each for each in get_emails(reservation) if each.kind == "reminder")
    assert "Mar 3" in first.subject
    assert "Mar 6" in second.subject


def test_meeting_moved_to_within_a_day_has_no_reminder():
    """Its customer just got the new time."""
    reservation = make_booking()
    reschedule(reservation, START + 2 * HOUR, START - 20 * HOUR)

    assert remind(START - HOUR) == []


@pytest.mark.parametrize("change", ["cancelled", "moved"])
def test_waiting_reminder_is_withdrawn_with_the_change(change):
    reservation, other = make_booking(), make_booking()
    now = START - DAY
    send_due(now)
    assert set(remind(now)) == {reservation.pk, other.pk}
    if change == "cancelled":
        cancellation.cancel(reservation.pk, now=now)
    else:
        reschedule(reservation, START + 3 * DAY, now)

    assert send_due(now) == ["reminder", change]
    assert not OutboxMessage.objects.waiting().exists()


def test_reminder_that_waits_for_the_mail_server_is_not_sent_after_the_start():
    reservation, other = make_booking(), make_booking(start=START + HOUR)
    send_due(START - DAY)
    remind(START - HOUR)
    mail.outbox.clear()

    assert send_due(START) == ["reminder"]
    [sent] = mail.outbox
    assert "10:00 AM" in sent.subject
    assert not get_emails(reservation)[1:]
    # Staff can send it again.
    message = get_email(other, "reminder")
    assert message.state == OutboxState.SENT
    message.send_again(now=START + DAY)
    assert send_due(START + DAY) == ["reminder"]


def test_reservation_booked_before_changes_were_dated_has_a_reminder():
    reservation = make_booking()
    Reservation.objects.update(calendar_changed_at=None)

    assert remind(START - DAY) == [reservation.pk]


def test_expire_reservations_sends_reminders(capsys, time_machine):
    reservation = make_booking()
    time_machine.move_to(START - DAY + dt.timedelta(seconds=30), tick=False)

    call_command("expire_reservations")

    assert f"Reservation {reservation.pk} begins soon" in capsys.readouterr().out
    assert get_email(reservation, "reminder")


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_jobs_at_the_same_time_send_one_reminder():
    room = make_room()
    bookings = [
        make_booking(room=room, start=START + number * HOUR, hours=1) for number in range(6)
    ]

    sent = run_concurrently([lambda: remind(START - HOUR)] * 4)

    assert sorted(pk for each in sent for pk in each) == [each.pk for each in bookings]
    assert OutboxMessage.objects.filter(kind="reminder").count() == 6
