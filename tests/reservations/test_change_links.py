"""A payment link pays for a change of a booking by staff (B27.7)."""

import datetime as dt
import re
from decimal import Decimal
from itertools import cycle

import pytest
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.utils import timezone

from accounts.act import Act
from accounts.models import OutboxMessage, User
from centers.models import Center, MeetingRoom
from centers.span import Span
from payments import one_time_cards
from payments.gateways.sandbox import SandboxGateway, confirm_payment
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, PaymentSetup
from reservations import availability
from reservations.booking import cancellation, expiry, integrity, payment_links, time_zones
from reservations.models import BookingChange, Reservation, Seller, history
from reservations.models.status import Status
from roombook.errors import DomainError, InvalidRequest, ReservationNotOpen, SlotUnavailable
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import action_url, confirm, reservation_url
from tests.concurrency import run_concurrently
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    make_booking,
    make_draft,
    make_room,
)
from tests.reservations.payment_link_pages import enter_card, find_link, follow
from tests.reservations.rescheduling_helpers import (
    build_request,
    change,
    get_money,
    get_stored_values,
    make_room_at_rate,
    reschedule,
)
from tests.reservations.test_changes import interfere

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock", "data_is_consistent")]

BASE_URL = "https://rooms.example.com"
BANK_ASKS = "4000002760003184"


@pytest.fixture
def booking():
    """Three hours at 25, in a room with a turnaround."""
    room = make_room_at_rate(make_room(), 25)
    room.turnaround_minutes = 30
    room.save()
    return make_booking(room=room)


def send(booking, root, *, now=NOW, total="125", hours=5, **request):
    """Send a link for two more hours, and return its path."""
    payment_links.send_change_link(
        Act(root, now, is_staff=True),
        booking.pk,
        build_request(booking, hours=hours, **request),
        expected_total=Decimal(total),
        base_url=BASE_URL,
    )
    message = OutboxMessage.objects.filter(kind="payment link").latest("pk")
    return find_link(message)


def is_free(room, *, first, hours=1, now=NOW):
    return availability.evaluate(
        room, Span(START + first * HOUR, START + (first + hours) * HOUR), now=now
    ).is_available


# --- Paying ---------------------------------------------------------------------------------------


def test_link_holds_the_new_time_shows_the_difference_and_applies_the_change_once(
    client, booking, root
):
    before = get_stored_values(booking)

    link = send(booking, root)

    # The booking is as it was, and its new time is held, also for its own customer.
    assert get_stored_values(booking) == before
    assert not is_free(booking.room, first=4)
    with pytest.raises(SlotUnavailable):
        make_draft(booking.user, booking.room, start=START + 4 * HOUR, hours=1)
    # What holds it is no reservation of anybody.
    assert list(Reservation.objects.all()) == [booking]
    message = OutboxMessage.objects.get(kind="payment link")
    assert (message.is_secret, "It costs $50.00 more" in message.text) == (True, True)
    bill = words(client.get(link))
    assert "New price $125.00" in bill
    assert "To pay now $50.00" in bill
    assert not PaymentSetup.objects.exists()

    back = enter_card(client, link)
    for url in (back, back, link):
        assert "You have booked" in follow(client, url)

    booking.refresh_from_db()
    assert (booking.end, booking.total_cost) == (START + 5 * HOUR, 125)
    assert get_money() == [(75, 0), (50, 0)]
    assert {each.state for each in BookingChange.objects.all()} == {"applied"}
    assert not Reservation.slots.filter(holds_for__isnull=False).exists()
    assert history.get_changes(booking).first().actor == root
    call_command("reconcile_payments")
    assert not list(integrity.find_problems(now=timezone.now()))


def test_declined_card_leaves_the_booking_and_another_card_pays(client, booking, root):
    before, link = get_stored_values(booking), send(booking, root)

    back = enter_card(client, link, number="4000000000000341")
    assert "was declined" in follow(client, back)
    assert "was declined" in follow(client, back)

    assert get_stored_values(booking) == before
    assert not is_free(booking.room, first=4)
    assert "You have booked" in follow(client, enter_card(client, link))
    assert get_money() == [(75, 0), (0, 0), (50, 0)]


def test_running_meeting_is_extended_by_a_link_that_ends_with_it(client, booking, root, clock):
    running = START + 2 * HOUR
    clock.move_to(running)
    link = send(booking, root, now=running)
    assert BookingChange.objects.get().link_until == booking.end
    # What has begun cannot be cancelled.
    assert "ancel" not in words(client.get(link))

    clock.move_to(booking.end - MINUTE)
    back = enter_card(client, link, number=BANK_ASKS)
    assert "Open the page of your bank" in follow(client, back)
    # The customer has time for that also after the end of the link.
    held = Reservation.slots.get(holds_for=booking.pk)
    assert held.hold_until == Payment.objects.latest("pk").action_until > booking.end
    # Nobody cancels the link, or sends another one, while somebody pays.
    with pytest.raises(ReservationNotOpen, match="under way"):
        cancel_link(booking, root)
    with pytest.raises(ReservationNotOpen, match="under way"):
        send(booking, root, now=running)
    confirm_payment(SandboxPayment.objects.latest("pk").secret)

    assert "You have booked" in follow(client, link)
    booking.refresh_from_db()
    assert booking.end == START + 5 * HOUR


