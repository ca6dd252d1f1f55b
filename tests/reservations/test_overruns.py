"""Staff bill a meeting that has lasted longer, until half an hour after its end (B27.8)."""

import functools
from decimal import Decimal

import pytest
from django.core.management import call_command

from accounts.act import Act
from payments.gateways.sandbox import SandboxGateway, confirm_payment
from payments.gateways.sandbox_models import SandboxPayment
from reservations.booking import account_erasure, attendance, expiry, integrity
from reservations.booking.amendments import TakenPayment
from reservations.models import Reservation, history
from reservations.models.status import Status
from roombook.errors import DomainError, ReservationNotOpen, SlotUnavailable
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import action_url, confirm, reservation_url
from tests.concurrency import run_concurrently
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    START,
    make_booking,
    make_draft,
    make_room,
)
from tests.reservations.payment_link_pages import enter_card, follow
from tests.reservations.rescheduling_helpers import (
    change,
    charge,
    get_money,
    make_room_at_rate,
    reschedule,
)
from tests.reservations.test_change_links import send
from tests.reservations.test_changes import interfere

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("ends_consistent")]

END = START + 3 * HOUR
LATE = END + 20 * MINUTE
CASH = TakenPayment("cash")


@pytest.fixture
def booking():
    """Three hours at 25."""
    return make_booking(room=make_room_at_rate(make_room(), 25))


def complete(now):
    return [*expiry.close_overdue(now=now)]


@pytest.mark.parametrize("is_completed", [True, False])
@pytest.mark.parametrize(("hours", "total", "is_over"), [(3.25, "81.25", True), (5, "125", False)])
def test_meeting_that_is_over_is_extended_until_what_was_used_or_until_later(
    booking, root, is_completed, hours, total, is_over
):
    if is_completed:
        assert complete(END + MINUTE) == [booking]

    done = reschedule(booking, root, hours=hours, now=LATE, taken=CASH)

    booking.refresh_from_db()
    paid = Decimal(total) - 75
    assert (done.charge, booking.total_cost, booking.end) == (
        *(paid, Decimal(total), START + hours * HOUR),
    )
    # It has the room, and is completed again, if it takes place now.
    is_open = not (is_completed and is_over)
    assert booking.status == (Status.CONFIRMED if is_open else Status.COMPLETED)
    assert booking.holds_slot == is_open
    assert complete(START + 6 * HOUR) == ([booking] if is_open else [])


def test_saved_card_pays_although_the_job_completes_the_booking_meanwhile(
    booking, root, monkeypatch
):
    SavedCardFactory(user=booking.user)
    interfere(monkeypatch, SandboxGateway, "authorize", lambda: complete(LATE), before=True)

    outcome = charge(booking, root, total="87.50", hours=3.5, now=LATE)

    assert (outcome.is_applied, outcome.charge) == (True, Decimal("12.50"))
    assert get_money() == [(75, 0), (Decimal("12.50"), 0)]
    entry = history.get_changes(booking).first()
    assert entry.changes["end"][1] == (START + 3.5 * HOUR).isoformat()


@pytest.mark.parametrize("is_completed", [True, False])
def test_link_for_what_was_used_can_be_paid_for_a_day(client, booking, root, clock, is_completed):
    clock.move_to(LATE)
    if is_completed:
        complete(LATE)
    link = send(booking, root, now=LATE, hours=3.5, total="87.50")
    clock.move_to(LATE + 23 * HOUR)
    complete(LATE + 22 * HOUR)

    assert "You have booked" in follow(client, enter_card(client, link))

    booking.refresh_from_db()
    assert (booking.status, booking.total_cost) == (Status.COMPLETED, Decimal("87.50"))
    call_command("reconcile_payments")
    assert get_money() == [(75, 0), (Decimal("12.50"), 0)]


@pytest.mark.parametrize(
    ("hours", "total", "until"),
    [(3.25, "81.25", LATE + 24 * HOUR), (5, "125", START + 5 * HOUR)],
)
def test_link_of_a_meeting_that_is_over_holds_its_time_for_a_day_or_the_longer_stay(
    booking, root, clock, hours, total, until
):
    clock.move_to(LATE)
    send(booking, root, now=LATE, hours=hours, total=total)
    assert booking.changes.get().link_until == until
    assert Reservation.slots.get(holds_for=booking.pk).end == START + hours * HOUR


def test_link_that_nobody_paid_ends_with_its_day(client, booking, root, clock):
    clock.move_to(LATE)
    link = send(booking, root, now=LATE, hours=3.5, total="87.50")
    assert complete(LATE + HOUR) == [booking]
    assert booking.changes.get().state == "started"

    clock.move_to(LATE + 25 * HOUR)
    complete(LATE + 25 * HOUR)

    assert booking.changes.get().state == "abandoned"
    assert not Reservation.slots.filter(holds_for__isnull=False).exists()
    assert client.get(link).status_code == 410


