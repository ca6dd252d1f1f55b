"""Moving a reservation to another room or time, and what that means for the money."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from threading import Barrier

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from icalendar import Calendar

from accounts.models import CenterRole, User
from accounts.outbox import OutboxMessage
from payments.gateways.sandbox_models import FaultKind, SandboxFault, SandboxPayment
from payments.models import PaymentState, Refund, RefundState
from reservations import (
    adjusting,
    approval,
    cancellation,
    checkout,
    history,
    integrity,
    mail,
    moving,
)
from reservations.actions import apply_promo_code, extend_hold
from reservations.integrity.money import reductions_unmet
from reservations.models import LineItemType, Reservation
from reservations.status import Status
from roombook.errors import (
    DomainError,
    InvalidRequest,
    PromoCodeInvalid,
    ReservationNotOpen,
    ServiceUnavailable,
    SlotUnavailable,
)
from tests.factories_centers import MeetingRoomFactory, RateFactory, ServiceFactory
from tests.factories_people import StaffFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    AllowanceFactory,
    MonthlyAllowanceFactory,
    PromoCodeFactory,
    ReservationFactory,
    a_room,
    booked,
    by_card,
    draft,
    requested,
)

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

DAY = dt.timedelta(days=1)


@pytest.fixture(autouse=True)
def _books_agree(request):
    yield
    if "broken_books" not in request.keywords:
        assert [str(each) for each in integrity.findings(now=NOW)] == []


@pytest.fixture
def clerk():
    return StaffFactory()


@pytest.fixture
def manager():
    """Who may adjust prices everywhere."""
    return with_role("Manager")


def with_role(role, *centers):
    """Staff with a role at these centers, or at all."""
    user, group = StaffFactory(), Group.objects.get(name=role)
    if not centers:
        user.groups.add(group)
    for center in centers:
        CenterRole.objects.create(user=user, center=center, group=group)
    return User.objects.get(pk=user.pk)


def beside(room, **fields):
    """Another room of the same center."""
    return MeetingRoomFactory(center=room.center, **fields)


def at_rate(room, hourly):
    """A room beside it with only an hourly rate."""
    rate = RateFactory(center=room.center, hourly=Decimal(hourly), half_day=None, full_day=None)
    return beside(room, rate=rate)


def moved(reservation, by, *, room=None, start=START, hours=3, now=NOW, **how):
    return moving.move(
        reservation.pk,
        room_id=(room or reservation.room).pk,
        start=start,
        end=start + hours * HOUR,
        by=by,
        now=now,
        **how,
    )


def previewed(reservation, by, *, room=None, start=START, hours=3, **how):
    return moving.preview(
        reservation.pk,
        room_id=(room or reservation.room).pk,
        start=start,
        end=start + hours * HOUR,
        by=by,
        now=NOW,
        **how,
    )


def snapshot(reservation):
    row = Reservation.objects.filter(pk=reservation.pk).values().get()
    return row, list(reservation.line_items.order_by("pk").values())


def net():
    """What the gateway has taken and kept."""
    paid = SandboxPayment.objects.get()
    return paid.amount * bool(paid.captures) - paid.refunded


# --- Booked -------------------------------------------------------------------------------------


def test_a_booking_moves_to_another_time_at_the_same_price(clerk):
    reservation = booked()

    done = moved(reservation, clerk, start=START + DAY)

    reservation.refresh_from_db()
    assert (reservation.start, reservation.end) == (START + DAY, START + DAY + 3 * HOUR)
    assert reservation.status == Status.CONFIRMED
    assert (done.difference, done.refund, reservation.reduced_by) == (0, 0, 0)
    assert not Refund.objects.exists()
    again = draft(UserFactory(), reservation.room)
    assert again.start == START  # the old slot is free


def test_a_cheaper_place_gives_the_difference_back(clerk):
    reservation = booked()  # 75
    cheap = at_rate(reservation.room, 15)

    done = moved(reservation, clerk, room=cheap)

    reservation.refresh_from_db()
    assert (reservation.room, reservation.total_cost, reservation.reduced_by) == (cheap, 45, 30)
    assert done.refund == 30
    refund = Refund.objects.get()
    assert (refund.amount, refund.state) == (30, RefundState.DONE)
    assert net() == 45


def test_it_may_become_cheaper_more_than_once_and_be_cancelled_then(clerk):
    reservation = booked()
    moved(reservation, clerk, room=at_rate(reservation.room, 15))
    moved(reservation, clerk, room=at_rate(reservation.room, 10))
    reservation.refresh_from_db()
    assert (reservation.total_cost, reservation.reduced_by, net()) == (30, 45, 30)

    assert cancellation.cancel(reservation.pk, now=NOW).refund == 30
    assert net() == 0


def test_the_fee_of_a_late_cancellation_is_the_lower_price(clerk):
    reservation = booked()
    moved(reservation, clerk, room=at_rate(reservation.room, 15))

    terms = cancellation.terms_of(Reservation.objects.get(), now=START - HOUR)

    assert (terms.refund, terms.fee) == (0, 45)


def test_a_dearer_place_is_refused_and_nothing_is_changed(clerk):
    reservation = booked()
    dear = at_rate(reservation.room, 40)
    before = snapshot(reservation)

    would = previewed(reservation, clerk, room=dear)
    with pytest.raises(ReservationNotOpen, match=r"\$45.00 more"):
        moved(reservation, clerk, room=dear)

    assert would.could_be_waived
    assert "$45.00 more" in would.problems[0]
    assert snapshot(reservation) == before
    assert OutboxMessage.objects.filter(kind="moved").count() == 0


def test_the_difference_can_be_waived_with_a_reason(manager):
    reservation = booked()
    dear = at_rate(reservation.room, 40)

    would = previewed(reservation, manager, room=dear, waiver="Their room leaks")
    done = moved(reservation, manager, room=dear, waiver="Their room leaks", agreed=Decimal(75))

    assert (would.waived, would.new_total, would.problems) == (45, 75, ())
    assert (done.waived, done.new_total, done.refund) == (45, 75, 0)
    line = reservation.line_items.get(type=LineItemType.ADJUSTMENT)
    assert (line.total, line.description) == (-45, "Adjustment: Their room leaks")


def test_a_waiver_is_good_for_its_move_alone(manager):
    """Else moving there and back would give money away."""
    reservation = booked()
    home = reservation.room
    moved(reservation, manager, room=at_rate(home, 40), waiver="Leak")

    done = moved(reservation, manager, room=home)

    assert (done.new_total, done.refund) == (75, 0)
    assert not reservation.price_adjustments.exists()


@pytest.mark.parametrize("missing", ["the old center", "the new center", "both"])
def test_who_waives_may_adjust_prices_where_it_was_and_where_it_goes(missing):
    """The new center loses the money; the old one's customer is given it."""
    reservation, dear = booked(), at_rate(a_room(), 40)
    old, new = reservation.room.center, dear.center
    centers = {"the old center": [new], "the new center": [old], "both": [a_room().center]}
    someone = with_role("Manager", *centers[missing])
    before = snapshot(reservation)

    for attempt in (previewed, moved):
        with pytest.raises(InvalidRequest) as refused:
            attempt(reservation, someone, room=dear, waiver="Leak")
        assert "can waive the difference" in refused.value.fields["waiver"]
    assert snapshot(reservation) == before

    assert moved(reservation, with_role("Manager", old, new), room=dear, waiver="Leak").waived == 45


