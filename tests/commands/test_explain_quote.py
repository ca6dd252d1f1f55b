"""The explain_quote command: how a price is calculated."""

import re
from decimal import Decimal

import pytest
import time_machine
from django.core.management import CommandError

from reservations.booking import checkout
from reservations.models import Reservation
from tests.factories_centers import FlatRateFactory, ServiceFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    NOW,
    AllowanceFactory,
    PromoCodeFactory,
    make_draft,
    make_payment_method,
    make_room,
    update_promo_code,
)

pytestmark = pytest.mark.django_db

RATE = [
    "Rate: $25.00/hour, $90.00/half day, $160.00/day",
    "Each started quarter of an hour is billed.",
]


@pytest.fixture(autouse=True)
def _clock():
    with time_machine.travel(NOW, tick=False):
        yield


def words(room, *more, start="2027-03-03T09:00", end="2027-03-03T14:00"):
    return ("--room", room.pk, "--start", start, "--end", end, *more)


def test_quote_of_room_and_services_is_the_list_price(run):
    room = make_room()
    room.center.tax_rate = 10
    room.center.save()
    coffee = ServiceFactory(
        center=room.center, name="Coffee", needs_quantity=True, minimum_booking=6
    )

    said = run("explain_quote", *words(room, "--service", f"{coffee.pk}:4"))

    lines = said.splitlines()
    assert lines[:4] == [
        "List price of Boardroom at Glenarm, Wed, Mar 3, 2027, 9:00 AM - 2:00 PM",
        *RATE,
        "  2027-03-03, 5 hours billed: half day + 1 hour at $115.00; 5 hours would be $125.00,"
        " day would be $160.00, 2 half days would be $180.00",
    ]
    assert [re.split("  +", line.strip()) for line in lines[4:]] == [
        [
            "Room",
            "Boardroom, 5 hours: half day + 1 hour ($90.00/half day + $25.00/hour)",
            "$115.00",
        ],
        [
            "Service",
            "Coffee, 6 pieces (the minimum; 4 selected) ($15.00 flat)",
            "$90.00",
        ],
        ["Tax", "Tax, 10%", "$20.50"],
        ["Total", "$225.50"],
    ]
    assert not Reservation.objects.exists()


def test_quote_lists_each_day_separately(run):
    said = run(
        "explain_quote", *words(make_room(), start="2027-03-03T20:00", end="2027-03-04T09:00")
    )

    assert "  2027-03-03, 4 hours billed: half day at $90.00; 4 hours would be $100.00" in said
    assert "  2027-03-04, 9 hours billed: day at $160.00; 2 half days + 1 hour would be" in said


def test_quote_of_flat_rate_has_no_days(run):
    room = make_room()
    room.rate = FlatRateFactory(center=room.center, setup_fee=Decimal(20))
    room.save()

    lines = run("explain_quote", *words(room)).splitlines()

    assert lines[1:3] == [
        "Rate: $50.00 flat; set-up $20.00",
        "A flat rate: the same for any time.",
    ]
    assert lines[-1].split() == ["Total", "$70.00"]


@pytest.fixture
def discounted():
    """A reservation of five hours, two of them included, with ten percent off the rest."""
    ada = UserFactory(email="ada@example.com")
    AllowanceFactory(user=ada, description="Plan", hours=2)
    PromoCodeFactory(code="TEN")
    reservation = make_draft(ada, hours=5)
    return update_promo_code(reservation.pk, "TEN", user=ada, now=NOW)


def test_quote_of_reservation_has_allowances_and_promo_code(run, discounted):
    said = run("explain_quote", "--reservation", discounted.pk)

    assert said.splitlines() == [
        f"Reservation {discounted.pk} (New) of ada@example.com: Boardroom at Glenarm,"
        " Wed, Mar 3, 2027, 9:00 AM - 2:00 PM",
        *RATE,
        "  2027-03-03, 5 hours billed: half day + 1 hour at $115.00; 5 hours would be $125.00,"
        " day would be $160.00, 2 half days would be $180.00",
        "Allowance Plan: 2 of 5 billable hours, -$46.00 of the room's line.",
        "Promo code TEN: off room, set-up and services less allowances, $69.00.",
        "  Room       Boardroom, 5 hours: half day + 1 hour ($90.00/half day + $25.00/hour)"
        "  $115.00",
        "  Allowance  Plan, 2 hours"
        "                                                          -$46.00",
        "  Promotion  Promo code TEN, 10% off"
        "                                                 -$6.90",
        "  Total"
        "                                                                              $62.10",
    ]


def test_quote_of_draft_shows_its_current_price(run, discounted):
    rate = discounted.room.rate
    rate.hourly = Decimal(35)
    rate.save()

    said = run("explain_quote", "--reservation", discounted.pk)

    kept = "By today's rate the room would be $125.00; the reservation keeps $115.00."
    assert kept in said
    assert "If it were repriced, it would cost $67.50:" in said
    discounted.refresh_from_db()
    assert discounted.total_cost == Decimal("62.10")


def test_quote_of_booking_shows_only_the_price_paid(run, discounted):
    checkout.check_out(
        discounted.pk, user=discounted.user, payment_method=make_payment_method(), now=NOW
    )
    rate = discounted.room.rate
    rate.hourly = Decimal(35)
    rate.save()

    said = run("explain_quote", "--reservation", discounted.pk)

    assert "(Confirmed)" in said
    assert "the reservation keeps $115.00" in said
    assert "If it were repriced" not in said


def test_quote_of_room_without_a_rate_is_refused(run, discounted):
    room = discounted.room
    room.rate = None
    room.save()

    said = run("explain_quote", "--reservation", discounted.pk)

    assert "By today's rates it has no price" in said
    assert "If it were repriced, it would be refused" in said
    with pytest.raises(CommandError, match="no price yet"):
        run("explain_quote", *words(room))


def test_quote_needs_a_reservation_or_a_span(run, discounted):
    with pytest.raises(CommandError, match=r"Give --room or --reservation\."):
        run("explain_quote")
    with pytest.raises(CommandError, match=r"Give both --start and --end, or neither\."):
        run("explain_quote", *words(discounted.room)[:4])
    with pytest.raises(CommandError, match=r"stands alone, without --room, --start, --end\."):
        run("explain_quote", *words(discounted.room), "--reservation", discounted.pk)
    with pytest.raises(CommandError, match=r"There is no reservation 99999\."):
        run("explain_quote", "--reservation", 99999)
    with pytest.raises(CommandError, match="--service 0 service_id"):
        run("explain_quote", *words(discounted.room), "--service", 99999)
    with pytest.raises(CommandError, match="--start: The clock skips this time"):
        run("explain_quote", *words(discounted.room, start="2027-03-14T02:30", end="2027-03-14T09"))