def test_link_that_ends_while_its_payer_is_at_the_bank_is_paid(client, booking, root, clock):
    clock.move_to(LATE)
    link = send(booking, root, now=LATE, hours=3.5, total="87.50")
    complete(LATE + HOUR)
    clock.move_to(LATE + 24 * HOUR - MINUTE)
    back = enter_card(client, link, number="4000002760003184")
    assert "Open the page of your bank" in follow(client, back)

    clock.move_to(LATE + 24 * HOUR + MINUTE)
    complete(LATE + 24 * HOUR + MINUTE)
    confirm_payment(SandboxPayment.objects.latest("pk").secret)
    call_command("reconcile_payments")

    assert get_money() == [(75, 0), (Decimal("12.50"), 0)]
    assert {each.state for each in booking.changes.all()} == {"applied"}


def test_erasure_of_the_account_ends_the_link_with_its_guests(client, booking, root, clock):
    clock.move_to(LATE)
    complete(LATE)
    guests = [{"name": "Grace Hopper", "email_address": "grace@example.com"}]
    link = send(booking, root, now=LATE, hours=3.5, total="87.50", attendees=guests)
    assert booking.changes.get().personal_values

    account_erasure.erase_account(booking.user_id, by=root, now=LATE)

    change = booking.changes.get()
    assert (change.state, change.personal_values) == ("abandoned", None)
    assert not Reservation.slots.filter(holds_for__isnull=False).exists()
    assert client.get(link).status_code == 410


@pytest.mark.inconsistent_data  # The other meeting is shortened by SQL.
def test_room_that_somebody_else_has_or_had_is_not_billed(booking, root):
    other = make_booking(room=booking.room, start=END, hours=0.5)
    for has_left in (False, True):
        if has_left:
            Reservation.objects.filter(pk=other.pk).update(end=END + 15 * MINUTE)
        complete(LATE)
        other.refresh_from_db()
        assert other.status == (Status.COMPLETED if has_left else Status.CONFIRMED)
        with pytest.raises(SlotUnavailable):
            reschedule(booking, root, hours=3.5, now=LATE, taken=CASH)


@pytest.mark.parametrize("is_completed", [True, False])
@pytest.mark.parametrize("by_link", [True, False])
def test_overrun_within_a_turnaround_is_billed_and_holds_nothing(
    client, booking, root, clock, is_completed, by_link
):
    booking.room.turnaround_minutes = 30
    booking.room.save()
    make_booking(room=booking.room, start=END + 30 * MINUTE, hours=1)
    clock.move_to(LATE)
    if is_completed:
        complete(LATE)

    if by_link:
        link = send(booking, root, now=LATE, hours=3.5, total="87.50")
        assert "You have booked" in follow(client, enter_card(client, link))
    else:
        reschedule(booking, root, hours=3.5, now=LATE, taken=CASH)

    booking.refresh_from_db()
    assert (booking.status, booking.total_cost) == (Status.COMPLETED, Decimal("87.50"))
    call_command("reconcile_payments")


def test_overrun_after_closing_time_is_billed_and_a_longer_stay_is_not(root):
    booking = make_booking(room=make_room_at_rate(make_room(), 25), start=START + 6 * HOUR)
    end = START + 9 * HOUR  # 18:00, when the center closes
    request = {"start": booking.start, "now": end + 10 * MINUTE, "taken": CASH}

    with pytest.raises(SlotUnavailable, match="closed"):
        reschedule(booking, root, hours=4, **request)
    assert reschedule(booking, root, hours=3.25, **request).charge == Decimal("6.25")


@pytest.mark.parametrize("problem", ["later", "customer", "no-show", "shorter"])
def test_overrun_is_not_billed_after_half_an_hour_by_customers_or_for_a_no_show(
    booking, root, problem
):
    complete(END)
    if problem == "no-show":
        attendance.mark_no_show(Act(root, END, is_staff=True), booking.pk)
    now = END + 30 * MINUTE if problem == "later" else LATE
    hours = 2 if problem == "shorter" else 3.5
    extend = functools.partial(reschedule, booking, root, hours=hours, now=now, taken=CASH)
    if problem == "customer":
        extend = functools.partial(change, booking, hours=3.5, total="87.50", now=LATE)
    with pytest.raises(ReservationNotOpen):
        extend()
    assert get_money() == [(75, 0)]


def test_desk_bills_the_overrun_at_the_terminal_on_the_page(clock, client, booking, root):
    clock.move_to(LATE)
    complete(LATE)
    client.force_login(root)
    url = action_url(booking, "extend")
    end = {"end_0": "2027-03-03", "end_1": "12:15", "way": "terminal", "reference": "slip 9"}

    assert "Charge $6.25, Card terminal" in words(client.post(url, end))
    done = confirm(client, booking, "extend", **end, expected_amount="81.25")

    assert "$6.25 paid at the card terminal." in messages_of(done)[0][1]
    assert booking.payments.get(purpose="change").reference == "slip 9"
    assert "Completed" in words(client.get(reservation_url(booking)))


@pytest.mark.django_db(transaction=True)
def test_overrun_and_a_walk_in_at_the_same_time_have_the_room_one_after_the_other(booking, root):
    complete(END)

    results = run_concurrently(
        [
            lambda: reschedule(booking, root, hours=4, now=LATE, taken=CASH),
            lambda: make_draft(
                room=booking.room, start=END + 15 * MINUTE, now=LATE, created_by=root
            ),
        ],
        losers=(DomainError,),
    )

    assert results.count("SlotUnavailable") == 1
    booking.refresh_from_db()
    assert booking.total_cost in {75, 100}
    assert not list(integrity.find_problems(now=LATE))