@pytest.mark.parametrize("rate", ["0", "8.625", "19", "7.77"])
@pytest.mark.parametrize("hourly", ["25.01", "40", "99.99"])
def test_a_waiver_with_tax_comes_to_the_old_total_or_gives_the_rest_back(manager, rate, hourly):
    reservation = booked()
    dear = at_rate(a_room(), hourly)
    dear.center.tax_rate = Decimal(rate)
    dear.center.save()

    done = moved(reservation, manager, room=dear, waiver="Leak")

    assert Decimal(74) < done.new_total <= 75
    assert done.refund == 75 - done.new_total
    assert net() == done.new_total


def test_a_price_that_is_not_the_one_agreed_to_moves_nothing(clerk):
    reservation = booked()
    cheap = at_rate(reservation.room, 15)
    before = snapshot(reservation)

    with pytest.raises(ReservationNotOpen, match="price has changed"):
        moved(reservation, clerk, room=cheap, agreed=Decimal(40))

    assert snapshot(reservation) == before


def test_a_preview_tells_all_and_changes_nothing(clerk):
    reservation = booked()
    cheap = at_rate(reservation.room, 15)
    before = snapshot(reservation)

    would = previewed(reservation, clerk, room=cheap)

    assert (would.old_total, would.new_total, would.refund, would.problems) == (75, 45, 30, ())
    assert [line.total for line in would.old_lines] == [75]
    assert [line.total for line in would.new_lines] == [45]
    assert snapshot(reservation) == before
    assert not Refund.objects.exists()
    assert Reservation.objects.get().room == reservation.room