def test_link_for_another_room_holds_it_and_not_more(client, booking, root):
    former, other = booking.room, make_room_at_rate(booking.room, 50)
    MeetingRoom.objects.filter(pk=other.pk).update(name="Birch")
    link = send(booking, root, room=other, hours=3, total="150")

    # E-mail and event name the booking as it still is.
    assert "Birch" not in OutboxMessage.objects.get(kind="payment link").subject
    assert history.get_changes(booking)[0].unpublished_event["RoomId"] == former.pk
    assert not is_free(other, first=0)
    assert is_free(other, first=3)
    assert "You have booked" in follow(client, enter_card(client, link, "75.00"))
    booking.refresh_from_db()
    assert booking.room == other
    assert is_free(former, first=0)


def test_page_of_a_move_names_the_new_center_and_its_seller_and_the_terms_of_the_new_time(
    client, booking, root
):
    other = make_room_at_rate(make_room(), 50)
    other.center.name = "Elsewhere"
    other.center.save()
    Seller.objects.create(center=other.center, legal_name="Elsewhere LLC")
    start = START + dt.timedelta(days=6)
    page = words(client.get(send(booking, root, room=other, start=start, hours=3, total="150")))
    assert "Elsewhere LLC Elsewhere, " in page
    assert "Cancel free of charge until Mon, Mar 8, 2027, 9:00 AM. After that, nothing." in page


# --- The end of a link ----------------------------------------------------------------------------


def test_expired_link_releases_the_time_and_can_be_sent_again(client, booking, root, clock, office):
    before, link = get_stored_values(booking), send(booking, root)
    until = BookingChange.objects.get().link_until
    clock.move_to(until)
    office.force_login(root)

    assert client.get(link).status_code == 410
    assert is_free(booking.room, first=4, now=until)
    assert "not paid: the booking is as it was" in words(office.get(reservation_url(booking)))
    assert get_stored_values(booking) == before

    done = confirm(office, booking, "send-link-again")
    assert "The link is sent" in messages_of(done)[0][1]
    assert client.get(link).status_code == 410
    assert not is_free(booking.room, first=4, now=until)
    message = OutboxMessage.objects.filter(kind="payment link").latest("pk")
    again = re.search(r"/pay/[\w:-]+", message.text)[0]
    assert "You have booked" in follow(client, enter_card(client, again))


def cancel_link(booking, root):
    payment_links.cancel_link(Act(root, NOW, is_staff=True), booking.pk)


def change_time_zone(booking, root):
    center = booking.room.center
    center.time_zone_id = "America/Chicago"
    center.save()
    time_zones.keep_times(
        Center,
        center=center,
        former_zone="America/Denver",
        keeps_instants=False,
        by=root,
        now=NOW,
    )


OTHERS = {
    "cancelled link": cancel_link,
    "cancelled booking": lambda booking, root: cancellation.cancel(
        Act(root, NOW, is_staff=True), booking.pk
    ),
    "another change by staff": lambda booking, root: reschedule(booking, root, hours=2),
    "change by the customer": lambda booking, root: change(booking, hours=4, total=100),
    "another link": lambda booking, root: send(booking, root, hours=4, total="100"),
    "another time zone": change_time_zone,
}


@pytest.mark.parametrize(
    ("other", "is_card_entered"), [*zip(OTHERS, cycle([True, False]), strict=False)]
)
def test_link_ends_when_staff_cancel_it_or_the_booking_changes(
    client, booking, root, other, is_card_entered
):
    link = send(booking, root)
    url = enter_card(client, link) if is_card_entered else link
    OTHERS[other](booking, root)

    assert "This link has ended" in follow(client, url)

    waiting = BookingChange.objects.filter(payment=None).earliest("pk")
    assert (waiting.state, waiting.personal_values) == ("abandoned", None)
    held = Reservation.slots.filter(holds_for__isnull=False)
    assert held.count() == (other == "another link")
    assert not Payment.objects.filter(is_by_link=True).exists()
    assert SandboxPayment.objects.count() == 1 + (other == "change by the customer")


@pytest.mark.parametrize("event", ["cancelled", "disabled"])
def test_link_that_ends_between_its_check_and_the_claim_charges_nothing(
    client, booking, root, monkeypatch, event
):
    back = enter_card(client, send(booking, root))
    account = User.objects.filter(pk=booking.user_id)
    ends = {
        "cancelled": lambda: cancel_link(booking, root),
        "disabled": lambda: account.update(is_active=False),
    }
    interfere(monkeypatch, one_time_cards, "fetch_card", ends[event], before=False)

    assert "This link has ended" in follow(client, back)

    assert get_money() == [(75, 0)]


