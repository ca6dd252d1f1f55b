"""Rescheduling of bookings: another room or time, and the effect on money."""

from decimal import Decimal

import pytest

from accounts.models import OutboxMessage
from payments.gateways.sandbox_models import FaultKind, SandboxFault, SandboxPayment
from payments.models import PaymentState, Refund, RefundState
from reservations.booking import cancellation, integrity, payment_recovery
from reservations.booking.integrity.money import unmet_reductions
from reservations.models import LineItemType, Reservation
from reservations.models.status import Status
from roombook.errors import InvalidRequest, ReservationNotOpen, ServiceUnavailable
from tests.factories_people import UserFactory
from tests.factories_reservations import HOUR, NOW, START, make_booking, make_draft, make_room
from tests.reservations.rescheduling_helpers import (
    DAY,
    get_net_payment,
    get_stored_values,
    make_room_at_rate,
    make_room_in_same_center,
    make_staff_with_role,
    preview_reschedule,
    reschedule,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.time_machine(NOW, tick=False),
    pytest.mark.usefixtures("data_is_consistent"),
]


def test_reschedule_at_the_same_price_has_no_refund(clerk):
    reservation = make_booking()

    done = reschedule(reservation, clerk, start=START + DAY)

    reservation.refresh_from_db()
    assert (reservation.start, reservation.end) == (START + DAY, START + DAY + 3 * HOUR)
    assert reservation.status == Status.CONFIRMED
    assert (done.difference, done.refund, reservation.reduced_by) == (0, 0, 0)
    assert not Refund.objects.exists()
    again = make_draft(UserFactory(), reservation.room)
    assert again.start == START  # the old slot is free


def test_reschedule_to_cheaper_room_refunds_the_difference(clerk):
    reservation = make_booking()  # 75
    cheap = make_room_at_rate(reservation.room, 15)

    done = reschedule(reservation, clerk, room=cheap)

    reservation.refresh_from_db()
    assert (reservation.room, reservation.total_cost, reservation.reduced_by) == (cheap, 45, 30)
    assert done.refund == 30
    refund = Refund.objects.get()
    assert (refund.amount, refund.state) == (30, RefundState.DONE)
    assert get_net_payment() == 45


def test_reschedule_to_cheaper_room_twice_then_cancel_refunds_the_rest(clerk):
    reservation = make_booking()
    reschedule(reservation, clerk, room=make_room_at_rate(reservation.room, 15))
    reschedule(reservation, clerk, room=make_room_at_rate(reservation.room, 10))
    reservation.refresh_from_db()
    assert (reservation.total_cost, reservation.reduced_by, get_net_payment()) == (30, 45, 30)

    assert cancellation.cancel(reservation.pk, now=NOW).refund == 30
    assert get_net_payment() == 0


def test_late_cancellation_fee_after_reschedule_is_the_lower_price(clerk):
    reservation = make_booking()
    reschedule(reservation, clerk, room=make_room_at_rate(reservation.room, 15))

    terms = cancellation.get_terms(Reservation.objects.get(), now=START - HOUR)

    assert (terms.refund, terms.fee) == (0, 45)


def test_reschedule_to_more_expensive_room_is_refused(clerk):
    reservation = make_booking()
    expensive = make_room_at_rate(reservation.room, 40)
    before = get_stored_values(reservation)

    preview = preview_reschedule(reservation, clerk, room=expensive)
    with pytest.raises(ReservationNotOpen, match=r"\$45.00 more"):
        reschedule(reservation, clerk, room=expensive)

    assert preview.can_be_waived
    assert "$45.00 more" in preview.problems[0]
    assert get_stored_values(reservation) == before
    assert OutboxMessage.objects.filter(kind="moved").count() == 0


def test_reschedule_with_waiver_and_reason_waives_the_difference(manager):
    reservation = make_booking()
    expensive = make_room_at_rate(reservation.room, 40)

    preview = preview_reschedule(reservation, manager, room=expensive, waiver="Their room leaks")
    done = reschedule(
        reservation, manager, room=expensive, waiver="Their room leaks", expected_total=Decimal(75)
    )

    assert (preview.waived, preview.new_total, preview.problems) == (45, 75, ())
    assert (done.waived, done.new_total, done.refund) == (45, 75, 0)
    line = reservation.line_items.get(type=LineItemType.ADJUSTMENT)
    assert (line.total, line.description) == (-45, "Adjustment: Their room leaks")


def test_waiver_applies_to_one_reschedule_only(manager):
    """Otherwise rescheduling there and back preview refund too much."""
    reservation = make_booking()
    old_room = reservation.room
    reschedule(reservation, manager, room=make_room_at_rate(old_room, 40), waiver="Leak")

    done = reschedule(reservation, manager, room=old_room)

    assert (done.new_total, done.refund) == (75, 0)
    assert not reservation.price_adjustments.exists()