def test_a_free_booking_moves_to_what_is_free(clerk):
    free = at_rate(a_room(), 0)
    reservation = booked(room=free)

    moved(reservation, clerk, start=START + DAY)
    with pytest.raises(ReservationNotOpen, match="more"):
        moved(reservation, clerk, room=beside(free))


def test_money_that_was_not_taken_yet_is_taken_first(clerk):
    SandboxFault.objects.create(operation="capture", kind=FaultKind.TIMEOUT_BEFORE, times=1)
    reservation = booked()
    assert reservation.payments.get().state == PaymentState.AUTHORIZED

    moved(reservation, clerk, room=at_rate(reservation.room, 15))

    assert (reservation.payments.get().state, net()) == (PaymentState.CAPTURED, 45)


def test_money_that_cannot_be_taken_now_moves_nothing_that_is_cheaper(clerk):
    SandboxFault.objects.create(operation="capture", kind=FaultKind.TIMEOUT_BEFORE)
    reservation = booked()

    with pytest.raises(ServiceUnavailable, match="Nothing was changed"):
        moved(reservation, clerk, room=at_rate(reservation.room, 15))
    SandboxFault.objects.all().delete()

    assert Reservation.objects.get().total_cost == 75


def test_a_refund_that_a_crash_left_owed_is_paid_by_the_reconciler(clerk, monkeypatch):
    from django.core.management import call_command

    reservation = booked()
    monkeypatch.setattr(checkout, "pay_dues", lambda payment, now: None)
    moved(reservation, clerk, room=at_rate(reservation.room, 15))
    assert Refund.objects.get().state == RefundState.STARTED

    call_command("reconcile_payments")

    assert Refund.objects.get().state == RefundState.DONE
    assert net() == 45


@pytest.mark.broken_books
def test_a_refused_refund_is_told_until_it_is_seen_to(clerk):
    reservation = booked()
    SandboxPayment.objects.update(refunded=70)
    moved(reservation, clerk, room=at_rate(reservation.room, 15))
    assert Refund.objects.get().state == RefundState.REFUSED

    assert [row.pk for row in reductions_unmet()] == [reservation.pk]
    found = [str(each) for each in integrity.findings(now=NOW)]
    assert any("became cheaper by 30.00, and 0" in each for each in found)


def test_a_favour_before_leaves_less_to_give_back(clerk):
    reservation = booked()
    payment = reservation.payments.get()
    from payments import actions as payments

    favour = payments.open_refund(payment, amount=Decimal(60), reason="Sorry", now=NOW)
    payments.pay_back(favour, now=NOW)

    done = moved(reservation, clerk, room=at_rate(reservation.room, 15))

    assert done.refund == 15
    assert net() == 0


# --- Drafts -------------------------------------------------------------------------------------


def test_a_draft_is_priced_anew_and_keeps_its_hold(clerk):
    reservation = draft()
    until = reservation.hold_until

    done = moved(reservation, clerk, room=at_rate(reservation.room, 40), start=START + DAY)

    reservation.refresh_from_db()
    assert (done.old_total, done.new_total, reservation.total_cost) == (75, 120, 120)
    assert (reservation.holds_slot, reservation.hold_until) == (True, until)
    assert not OutboxMessage.objects.exists()


