"""Rescheduling: another room or time, and the effect on money; the holds of drafts."""

from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from itertools import product

import pytest

from accounts.act import Act
from accounts.models import OutboxMessage
from accounts.outbox import send_due_messages
from centers.models import Center, Rate
from payments.models import Refund, RefundState
from reservations.booking import amendments, approval, cancellation, charging, checkout
from reservations.booking.drafts import (
    can_extend_hold,
    extend_hold,
    get_latest_hold_end,
    has_outdated_price,
)
from reservations.booking.reminders import send_meeting_reminders
from reservations.models import LineItemType, Reservation, history
from reservations.models.status import Status
from roombook.errors import (
    CardDeclined,
    InvalidRequest,
    PromoCodeInvalid,
    ReservationNotOpen,
    SlotUnavailable,
)
from tests.factories_centers import ClosureFactory, ServiceFactory
from tests.factories_people import UserFactory, make_staff_with_role
from tests.factories_reservations import (
    DAY,
    DECLINED_NUMBER,
    HOUR,
    MINUTE,
    NOW,
    START,
    AllowanceFactory,
    MonthlyAllowanceFactory,
    PaymentFactory,
    PromoCodeFactory,
    make_booking,
    make_draft,
    make_payment_method,
    make_pending_booking,
    make_room,
    pay,
    update_promo_code,
)
from tests.reservations.receipts.helpers import refund
from tests.reservations.rescheduling_helpers import (
    build_request,
    get_net_payment,
    get_stored_values,
    make_room_at_rate,
    make_room_in_same_center,
    preview_reschedule,
    reschedule,
)

SECOND = MINUTE / 60
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.time_machine(NOW, tick=False),
    pytest.mark.usefixtures("data_is_consistent"),
]


def test_reschedule_to_cheaper_room_refunds_the_difference_as_previewed(clerk):
    reservation = make_booking()
    cheap = make_room_at_rate(reservation.room, 15)
    before = get_stored_values(reservation)

    preview = preview_reschedule(reservation, clerk, room=cheap).result
    assert get_stored_values(reservation) == before
    assert not Refund.objects.exists()
    done = reschedule(reservation, clerk, room=cheap)

    assert (preview.old_total, preview.new_total, preview.refund) == (75, 45, 30)
    assert [line.total for line in preview.old_lines] == [75]
    assert [line.total for line in preview.new_lines] == [45]
    reservation.refresh_from_db()
    assert (reservation.room, reservation.total_cost) == (cheap, 45)
    assert done.refund == 30
    refund = Refund.objects.get()
    assert (refund.amount, refund.state) == (30, RefundState.DONE)
    assert get_net_payment() == 45


def test_reschedule_to_more_expensive_room_is_refused(clerk):
    reservation = make_booking()
    expensive = make_room_at_rate(reservation.room, 40)
    before = get_stored_values(reservation)

    preview = preview_reschedule(reservation, clerk, room=expensive)
    with pytest.raises(ReservationNotOpen, match=r"\$45.00 more"):
        reschedule(reservation, clerk, room=expensive)

    assert preview.result.is_refused
    assert "$45.00 more" in preview.problem
    assert get_stored_values(reservation) == before
    assert OutboxMessage.objects.filter(kind="moved").count() == 0


def test_reschedule_with_waiver_and_reason_waives_the_difference(manager):
    reservation = make_booking()
    expensive = make_room_at_rate(reservation.room, 40)

    preview = preview_reschedule(reservation, manager, room=expensive, waiver="Their room leaks")
    done = reschedule(
        reservation, manager, room=expensive, waiver="Their room leaks", expected_total=Decimal(75)
    )

    assert (preview.result.waived, preview.result.new_total, preview.problem) == (45, 75, "")
    assert (done.waived, done.new_total, done.refund) == (45, 75, 0)
    line = reservation.line_items.get(type=LineItemType.ADJUSTMENT)
    assert (line.total, line.description) == (-45, "Adjustment: Their room leaks")
    assert history.get_changes(reservation)[0].changes["waived"] == [
        None,
        "$45.00: Their room leaks",
    ]


