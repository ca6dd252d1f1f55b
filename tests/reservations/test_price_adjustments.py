"""Price adjustments by staff, and their effect on the payment."""

import datetime as dt
from decimal import Decimal

import pytest

from reservations.booking import approval, price_adjustments
from reservations.models import LineItemType, history
from reservations.models.status import Status
from reservations.notifications import emails
from roombook.errors import ReservationNotOpen
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    ReservationFactory,
    make_booking,
    make_draft,
    make_room,
)
from tests.reservations.rescheduling_helpers import (
    get_net_payment,
    get_stored_values,
    make_room_at_rate,
    preview_reschedule,
    reschedule,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.time_machine(NOW, tick=False),
    pytest.mark.usefixtures("data_is_consistent"),
]

DAY = dt.timedelta(days=1)


def adjust(reservation, by, amount, now=NOW, **how):
    return price_adjustments.adjust_price(
        reservation.pk, amount=Decimal(amount), reason="Projector broke", by=by, now=now, **how
    )


def test_adjustment_that_lowers_the_price_refunds_the_difference(clerk):
    room = make_room()
    room.center.tax_rate = Decimal(8)
    room.center.save()
    reservation = make_booking(room=room)
    assert reservation.total_cost == 81
    room.rate.hourly = 99  # the bill is not repriced
    room.rate.save()

    would = price_adjustments.preview(
        reservation.pk, amount=Decimal(-25), reason="Projector broke", by=clerk, now=NOW
    )
    done = adjust(reservation, clerk, -25)

    assert (would.new_total, would.refund) == (done.new_total, done.refund) == (54, 27)
    reservation.refresh_from_db()
    assert (reservation.total_cost, reservation.reduced_by, get_net_payment()) == (54, 27, 54)
    assert [line.total for line in reservation.line_items.order_by("position")] == [75, -25, 4]
    assert "Projector broke" in emails.get_last_email(reservation).text


def test_adjustment_after_the_meeting_can_lower_the_price(clerk):
    reservation = make_booking()
    after = START + 4 * HOUR
    list(approval.close_overdue(now=after))

    assert adjust(reservation, clerk, -200, now=after).refund == 75
    assert get_net_payment() == 0
    with pytest.raises(ReservationNotOpen, match="nothing left"):
        adjust(reservation, clerk, -5, now=after)


def test_adjustment_that_raises_a_paid_price_is_refused(clerk):
    reservation = make_booking()

    with pytest.raises(ReservationNotOpen, match="only be lowered"):
        adjust(reservation, clerk, 5)


@pytest.mark.inconsistent_data
@pytest.mark.parametrize("status", [Status.PENDING, Status.PROCESSING, Status.CANCELLED])
def test_adjustment_of_pending_or_closed_reservation_is_refused(clerk, status):
    with pytest.raises(ReservationNotOpen):
        adjust(ReservationFactory(status=status), clerk, -5)


def test_adjustment_with_outdated_price_is_refused(clerk):
    reservation = make_draft()

    with pytest.raises(ReservationNotOpen, match="price has changed"):
        adjust(reservation, clerk, -5, expected_total=Decimal(75))
    assert adjust(reservation, clerk, -5, expected_total=Decimal(70)).new_total == 70


def test_adjustment_of_rescheduled_booking_stays_on_its_bill(clerk):
    reservation = make_booking()
    adjust(reservation, clerk, -5)

    reschedule(reservation, clerk, start=START + DAY)

    reservation.refresh_from_db()
    assert (reservation.total_cost, get_net_payment()) == (70, 70)


def get_adjustments(reservation):
    """Return the stored amounts of the adjustments, which add up to those on the bill."""
    amounts = [each.amount for each in reservation.price_adjustments.order_by("pk")]
    lines = reservation.line_items.filter(type=LineItemType.ADJUSTMENT)
    assert sum(amounts) == sum(line.total for line in lines)
    return amounts


def test_adjustment_is_stored_as_applied_and_not_increased_by_reschedule(clerk):
    room = make_room()
    room.center.tax_rate = Decimal("8.82")
    room.center.save()
    room.rate = make_room_at_rate(room, "16.67").rate  # 3 hours with tax: 54.42
    room.save()
    reservation = make_booking(room=room)
    assert reservation.total_cost == Decimal("54.42")

    done = adjust(reservation, clerk, -1000)

    assert (done.new_total, done.refund) == (0, Decimal("54.42"))
    assert get_adjustments(reservation) == [Decimal("-50.01")]
    assert history.get_changes(reservation)[0].changes["adjustment"] == [
        None,
        "-$50.01: Projector broke",
    ]
    would = preview_reschedule(reservation, clerk, room=make_room_at_rate(room, 40))
    assert would.new_total == Decimal("76.16")  # 120 - 50.01 and tax
    assert would.can_be_waived


@pytest.mark.parametrize("make", [make_booking, make_draft])
def test_adjustments_add_up_to_the_bill(clerk, make):
    reservation = make()

    adjust(reservation, clerk, -25)
    adjust(reservation, clerk, -1000)

    assert get_adjustments(reservation) == [-25, -50]


def test_draft_rescheduled_to_more_expensive_room_pays_the_difference(clerk):
    reservation = make_draft()
    adjust(reservation, clerk, -1000)

    done = reschedule(reservation, clerk, room=make_room_at_rate(reservation.room, 40))

    assert done.new_total == 45
    assert get_adjustments(reservation) == [-75]


def test_adjustment_of_free_draft_is_refused(clerk):
    reservation = make_draft()
    adjust(reservation, clerk, -1000)

    for attempt in (adjust, lambda *how: adjust(*how, expected_total=Decimal(0))):
        with pytest.raises(ReservationNotOpen, match="nothing left"):
            attempt(reservation, clerk, -50)

    assert get_adjustments(reservation) == [-75]
    assert adjust(reservation, clerk, 5).new_total == 5  # raising the price is still possible


def test_adjustment_submitted_twice_is_applied_once(clerk):
    """Even if the new total equals the expected one and the price can still be reduced."""
    reservation = make_draft()
    seen = {"expected_old_total": Decimal(75), "expected_total": Decimal(0)}
    adjust(reservation, clerk, -1000, **seen)
    adjust(reservation, clerk, 7)
    before = get_stored_values(reservation)

    with pytest.raises(ReservationNotOpen, match=r"The price has changed: it comes to \$7.00"):
        adjust(reservation, clerk, -1000, **seen)

    assert get_stored_values(reservation) == before
    assert get_adjustments(reservation) == [-75, 7]