def test_a_draft_whose_hold_had_lapsed_is_held_again(clerk):
    reservation = draft()
    later = NOW + HOUR

    moved(reservation, clerk, start=START + DAY, now=later)

    reservation.refresh_from_db()
    assert reservation.hold_until == later + DAY
    assert reservation.holds_slot


def test_a_drafts_code_must_be_good_for_the_new_place(clerk):
    promo = PromoCodeFactory(code="HERE")
    reservation = draft()
    promo.centers.add(reservation.room.center)
    apply_promo_code(reservation.pk, "HERE", user=reservation.user, now=NOW)

    with pytest.raises(PromoCodeInvalid):
        moved(reservation, clerk, room=a_room())


def test_a_customers_own_draft_gives_way(clerk):
    reservation = booked()
    mine = draft(reservation.user, reservation.room, start=START + DAY)

    moved(reservation, clerk, start=START + DAY)

    mine.refresh_from_db()
    assert (mine.status, mine.holds_slot) == (Status.NEW, False)


# --- Requests -----------------------------------------------------------------------------------


def test_a_request_moves_at_the_same_price(clerk):
    reservation = requested()

    moved(reservation, clerk, start=START + DAY)

    assert approval.approve(reservation.pk, now=NOW).status == Status.CONFIRMED
    assert net() == 75


def test_a_request_does_not_become_cheaper_before_it_is_approved(clerk):
    reservation = requested()
    cheap = at_rate(reservation.room, 15)

    with pytest.raises(ReservationNotOpen, match="Approve it first"):
        moved(reservation, clerk, room=cheap)

    approval.approve(reservation.pk, now=NOW)
    moved(reservation, clerk, room=cheap)
    assert net() == 45


def test_a_request_moves_to_a_dearer_room_where_the_difference_is_waived(manager):
    reservation = requested()

    moved(reservation, manager, room=at_rate(reservation.room, 40), waiver="Leak")

    approval.approve(reservation.pk, now=NOW)
    assert net() == 75


# --- What is not moved --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status",
    [
        *(Status.PROCESSING, Status.DECLINED, Status.CANCELLED, Status.EXPIRED),
        *(Status.COMPLETED, Status.NO_SHOW),
    ],
)
@pytest.mark.broken_books
def test_what_is_over_or_under_way_is_not_moved(clerk, status):
    row = ReservationFactory(status=status, room=a_room())

    with pytest.raises(ReservationNotOpen):
        moved(row, clerk, start=START + DAY)
    assert not moving.movable(row, now=NOW)


def test_a_meeting_that_has_begun_is_not_moved(clerk):
    with pytest.raises(ReservationNotOpen, match="time has come"):
        moved(booked(), clerk, start=START + DAY, now=START)


def test_where_it_is_already_is_no_move(clerk):
    with pytest.raises(InvalidRequest):
        moved(booked(), clerk)


def test_a_room_that_is_too_small_is_refused(clerk):
    reservation = booked(number_of_attendees=5)

    with pytest.raises(InvalidRequest) as refused:
        moved(reservation, clerk, room=beside(reservation.room, capacity=4))
    assert "holds 4 people" in refused.value.fields["room"]


def test_services_that_another_center_does_not_offer_are_in_the_way(clerk):
    room = a_room()
    service = ServiceFactory(center=room.center, name="Coffee")
    reservation = draft(room=room, service_options=[{"service_id": service.pk}])

    with pytest.raises(InvalidRequest) as refused:
        moved(reservation, clerk, room=a_room())
    assert "Coffee" in refused.value.fields["room"]


def test_a_taken_room_is_refused_with_every_reason(clerk):
    reservation, rival = booked(), booked(start=START + DAY)

    would = previewed(reservation, clerk, room=rival.room, start=START + DAY + 10 * MINUTE)
    with pytest.raises(SlotUnavailable):
        moved(reservation, clerk, room=rival.room, start=START + DAY)

    assert len(would.problems) == 2  # off the grid, and taken
    assert f"Reservation {rival.pk}" in would.problems[1]
    assert not would.could_be_waived