def test_waiver_applies_to_one_reschedule_only(manager):
    """Otherwise rescheduling there and back preview refund too much."""
    reservation = make_booking()
    old_room = reservation.room
    reschedule(reservation, manager, room=make_room_at_rate(old_room, 40), waiver="Leak")

    done = reschedule(reservation, manager, room=old_room)

    assert (done.new_total, done.refund) == (75, 0)
    assert not reservation.price_adjustments.exists()


def test_waiver_needs_price_permission_at_both_centers():
    """The waiver costs the new center money and benefits a customer of the old center."""
    reservation, expensive = make_booking(), make_room_at_rate(make_room(), 40)
    old, new = reservation.room.center, expensive.center
    before = get_stored_values(reservation)

    for center in (old, new):
        someone = make_staff_with_role("Manager", center)
        for attempt in (preview_reschedule, reschedule):
            with pytest.raises(InvalidRequest) as refused:
                attempt(reservation, someone, room=expensive, waiver="Leak")
            assert "can waive the difference" in refused.value.fields["waiver"]
    assert get_stored_values(reservation) == before
    manager = make_staff_with_role("Manager", old, new)
    assert reschedule(reservation, manager, room=expensive, waiver="Leak").waived == 45


@pytest.mark.parametrize("includes_tax", [False, True])
def test_waiver_with_tax_gives_the_old_total_or_refunds_the_rest(manager, includes_tax):
    totals = {"0": "75", "8.625": "74.99", "19": "74.99"}
    for case in product(totals, ["25.01", "99.99"]):
        rate, hourly = map(Decimal, case)
        total = 75 if includes_tax else Decimal(totals[case[0]])
        reservation = make_booking()
        expensive = make_room_at_rate(make_room(), hourly)
        expensive.center.tax_rate = rate
        expensive.center.prices_include_tax = includes_tax
        expensive.center.save()

        done = reschedule(reservation, manager, room=expensive, waiver="Leak")

        assert done.new_total == total, case
        assert done.refund == 75 - done.new_total, case


def test_earlier_goodwill_refund_reduces_the_refund(clerk):
    reservation = make_booking()
    refund(reservation.payments.get(), 60)

    done = reschedule(reservation, clerk, room=make_room_at_rate(reservation.room, 15))

    assert done.refund == 15
    assert get_net_payment() == 0


# --- Drafts ---------------------------------------------------------------------------------------


def test_rescheduled_draft_is_repriced_and_keeps_its_hold(clerk):
    reservation = make_draft()
    until = reservation.hold_until

    done = reschedule(
        reservation, clerk, room=make_room_at_rate(reservation.room, 40), start=START + DAY
    )

    reservation.refresh_from_db()
    assert (done.old_total, done.new_total, reservation.total_cost) == (75, 120, 120)
    assert (reservation.holds_slot, reservation.hold_until) == (True, until)
    assert not OutboxMessage.objects.exists()


def test_rescheduled_draft_is_not_held_beyond_its_new_start(clerk):
    held, expired = make_draft(start=START + DAY), make_draft(start=START + DAY)
    extend_hold(Act(clerk, NOW, is_staff=True), held.pk, until=NOW + 20 * HOUR)

    for reservation in (held, expired):
        soon = NOW + 2 * HOUR
        reschedule(reservation, clerk, start=soon, now=NOW + HOUR)
        reservation.refresh_from_db()
        assert reservation.hold_until == soon


def test_rescheduled_draft_needs_a_promo_code_valid_for_the_new_room(clerk):
    promo = PromoCodeFactory(code="HERE")
    reservation = make_draft()
    promo.centers.add(reservation.room.center)
    update_promo_code(reservation.pk, "HERE", user=reservation.user, now=NOW)

    with pytest.raises(PromoCodeInvalid):
        reschedule(reservation, clerk, room=make_room())


