"""Which e-mails about their reservations customers get, and when."""

import datetime as dt

import pytest
from django.core import mail
from django.core.management import call_command

from accounts import outbox
from accounts.act import Act
from accounts.models import OutboxMessage
from reservations.booking import (
    approval,
    attendance,
    cancellation,
    checkout,
    expiry,
    reminders,
    resending,
)
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.notifications import calendar, emails
from roombook.deliveries import DeliveryState
from roombook.errors import CardDeclined, ReservationNotOpen, ServiceUnavailable
from tests.concurrency import run_concurrently
from tests.factories_people import AdministratorFactory, StaffFactory
from tests.factories_reservations import (
    DAY,
    DECLINED_NUMBER,
    HOUR,
    MINUTE,
    NOW,
    START,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
    pay,
)
from tests.reservations.emails.helpers import get_email, get_emails, get_event
from tests.reservations.rescheduling_helpers import reschedule

pytestmark = pytest.mark.django_db


def get_kinds(reservation):
    return [each.kind for each in get_emails(reservation)]


# --- When e-mails are sent ------------------------------------------------------------------------


def request():
    return make_pending_booking(start=START + 7 * DAY)


def close(now):
    return lambda reservation: list(expiry.close_overdue(now=now))


def cancel_twice(reservation):
    for _ in range(2):
        cancellation.cancel(Act(None, NOW + HOUR), reservation.pk)


def decline_card(reservation):
    with pytest.raises(CardDeclined):
        pay(reservation, DECLINED_NUMBER)


@pytest.mark.parametrize(
    ("make", "act", "kinds"),
    [
        (make_booking, pay, ["confirmed"]),  # A repeated checkout sends no second one.
        (make_booking, cancel_twice, ["confirmed", "cancelled"]),
        (make_booking, close(START + DAY), ["confirmed"]),
        (
            *(make_booking, lambda row: attendance.mark_no_show(Act(None, START + DAY), row.pk)),
            ["confirmed"],
        ),
        (
            *(request, lambda row: approval.approve(Act(None, NOW), row.pk)),
            ["request received", "approved"],
        ),
        (request, close(NOW + 3 * DAY), ["request received", "request expired"]),
        (make_draft, cancel_twice, []),
        (make_draft, close(START + DAY), []),
        (make_draft, decline_card, []),
    ],
)
def test_each_change_sends_its_emails_once(make, act, kinds):
    reservation = make()
    act(reservation)

    assert get_kinds(reservation) == kinds
    assert {each.to for each in get_emails(reservation)} <= {reservation.user.email}


@pytest.mark.django_db(transaction=True)
def test_booking_rolled_back_sends_no_email(monkeypatch):
    """The e-mail is stored in the transaction that books and is rolled back with it."""
    reservation = make_draft()
    book = checkout.book

    def book_and_die(*args, **how):
        book(*args, **how)
        assert OutboxMessage.objects.count() == 1
        raise ServiceUnavailable

    monkeypatch.setattr(checkout, "book", book_and_die)
    with pytest.raises(ServiceUnavailable):
        pay(reservation)

    assert Reservation.objects.get().status == Status.PROCESSING
    assert Reservation.objects.get().calendar_sequence == 0
    assert not OutboxMessage.objects.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [(calendar, "render_invitation"), (OutboxMessage, "enqueue")],
)
def test_email_error_does_not_affect_the_booking(module, name, monkeypatch, caplog):
    monkeypatch.setattr(module, name, lambda *_, **__: 1 / 0)

    reservation = make_booking()
    cancellation.cancel(Act(None, NOW), reservation.pk)

    assert Reservation.objects.get().status == Status.CANCELLED
    assert not OutboxMessage.objects.exists()
    assert f"The e-mail about reservation {reservation.pk} could not be written." in caplog.text


# --- Hold reminders -------------------------------------------------------------------------------


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


def test_hold_reminder_for_own_booked_or_expired_draft_is_not_sent():
    make_draft()
    pay(make_draft_by_staff())
    gone = make_draft_by_staff()
    cancellation.cancel(Act(None, NOW), gone.pk)
    assert remind(NOW + 10 * MINUTE) == remind(NOW + 23 * HOUR) == []

    make_draft_by_staff()
    assert remind(NOW + 24 * HOUR) == []


# --- Resending ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("data_is_consistent")
def test_resend_last_email_uses_the_current_address(clerk):
    reservation = make_booking()
    with pytest.raises(ReservationNotOpen, match="already waiting to be sent"):
        resending.resend_last_email(Act(clerk, NOW, is_staff=True), reservation.pk)
    OutboxMessage.objects.update(state="sent", sent_at=NOW, next_attempt_at=None)
    reservation.user.email = "new@example.com"
    reservation.user.save()

    resending.resend_last_email(Act(clerk, NOW, is_staff=True), reservation.pk)

    first, again = OutboxMessage.objects.about(emails.get_subject_key(reservation.pk))
    assert (again.kind, again.to, again.state) == ("confirmed", "new@example.com", "waiting")
    assert again.calendar == first.calendar
    assert again.key != first.key
    assert first.to != again.to