def test_its_own_slot_is_not_in_its_way_and_turnaround_is_counted(clerk):
    room = a_room(turnaround_minutes=30)
    reservation = booked(room=room)
    booked(room=room, start=START + 4 * HOUR)

    moved(reservation, clerk, start=START + 30 * MINUTE)
    with pytest.raises(SlotUnavailable):
        moved(reservation, clerk, start=START + 45 * MINUTE)


def test_the_turnaround_is_the_new_rooms(clerk):
    reservation = booked()
    other = beside(reservation.room, turnaround_minutes=30)

    moved(reservation, clerk, room=other)

    reservation.refresh_from_db()
    assert reservation.turnaround_minutes == 30
    assert reservation.occupied_until == START + 3 * HOUR + 30 * MINUTE


# --- Promo codes and hours ----------------------------------------------------------------------


def with_code(promo, **how):
    reservation = draft(**how)
    apply_promo_code(reservation.pk, promo.code, user=reservation.user, now=NOW)
    return checkout.check_out(reservation.pk, user=reservation.user, means=by_card(), now=NOW)


def test_a_booking_keeps_the_code_that_it_used(clerk):
    promo = PromoCodeFactory(max_uses=1, max_uses_per_account=1, valid_until=NOW + HOUR)
    reservation = with_code(promo)
    promo.centers.add(reservation.room.center)

    done = moved(reservation, clerk, room=at_rate(a_room(), 20), now=NOW + 2 * HOUR)

    promo.refresh_from_db()
    assert done.new_total == 54
    assert (promo.uses, promo.spent) == (1, 6)
    open_use = reservation.promo_redemptions.get(given_back_at__isnull=True)
    assert open_use.amount == 6


def test_a_budget_counts_the_booking_once(clerk):
    promo = PromoCodeFactory(budget=Decimal("7.50"))
    reservation = with_code(promo)

    moved(reservation, clerk, start=START + DAY)

    promo.refresh_from_db()
    assert promo.spent == Decimal("7.50")


def test_a_booking_too_small_for_its_code_is_not_moved(clerk):
    promo = PromoCodeFactory(minimum_spend=Decimal(70))
    reservation = with_code(promo)

    with pytest.raises(PromoCodeInvalid, match="70"):
        moved(reservation, clerk, room=at_rate(reservation.room, 15))

    promo.refresh_from_db()
    assert promo.uses == 1


def test_a_code_that_took_nothing_off_is_used_once_it_does(clerk):
    ada = UserFactory()
    plan = AllowanceFactory(user=ada, hours=3)
    promo = PromoCodeFactory(percent=Decimal(100), max_uses=1)
    reservation = draft(ada)
    apply_promo_code(reservation.pk, promo.code, user=ada, now=NOW)
    checkout.check_out(reservation.pk, user=ada, means=checkout.Means(), now=NOW)
    promo.refresh_from_db()
    assert promo.uses == 0

    moved(reservation, clerk, hours=4)

    promo.refresh_from_db()
    assert (promo.uses, promo.spent) == (1, Decimal("22.50"))  # the hour of a half day
    assert sum(entry.hours for entry in plan.entries.all()) == -3


def test_hours_are_counted_to_the_new_month(clerk):
    ada = UserFactory()
    plan = MonthlyAllowanceFactory(user=ada, hours=2)
    reservation = booked(ada)  # March; 1 of 3 hours is paid
    april = START + 30 * DAY

    moved(reservation, clerk, start=april)

    periods = {}
    for entry in plan.entries.all():
        periods[entry.period.month] = periods.get(entry.period.month, 0) + entry.hours
    assert periods == {3: 0, 4: -2}
    assert net() == 25