def test_reschedule_releases_conflicting_draft_of_the_customer(clerk):
    reservation = make_booking()
    mine = make_draft(reservation.user, reservation.room, start=START + DAY)

    reschedule(reservation, clerk, start=START + DAY)

    mine.refresh_from_db()
    assert (mine.status, mine.holds_slot) == (Status.NEW, False)


@pytest.mark.inconsistent_data  # The ledger knows no live payment.
def test_live_booking_stays_live_after_a_move_although_a_test_payment_has_failed(clerk):
    booking = make_booking(room=make_room(is_live_inventory=True))
    booking.payments.update(is_live=True)
    PaymentFactory(reservation=booking, purpose="change", state="voided", amount=5)

    reschedule(booking, clerk, start=START + DAY)

    booking.refresh_from_db()
    assert booking.is_live


# --- Pending requests -----------------------------------------------------------------------------


def test_cash_belongs_to_the_center_of_the_booking_at_the_capture(clerk):
    first, second, third = (make_room(is_live_inventory=False) for _ in range(3))
    request = make_pending_booking(room=first)
    assert request.payments.get().cash_center == first.center

    reschedule(request, clerk, room=second)
    approval.approve(Act(clerk, NOW, is_staff=True), request.pk)
    reschedule(request, clerk, room=third, start=START + DAY)

    assert request.payments.get().cash_center == second.center


def test_pending_request_to_another_price_is_refused_until_approved_or_waived(manager):
    reservation = make_pending_booking()
    cheap = make_room_at_rate(reservation.room, 15)

    with pytest.raises(ReservationNotOpen, match="less, and a request's money"):
        reschedule(reservation, manager, room=cheap)
    reschedule(reservation, manager, room=make_room_at_rate(cheap, 40), waiver="Leak")

    approval.approve(Act(None, NOW), reservation.pk)
    assert get_net_payment() == 75
    reschedule(reservation, manager, room=cheap)
    assert get_net_payment() == 45


# --- Refused reschedules --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make_room_for", "options", "problem", "message"),
    [
        (lambda room: room, {"start": START + DAY, "now": START}, ReservationNotOpen, "time has"),
        (lambda room: room, {}, InvalidRequest, ""),  # the same slot
        (
            lambda room: make_room_in_same_center(room, capacity=4),
            {},
            *(InvalidRequest, "holds 4 people"),
        ),
        (lambda room: make_room(), {}, InvalidRequest, "Coffee"),
        (
            lambda room: make_room_at_rate(room, 15),
            {"expected_total": Decimal(40)},
            *(ReservationNotOpen, "price has changed"),
        ),
    ],
)
def test_refused_reschedule_changes_nothing(clerk, make_room_for, options, problem, message):
    room = make_room()
    coffee = ServiceFactory(center=room.center, name="Coffee", rate__flat_rate=0)
    reservation = make_booking(
        room=room, number_of_attendees=5, services=[{"service_id": coffee.pk}]
    )
    before = get_stored_values(reservation)

    with pytest.raises(problem) as refused:
        reschedule(reservation, clerk, room=make_room_for(room), **options)

    fields = getattr(refused.value, "fields", {})
    assert message in " ".join([refused.value.message, *fields.values()])
    assert get_stored_values(reservation) == before


def test_reschedule_from_an_outdated_page_is_refused(clerk):
    reservation = make_booking()
    for start, is_current in ((START + DAY, True), (START + 2 * DAY, False)):
        request = replace(build_request(reservation, start=start), expected_version=0)
        with nullcontext() if is_current else pytest.raises(ReservationNotOpen, match="meanwhile"):
            amendments.amend(Act(clerk, NOW, is_staff=True), reservation.pk, request)
    reservation.refresh_from_db()
    assert (reservation.start, reservation.version) == (START + DAY, 1)


