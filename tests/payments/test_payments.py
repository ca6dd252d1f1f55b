"""Our own books of money: attempts to pay, and what was given back."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction

from payments import gateways, processing
from payments.cards import Card
from payments.gateways.base import GatewayPayment, GatewayRefused, GatewayUnavailable
from payments.gateways.sandbox_models import SandboxCard, SandboxFault, SandboxPayment
from payments.models import InvalidPaymentTransition, Payment, Refund, SavedCard
from reservations.models import Reservation
from roombook.errors import CardDeclined, InvalidRequest, NoSavedCard
from tests.factories_centers import MeetingRoomFactory
from tests.factories_people import SavedCardFactory, UserFactory

pytestmark = pytest.mark.django_db

NOW = datetime(2027, 3, 15, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
INFO = {
    "first_name": "Ada",
    "last_name": "Lovelace",
    "credit_card_number": "4242424242424242",
    "expiration_date": datetime(2031, 1, 1, tzinfo=UTC),
}


@pytest.fixture
def ada():
    return UserFactory()


@pytest.fixture
def reservation(ada):
    return Reservation.objects.create(
        user=ada,
        room=MeetingRoomFactory(),
        start=NOW + timedelta(days=7),
        end=NOW + timedelta(days=7, hours=2),
        currency="USD",
        total_cost=Decimal("50.00"),
        cancellation_notice_hours=24,
        cancellation_grace_minutes=15,
        created_at=NOW,
    )


@pytest.fixture
def start(reservation):
    def start(amount="50.00"):
        return processing.create_payment(
            reservation_id=reservation.pk,
            amount=Decimal(amount),
            currency="USD",
            gateway=gateways.get_current_gateway(),
            now=NOW,
            lease=MINUTE,
        )

    return start


def card(ada, **fields):
    return processing.get_payment_source(
        ada, use_saved=False, payment_info={**INFO, **fields}, now=NOW
    )


def authorized(payment, ada):
    outcome = processing.authorize_payment(payment, card(ada), description="Reservation 1")
    return processing.record_gateway_result(payment, outcome, now=NOW + MINUTE)


@pytest.fixture
def captured(start, ada):
    return processing.capture_payment(authorized(start(), ada), now=NOW + 2 * MINUTE)


# --- Paying --------------------------------------------------------------------------------------


def test_start_authorize_record_capture(start, ada):
    payment = start()
    assert (payment.state, payment.gateway, payment.is_live) == ("started", "sandbox", False)
    assert payment.lease_until == NOW + MINUTE

    payment = authorized(payment, ada)
    assert (payment.state, payment.authorized_at) == ("authorized", NOW + MINUTE)
    assert (payment.card_brand, payment.card_last4) == ("Visa", "4242")
    assert payment.reference
    assert SandboxPayment.objects.get().key == payment.key

    payment = processing.capture_payment(payment, now=NOW + 2 * MINUTE)
    assert (payment.state, payment.captured_at) == ("captured", NOW + 2 * MINUTE)


def test_a_second_one_is_impossible_while_one_is_open(start, ada):
    first = start()
    for _ in range(3):
        with (
            pytest.raises(IntegrityError, match=r"payment_one_open|reservation"),
            transaction.atomic(),
        ):
            start()
        first.refresh_from_db()
        if first.state == "started":
            first = authorized(first, ada)
        elif first.state == "authorized":
            first = processing.capture_payment(first, now=NOW)


def test_after_a_decline_another_may_follow(start, ada):
    first = start()
    outcome = processing.authorize_payment(
        first, card(ada, credit_card_number="4000000000009995"), description=""
    )
    first = processing.record_gateway_result(first, outcome, now=NOW)

    assert (first.state, first.settled_at) == ("declined", NOW)
    assert "insufficient funds" in first.message
    assert authorized(start(), ada).state == "authorized"


def test_repeated_and_overtaken_news_change_nothing(start, ada):
    payment = start()
    held = processing.authorize_payment(payment, card(ada), description="")
    payment = processing.record_gateway_result(payment, held, now=NOW)
    assert processing.record_gateway_result(payment, held, now=NOW + MINUTE).authorized_at == NOW

    payment = processing.capture_payment(payment, now=NOW)
    assert processing.record_gateway_result(payment, held, now=NOW + MINUTE).state == "captured"
    assert processing.capture_payment(payment, now=NOW + MINUTE).captured_at == NOW


def test_news_that_contradict_our_books_are_not_believed(start, ada):
    payment = start()
    cheaper = GatewayPayment(state="authorized", reference="x", amount=Decimal("5.00"))
    with pytest.raises(InvalidPaymentTransition):
        processing.record_gateway_result(payment, cheaper, now=NOW)

    processing.void_payment(payment, now=NOW)
    charged = GatewayPayment(state="captured", reference="x", amount=Decimal("50.00"))
    with pytest.raises(InvalidPaymentTransition):
        processing.record_gateway_result(payment, charged, now=NOW)
    payment.refresh_from_db()
    assert payment.state == "voided"


def test_whoever_finds_out_settles_what_was_in_doubt(start, ada):
    payment = start()
    SandboxFault.objects.create(operation="authorize", kind="timeout_after", times=1)
    with pytest.raises(GatewayUnavailable):
        processing.authorize_payment(payment, card(ada), description="")

    assert list(Payment.objects.in_doubt(NOW)) == []
    assert list(Payment.objects.in_doubt(NOW + MINUTE)) == [payment]
    assert processing.fetch_gateway_status(payment).state == "authorized"


def test_what_the_gateway_never_heard_of_is_fenced_off(start, ada):
    payment = start()
    SandboxFault.objects.create(operation="authorize", kind="timeout_before", times=1)
    with pytest.raises(GatewayUnavailable):
        processing.authorize_payment(payment, card(ada), description="")

    assert (
        processing.record_gateway_result(
            payment, processing.fetch_gateway_status(payment), now=NOW
        ).state
        == "voided"
    )
    # The slow worker comes back: too late.
    assert processing.authorize_payment(payment, card(ada), description="").state == "voided"


def test_a_lapsed_authorization_is_found_out_at_capture(start, ada):
    payment = authorized(start(), ada)
    SandboxPayment.objects.update(state="voided")

    payment = processing.capture_payment(payment, now=NOW)

    assert (payment.state, payment.settled_at) == ("voided", NOW)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("payment_amount_is_above_zero", {"amount": 0}),
        ("payment_state_is_known", {"state": "paid"}),
        ("payment_captured_has_its_time", {"state": "captured"}),
        ("payment_authorized_has_its_time", {"state": "authorized"}),
    ],
)
def test_the_database_refuses_what_cannot_be(start, name, fields):
    payment = start()
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        Payment.objects.filter(pk=payment.pk).update(**fields)


# --- Giving back ---------------------------------------------------------------------------------


def test_gives_money_back_once(captured):
    refund = processing.create_refund(captured, amount=Decimal("20.00"), reason="Rain", now=NOW)
    assert (refund.state, processing.get_refundable_amount(captured)) == (
        "started",
        Decimal("30.00"),
    )

    for _ in range(2):
        refund = processing.execute_refund(refund, now=NOW + MINUTE)
    assert (refund.state, refund.done_at) == ("done", NOW + MINUTE)
    captured.refresh_from_db()
    assert captured.state == "captured"
    assert SandboxPayment.objects.get().refunded == Decimal("20.00")
    assert processing.get_refunded_amount(Payment.objects.filter(pk=captured.pk)) == Decimal(
        "20.00"
    )


def test_is_refunded_when_all_is_given_back(captured):
    for amount in ("20.00", "30.00"):
        refund = processing.create_refund(captured, amount=Decimal(amount), reason="", now=NOW)
        processing.execute_refund(refund, now=NOW)

    captured.refresh_from_db()
    assert (captured.state, captured.settled_at) == ("refunded", NOW)
    assert not Payment.objects.open().exists()


@pytest.mark.parametrize("amount", ["0", "-1.00", "30.01"])
def test_never_gives_back_more_than_is_left(captured, amount):
    processing.create_refund(captured, amount=Decimal("20.00"), reason="", now=NOW)
    with pytest.raises(InvalidPaymentTransition):
        processing.create_refund(captured, amount=Decimal(amount), reason="", now=NOW)
    assert Refund.objects.count() == 1


def test_only_what_was_taken_is_given_back(start, ada):
    payment = authorized(start(), ada)
    with pytest.raises(InvalidPaymentTransition):
        processing.create_refund(payment, amount=Decimal("1.00"), reason="", now=NOW)


def test_a_refund_in_doubt_is_repeated_and_paid_once(captured):
    refund = processing.create_refund(captured, amount=Decimal("50.00"), reason="", now=NOW)
    SandboxFault.objects.create(operation="refund", kind="timeout_after", times=1)
    with pytest.raises(GatewayUnavailable):
        processing.execute_refund(refund, now=NOW)
    refund.refresh_from_db()
    assert refund.state == "started"

    assert processing.execute_refund(refund, now=NOW).state == "done"
    assert SandboxPayment.objects.get().refunded == Decimal("50.00")


def test_a_refund_that_the_gateway_refuses_is_kept_for_a_person(captured):
    refund = processing.create_refund(captured, amount=Decimal("50.00"), reason="", now=NOW)
    SandboxPayment.objects.update(state="refunded", refunded=Decimal("50.00"))

    with pytest.raises(GatewayRefused):
        processing.execute_refund(refund, now=NOW)
    refund.refresh_from_db()
    assert refund.state == "refused"
    assert processing.get_refunded_amount(Payment.objects.filter(pk=captured.pk)) == 0


def test_a_refund_ends_no_earlier_than_it_began_whatever_the_clocks_say(captured):
    refund = processing.create_refund(captured, amount=Decimal("50.00"), reason="", now=NOW)

    assert processing.execute_refund(refund, now=NOW - MINUTE).done_at == NOW
    captured.refresh_from_db()
    assert captured.state == "refunded"


# --- What to pay with ----------------------------------------------------------------------------


def test_the_saved_card_or_the_one_supplied(ada):
    saved = SavedCardFactory(user=ada)

    assert processing.get_payment_source(ada, use_saved=True, payment_info=None, now=NOW) == saved
    assert isinstance(card(ada), Card)


@pytest.mark.parametrize(("use_saved", "info"), [(True, INFO), (False, None), (False, {})])
def test_not_both_and_not_neither(ada, use_saved, info):
    SavedCardFactory(user=ada)
    with pytest.raises(InvalidRequest) as refused:
        processing.get_payment_source(ada, use_saved=use_saved, payment_info=info, now=NOW)
    assert set(refused.value.fields) == {"payment_info"}


def test_a_saved_card_that_cannot_be_used(ada):
    def use_saved():
        processing.get_payment_source(ada, use_saved=True, payment_info=None, now=NOW)

    with pytest.raises(NoSavedCard):
        use_saved()
    saved = SavedCardFactory(user=ada, exp_year=2027, exp_month=2)
    with pytest.raises(NoSavedCard, match="expired"):
        use_saved()
    saved.exp_month = 3
    saved.save()
    use_saved()
    saved.gateway = "stripe"  # kept by a gateway that is not asked any more
    saved.save()
    with pytest.raises(NoSavedCard):
        use_saved()


def test_pays_with_the_saved_card(start, ada):
    payment = start()
    outcome = processing.authorize_payment(payment, SavedCardFactory(user=ada), description="")
    assert outcome.state == "authorized"


def test_checking_a_card_keeps_nothing(ada):
    processing.check_card(card(ada))
    processing.check_card(SavedCardFactory(user=ada))
    with pytest.raises(CardDeclined):
        processing.check_card(card(ada, credit_card_number="4000000000000002"))

    assert not SandboxPayment.objects.exists()
    assert SandboxCard.objects.count() == 1


def test_a_card_that_paid_is_saved_if_that_works(ada, caplog):
    assert processing.save_charged_card(ada, card(ada), now=NOW) == SavedCard.objects.get()

    SandboxFault.objects.create(operation="store", kind="timeout_before")
    assert processing.save_charged_card(ada, card(ada), now=NOW) is None
    assert "could not be saved" in caplog.text


def test_a_kept_card_whose_row_cannot_be_written_is_forgotten_again(ada, monkeypatch):
    def fails(*args):
        raise RuntimeError("the database went away")

    monkeypatch.setattr(processing, "_replace_saved_card", fails)
    with pytest.raises(RuntimeError):
        processing.save_card(ada, card(ada), now=NOW)
    assert not SandboxCard.objects.exists()
