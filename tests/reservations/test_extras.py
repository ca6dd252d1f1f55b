"""Staff bill extras until noon of the next day, and that a meeting has lasted longer (B27.8-9)."""

import datetime as dt
import functools
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command

from accounts.act import Act
from accounts.models import CenterRole, OutboxMessage
from payments.gateways.sandbox import SandboxGateway, confirm_payment
from payments.gateways.sandbox_models import SandboxPayment
from payments.ledger.accounts import Account
from payments.models import Payment
from reservations.booking import account_erasure, attendance, expiry, integrity
from reservations.booking.amendments import TakenPayment
from reservations.models import PriceAdjustment, Reservation, history
from reservations.models.status import Status
from roombook.errors import (
    DomainError,
    InvalidRequest,
    PromoCodeInvalid,
    ReservationNotOpen,
    SlotUnavailable,
)
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import action_url, confirm, reservation_url
from tests.concurrency import run_concurrently
from tests.factories_centers import ServiceFactory
from tests.factories_people import SavedCardFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
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
# The meeting ends at noon, so that is 24 hours later.
LAST = END + 24 * HOUR - dt.timedelta(seconds=1)
COFFEE = {"text": "Coffee for ten", "amount": Decimal(30)}
CASH = TakenPayment("cash")
LATE = END + 20 * MINUTE


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


def test_extra_with_another_rate_of_tax_has_a_line_of_tax_of_its_own(booking, root):
    make_seller()
    booking.room.center.tax_rate = 10
    booking.room.center.save()

    add(booking, root)
    [receipt] = issue(booking)
    assert Reservation.objects.read_bill(booking.pk).lines[Account.SERVICES] == -30_00
    adjust(booking, root, -21, now=LAST)

    assert receipt.content["taxes"] == [["Tax, 8%", "75.00", "6.00"], ["Tax, 10%", "30.00", "3.00"]]
    assert ["Coffee for ten", "", "$30.00"] in receipt.content["lines"]
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
    PromoCodeFactory(code="OVER", valid_until=NOW)
    for unusable in ("UNKNOWN", "OVER"):
        with pytest.raises(PromoCodeInvalid):
            reschedule(booking, root, values={"promo_code": unusable})

    for code, total in ((first, "72.90"), (second, "64.80")):
        reschedule(booking, root, values={"promo_code": code.code.lower()})
        booking.refresh_from_db()
        assert (booking.promo_code, booking.total_cost) == (code, Decimal(total))
    with pytest.raises(ReservationNotOpen, match="Choose how the customer pays"):
        reschedule(booking, root, values={"promo_code": ""})
    reschedule(booking, root, values={"promo_code": ""}, taken=CASH)

    booking.refresh_from_db()
    assert (booking.promo_code, booking.total_cost) == (None, 81)
    assert {(each.uses, each.spent) for each in type(first).objects.all()} == {(0, 0)}
    assert history.get_changes(booking).first().changes["promo_code"] == [second.code, None]


# --- On the page ----------------------------------------------------------------------------------


def test_desk_adds_extras_and_a_code_on_the_page_and_sees_them_in_the_history(
    clock, client, booking, root
):
    clock.move_to(END + HOUR)
    client.force_login(root)
    [*expiry.close_overdue(now=END + HOUR)]
    PromoCodeFactory(percent=10, code="TEN")
    url = action_url(booking, "services")
    typed = {"expected_version": booking.version, "way": "cash", "promo_code": "ten"}
    for unclear, said in (
        ("Coffee for ten: 30\r\nTea 5,50", "End each line with an amount"),
        ("Dinner 1 500", "Dinner: 1500 or Dinner 1: 500"),
        ("Dinner 1, 500", "Dinner: 1500 or Dinner 1: 500"),
    ):
        assert said in words(client.post(url, typed | {"extras": unclear}))
    typed |= {"extras": "Coffee for ten: 30\r\nTea 5.50"}

    assert "Charge $30.24, Cash" in words(client.post(url, typed))
    done = confirm(client, booking, "services", **typed, expected_amount="111.24")

    assert messages_of(done)[0][1] == f"{booking}: Changed. $30.24 paid in cash."
    page = words(client.get(reservation_url(booking)))
    assert "Extras: Coffee for ten $30.00, Tea $5.50" in page
    assert "Extra: Tea $5.50, by " in page


