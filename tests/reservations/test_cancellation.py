"""Cancellation: its refund, and that it is refunded only once."""

import re
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db.models import Sum

from accounts.act import Act
from accounts.models import OutboxMessage
from payments.gateways.base import GatewayRefused
from payments.gateways.sandbox import SandboxGateway
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import LedgerLine, Payment, Refund
from reservations.booking import (
    cancellation,
    differences,
    integrity,
)
from reservations.booking.amendments import ChangeRequest, TakenPayment
from reservations.booking.cancellation import RefundDecision, cancel
from reservations.models import RefundOverride, history
from reservations.models.status import Status
from roombook.errors import (
    CardDeclined,
    InvalidRequest,
    ServiceUnavailable,
)
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    AllowanceFactory,
    get_current_status,
    make_booking,
    make_draft,
    make_payment_method,
    make_pending_booking,
    make_room,
    pay,
)
from tests.gateway_faults import FaultKind, add_fault
from tests.reservations.rescheduling_helpers import adjust, change, make_room_at_rate, reschedule

pytestmark = pytest.mark.django_db


ALL_BACK = "$75.00 is refunded to Visa ending 4242."
NOTHING_BACK = "it is less than 24 hours before its start, so nothing is refunded."
NOT_CHARGED = "nothing was charged."


def get_terms_shown(cancellation):
    return cancellation.refund, cancellation.message.partition(": ")[2]


def cancelled(reservation, *, now=NOW):
    """Preview, cancel and cancel again: all three agree, and the refund happens once."""
    user = reservation.user
    before = get_terms_shown(cancel.preview(Act(user, now), reservation.pk).result)

    outcome = cancel(Act(user, now), reservation.pk)
    refunds = list(Refund.objects.values_list("key", "amount", "state"))
    again = cancel(Act(user, now + 30 * HOUR), reservation.pk)
    reservation.refresh_from_db()

    assert get_terms_shown(outcome) == before
    assert (again.refund, again.message) == (outcome.refund, outcome.message)
    assert get_terms_shown(cancel.preview(Act(user, now), reservation.pk).result) == before
    assert list(Refund.objects.values_list("key", "amount", "state")) == refunds
    assert (reservation.status, reservation.holds_slot) == (Status.CANCELLED, False)
    assert reservation.cancelled_at == now
    return before


@pytest.mark.parametrize(
    ("before_start", "terms"),
    [
        (48 * HOUR, ALL_BACK),
        (24 * HOUR + timedelta(seconds=1), ALL_BACK),
        (24 * HOUR, NOTHING_BACK),
        (MINUTE, NOTHING_BACK),
    ],
)
def test_cancellation_more_than_24_hours_before_start_is_refunded_in_full(ada, before_start, terms):
    reservation = make_booking(ada, now=START - 72 * HOUR)
    refund = 75 if terms == ALL_BACK else 0
    assert cancelled(reservation, now=START - before_start) == (refund, terms)
    assert SandboxPayment.objects.get().refunded == (75 if terms == ALL_BACK else 0)


def test_cancellation_uses_the_policy_of_the_time_of_booking(ada, settings):
    reservation = make_booking(ada, now=START - 72 * HOUR)
    settings.CANCELLATION_NOTICE_HOURS = 48
    other = make_booking(now=START - 72 * HOUR)

    assert cancelled(reservation, now=START - 30 * HOUR)[0] == 75
    assert cancelled(other, now=START - 30 * HOUR)[1] == (
        "it is less than 48 hours before its start, so nothing is refunded."
    )


def make_declined(ada):
    reservation = make_draft(ada)
    with pytest.raises(CardDeclined):
        pay(reservation, "4000000000000002")
    return reservation


def make_free(ada):
    AllowanceFactory(user=ada)
    return make_booking(ada)


@pytest.mark.parametrize(
    ("make", "now"),
    [
        (make_draft, NOW),
        (make_draft, START + HOUR),
        (make_declined, NOW),
        (make_free, NOW),
        (make_pending_booking, START - HOUR),
    ],
)
def test_cancelled_draft_request_or_free_booking_has_no_fee(ada, make, now):
    assert cancelled(make(ada), now=now) == (0, NOT_CHARGED)
    assert not SandboxPayment.objects.exclude(state__in=["voided", "declined"]).exists()