def test_reschedule_to_taken_room_is_refused_with_every_reason(clerk):
    reservation, other_booking = make_booking(), make_booking(start=START + DAY)

    for attempt in (preview_reschedule, reschedule):
        with pytest.raises(SlotUnavailable) as refused:
            attempt(reservation, clerk, room=other_booking.room, start=START + DAY + 10 * MINUTE)
        texts = refused.value.staff_texts
        assert len(texts) == 2  # off the grid, and taken
        assert f"Reservation {other_booking.pk}" in texts[1]


def test_reschedule_ignores_own_slot_and_respects_turnaround(clerk):
    room = make_room(turnaround_minutes=30)
    reservation = make_booking(room=room)
    make_booking(room=room, start=START + 4 * HOUR)

    reschedule(reservation, clerk, start=START + 30 * MINUTE)
    with pytest.raises(SlotUnavailable):
        reschedule(reservation, clerk, start=START + 45 * MINUTE)
    assert reservation.turnaround_minutes == 30
    reschedule(reservation, clerk, room=make_room_in_same_center(room, turnaround_minutes=15))
    reservation.refresh_from_db()
    assert reservation.occupied_until == START + 3 * HOUR + 15 * MINUTE


# --- Promo codes and hours ------------------------------------------------------------------------


def with_code(promo, **how):
    reservation = make_draft(**how)
    update_promo_code(reservation.pk, promo.code, user=reservation.user, now=NOW)
    return pay(reservation)


def test_rescheduled_booking_keeps_its_promo_code(clerk):
    promo = PromoCodeFactory(
        max_uses=1, max_uses_per_account=1, valid_until=NOW + HOUR, budget=Decimal("7.50")
    )
    reservation = with_code(promo)
    promo.centers.add(reservation.room.center)

    done = reschedule(
        reservation, clerk, room=make_room_at_rate(make_room(), 20), now=NOW + 2 * HOUR
    )

    promo.refresh_from_db()
    assert done.new_total == 54
    assert (promo.uses, promo.spent) == (1, 6)
    open_use = reservation.promo_redemptions.get(given_back_at__isnull=True)
    assert open_use.amount == 6


def test_reschedule_below_the_minimum_of_the_promo_code_is_refused(clerk):
    promo = PromoCodeFactory(minimum_spend=Decimal(70))
    reservation = with_code(promo)

    with pytest.raises(PromoCodeInvalid, match="70"):
        reschedule(reservation, clerk, room=make_room_at_rate(reservation.room, 15))

    promo.refresh_from_db()
    assert promo.uses == 1


def test_promo_use_is_counted_when_reschedule_makes_it_effective(clerk):
    ada = UserFactory()
    plan = AllowanceFactory(user=ada, hours=3)
    promo = PromoCodeFactory(percent=Decimal(100), max_uses=1)
    reservation = make_draft(ada)
    update_promo_code(reservation.pk, promo.code, user=ada, now=NOW)
    checkout.check_out(Act(ada, NOW), reservation.pk, payment_method=charging.PaymentMethod())
    promo.refresh_from_db()
    assert promo.uses == 0

    reschedule(reservation, clerk, hours=4)

    promo.refresh_from_db()
    assert (promo.uses, promo.spent) == (1, Decimal("22.50"))  # one hour at the half-day price
    assert sum(entry.hours for entry in plan.entries.all()) == -3


def test_reschedule_moves_monthly_hours_to_the_new_month(clerk):
    ada = UserFactory()
    plan = MonthlyAllowanceFactory(user=ada, hours=2)
    reservation = make_booking(ada)  # March; 1 of 3 hours is paid
    april = START + 30 * DAY

    reschedule(reservation, clerk, start=april)

    periods = {}
    for entry in plan.entries.all():
        periods[entry.period.month] = periods.get(entry.period.month, 0) + entry.hours
    assert periods == {3: 0, 4: -2}
    assert get_net_payment() == 25


# --- E-mails --------------------------------------------------------------------------------------


def get_sent(now):
    return [(each.kind, each.text) for each in send_due_messages(clock=lambda: now)]


