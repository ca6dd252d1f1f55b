"""What verify_integrity reports and accepts; test_corruptions.py has what it finds."""

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import pytest
import time_machine

from accounts.act import Act
from accounts.models import OutboxMessage
from accounts.profile import create_customer
from centers.closure_effects import time_zone_changed
from payments import refunds
from payments.gateway_events import record_dispute
from payments.gateways.base import GatewayDispute, GatewayRefund
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, PaymentState, Refund
from reservations.booking import cancellation, integrity
from reservations.models import PromoCode, Reservation
from roombook.backoffice.models import AuditEntry
from tests.factories_centers import FlatRateFactory, RateFactory, ServiceFactory
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    PromoCodeFactory,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
    pay,
    update_promo_code,
)
from tests.gateway_faults import add_fault
from tests.reservations.rescheduling_helpers import reschedule

pytestmark = pytest.mark.django_db

LATER = NOW + 2 * HOUR
DOCS = Path(__file__).parents[2] / "docs/integrity.md"
CORRUPTIONS = Path(__file__).with_name("corruptions.txt")


def get_problems(now=LATER):
    return [str(each) for each in integrity.find_problems(now=now)]


def test_docs_list_every_check_and_every_check_has_a_corruption():
    names = [each.__name__.replace("_", " ") for each in integrity.CHECKS]

    assert re.findall(r"^\| ([a-z ]+) \|", DOCS.read_text(), re.M) == names
    assert set(re.findall(r" -> ([a-z ]+):", CORRUPTIONS.read_text())) >= set(names)


def test_recent_due_capture_is_not_reported():
    add_fault(operation="capture", kind="timeout_before", times=1)
    make_booking()

    assert Payment.objects.get().state == PaymentState.AUTHORIZED
    assert get_problems(now=NOW + HOUR / 2) == []


def refund_in_dashboard(amount):
    payment = Payment.objects.latest("pk")
    refunds.record_refunds(payment, [GatewayRefund(f"re_{payment.pk}", Decimal(amount))], now=NOW)


@pytest.mark.parametrize("favour", [0, 50])
def test_promised_refund_that_the_gateway_refused_is_reported(favour):
    booking = make_booking()
    if favour:
        refund_in_dashboard(favour)
    SandboxPayment.objects.update(refunded=75)
    cancellation.cancel(Act(None, NOW), booking.pk)

    assert get_problems() == [
        f"refunds payable without refunds: reservation {booking.pk}: {75 - favour}.00 is owed to"
        " its customer, and 0.00 is being refunded"
    ]


def test_booking_that_a_new_time_zone_makes_longer_is_not_reported():
    """Its night has a change of clocks in Denver, and none in Phoenix."""
    night = dt.datetime(2027, 3, 14, 8, tzinfo=dt.UTC)
    staff = AdministratorFactory()
    draft = make_draft(start=night, created_by=staff, hours_override_reason="Night")
    center = pay(draft).room.center
    center.time_zone_id = "America/Phoenix"
    center.save()
    time_zone_changed.send(
        type(center),
        center=center,
        former_zone="America/Denver",
        keeps_instants=False,
        by=staff,
        now=NOW,
    )

    reservation = Reservation.objects.get()
    assert reservation.end - reservation.start == 4 * HOUR
    assert get_problems() == []


def test_changes_by_staff_that_the_audit_log_does_not_keep_are_not_reported(settings):
    room = make_room(is_live_inventory=False)
    make_draft(room=room, number_of_attendees=8)
    make_pending_booking(room=room, start=START + 24 * HOUR)
    room.name, room.capacity, room.rate = "Atrium", 4, None
    room.save()
    AuditEntry.objects.filter(object_id=room.pk, object_name="Atrium").delete()

    assert get_problems() != []
    settings.AUDIT_LOG_DAYS = 1
    assert get_problems() == []


def test_retry_of_less_than_was_refused_is_not_reported():
    booking = make_booking()
    SandboxPayment.objects.update(state="voided")
    cancellation.cancel(Act(booking.user, NOW), booking.pk)
    SandboxPayment.objects.update(state="captured", refunded=25)
    refund_in_dashboard(25)
    retry = refunds.create_retry_refund(Refund.objects.get(state="refused"), now=NOW)
    refunds.execute_refund(retry, now=NOW)

    assert retry.amount == 50
    assert get_problems() == []


# --- Unusual data in which nothing is wrong -------------------------------------------------------


def book_before_the_customer_has_an_address():
    user = create_customer(first_name="Wanda", last_name="Walk", phone_number="+1 303 555 0100")
    make_booking(user)
    OutboxMessage.objects.expired(LATER).delete()
    user.email = "wanda@example.com"
    with time_machine.travel(NOW + HOUR, tick=False):
        user.save()


def refund_out_of_goodwill():
    for amount, state in ((75, "refunded"), (74, "captured")):
        payment = make_booking().payments.get()
        refund_in_dashboard(amount)
        payment.refresh_from_db()
        assert payment.state == state


def book_started_hours_at_a_flat_rate():
    for in_blocks in (True, False):
        room = make_room()
        room.rate = FlatRateFactory(center=room.center, bill_in_blocks=in_blocks)
        room.save()
        make_booking(room=room, hours=2.5)


def move_a_booking_whose_service_needs_no_quantity_any_more():
    room = make_room()
    needs = {"needs_quantity": True, "center": room.center}
    at_center = ServiceFactory(name="Tea, coffee", bill_at_center=True, rate=None, **needs)
    rate = RateFactory(center=room.center, half_day=None, full_day=None)
    billed = ServiceFactory(name="Beamer", rate=rate, **needs)
    chosen = [{"service_id": each.pk, "quantity": 2} for each in (at_center, billed)]
    booking = make_booking(room=room, services=chosen)
    billed.needs_quantity = False
    billed.save()
    reschedule(booking, AdministratorFactory(), start=booking.start + HOUR)


def lose_a_dispute_of_more_than_was_paid():
    """Its amount is converted from the currency of the customer's card."""
    reported = GatewayDispute(
        reference="dp_1",
        amount=Decimal("75.80"),
        currency="USD",
        reason="fraudulent",
        status="lost",
        opened_at=NOW,
        is_closed=True,
        fee=Decimal(15),
    )
    record_dispute(make_booking().payments.get(), reported, now=NOW)


def lower_the_limit_of_a_promo_code_below_its_uses():
    code, user = PromoCodeFactory(), UserFactory()
    for day in range(2):
        draft = make_draft(user, start=START + 24 * day * HOUR)
        update_promo_code(draft.pk, code.code, user=user, now=NOW)
        pay(Reservation.objects.get(pk=draft.pk))
    code = PromoCode.objects.get()
    code.max_uses_per_account = 1
    with time_machine.travel(NOW + HOUR, tick=False):
        code.save()


def test_unusual_data_in_which_nothing_is_wrong_are_not_reported():
    book_before_the_customer_has_an_address()
    refund_out_of_goodwill()
    book_started_hours_at_a_flat_rate()
    move_a_booking_whose_service_needs_no_quantity_any_more()
    lose_a_dispute_of_more_than_was_paid()
    lower_the_limit_of_a_promo_code_below_its_uses()

    assert get_problems() == []