def test_cancellation_captures_an_authorized_payment_first(ada):
    add_fault(operation="capture", kind="timeout_before", times=2)
    reservation = make_booking(ada)
    assert reservation.payments.get().state == "authorized"
    with pytest.raises(ServiceUnavailable):
        cancel(Act(ada, NOW), reservation.pk)

    assert cancel(Act(ada, NOW), reservation.pk).refund == 75
    assert SandboxPayment.objects.get().captures == 1
    assert SandboxPayment.objects.get().refunded == 75


# --- Cancellations whose refund staff decide, and messages to the customer (B18) ------------------


LATE = START - HOUR
MESSAGE = "The heating is broken.\r\n\r\nSubject: <b>Sorry</b> & see you\x07soon."


def decide(amount, reason="We cannot host."):
    return RefundDecision(None if amount is None else Decimal(amount), reason)


def make_longer_booking():
    """A booking of 75 whose change has cost 50 more."""
    booking = make_booking(room=make_room_at_rate(make_room(), 25))
    differences.change_booking(
        Act(booking.user, NOW),
        booking.pk,
        ChangeRequest(booking.room_id, START, START + 5 * HOUR),
        make_payment_method(),
        expected_total=Decimal(125),
    )
    return booking


def get_last_email():
    return OutboxMessage.objects.order_by("pk").last()


@pytest.mark.parametrize(
    ("now", "amount", "fee", "sentence"),
    [
        (LATE, "75.00", "", "$75.00 is refunded to Visa ending 4242."),
        (LATE, "20.00", "$55.00", "$20.00 is refunded to Visa ending 4242."),
        (NOW, "0.00", "$75.00", "nothing is refunded."),
    ],
)
def test_cancel_with_decision_refunds_its_amount_once(now, amount, fee, sentence):
    booking, manager = make_booking(), AdministratorFactory()
    policy = cancellation.get_outcome(booking, now=now).refund

    outcomes = [
        cancellation.cancel(Act(manager, now, is_staff=True), booking.pk, decision=decide(amount))
        for _ in range(2)
    ]

    assert {each.message for each in outcomes} == {f"The reservation is cancelled: {sentence}"}
    assert SandboxPayment.objects.get().refunded == Decimal(amount)
    assert [each.amount for each in Refund.objects.all()] == [Decimal(amount)][: amount != "0.00"]
    override = RefundOverride.objects.get()
    assert (override.refund, override.policy_refund, override.by) == (
        Decimal(amount),
        policy,
        manager,
    )
    changes = history.get_changes(booking)[0].changes
    assert changes["status"] == ["Confirmed", "Cancelled"]
    assert changes["refund_by_decision"] == [f"${policy:.2f}", f"${amount}: We cannot host."]
    email = get_last_email()
    assert sentence in email.text
    assert (f"The fee for the cancellation is {fee}." in email.text) == bool(fee)
    # The reason is for staff.
    assert "We cannot host." not in email.text
    assert not list(integrity.find_problems(now=now + 2 * HOUR))


@pytest.mark.parametrize(("amount", "fee"), [("60", 5), ("65", 0), ("75", 0)])
def test_refund_that_was_refused_is_no_part_of_the_fee(amount, fee):
    booking, manager = make_booking(), AdministratorFactory()
    SandboxPayment.objects.update(state="voided")
    act = Act(manager, LATE, is_staff=True)
    adjust(booking, manager, -10, now=LATE)
    SandboxPayment.objects.update(state="captured")

    cancellation.cancel(act, booking.pk, decision=decide(amount))

    sums = LedgerLine.objects.aggregate(
        cancellation=Sum("cancellation", default=0), payable=-Sum("refunds_payable", default=0)
    )
    left = 75 - fee - int(amount)
    assert sums == {"cancellation": -100 * fee, "payable": 100 * left}


def test_customer_reads_from_which_payment_a_part_is_refunded():
    booking, manager = make_booking(room=make_room_at_rate(make_room(), 25)), AdministratorFactory()
    reschedule(booking, manager, hours=5, taken=TakenPayment("cash", "Receipt 4"))
    in_cash, to_card = "refunded in cash, at the center", "refunded to Visa ending 4242"

    change(booking, hours=4, total=100)
    assert f"$25.00 is {in_cash}." in get_last_email().text
    free = cancel.preview(Act(booking.user, NOW), booking.pk).result
    assert free.message.endswith(f" $100.00 is {in_cash} and {to_card}.")
    act = Act(manager, LATE, is_staff=True)
    for _ in range(2):
        late = cancellation.cancel(act, booking.pk, decision=decide(20))
        assert late.message.endswith(f" $20.00 is {in_cash}.")