def test_booking_that_is_over_ends_the_change_that_waits(booking, root, clock):
    send(booking, root)
    clock.move_to(booking.end)

    assert list(expiry.close_overdue(now=booking.end)) == [booking]

    assert BookingChange.objects.get().state == "abandoned"
    assert not Reservation.slots.filter(holds_for__isnull=False).exists()


def test_link_whose_price_has_changed_charges_nothing(client, booking, root):
    link = send(booking, root)
    booking.room.rate.hourly = Decimal(30)
    booking.room.rate.save()

    answer = words(client.post(link, {"total": "50.00"}))

    assert "The price has changed since the link was sent" in answer
    assert not PaymentSetup.objects.exists()


@pytest.mark.parametrize(
    ("request_", "total", "error"),
    [
        ({"hours": 2}, "50", InvalidRequest),
        ({"hours": 5}, "124", ReservationNotOpen),
        ({"hours": 6}, "150", SlotUnavailable),
    ],
)
def test_change_that_needs_no_payment_or_is_impossible_gets_no_link(
    booking, root, request_, total, error
):
    make_booking(room=booking.room, start=START + 6 * HOUR, hours=1)
    before = get_stored_values(booking)

    with pytest.raises(error):
        send(booking, root, total=total, **request_)

    assert get_stored_values(booking) == before
    assert not BookingChange.objects.exists()
    assert not OutboxMessage.objects.filter(kind="payment link").exists()


# --- Crashes and rivals ---------------------------------------------------------------------------


class Killed(BaseException):
    """Ends a request as the death of its worker does."""


def crash_after(monkeypatch, owner, name, *, before=False):
    real = getattr(owner, name)

    def crash(*args, **kwargs):
        if not before:
            real(*args, **kwargs)
        monkeypatch.setattr(owner, name, real)
        raise Killed

    monkeypatch.setattr(owner, name, crash)


@pytest.mark.parametrize(
    ("name", "before", "is_applied"),
    [("authorize", True, False), ("authorize", False, True), ("capture", False, True)],
)
def test_worker_that_dies_while_a_link_is_paid_leaves_one_outcome(
    client, booking, root, clock, monkeypatch, name, before, is_applied
):
    link = send(booking, root)
    back = enter_card(client, link)
    crash_after(monkeypatch, SandboxGateway, name, before=before)
    with pytest.raises(Killed):
        client.get(back)

    clock.move_to(NOW + 2 * MINUTE)
    call_command("reconcile_payments")

    booking.refresh_from_db()
    assert booking.total_cost == (125 if is_applied else 75)
    assert sum(captured - refunded for captured, refunded in get_money()) == booking.total_cost
    text = "You have booked" if is_applied else "To pay now $50.00"
    assert text in follow(client, link)
    assert is_applied == (not Reservation.slots.filter(holds_for__isnull=False).exists())


@pytest.mark.django_db(transaction=True)
def test_two_payers_of_a_link_and_the_customer_at_once_pay_for_one_change(client, booking, root):
    link = send(booking, root)
    backs = [enter_card(client, link) for _ in range(2)]

    run_concurrently(
        [
            *(lambda back=back: follow(Client(), back) for back in backs),
            lambda: change(booking, hours=5, total=125),
            lambda: cancel_link(booking, root),
        ],
        losers=(DomainError,),
    )
    call_command("reconcile_payments")

    booking.refresh_from_db()
    assert booking.total_cost in {75, 125}
    assert sum(captured - refunded for captured, refunded in get_money()) == booking.total_cost
    assert not Reservation.slots.filter(holds_for__isnull=False).exists()


def test_database_lets_a_held_slot_overlap_only_its_own_booking(booking, root):
    send(booking, root)
    held = Reservation.slots.get(holds_for=booking)
    other = make_booking(room=booking.room, start=START + 24 * HOUR)

    other.start, other.end = held.start, held.end
    with pytest.raises(SlotUnavailable), transaction.atomic():
        other.save()
    assert Reservation.objects.get(pk=other.pk).status == Status.CONFIRMED


# --- In the back office ---------------------------------------------------------------------------


def test_staff_send_and_cancel_a_link_for_an_extension(client, booking, office, clock):
    shown = office.post(
        action_url(booking, "extend"),
        {"end_0": "2027-03-03", "end_1": "14:00", "way": "link"},
    )
    assert "To pay by the link $50.00" in words(shown)
    sent = dict(shown.context["submitted"])
    done = confirm(office, booking, "extend", **sent, expected_amount="125.00")
    assert "The link is sent within a minute" in messages_of(done)[0][1]

    page = words(office.get(reservation_url(booking)))
    assert "Payment link $50.00. Sent, can be paid until" in page

    confirm(office, booking, "cancel-link")
    assert BookingChange.objects.get().state == "abandoned"
    assert is_free(booking.room, first=4)