@pytest.mark.parametrize("seconds", [30, 90])
def test_email_of_a_move_waits_a_minute_and_is_not_sent_if_it_is_undone(clerk, seconds):
    reservation = make_booking()
    get_sent(NOW)
    reschedule(reservation, clerk, start=START + DAY)
    assert get_sent(NOW + 59 * SECOND) == []
    sent = get_sent(NOW + 60 * SECOND) if seconds > 60 else []
    reschedule(reservation, clerk, start=START, now=NOW + seconds * SECOND)
    sent += get_sent(NOW + HOUR)
    assert [kind for kind, _ in sent] == (["moved", "moved"] if seconds > 60 else [])
    assert not OutboxMessage.objects.waiting().exists()


@pytest.mark.parametrize(("booked", "hours", "now"), [(3, 2, NOW), (7, 8, START + HOUR)])
def test_email_of_a_refund_or_of_a_running_meeting_does_not_wait(clerk, booked, hours, now):
    reservation = make_booking(hours=booked)
    get_sent(NOW)
    reschedule(reservation, clerk, hours=hours, now=now)
    assert [kind for kind, _ in get_sent(now)] == ["moved"]


@pytest.mark.parametrize(("last", "kinds"), [(3, ["moved"]), (0, [])])
def test_email_after_three_quick_moves_says_what_the_customer_knew(clerk, last, kinds):
    reservation = make_booking()
    get_sent(NOW)
    for seconds, days in ((0, 1), (50, 2), (100, last)):
        now = NOW + seconds * SECOND
        assert get_sent(now) == []
        reschedule(reservation, clerk, start=START + days * DAY, now=now)
    sent = get_sent(NOW + 160 * SECOND)
    assert [kind for kind, _ in sent] == kinds
    for _, text in sent:
        assert "It was Boardroom at Glenarm, Wednesday, March 3, 2027, 9:00 AM" in text


def test_email_of_quick_moves_waits_five_minutes_at_most(clerk):
    reservation = make_booking()
    get_sent(NOW)
    for number in range(7):
        now = NOW + 45 * number * SECOND
        assert get_sent(now) == []
        reschedule(reservation, clerk, start=START + (number + 1) * DAY, now=now)
    [(_, text)] = get_sent(NOW + 5 * MINUTE)
    assert "It was Boardroom at Glenarm, Wednesday, March 3, 2027" in text


def test_undone_moves_do_not_count_as_emails_to_the_customer(clerk):
    reservation = make_booking()
    get_sent(NOW)
    Center.objects.update(address_changed_at=NOW + HOUR)
    now = NOW + 2 * HOUR
    for number, days in enumerate((1, 2, 0)):
        reschedule(reservation, clerk, start=START + days * DAY, now=now + 20 * number * SECOND)
    reservation.refresh_from_db()
    assert get_sent(now + HOUR) == []
    assert reservation.has_former_address
    assert reservation.calendar_sequence == 4


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("is_undone", [False, True])
def test_reminder_is_sent_if_the_move_is_undone(clerk, settings, is_written, is_undone):
    reservation = make_booking()
    get_sent(NOW)
    now = START - settings.REMINDER_HOURS * HOUR + MINUTE
    if is_written:
        assert list(send_meeting_reminders(now=now))
    for number, start in enumerate((START + DAY, START) if is_undone else (START + HOUR,)):
        reschedule(reservation, clerk, start=start, now=now + 20 * number * SECOND)
    list(send_meeting_reminders(now=now + 5 * MINUTE))
    sent = [kind for kind, _ in get_sent(now + 5 * MINUTE)]
    assert sent == (["reminder"] if is_undone else ["moved"])


def test_other_email_lets_the_one_of_a_move_go_first(clerk):
    reservation = make_booking()
    get_sent(NOW)
    reschedule(reservation, clerk, start=START + DAY)
    cancellation.cancel(Act(reservation.user, NOW + SECOND), reservation.pk)
    assert [kind for kind, _ in get_sent(NOW + SECOND)] == ["moved", "cancelled"]