def test_without_hours_left_in_the_new_month_it_is_dearer(clerk):
    ada = UserFactory()
    MonthlyAllowanceFactory(user=ada, hours=2)
    reservation = booked(ada)
    april = START + 30 * DAY
    booked(ada, start=april + DAY)

    would = previewed(reservation, clerk, start=april)

    assert would.difference == 50
    assert would.could_be_waived


# --- What the customer is told ------------------------------------------------------------------


def test_the_customer_is_told_with_a_newer_calendar_file(clerk):
    reservation = booked()
    cheap = at_rate(reservation.room, 15)

    moved(reservation, clerk, room=cheap, start=START + DAY)

    first, second = OutboxMessage.objects.about(mail.matter(reservation))
    assert second.kind == "moved"
    assert "March 3, 2027, 9:00" in second.text
    assert "March 4, 2027, 9:00" in second.text
    assert "$30.00 is refunded to Visa ending 4242" in second.text
    old, new = (
        next(iter(Calendar.from_ical(each.calendar).walk("VEVENT"))) for each in (first, second)
    )
    assert old["UID"] == new["UID"]
    assert (old["SEQUENCE"], new["SEQUENCE"]) == (1, 2)
    assert new["STATUS"] == "CONFIRMED"
    assert new.start == START + DAY
    assert cheap.name in new["SUMMARY"]


def test_a_moved_request_stays_tentative(clerk):
    reservation = requested()

    moved(reservation, clerk, start=START + DAY)

    assert "STATUS:TENTATIVE" in mail.last_about(reservation).calendar


# --- A change of price --------------------------------------------------------------------------


def adjusted(reservation, by, amount, now=NOW, **how):
    return adjusting.adjust_price(
        reservation.pk, amount=Decimal(amount), reason="Projector broke", by=by, now=now, **how
    )


def test_the_price_of_a_booking_can_be_lowered_and_the_difference_goes_back(clerk):
    room = a_room()
    room.center.tax_rate = Decimal(8)
    room.center.save()
    reservation = booked(room=room)
    assert reservation.total_cost == 81
    room.rate.hourly = 99  # the bill is not priced anew
    room.rate.save()

    would = adjusting.preview(
        reservation.pk, amount=Decimal(-25), reason="Projector broke", by=clerk, now=NOW
    )
    done = adjusted(reservation, clerk, -25)

    assert (would.new_total, would.refund) == (done.new_total, done.refund) == (54, 27)
    reservation.refresh_from_db()
    assert (reservation.total_cost, reservation.reduced_by, net()) == (54, 27, 54)
    assert [line.total for line in reservation.line_items.order_by("position")] == [75, -25, 4]
    assert "Projector broke" in mail.last_about(reservation).text


def test_it_can_be_lowered_once_the_meeting_is_over(clerk):
    reservation = booked()
    after = START + 4 * HOUR
    list(approval.expire(now=after))

    assert adjusted(reservation, clerk, -200, now=after).refund == 75
    assert net() == 0
    with pytest.raises(ReservationNotOpen, match="nothing left"):
        adjusted(reservation, clerk, -5, now=after)


def test_a_paid_price_is_never_raised(clerk):
    reservation = booked()

    with pytest.raises(ReservationNotOpen, match="only be lowered"):
        adjusted(reservation, clerk, 5)


@pytest.mark.broken_books
@pytest.mark.parametrize("status", [Status.PENDING, Status.PROCESSING, Status.CANCELLED])
def test_the_price_of_what_is_under_way_or_over_is_left_alone(clerk, status):
    with pytest.raises(ReservationNotOpen):
        adjusted(ReservationFactory(status=status), clerk, -5)


def test_an_adjustment_is_done_at_the_price_that_was_seen(clerk):
    reservation = draft()

    with pytest.raises(ReservationNotOpen, match="price has changed"):
        adjusted(reservation, clerk, -5, agreed=Decimal(75))
    assert adjusted(reservation, clerk, -5, agreed=Decimal(70)).new_total == 70


def test_an_adjustment_of_a_moved_booking_stays_on_its_bill(clerk):
    reservation = booked()
    adjusted(reservation, clerk, -5)

    moved(reservation, clerk, start=START + DAY)

    reservation.refresh_from_db()
    assert (reservation.total_cost, net()) == (70, 70)


