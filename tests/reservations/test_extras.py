"""Staff add services and extras to the bill of a meeting until noon of the next day (B27.9)."""

import datetime as dt
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command

from accounts.models import CenterRole, OutboxMessage
from payments.ledger.accounts import Account
from payments.models import Payment
from reservations.booking import expiry, integrity
from reservations.booking.amendments import TakenPayment
from reservations.models import PriceAdjustment, Reservation, history
from reservations.models.status import Status
from roombook.errors import DomainError, InvalidRequest, PromoCodeInvalid, ReservationNotOpen
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import action_url, confirm, reservation_url
from tests.concurrency import run_concurrently
from tests.factories_centers import ServiceFactory
from tests.factories_people import AdministratorFactory, SavedCardFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    PromoCodeFactory,
    make_booking,
    make_draft,
    make_room,
    pay,
)
from tests.reservations.payment_link_pages import enter_card, follow
from tests.reservations.receipts.helpers import issue, make_seller
from tests.reservations.rescheduling_helpers import (
    adjust,
    charge,
    get_money,
    make_room_at_rate,
    reschedule,
)
from tests.reservations.test_change_links import send

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("ends_consistent")]

END = START + 3 * HOUR
# The meeting ends at noon, so that is 24 hours later.
LAST = END + 24 * HOUR - dt.timedelta(seconds=1)
COFFEE = {"text": "Coffee for ten", "amount": Decimal(30)}
CASH = TakenPayment("cash")


@pytest.fixture
def booking():
    """Three hours at 25, with 8 % of tax: 81."""
    room = make_room_at_rate(make_room(), 25)
    room.center.tax_rate = 8
    room.center.save()
    return make_booking(room=room)


def lines_of(booking):
    return [(each.type, each.total) for each in booking.line_items.order_by("position")]


def add(booking, root, *extras, now=LAST, **options):
    values = {"extras": extras or [COFFEE]}
    return reschedule(booking, root, values=values, now=now, taken=CASH, **options)


@pytest.mark.parametrize("now", [START + HOUR, END + HOUR, LAST])
def test_extra_is_a_taxed_line_that_does_not_reprice_the_booking(booking, root, now):
    booking.room.rate.hourly = 40
    booking.room.rate.save()
    [*expiry.close_overdue(now=now)]

    done = add(booking, root, COFFEE, {"text": "Pens", "amount": Decimal("0.05")}, now=now)

    booking.refresh_from_db()
    assert lines_of(booking) == [
        ("Room", 75),
        ("Extra", 30),
        ("Extra", Decimal("0.05")),
        ("Tax", Decimal("8.40")),
    ]
    assert (done.charge, booking.total_cost) == (Decimal("32.45"), Decimal("113.45"))
    assert Payment.objects.get(purpose="change").amount == Decimal("32.45")
    assert booking.status == (Status.CONFIRMED if now < END else Status.COMPLETED)
    [entry, *_] = history.get_changes(booking)
    assert entry.changes["extras"] == [None, "Coffee for ten $30.00, Pens $0.05"]
    message = OutboxMessage.objects.latest("pk")
    assert "What has changed: Extras." in message.text
    assert "Coffee for ten" in message.text
    assert "cancel" not in message.text.lower()


def test_extra_stays_when_the_booking_is_changed_and_is_reduced_like_other_lines(booking, root):
    add(booking, root, now=START - HOUR)
    reschedule(booking, root, hours=2, now=START - HOUR)
    booking.refresh_from_db()
    assert lines_of(booking) == [("Room", 50), ("Extra", 30), ("Tax", Decimal("6.40"))]

    adjust(booking, root, -30, now=END)

    booking.refresh_from_db()
    assert lines_of(booking)[2:] == [("Adjustment", -30), ("Tax", 4)]
    assert booking.total_cost == 54
    reschedule(booking, root, hours=3, now=START + HOUR, taken=CASH)
    booking.refresh_from_db()
    assert lines_of(booking)[:3] == [("Room", 75), ("Extra", 30), ("Adjustment", -30)]


def test_extra_is_on_the_receipt_and_counts_as_service_income(booking, root):
    make_seller()
    add(booking, root)

    [receipt] = issue(booking, now=LAST)
    receipt.refresh_from_db()

    assert ["Coffee for ten", "", "$30.00"] in receipt.content["lines"]
    assert receipt.content["taxes"] == [["Tax, 8%", "105.00", "8.40"]]
    assert Reservation.objects.read_bill(booking.pk).lines[Account.SERVICES] == -30_00