# --- A meeting that has lasted longer, until half an hour after its end (B27.8) -------------------


@pytest.fixture
def meeting():
    """Three hours at 25, without tax."""
    return make_booking(room=make_room_at_rate(make_room(), 25))


def complete(now):
    return [*expiry.close_overdue(now=now)]


@pytest.mark.parametrize("is_completed", [True, False])
@pytest.mark.parametrize(("hours", "total", "is_over"), [(3.25, "81.25", True), (5, "125", False)])
def test_meeting_that_is_over_is_extended_until_what_was_used_or_until_later(
    meeting, root, is_completed, hours, total, is_over
):
    if is_completed:
        assert complete(END + MINUTE) == [meeting]

    done = reschedule(meeting, root, hours=hours, now=LATE, taken=CASH)

    meeting.refresh_from_db()
    paid = Decimal(total) - 75
    assert (done.charge, meeting.total_cost, meeting.end) == (
        *(paid, Decimal(total), START + hours * HOUR),
    )
    # It has the room, and is completed again, if it takes place now.
    is_open = not (is_completed and is_over)
    assert meeting.status == (Status.CONFIRMED if is_open else Status.COMPLETED)
    assert meeting.holds_slot == is_open
    assert complete(START + 6 * HOUR) == ([meeting] if is_open else [])


def test_saved_card_pays_although_the_job_completes_the_booking_meanwhile(
    meeting, root, monkeypatch
):
    SavedCardFactory(user=meeting.user)
    interfere(monkeypatch, SandboxGateway, "authorize", lambda: complete(LATE), before=True)

    outcome = charge(meeting, root, total="87.50", hours=3.5, now=LATE)

    assert (outcome.is_applied, outcome.charge) == (True, Decimal("12.50"))
    assert get_money() == [(75, 0), (Decimal("12.50"), 0)]
    entry = history.get_changes(meeting).first()
    assert entry.changes["end"][1] == (START + 3.5 * HOUR).isoformat()


@pytest.mark.parametrize("is_paid", [True, False])
def test_link_for_what_was_used_can_be_paid_for_a_day(client, meeting, root, clock, is_paid):
    clock.move_to(LATE)
    link = send(meeting, root, now=LATE, hours=3.5, total="87.50")
    clock.move_to(LATE + 23 * HOUR)
    assert complete(LATE + HOUR) == [meeting]
    if is_paid:
        assert "You have booked" in follow(client, enter_card(client, link))
    clock.move_to(LATE + 25 * HOUR)
    complete(LATE + 25 * HOUR)

    meeting.refresh_from_db()
    assert (meeting.status, meeting.total_cost) == (
        *(Status.COMPLETED, Decimal("87.50") if is_paid else 75),
    )
    assert {each.state for each in meeting.changes.all()} == {"applied" if is_paid else "abandoned"}
    assert not Reservation.slots.filter(holds_for__isnull=False).exists()
    assert client.get(link).status_code == 410
    call_command("reconcile_payments")
    assert get_money()[1:] == ([(Decimal("12.50"), 0)] if is_paid else [])


@pytest.mark.parametrize(
    ("hours", "total", "until"),
    [(3.25, "81.25", LATE + 24 * HOUR), (5, "125", START + 5 * HOUR)],
)
def test_link_of_a_meeting_that_is_over_holds_its_time_for_a_day_or_the_longer_stay(
    meeting, root, clock, hours, total, until
):
    clock.move_to(LATE)
    send(meeting, root, now=LATE, hours=hours, total=total)
    assert meeting.changes.get().link_until == until
    assert Reservation.slots.get(holds_for=meeting.pk).end == START + hours * HOUR


