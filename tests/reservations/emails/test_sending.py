"""Which e-mails about their reservations customers get, and when."""

import pytest
from django.urls import reverse

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
from tests.factories_people import StaffFactory
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
)
from tests.reservations.emails.helpers import DAY, get_email, get_emails, get_visible_text

pytestmark = pytest.mark.django_db


def get_kinds(reservation):
    return [each.kind for each in get_emails(reservation)]


# --- When e-mails are sent ----------------------------------------------------------------------


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
    payment_recovery.resolve_payments(reservation.pk, user=reservation.user, now=later)

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
    sent, waiting = "Sent Mon 2027-03-01 09:00 MST", "Waiting Mon 2027-03-01 10:00 MST"
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
    OutboxMessage.objects.update(state="failed", next_attempt_at=None)

    reminders.resend_last_email(reservation.pk, by=clerk, now=NOW)

    assert OutboxMessage.objects.get().state == "waiting"