def test_extra_with_another_rate_of_tax_has_a_line_of_tax_of_its_own(booking, root):
    make_seller()
    booking.room.center.tax_rate = 10
    booking.room.center.save()

    add(booking, root)
    [receipt] = issue(booking)
    adjust(booking, root, -21, now=LAST)

    assert receipt.content["taxes"] == [["Tax, 8%", "75.00", "6.00"], ["Tax, 10%", "30.00", "3.00"]]
    assert lines_of(booking)[2:] == [
        *(("Adjustment", -15), ("Adjustment", -6)),
        *(("Tax", Decimal("4.80")), ("Tax", Decimal("2.40"))),
    ]


def test_taxes_that_prices_contain_are_rounded_once_for_each_rate(booking, root):
    center = booking.room.center
    center.prices_include_tax, center.tax_rate = True, 19
    center.save()
    moved = reschedule(booking, root, hours=1).reservation  # 25.00 by the prices of today.
    end = START + HOUR
    add(moved, root, {"text": "Flowers", "amount": Decimal("0.02")}, hours=1, now=end)
    center.tax_rate = 7
    center.save()
    for amount in ("10.05", "10.05"):
        add(moved, root, {"text": "Tea", "amount": Decimal(amount)}, hours=1, now=end)

    # 25.02 * 19 / 119 = 3.9948, and 20.10 * 7 / 107 = 1.3150.
    assert [each.amount for each in moved.line_items.filter(type="Tax")] == ["$3.99", "$1.31"]
    moved.refresh_from_db()
    assert moved.total_cost == Decimal("45.12")


def test_extra_at_a_center_whose_prices_contain_the_tax_says_what_it_contains(booking, root):
    booking.room.center.prices_include_tax = True
    booking.room.center.save()
    reschedule(booking, root, hours=2)

    add(booking, root, hours=2)

    booking.refresh_from_db()
    lines = booking.line_items.order_by("position")
    assert [(each.type, each.amount, each.contained_tax) for each in lines] == [
        ("Room", "$50.00", Decimal("3.70")),
        # 80 * 8 / 108 = 5.9259
        ("Extra", "$30.00", Decimal("2.23")),
        ("Tax", "$5.93", 0),
    ]
    assert booking.total_cost == 80


def test_draft_with_an_extra_is_paid_once_its_price_was_shown(booking, root):
    draft = make_draft(room=booking.room, start=START + 4 * HOUR, hours=1)
    reschedule(draft, root, start=draft.start, hours=1, values={"extras": [COFFEE]})
    draft.refresh_from_db()

    assert draft.total_cost == Decimal("59.40")
    with pytest.raises(ReservationNotOpen, match="price has changed"):
        pay(draft)


def test_saved_card_and_payment_link_pay_for_extras_and_services_of_a_day_before(
    client, booking, root, clock
):
    SavedCardFactory(user=booking.user)
    juice = ServiceFactory(center=booking.room.center)  # 15
    [*expiry.close_overdue(now=END)]
    clock.move_to(LAST)
    charge(booking, root, total="113.40", extras=[COFFEE], now=LAST)

    chosen = {"services": [{"service_id": juice.pk}], "extras": [COFFEE]}
    link = send(booking, root, now=LAST, hours=3, total="162.00", **chosen)
    assert ", with other services, Coffee for ten. That is held" in words(client.get(link))
    clock.move_to(LAST + 20 * HOUR)
    assert "You have booked" in follow(client, enter_card(client, link))

    call_command("reconcile_payments")
    booking.refresh_from_db()
    assert (booking.status, booking.total_cost) == (Status.COMPLETED, 162)
    assert get_money() == [(81, 0), (Decimal("32.40"), 0), (Decimal("48.60"), 0)]


@pytest.mark.parametrize(
    ("extra", "fields", "problem"),
    [
        (COFFEE, {"now": LAST + dt.timedelta(seconds=1)}, "no longer be moved"),
        (COFFEE, {"now": END, "hours": 2}, "no longer be moved"),
        (COFFEE, {"waiver": "Free"}, "not waived"),
        ({"text": "Gift", "amount": -5}, {}, "greater than 0"),
        ({"text": "4242 4242 4242 4242", "amount": 5}, {}, "card number"),
    ],
)
def test_extra_too_late_waived_negative_or_with_a_card_number_is_refused(
    booking, root, extra, fields, problem
):
    with pytest.raises(DomainError) as refused:
        add(booking, root, extra, **fields)
    text = refused.value.message + str(getattr(refused.value, "fields", ""))
    assert problem in text
    assert not PriceAdjustment.objects.exists()


@pytest.mark.parametrize(("count", "amount"), [(20, 1), (10, 100_000)])
def test_extras_beyond_the_most_of_a_booking_are_refused(booking, root, count, amount):
    adjust(booking, root, Decimal("-0.5"))  # A reduction is no extra.
    extra = {"text": "Tea", "amount": Decimal(amount)}
    add(booking, root, *[extra] * (count - 1))
    with pytest.raises(InvalidRequest):
        add(booking, root, extra, extra)
    add(booking, root, extra)

    assert PriceAdjustment.objects.filter(amount=amount).count() == count