def kept(reservation):
    """What is kept of its adjustments, which add up to what its bill shows."""
    amounts = [each.amount for each in reservation.price_adjustments.order_by("pk")]
    lines = reservation.line_items.filter(type=LineItemType.ADJUSTMENT)
    assert sum(amounts) == sum(line.total for line in lines)
    return amounts


def test_an_adjustment_is_kept_as_it_was_applied_and_a_move_takes_off_no_more(clerk):
    room = a_room()
    room.center.tax_rate = Decimal("8.82")
    room.center.save()
    room.rate = at_rate(room, "16.67").rate  # 3 hours with tax: 54.42
    room.save()
    reservation = booked(room=room)
    assert reservation.total_cost == Decimal("54.42")

    done = adjusted(reservation, clerk, -1000)

    assert (done.new_total, done.refund) == (0, Decimal("54.42"))
    assert kept(reservation) == [Decimal("-50.01")]
    assert history.of(reservation)[0].changes["adjustment"] == [None, "-$50.01: Projector broke"]
    would = previewed(reservation, clerk, room=at_rate(room, 40))
    assert would.new_total == Decimal("76.16")  # 120 - 50.01 and tax
    assert would.could_be_waived


@pytest.mark.parametrize("make", [booked, draft])
def test_adjustments_add_up_to_what_the_bill_shows(clerk, make):
    reservation = make()

    adjusted(reservation, clerk, -25)
    adjusted(reservation, clerk, -1000)

    assert kept(reservation) == [-25, -50]


def test_a_draft_that_moves_to_a_dearer_room_pays_what_was_not_taken_off(clerk):
    reservation = draft()
    adjusted(reservation, clerk, -1000)

    done = moved(reservation, clerk, room=at_rate(reservation.room, 40))

    assert done.new_total == 45
    assert kept(reservation) == [-75]


def test_nothing_is_taken_off_a_draft_that_costs_nothing(clerk):
    reservation = draft()
    adjusted(reservation, clerk, -1000)

    for attempt in (adjusted, lambda *how: adjusted(*how, agreed=Decimal(0))):
        with pytest.raises(ReservationNotOpen, match="nothing left"):
            attempt(reservation, clerk, -50)

    assert kept(reservation) == [-75]
    assert adjusted(reservation, clerk, 5).new_total == 5  # up is possible still


def test_what_is_confirmed_twice_is_adjusted_once(clerk):
    """Also where the new total is the one that was seen, and there is something to take off."""
    reservation = draft()
    seen = {"was": Decimal(75), "agreed": Decimal(0)}
    adjusted(reservation, clerk, -1000, **seen)
    adjusted(reservation, clerk, 7)
    before = snapshot(reservation)

    with pytest.raises(ReservationNotOpen, match=r"The price has changed: it comes to \$7.00"):
        adjusted(reservation, clerk, -1000, **seen)

    assert snapshot(reservation) == before
    assert kept(reservation) == [-75, 7]


# --- Holds --------------------------------------------------------------------------------------


def test_staff_extend_a_hold(clerk):
    reservation = draft()

    extend_hold(reservation.pk, until=NOW + 5 * HOUR, by=clerk, now=NOW)

    reservation.refresh_from_db()
    assert (reservation.holds_slot, reservation.hold_until) == (True, NOW + 5 * HOUR)


@pytest.mark.parametrize("until", [NOW + DAY + MINUTE, NOW + 10 * MINUTE, NOW - MINUTE])
def test_a_hold_is_extended_within_bounds(clerk, until):
    reservation = draft()

    with pytest.raises(InvalidRequest):
        extend_hold(reservation.pk, until=until, by=clerk, now=NOW)


def test_a_lapsed_hold_begins_again_where_the_room_is_free(clerk):
    reservation = draft()
    later = NOW + HOUR
    extend_hold(reservation.pk, until=later + HOUR, by=clerk, now=later)
    assert Reservation.objects.get().is_held_at(later)