@pytest.mark.usefixtures("data_is_consistent")
def test_resend_last_email_that_failed_is_queued_again(clerk):
    reservation = make_booking()
    OutboxMessage.objects.update(state="failed", next_attempt_at=None)

    resending.resend_last_email(Act(clerk, NOW, is_staff=True), reservation.pk)

    assert OutboxMessage.objects.get().state == "waiting"


# --- Reminders of meetings (B24.5) ----------------------------------------------------------------


def remind_of_meetings(now):
    return [each.pk for each in reminders.send_meeting_reminders(now=now)]


def send_due(now):
    return [each.kind for each in outbox.send_due_messages(clock=lambda: now)]


def test_reminder_is_sent_once_a_day_before_the_meeting():
    reservation = make_booking()

    assert remind_of_meetings(START - DAY - MINUTE) == []
    assert remind_of_meetings(START - DAY) == [reservation.pk]
    assert remind_of_meetings(START - DAY) == []
    assert remind_of_meetings(START - MINUTE) == []

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


def test_hours_before_the_meeting_are_a_setting(settings):
    reservation = make_booking()

    settings.REMINDER_HOURS = 0
    assert remind_of_meetings(START - DAY) == remind_of_meetings(START - MINUTE) == []
    settings.REMINDER_HOURS = 2
    assert remind_of_meetings(START - 3 * HOUR) == remind_of_meetings(START) == []
    assert remind_of_meetings(START - 2 * HOUR) == [reservation.pk]


def test_only_confirmed_meetings_have_a_reminder():
    room = make_room()
    make_draft(room=room)
    make_pending_booking()
    declined = make_pending_booking()
    approval.decline(Act(None, NOW), declined.pk)
    cancelled = make_booking(start=START)
    cancellation.cancel(Act(None, NOW), cancelled.pk)

    assert remind_of_meetings(START - DAY) == []


def test_meeting_confirmed_or_moved_within_the_last_day_has_no_reminder():
    """Its customer just got the confirmation."""
    late = START - DAY + MINUTE
    make_booking(now=late)
    approval.approve(Act(None, late), make_pending_booking().pk)
    moved_at = START - 20 * HOUR
    reschedule(make_booking(), AdministratorFactory(), start=START + 2 * HOUR, now=moved_at)
    in_time = [make_booking(now=START - DAY), make_pending_booking()]
    approval.approve(Act(None, START - DAY), in_time[1].pk)

    assert remind_of_meetings(START - HOUR) == [each.pk for each in in_time]


def test_moved_meeting_has_a_reminder_before_its_new_start():
    reservation = make_booking()
    later = START + 3 * DAY
    assert remind_of_meetings(START - DAY) == [reservation.pk]
    send_due(START - DAY)
    reschedule(reservation, AdministratorFactory(), start=later, now=START - DAY + MINUTE)

    assert remind_of_meetings(START - MINUTE) == []
    assert remind_of_meetings(later - DAY) == [reservation.pk]
    first, second = (each for each in get_emails(reservation) if each.kind == "reminder")
    assert "Mar 3" in first.subject
    assert "Mar 6" in second.subject


@pytest.mark.parametrize("change", ["cancelled", "moved"])
def test_waiting_reminder_is_withdrawn_with_the_change(change):
    reservation, other = make_booking(), make_booking()
    now = START - DAY
    send_due(now)
    assert set(remind_of_meetings(now)) == {reservation.pk, other.pk}
    if change == "cancelled":
        cancellation.cancel(Act(None, now), reservation.pk)
    else:
        reschedule(reservation, AdministratorFactory(), start=START + 3 * DAY, now=now)

    assert send_due(now + MINUTE) == ["reminder", change]
    assert not OutboxMessage.objects.waiting().exists()


def test_reminder_that_waits_for_the_mail_server_is_not_sent_after_the_start():
    reservation, other = make_booking(), make_booking(start=START + HOUR)
    send_due(START - DAY)
    remind_of_meetings(START - HOUR)
    mail.outbox.clear()

    assert send_due(START) == ["reminder"]
    [sent] = mail.outbox
    assert "10:00 AM" in sent.subject
    assert not get_emails(reservation)[1:]
    # Staff can send it again.
    message = get_email(other, "reminder")
    assert message.state == DeliveryState.SENT
    message.send_again(now=START + DAY)
    assert send_due(START + DAY) == ["reminder"]


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

    sent = run_concurrently([lambda: remind_of_meetings(START - HOUR)] * 4)

    assert sorted(pk for each in sent for pk in each) == [each.pk for each in bookings]
    assert OutboxMessage.objects.filter(kind="reminder").count() == 6
