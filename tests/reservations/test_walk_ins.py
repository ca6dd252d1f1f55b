"""Staff book what has just begun, and take its payment a quarter of an hour later (B26.10)."""

import datetime as dt

import pytest

from accounts.act import Act
from accounts.models import OutboxMessage
from reservations.booking import amendments, approval, charging, expiry, integrity, payment_links
from reservations.booking.amendments import ChangeRequest
from reservations.booking.checkout import book_draft
from reservations.models.status import Status
from roombook.errors import ReservationNotOpen, SlotUnavailable
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    START,
    PaymentFactory,
    make_draft,
    make_room,
)
from tests.reservations.payment_link_pages import find_link

pytestmark = pytest.mark.django_db

# 11:46 in Denver, on a grid of 15 minutes.
QUARTER_TO = START + 2 * HOUR + 45 * MINUTE
NOW = QUARTER_TO + MINUTE


@pytest.fixture
def room():
    return make_room()


def walk_in(room, root, start=QUARTER_TO, **fields):
    return make_draft(room=room, start=start, hours=1, now=NOW, created_by=root, **fields)


def take(draft, root, now):
    act = Act(root, now, is_staff=True)
    return book_draft(
        act, draft.pk, gateway="terminal", reference="17", shown_total=draft.total_cost
    )


@pytest.mark.parametrize("minutes", [0, 15])
def test_staff_book_the_running_slot_and_the_one_before_it(room, root, minutes):
    draft = walk_in(room, root, QUARTER_TO - minutes * MINUTE)
    assert draft.is_held_at(NOW)
    assert take(draft, root, NOW + 2 * MINUTE).status == Status.CONFIRMED
    assert not list(integrity.find_problems(now=NOW + 3 * MINUTE))


def test_what_began_earlier_and_what_a_customer_asks_for_has_passed(room, root):
    with pytest.raises(SlotUnavailable, match="passed"):
        walk_in(room, root, QUARTER_TO - 30 * MINUTE)
    with pytest.raises(SlotUnavailable, match="passed"):
        make_draft(room=room, start=QUARTER_TO, hours=1, now=NOW)


def test_what_is_over_cannot_be_booked(room, root):
    room.minimum_minutes = 15
    room.save()
    with pytest.raises(SlotUnavailable, match="passed"):
        make_draft(room=room, start=QUARTER_TO - 15 * MINUTE, hours=0.25, now=NOW, created_by=root)


@pytest.mark.parametrize("start", [QUARTER_TO, QUARTER_TO - 15 * MINUTE, START + 4 * HOUR])
def test_draft_by_staff_is_paid_until_15_minutes_after_its_start_or_creation(room, root, start):
    late = max(start, NOW) + 15 * MINUTE
    draft = walk_in(room, root, start)
    assert draft.payable_until == late
    assert not [each for each in expiry.close_overdue(now=late - MINUTE) if each == draft]
    assert not list(integrity.find_problems(now=late - MINUTE))
    assert take(draft, root, late - MINUTE).status == Status.CONFIRMED


@pytest.mark.parametrize("minutes", [15, 16])
def test_draft_that_is_not_paid_in_time_expires(room, root, minutes):
    draft = walk_in(room, root)
    late = NOW + minutes * MINUTE
    with pytest.raises(ReservationNotOpen, match="time has passed"):
        take(draft, root, late)
    assert [each.status for each in expiry.close_overdue(now=late)] == [Status.EXPIRED]


def test_draft_is_never_paid_after_its_end(room, root):
    room.minimum_minutes = 15
    room.save()
    draft = make_draft(
        room=room, start=QUARTER_TO - 15 * MINUTE, hours=0.5, now=NOW, created_by=root
    )
    assert draft.payable_until == draft.end == QUARTER_TO + 15 * MINUTE


def test_running_slot_is_offered_on_a_day_of_a_clock_change(root):
    room = make_room(time_zone_id="Australia/Lord_Howe")
    # The clock goes back by half an hour at 2:00, to 1:30.
    now = dt.datetime(2027, 4, 3, 15, 31, tzinfo=dt.UTC)
    room.center.is_after_hours_support_enabled = True
    room.center.save()
    start = dt.datetime(2027, 4, 3, 15, 15, tzinfo=dt.UTC)
    draft = make_draft(room=room, start=start, hours=1, now=now, created_by=root)
    assert draft.is_held_at(now)


def test_payment_link_of_a_walk_in_is_open_as_long_as_it_says(client, clock, room, root):
    clock.move_to(NOW)
    draft = walk_in(room, root)
    act = Act(root, NOW, is_staff=True)
    payment_links.send_link(act, draft.pk, base_url="https://rooms.example.com")
    link = find_link(OutboxMessage.objects.get(kind="payment link"))
    draft.refresh_from_db()
    assert draft.payment_link_until == draft.payable_until
    assert client.get(link).status_code == 200
    assert payment_links.can_cancel_links(draft, now=NOW)
    clock.move_to(draft.payable_until)
    assert client.get(link).status_code == 410


def test_payment_at_the_bank_waits_no_longer_than_it_can_book(room, root):
    draft = walk_in(room, root)
    late = draft.payable_until - 2 * MINUTE
    payment = PaymentFactory(reservation=draft, state="started", at=late)
    charging._wait_for_customer(draft, payment)
    assert payment.action_until == draft.payable_until


def test_request_of_a_walk_in_is_approved_until_15_minutes_after_its_start(room, root):
    room.is_live_inventory = False
    room.save()
    requests = [walk_in(room, root, QUARTER_TO + hours * HOUR) for hours in (0, 2)]
    for request in requests:
        assert take(request, root, NOW + MINUTE).status == Status.PENDING
    running, later = requests
    assert not [*expiry.close_overdue(now=NOW + 2 * MINUTE)]
    act = Act(root, NOW + 3 * MINUTE, is_staff=True)
    assert approval.approve(act, running.pk).status == Status.CONFIRMED
    too_late = later.start + 15 * MINUTE
    assert [each.pk for each in expiry.close_overdue(now=too_late) if each.pk == later.pk]


@pytest.mark.parametrize("by_staff", [True, False])
def test_draft_is_moved_to_the_running_slot_only_if_staff_made_it(room, root, by_staff):
    created_by = root if by_staff else None
    draft = make_draft(room=room, start=START + 5 * HOUR, hours=1, now=NOW, created_by=created_by)
    request = ChangeRequest(room.pk, QUARTER_TO, QUARTER_TO + HOUR)
    act = Act(root, NOW, is_staff=True)
    if by_staff:
        moved = amendments.amend(act, draft.pk, request).reservation
        assert moved.is_held_at(NOW)
    else:
        with pytest.raises(SlotUnavailable, match="passed"):
            amendments.amend(act, draft.pk, request)