@pytest.mark.parametrize("role", ["Desk", "Viewer"])
def test_extra_needs_its_permission_at_the_center(booking, client, role):
    user = UserFactory(is_staff=True)
    group = Group.objects.get(name=role)
    CenterRole.objects.create(user=user, center=booking.room.center, group=group)
    if role == "Viewer":
        with pytest.raises(InvalidRequest):
            add(booking, user)
    else:
        add(booking, user)
    assert PriceAdjustment.objects.exists() == (role == "Desk")


@pytest.mark.django_db(transaction=True)
def test_extra_confirmed_twice_at_once_is_billed_once(booking, root):
    calls = [lambda: add(booking, root, expected_total=Decimal("113.40"))] * 2

    results = run_concurrently(calls, losers=(ReservationNotOpen,))

    assert results.count("ReservationNotOpen") == 1
    booking.refresh_from_db()
    assert booking.total_cost == Decimal("113.40")
    assert not list(integrity.find_problems(now=LAST))


# --- Promo codes at the desk (B27.10) -------------------------------------------------------------


def test_promo_code_is_set_replaced_and_removed_on_a_booking(booking, root):
    first, second = (PromoCodeFactory(percent=10 * each, max_uses=1) for each in (1, 2))

    for code, total in ((first, "72.90"), (second, "64.80")):
        reschedule(booking, root, values={"promo_code": code.code.lower()})
        booking.refresh_from_db()
        assert (booking.promo_code, booking.total_cost) == (code, Decimal(total))
    with pytest.raises(ReservationNotOpen, match="Choose how the customer pays"):
        reschedule(booking, root, values={"promo_code": ""})
    reschedule(booking, root, values={"promo_code": ""}, taken=CASH)

    booking.refresh_from_db()
    assert (booking.promo_code, booking.total_cost) == (None, 81)
    assert [(each.uses, each.spent) for each in type(first).objects.all()] == [(0, 0), (0, 0)]
    assert history.get_changes(booking).first().changes["promo_code"] == [second.code, None]


@pytest.mark.parametrize("code", ["UNKNOWN", "OVER"])
def test_promo_code_that_cannot_be_used_leaves_the_booking(booking, root, code):
    PromoCodeFactory(code="OVER", valid_until=NOW)

    with pytest.raises(PromoCodeInvalid):
        reschedule(booking, root, values={"promo_code": code})

    assert Reservation.objects.get(promo_code=None).total_cost == 81


# --- On the page ----------------------------------------------------------------------------------


def test_desk_adds_extras_and_a_code_on_the_page_and_sees_them_in_the_history(
    clock, office, booking
):
    clock.move_to(END + HOUR)
    office.force_login(AdministratorFactory(first_name="Root", last_name="Boss"))
    [*expiry.close_overdue(now=END + HOUR)]
    code = PromoCodeFactory(percent=10, code="TEN")
    url = action_url(booking, "services")
    version = office.get(url).context["form"].initial["expected_version"]
    typed = {"expected_version": version, "extras": "Coffee for ten: 30\r\nTea 5,50", "way": "cash"}
    assert "End each line with an amount" in words(office.post(url, typed))
    for ambiguous in ("Dinner 1 500", "Dinner 1, 500"):
        typed |= {"extras": ambiguous}
        assert "Dinner: 1500 or Dinner 1: 500" in words(office.post(url, typed))
    typed |= {"extras": "Coffee for ten: 30\r\nTea 5.50", "promo_code": "ten"}

    assert "Charge $30.24, Cash" in words(office.post(url, typed))
    done = confirm(office, booking, "services", **typed, expected_amount="111.24")

    assert messages_of(done)[0][1] == f"{booking}: Changed. $30.24 paid in cash."
    page = words(office.get(reservation_url(booking)))
    assert "Extras: Coffee for ten $30.00, Tea $5.50" in page
    assert "Extra: Tea $5.50, by Root Boss" in page
    assert code.code in page


def test_renamed_guest_is_in_the_history_and_in_the_email(clock, office, booking):
    typed = {"expected_version": "0", "attendees": "Grace Hopper"}
    confirm(office, booking, "services", **typed, expected_amount="81.00")
    booking.refresh_from_db()
    typed = {"expected_version": booking.version, "attendees": "Grace Murray Hopper"}
    confirm(office, booking, "services", **typed, expected_amount="81.00")

    assert "Attendees: changed" in words(office.get(reservation_url(booking)))
    message = OutboxMessage.objects.latest("pk")
    assert "What has changed: Guests." in message.text
    assert "It was" not in message.text