def test_cancel_with_decision_spreads_the_refund_over_several_payments():
    booking = make_longer_booking()

    for amount in ("125.01", "60"):
        decision, by = decide(amount), AdministratorFactory()
        with suppress(InvalidRequest):
            outcome = cancellation.cancel(
                Act(by, LATE, is_staff=True), booking.pk, decision=decision
            )

    assert outcome.refund == 60
    refunded = SandboxPayment.objects.order_by("pk").values_list("amount", "refunded")
    assert list(refunded) == [(75, 10), (50, 50)]
    assert "The fee for the cancellation is $65.00." in get_last_email().text
    assert not list(integrity.find_problems(now=LATE + 2 * HOUR))


@pytest.mark.parametrize(("amount", "refund"), [(None, 75), ("100", 75), ("20", 20)])
def test_cancel_with_decision_holds_for_the_rest_if_one_of_two_captures_is_refused(
    monkeypatch, amount, refund
):
    # The change tries the capture of the booking again.
    add_fault(operation="capture", kind=FaultKind.TIMEOUT_BEFORE, times=3)
    booking, manager = make_longer_booking(), AdministratorFactory()
    assert {each.state for each in Payment.objects.all()} == {"authorized"}
    real = SandboxGateway.capture

    def refuse_difference(self, key):
        if Payment.objects.get(key=key).amount == 50:
            raise GatewayRefused("Refused.")
        return real(self, key)

    monkeypatch.setattr(SandboxGateway, "capture", refuse_difference)
    cancellation.cancel(
        Act(manager, LATE, is_staff=True),
        booking.pk,
        decision=decide(amount),
        expected_refund=Decimal(amount or 125),
    )

    override = RefundOverride.objects.get()
    assert (override.refund, override.by) == (refund, manager)
    stored = SandboxPayment.objects.order_by("pk").values_list("captures", "refunded")
    assert list(stored) == [(1, refund), (0, 0)]
    assert Payment.objects.get(purpose="change").state == "voided"
    assert not list(integrity.find_problems(now=LATE + 2 * HOUR))


@pytest.mark.parametrize(
    ("decision", "name", "text"),
    [
        (decide("75.01"), "refund", "Between 0 and $75.00 can be refunded."),
        (decide("-0.01"), "refund", "Between 0 and $75.00 can be refunded."),
        (decide("1.001"), "refund", "The amount has too many decimal places."),
        (decide("75", "  "), "reason", "A refund that the policy does not give needs a reason."),
    ],
)
def test_cancel_with_invalid_decision_is_refused(decision, name, text):
    booking = make_booking()
    with pytest.raises(InvalidRequest) as error:
        cancellation.cancel(
            Act(AdministratorFactory(), LATE, is_staff=True), booking.pk, decision=decision
        )
    assert error.value.fields == {name: text}
    assert get_current_status(booking) == Status.CONFIRMED


def test_cancel_with_decision_without_permission_is_refused():
    booking = make_booking()
    for by in (UserFactory(is_staff=True), None):
        with pytest.raises(InvalidRequest) as error:
            cancellation.cancel(Act(by, LATE, is_staff=True), booking.pk, decision=decide(75))
        assert "Only who may override refunds at" in error.value.fields["refund"]
    # The policy's own refund needs no permission, and leaves no override.
    cancellation.cancel(Act(by, LATE, is_staff=True), booking.pk, decision=decide(0, ""))
    assert not RefundOverride.objects.exists()


def test_cancel_previews_the_email_that_it_sends():
    booking, manager = make_booking(), AdministratorFactory()
    act, options = Act(manager, LATE, is_staff=True), {"decision": decide(20), "message": MESSAGE}
    written = OutboxMessage.objects.count()

    preview = cancel.preview(act, booking.pk, **options).email
    assert OutboxMessage.objects.count() == written
    assert get_current_status(booking) == Status.CONFIRMED
    assert not RefundOverride.objects.exists()
    cancel(act, booking.pk, **options)

    email = get_last_email()
    assert (email.subject, email.text, email.html) == (preview.subject, preview.text, preview.html)
    assert (
        "The center writes:\n\nThe heating is broken.\n\nSubject: <b>Sorry</b> & see you soon.\n"
    ) in email.text
    assert "Subject: &lt;b&gt;Sorry&lt;/b&gt; &amp; see you soon." in email.html
    headers = email.as_email.message()
    assert len(headers.get_all("Subject")) == 1
    assert not re.search(r"[\r\n]|Sorry", email.subject)
    assert cancel.preview(act, booking.pk, **options).email is None
    assert cancel.preview(Act(manager, NOW, is_staff=True), make_draft().pk).email is None