def test_a_lapsed_hold_is_gone_where_somebody_took_the_room(clerk):
    reservation = draft()
    later = NOW + HOUR
    draft(UserFactory(), reservation.room, now=later)

    with pytest.raises(SlotUnavailable):
        extend_hold(reservation.pk, until=later + HOUR, by=clerk, now=later)


def test_only_a_draft_has_a_hold_to_extend(clerk):
    with pytest.raises(ReservationNotOpen):
        extend_hold(booked().pk, until=NOW + HOUR, by=clerk, now=NOW)


# --- Mails once more ----------------------------------------------------------------------------


def test_the_last_mail_goes_out_again_to_the_address_of_today(clerk):
    reservation = booked()
    with pytest.raises(ReservationNotOpen, match="waiting to be sent anyway"):
        mail.resend(reservation.pk, by=clerk, now=NOW)
    OutboxMessage.objects.update(state="sent", sent_at=NOW, next_attempt_at=None)
    reservation.user.email = "new@example.com"
    reservation.user.save()

    mail.resend(reservation.pk, by=clerk, now=NOW)

    first, again = OutboxMessage.objects.about(mail.matter(reservation))
    assert (again.kind, again.to, again.state) == ("confirmed", "new@example.com", "waiting")
    assert again.calendar == first.calendar
    assert again.key != first.key


def test_a_mail_that_was_given_up_is_tried_again(clerk):
    reservation = booked()
    OutboxMessage.objects.update(state="given up", next_attempt_at=None)

    mail.resend(reservation.pk, by=clerk, now=NOW)

    assert OutboxMessage.objects.get().state == "waiting"


# --- Many at once -------------------------------------------------------------------------------


def together(calls):
    gate = Barrier(len(calls))

    def run(call):
        try:
            connection.ensure_connection()
            gate.wait(timeout=30)
            call()
        except DomainError as error:
            return type(error).__name__
        else:
            return "done"
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return sorted(pool.map(run, calls))


@pytest.mark.django_db(transaction=True)
def test_many_moves_into_one_slot_and_one_wins():
    clerk, target = StaffFactory(), a_room()
    rows = [booked(room=beside(target)) for _ in range(6)]

    answers = together([lambda row=row: moved(row, clerk, room=target) for row in rows])

    assert answers == [*["SlotUnavailable"] * 5, "done"]
    assert Reservation.objects.filter(room=target).count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_move_against_checkouts_of_the_same_slot():
    clerk, target = StaffFactory(), a_room()
    row = booked(room=beside(target))
    rivals = [draft(UserFactory(), target, now=NOW - n * 16 * MINUTE) for n in (3, 2, 1)]
    pays = [
        lambda rival=rival: checkout.check_out(rival.pk, user=rival.user, means=by_card(), now=NOW)
        for rival in rivals
    ]

    answers = together([lambda: moved(row, clerk, room=target), *pays])

    assert answers == [*["SlotUnavailable"] * 3, "done"]


@pytest.mark.django_db(transaction=True)
def test_moves_that_cross_do_not_wait_for_each_other_for_ever():
    """Each wants the other's room, at a time at which it is free; over and over."""
    clerk, one = StaffFactory(), a_room()
    two = beside(one)
    first, second = booked(room=one), booked(room=two)

    for day in range(1, 5):
        answers = together(
            [
                lambda day=day: moved(
                    first, clerk, room=(one, two)[day % 2], start=START + day * DAY
                ),
                lambda day=day: moved(
                    second, clerk, room=(two, one)[day % 2], start=START + day * DAY
                ),
            ]
        )
        assert answers == ["done", "done"]


@pytest.mark.django_db(transaction=True)
def test_moving_and_cancelling_at_once_leaves_no_money_astray():
    clerk = StaffFactory()
    reservation = booked()
    cheap = at_rate(reservation.room, 15)

    together(
        [
            lambda: moved(reservation, clerk, room=cheap),
            lambda: cancellation.cancel(reservation.pk, now=NOW),
        ]
    )

    assert Reservation.objects.get().status == Status.CANCELLED
    assert net() == 0