def test_email_that_is_being_sent_is_followed_by_that_of_the_undo(clerk):
    reservation = make_booking()
    reschedule(reservation, clerk, start=START + DAY)
    now = NOW + 60 * SECOND
    first = OutboxMessage.objects.get(kind="moved")
    assert first.lease(OutboxMessage.objects.all(), period=DAY, now=now)
    reschedule(reservation, clerk, start=START, now=now)
    assert OutboxMessage.objects.filter(kind="moved").count() == 2


def test_new_price_of_a_moved_draft_is_promised_until_after_its_new_hold():
    draft = make_draft(start=START + 20 * DAY)
    declined = make_payment_method(DECLINED_NUMBER)
    with pytest.raises(CardDeclined):
        checkout.check_out(Act(draft.user, NOW), draft.pk, payment_method=declined)
    later = NOW + 3 * DAY

    reschedule(draft, make_staff_with_role("Manager"), start=START + 21 * DAY, now=later)

    draft.refresh_from_db()
    assert draft.is_held_at(later + HOUR)
    assert not has_outdated_price(draft, now=later + HOUR)
    # For the check of the data after each test, which is at NOW.
    Reservation.objects.release_holds(NOW)


def test_moved_draft_that_is_held_again_releases_the_oldest_hold(settings):
    settings.HELD_DRAFTS_MAX = 3
    user = UserFactory()
    moved = make_draft(user)
    Reservation.objects.release_holds(NOW)
    oldest, *_ = (make_draft(user, start=START + number * DAY) for number in (1, 2, 3))

    reschedule(moved, make_staff_with_role("Manager"), start=START + 4 * HOUR)

    held = Reservation.objects.drafts_with_hold()
    assert held.count() == 3
    assert not held.filter(pk=oldest.pk).exists()


# --- Holds extended by staff ----------------------------------------------------------------------


@pytest.mark.parametrize("until", [NOW + DAY + MINUTE, NOW + 10 * MINUTE, NOW - MINUTE])
def test_extend_hold_outside_its_bounds_is_refused(clerk, until):
    reservation = make_draft()

    with pytest.raises(InvalidRequest):
        extend_hold(Act(clerk, NOW, is_staff=True), reservation.pk, until=until)


def test_extend_expired_hold_with_available_room_holds_again(clerk):
    reservation = make_draft()
    later = NOW + HOUR
    extend_hold(Act(clerk, later, is_staff=True), reservation.pk, until=later + HOUR)
    assert Reservation.objects.get().is_held_at(later)


@pytest.mark.parametrize(("ended_for", "total"), [(DAY, 75), (DAY + MINUTE, 90)])
def test_extend_hold_of_draft_reprices_it_a_day_after_its_hold(clerk, ended_for, total):
    reservation = make_draft(start=START + 7 * DAY)
    Rate.objects.update(hourly=30)
    now = NOW + 15 * MINUTE + ended_for

    extended = extend_hold(Act(clerk, now, is_staff=True), reservation.pk, until=now + MINUTE)

    assert extended.total_cost == total
    recorded = [each.changes.get("total_cost") for each in history.get_changes(reservation)]
    assert (["75.00", "90.00"] in recorded) == (total == 90)


def test_hold_that_lasts_as_long_as_possible_cannot_be_extended(clerk):
    draft = make_draft()
    assert can_extend_hold(draft, now=NOW)
    latest = get_latest_hold_end(draft, now=NOW)
    draft = extend_hold(Act(clerk, NOW, is_staff=True), draft.pk, until=latest)
    assert not can_extend_hold(draft, now=NOW)


def test_extend_expired_hold_with_taken_room_is_refused(clerk):
    reservation = make_draft()
    later = NOW + HOUR
    ClosureFactory(center=reservation.room.center, starts_at=START, ends_at=START + HOUR)

    with pytest.raises(SlotUnavailable):
        extend_hold(Act(clerk, later, is_staff=True), reservation.pk, until=later + HOUR)