@pytest.mark.parametrize("missing", ["the old center", "the new center", "both"])
def test_waiver_needs_price_permission_at_both_centers(missing):
    """The waiver costs the new center money and benefits a customer of the old center."""
    reservation, expensive = make_booking(), make_room_at_rate(make_room(), 40)
    old, new = reservation.room.center, expensive.center
    centers = {"the old center": [new], "the new center": [old], "both": [make_room().center]}
    someone = make_staff_with_role("Manager", *centers[missing])
    before = get_stored_values(reservation)

    for attempt in (preview_reschedule, reschedule):
        with pytest.raises(InvalidRequest) as refused:
            attempt(reservation, someone, room=expensive, waiver="Leak")
        assert "can waive the difference" in refused.value.fields["waiver"]
    assert get_stored_values(reservation) == before

    assert (
        reschedule(
            reservation, make_staff_with_role("Manager", old, new), room=expensive, waiver="Leak"
        ).waived
        == 45
    )


@pytest.mark.parametrize("rate", ["0", "8.625", "19", "7.77"])
@pytest.mark.parametrize("hourly", ["25.01", "40", "99.99"])
def test_waiver_with_tax_gives_the_old_total_or_refunds_the_rest(manager, rate, hourly):
    reservation = make_booking()
    expensive = make_room_at_rate(make_room(), hourly)
    expensive.center.tax_rate = Decimal(rate)
    expensive.center.save()

    done = reschedule(reservation, manager, room=expensive, waiver="Leak")

    assert Decimal(74) < done.new_total <= 75
    assert done.refund == 75 - done.new_total
    assert get_net_payment() == done.new_total


def test_reschedule_with_outdated_price_is_refused(clerk):
    reservation = make_booking()
    cheap = make_room_at_rate(reservation.room, 15)
    before = get_stored_values(reservation)

    with pytest.raises(ReservationNotOpen, match="price has changed"):
        reschedule(reservation, clerk, room=cheap, expected_total=Decimal(40))

    assert get_stored_values(reservation) == before


def test_reschedule_preview_shows_totals_and_changes_nothing(clerk):
    reservation = make_booking()
    cheap = make_room_at_rate(reservation.room, 15)
    before = get_stored_values(reservation)

    preview = preview_reschedule(reservation, clerk, room=cheap)

    assert (preview.old_total, preview.new_total, preview.refund, preview.problems) == (
        75,
        45,
        30,
        (),
    )
    assert [line.total for line in preview.old_lines] == [75]
    assert [line.total for line in preview.new_lines] == [45]
    assert get_stored_values(reservation) == before
    assert not Refund.objects.exists()
    assert Reservation.objects.get().room == reservation.room


def test_free_booking_can_be_rescheduled_only_to_free_slots(clerk):
    free = make_room_at_rate(make_room(), 0)
    reservation = make_booking(room=free)

    reschedule(reservation, clerk, start=START + DAY)
    with pytest.raises(ReservationNotOpen, match="more"):
        reschedule(reservation, clerk, room=make_room_in_same_center(free))


def test_reschedule_to_cheaper_room_captures_authorized_payment_first(clerk):
    SandboxFault.objects.create(operation="capture", kind=FaultKind.TIMEOUT_BEFORE, times=1)
    reservation = make_booking()
    assert reservation.payments.get().state == PaymentState.AUTHORIZED

    reschedule(reservation, clerk, room=make_room_at_rate(reservation.room, 15))

    assert (reservation.payments.get().state, get_net_payment()) == (PaymentState.CAPTURED, 45)


def test_reschedule_to_cheaper_room_is_refused_while_capture_fails(clerk):
    SandboxFault.objects.create(operation="capture", kind=FaultKind.TIMEOUT_BEFORE)
    reservation = make_booking()

    with pytest.raises(ServiceUnavailable, match="Nothing was changed"):
        reschedule(reservation, clerk, room=make_room_at_rate(reservation.room, 15))
    SandboxFault.objects.all().delete()

    assert Reservation.objects.get().total_cost == 75


def test_refund_due_after_a_crash_is_paid_by_reconcile_payments(clerk, monkeypatch):
    from django.core.management import call_command

    reservation = make_booking()
    monkeypatch.setattr(payment_recovery, "try_fulfil_obligations", lambda *_, **__: None)
    reschedule(reservation, clerk, room=make_room_at_rate(reservation.room, 15))
    assert Refund.objects.get().state == RefundState.STARTED

    call_command("reconcile_payments")

    assert Refund.objects.get().state == RefundState.DONE
    assert get_net_payment() == 45


@pytest.mark.inconsistent_data
def test_refused_refund_is_reported_as_problem(clerk):
    reservation = make_booking()
    SandboxPayment.objects.update(refunded=70)
    reschedule(reservation, clerk, room=make_room_at_rate(reservation.room, 15))
    assert Refund.objects.get().state == RefundState.REFUSED

    assert [row.pk for row in unmet_reductions()] == [reservation.pk]
    found = [str(each) for each in integrity.find_problems(now=NOW)]
    assert any("price reduced by 30.00, and 0" in each for each in found)


def test_earlier_goodwill_refund_reduces_the_refund(clerk):
    reservation = make_booking()
    payment = reservation.payments.get()
    from payments import refunds

    goodwill = refunds.create_refund(payment, amount=Decimal(60), reason="Sorry", now=NOW)
    refunds.execute_refund(goodwill, now=NOW)

    done = reschedule(reservation, clerk, room=make_room_at_rate(reservation.room, 15))

    assert done.refund == 15
    assert get_net_payment() == 0