def test_link_that_ends_while_its_payer_is_at_the_bank_is_paid(client, meeting, root, clock):
    clock.move_to(LATE)
    link = send(meeting, root, now=LATE, hours=3.5, total="87.50")
    complete(LATE + HOUR)
    clock.move_to(LATE + 24 * HOUR - MINUTE)
    back = enter_card(client, link, number="4000002760003184")
    assert "Open the page of your bank" in follow(client, back)

    clock.move_to(LATE + 24 * HOUR + MINUTE)
    complete(LATE + 24 * HOUR + MINUTE)
    confirm_payment(SandboxPayment.objects.latest("pk").secret)
    call_command("reconcile_payments")

    assert get_money() == [(75, 0), (Decimal("12.50"), 0)]
    assert {each.state for each in meeting.changes.all()} == {"applied"}


def test_erasure_of_the_account_ends_the_link_with_its_guests(client, meeting, root, clock):
    clock.move_to(LATE)
    complete(LATE)
    guests = [{"name": "Grace Hopper", "email_address": "grace@example.com"}]
    link = send(meeting, root, now=LATE, hours=3.5, total="87.50", attendees=guests)

    account_erasure.erase_account(meeting.user_id, by=root, now=LATE)

    change = meeting.changes.get()
    assert (change.state, change.personal_values) == ("abandoned", None)
    assert client.get(link).status_code == 410


@pytest.mark.inconsistent_data  # The other meeting is shortened by SQL.
def test_room_that_somebody_else_has_or_had_is_not_billed(meeting, root):
    other = make_booking(room=meeting.room, start=END, hours=0.5)
    for has_left in (False, True):
        if has_left:
            Reservation.objects.filter(pk=other.pk).update(end=END + 15 * MINUTE)
        complete(LATE)
        other.refresh_from_db()
        assert other.status == (Status.COMPLETED if has_left else Status.CONFIRMED)
        with pytest.raises(SlotUnavailable):
            reschedule(meeting, root, hours=3.5, now=LATE, taken=CASH)


@pytest.mark.parametrize(("is_completed", "by_link"), [(True, True), (False, False)])
def test_overrun_within_a_turnaround_is_billed_and_holds_nothing(
    client, meeting, root, clock, is_completed, by_link
):
    meeting.room.turnaround_minutes = 30
    meeting.room.save()
    make_booking(room=meeting.room, start=END + 30 * MINUTE, hours=1)
    clock.move_to(LATE)
    if is_completed:
        complete(LATE)

    if by_link:
        link = send(meeting, root, now=LATE, hours=3.5, total="87.50")
        assert "You have booked" in follow(client, enter_card(client, link))
    else:
        reschedule(meeting, root, hours=3.5, now=LATE, taken=CASH)

    meeting.refresh_from_db()
    assert (meeting.status, meeting.total_cost) == (Status.COMPLETED, Decimal("87.50"))
    call_command("reconcile_payments")


def test_overrun_after_closing_time_is_billed_and_a_longer_stay_is_not(root):
    meeting = make_booking(room=make_room_at_rate(make_room(), 25), start=START + 6 * HOUR)
    end = START + 9 * HOUR  # 18:00, when the center closes
    request = {"start": meeting.start, "now": end + 10 * MINUTE, "taken": CASH}

    with pytest.raises(SlotUnavailable, match="closed"):
        reschedule(meeting, root, hours=4, **request)
    assert reschedule(meeting, root, hours=3.25, **request).charge == Decimal("6.25")


@pytest.mark.parametrize("problem", ["later", "customer", "no-show", "shorter"])
def test_overrun_is_not_billed_after_half_an_hour_by_customers_or_for_a_no_show(
    meeting, root, problem
):
    complete(END)
    if problem == "no-show":
        attendance.mark_no_show(Act(root, END, is_staff=True), meeting.pk)
    now = END + 30 * MINUTE if problem == "later" else LATE
    hours = 2 if problem == "shorter" else 3.5
    extend = functools.partial(reschedule, meeting, root, hours=hours, now=now, taken=CASH)
    if problem == "customer":
        extend = functools.partial(change, meeting, hours=3.5, total="87.50", now=LATE)
    with pytest.raises(ReservationNotOpen):
        extend()
    assert get_money() == [(75, 0)]
