"""What is Stripe's own; what it shares with other gateways is in test_gateways.py."""

import logging
import time
import traceback
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from stripe import _util

from payments import gateways
from payments.cards import Secret
from payments.gateways import declines
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.gateways.stripe import client
from payments.gateways.stripe import gateway as stripe_module
from payments.gateways.stripe.client import from_minor_units, get_decline_message, to_minor_units
from payments.gateways.stripe.gateway import StripeGateway, to_stripe_address
from payments.gateways.stripe_models import StripeCustomer, StripePayment
from roombook.errors import CardDeclined
from tests.payments.test_gateways import authorize, card

pytestmark = pytest.mark.django_db

NUMBER, CODE = "4242424242424242", "987"


def card_with_code():
    return replace(card(), security_code=Secret(CODE))


@pytest.fixture
def gateway(stripe_server):
    return gateways.get_current_gateway()


@pytest.fixture
def _hasty(settings):
    settings.GATEWAY_TIMEOUT = 0.5


@pytest.fixture
def live(stripe_server, settings):
    """The same account, with real money."""
    settings.STRIPE_SECRET_KEY = "sk_live_roombook"
    settings.STRIPE_TEST_SECRET_KEY = "sk_test_roombook"
    return gateways.get_current_gateway()


# --- Two steps -----------------------------------------------------------------------------------


def test_charges_nobody_before_the_intent_is_written_down(gateway, stripe_server):
    key = uuid4()
    authorize(gateway, key)

    made, confirmed = stripe_server.calls("payment_intents")
    assert (made.path, made.params["capture_method"]) == ("/v1/payment_intents", "manual")
    assert "confirm" not in made.params
    assert (
        confirmed.path == f"/v1/payment_intents/{StripePayment.objects.get(key=key).intent}/confirm"
    )
    assert made.params["metadata"] == {"roombook_key": str(key)}
    assert made.params["allowed_payment_method_types"] == {"0": "card"}
    # Each step has a key of its own, the same whenever it is repeated.
    assert made.idempotency_key == f"roombook-{key.hex}-create"
    assert confirmed.idempotency_key == f"roombook-{key.hex}-confirm"


class Killed(BaseException):
    """As kill -9: nobody catches it."""


@pytest.fixture
def kill(monkeypatch):
    """Kill the worker before or after the request whose path ends so."""

    def kill(ending, when):
        true = client.TimeLimitedHttpClient.request
        done = []

        def request(self, method, url, headers, post_data=None):
            hit = url.endswith(ending) and not done
            if hit and when == "before":
                done.append(1)
                raise Killed
            answer = true(self, method, url, headers, post_data)
            if hit:
                done.append(1)
                raise Killed
            return answer

        monkeypatch.setattr(client.TimeLimitedHttpClient, "request", request)

    return kill


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("ending", ["/v1/payment_methods", "/v1/payment_intents"])
def test_who_dies_before_confirming_has_charged_nobody(gateway, stripe_server, kill, ending, when):
    key = uuid4()
    kill(ending, when)
    with pytest.raises(Killed):
        authorize(gateway, key)

    assert gateway.find_payment(key) is None
    assert gateway.void(key).state == "voided"
    assert authorize(gateway, key).state == "voided"
    assert not stripe_server.charges


@pytest.mark.parametrize(("when", "found"), [("before", None), ("after", "authorized")])
def test_who_dies_around_confirming_is_found_by_the_intent(gateway, kill, when, found):
    key = uuid4()
    kill("/confirm", when)
    with pytest.raises(Killed):
        authorize(gateway, key)

    looked = gateway.find_payment(key)
    assert (looked and looked.state) == found
    assert gateway.void(key).state == "voided"
    assert gateway.find_payment(key).state == "voided"


def test_a_late_worker_meets_the_fence_in_our_database(gateway, stripe_server, monkeypatch):
    """It sleeps before its intent is written down; meanwhile somebody settles the key."""
    true = StripeGateway._create

    def late(self, api, key, *rest):
        gateway.void(key)
        return true(self, api, key, *rest)

    monkeypatch.setattr(StripeGateway, "_create", late)

    assert authorize(gateway, uuid4()).state == "voided"
    assert not stripe_server.calls("confirm$")


def test_a_later_worker_meets_the_fence_at_stripe(gateway, stripe_server, monkeypatch):
    """It sleeps after that."""
    true = stripe_module.confirm_intent

    def late(api, intent, key, *rest):
        gateway.void(key)
        return true(api, intent, key, *rest)

    monkeypatch.setattr(stripe_module, "confirm_intent", late)

    assert authorize(gateway, uuid4()).state == "voided"
    assert stripe_server.calls("confirm$")
    assert not stripe_server.charges


def test_a_refund_in_doubt_is_found_also_when_stripe_has_forgotten_its_key(gateway, stripe_server):
    key, refund = uuid4(), uuid4()
    authorize(gateway, key)
    gateway.capture(key)
    gateway.refund(key=key, refund_key=refund, amount=Decimal("4.00"))
    stripe_server.test.stored.clear()

    assert gateway.refund(key=key, refund_key=refund, amount=Decimal("4.00")).refunded == 4
    assert len(stripe_server.refunds) == 1


def test_tells_until_when_the_money_is_reserved(gateway):
    key = uuid4()
    until = authorize(gateway, key).authorized_until

    assert timedelta(days=6) < until - datetime.now(UTC) < timedelta(days=8)
    assert gateway.find_payment(key).authorized_until == until
    assert gateway.capture(key).authorized_until is None


def test_money_that_went_back_by_itself_is_voided(gateway, stripe_server):
    key = uuid4()
    reference = authorize(gateway, key).reference
    stripe_server.lapse(reference)

    assert gateway.find_payment(key).state == "voided"
    assert gateway.capture(key).state == "voided"


def test_what_staff_let_go_in_the_dashboard_is_voided_whatever_reason_they_gave(
    gateway, stripe_server
):
    key = uuid4()
    reference = authorize(gateway, key).reference
    stripe_server.test.objects[reference] |= {
        "status": "canceled",
        "cancellation_reason": "abandoned",
    }

    assert gateway.find_payment(key).state == "voided"


def test_an_intent_that_asks_for_more_is_cancelled(gateway, stripe_server):
    key = uuid4()
    authorize(gateway, key, card("4000002500003155"))

    assert stripe_server.intent(key)["status"] == "canceled"


# --- Saved cards ---------------------------------------------------------------------------------


def test_an_account_is_one_customer_whose_cards_are_charged_off_session(gateway, stripe_server):
    first = gateway.store_card(card(), customer="7")
    second = gateway.store_card(card("5555555555554444"), customer="7")

    assert first != second
    assert first.split("/")[0] == second.split("/")[0] == StripeCustomer.objects.get().reference
    assert len(stripe_server.test.of("customer")) == 1
    key = uuid4()
    assert authorize(gateway, key, second).last4 == "4444"
    made, confirmed = stripe_server.calls("payment_intents")
    assert made.params["customer"] == StripeCustomer.objects.get().reference
    assert confirmed.params["off_session"] == "true"


def test_a_customer_that_somebody_deleted_is_made_anew(gateway, stripe_server):
    gateway.store_card(card(), customer="7")
    stripe_server.test.objects.pop(StripeCustomer.objects.get().reference)

    reference = gateway.store_card(card(), customer="7")

    assert authorize(gateway, uuid4(), reference).state == "authorized"


def test_a_card_of_a_deleted_customer_is_no_longer_known(gateway, stripe_server):
    reference = gateway.store_card(card(), customer="7")
    for gone in reference.split("/"):
        stripe_server.test.objects.pop(gone)

    outcome = authorize(gateway, uuid4(), reference)

    assert (outcome.state, outcome.message) == ("declined", declines.UNKNOWN_CARD)


def test_the_billing_address_is_told_as_far_as_stripe_understands_it():
    address = {
        "street1": "1 Main Street",
        "street2": "",
        "city": "Denver",
        "state": None,
        "postal_code": "80202",
        "country": "us",
        "latitude": 39.7,
    }

    assert to_stripe_address(address) == {
        "line1": "1 Main Street",
        "city": "Denver",
        "postal_code": "80202",
        "country": "US",
    }
    assert to_stripe_address({"country": "Germany"}) == {}


# --- Real money and test mode --------------------------------------------------------------------


def test_the_key_says_whether_real_money_moves(settings, stripe_server):
    for key, is_live in [
        ("sk_live_1a", True),
        ("rk_live_1a", True),
        ("sk_test_1a", False),
        ("rk_test_1a", False),
        ("", False),
        ("sk_live_", False),
    ]:
        settings.STRIPE_SECRET_KEY = key
        assert gateways.get_current_gateway().is_live is is_live


def test_no_card_is_touched_when_stripe_says_another_mode(gateway, stripe_server):
    stripe_server.livemode = True

    with pytest.raises(GatewayRefused):
        authorize(gateway, uuid4())
    assert not stripe_server.charges


def test_a_live_deployment_judges_cards_in_test_mode(live, stripe_server):
    live.check_card(card())
    with pytest.raises(CardDeclined, match="insufficient funds"):
        live.check_card(card("4000000000009995"))
    with pytest.raises(CardDeclined, match="takes only test cards"):
        live.check_card(card("4111111111111111"))

    assert stripe_server.seen
    assert not [each for each in stripe_server.seen if each.is_live]


def test_a_kept_real_card_is_only_looked_up_in_test_mode(live, stripe_server):
    reference = live.store_card(card("4111111111111111"), customer="7")
    asked = len(stripe_server.seen)

    live.check_card(reference)
    assert [each.method for each in stripe_server.seen[asked:]] == ["GET"]

    live.delete_card(reference)
    with pytest.raises(CardDeclined, match="no longer known"):
        live.check_card(reference)


def test_a_test_card_buys_nothing_for_real(live):
    outcome = authorize(live, uuid4())

    assert (outcome.state, outcome.message) == ("declined", declines.IS_A_TEST_CARD)


def test_what_was_paid_in_test_mode_is_ended_there(gateway, settings, stripe_server):
    """A deployment goes live while a payment by its test key is still open."""
    key = uuid4()
    authorize(gateway, key)
    settings.STRIPE_SECRET_KEY = "sk_live_roombook"
    settings.STRIPE_TEST_SECRET_KEY = "sk_test_roombook"

    assert gateways.get_current_gateway().capture(key).state == "captured"
    settings.STRIPE_TEST_SECRET_KEY = ""
    with pytest.raises(GatewayUnavailable):
        gateways.get_current_gateway().find_payment(key)


# --- Amounts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amount", "currency", "units"),
    [
        ("10.00", "USD", 1000),
        ("0.50", "eur", 50),
        ("9999999999.99", "USD", 999999999999),
        ("500.00", "JPY", 500),
        ("500", "KRW", 500),
        ("5.00", "ISK", 500),
        ("5.00", "UGX", 500),
        ("5.12", "KWD", 5120),
    ],
)
def test_amounts_are_told_in_the_smallest_unit(amount, currency, units):
    assert to_minor_units(Decimal(amount), currency) == units
    assert from_minor_units(units, currency) == Decimal(amount)


@pytest.mark.parametrize(("amount", "currency"), [("0.005", "USD"), ("500.50", "JPY")])
def test_a_part_of_a_unit_is_never_rounded_away(amount, currency):
    with pytest.raises(GatewayRefused):
        to_minor_units(Decimal(amount), currency)


def test_charges_yen_as_yen(gateway, stripe_server):
    key, refund = uuid4(), uuid4()
    gateway.authorize(
        key=key, amount=Decimal("5000.00"), currency="JPY", source=card(), description=""
    )
    gateway.capture(key)
    part = gateway.refund(key=key, refund_key=refund, amount=Decimal("1000.00"))

    assert stripe_server.intent(key)["amount"] == 5000
    assert (part.amount, part.captured, part.refunded) == (5000, 5000, 1000)
    assert stripe_server.refunds[0]["amount"] == 1000


@pytest.mark.parametrize("amount", ["0.30", "1000000.00"])
def test_an_amount_that_no_card_pays_is_told_so(gateway, amount):
    outcome = authorize(gateway, uuid4(), amount=Decimal(amount))

    assert (outcome.state, outcome.message) == ("declined", declines.AMOUNT_OUT_OF_BOUNDS)


# --- Trouble -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["reset_before", "reset_after", "conflict"])
def test_a_short_trouble_is_mended_by_repeating_the_request_once(gateway, stripe_server, kind):
    key = uuid4()
    stripe_server.fail(kind, "confirm$")

    assert authorize(gateway, key).state == "authorized"
    assert len(stripe_server.calls("confirm$")) == 2
    stripe_server.fail(kind, "capture$")
    assert gateway.capture(key).state == "captured"
    assert stripe_server.captured() == 1


@pytest.mark.parametrize("kind", ["rate_limit", "conflict", "nonsense", "error"])
@pytest.mark.parametrize("path", ["payment_methods$", "payment_intents$", "confirm$"])
def test_what_stripe_does_not_answer_is_in_doubt(gateway, stripe_server, path, kind):
    key = uuid4()
    stripe_server.fail(kind, path, times=2)
    with pytest.raises(GatewayUnavailable):
        authorize(gateway, key)

    assert gateway.find_payment(key) is None
    assert gateway.void(key).state == "voided"
    assert not stripe_server.charges


@pytest.mark.parametrize("kind", ["timeout_before", "timeout_after", "slow"])
def test_nobody_waits_longer_than_the_setting_says(gateway, stripe_server, settings, kind):
    settings.GATEWAY_TIMEOUT = 1
    stripe_server.fail(kind, times=None, seconds=0.8)

    start = time.monotonic()
    with pytest.raises(GatewayUnavailable):
        authorize(gateway, uuid4())
    # Each request alone would have been in time; together they are not.
    assert time.monotonic() - start < 1.5


def test_nobody_there(gateway, settings):
    settings.STRIPE_API_BASE = "http://127.0.0.1:9"

    with pytest.raises(GatewayUnavailable):
        authorize(gateway, uuid4())


@pytest.mark.parametrize("key", ["", "pk_test_public", "sk_test_wrong key"])
def test_without_a_key_that_stripe_accepts_nobody_knows(gateway, settings, key, caplog):
    settings.STRIPE_SECRET_KEY = key

    with pytest.raises(GatewayUnavailable):
        authorize(gateway, uuid4())
    assert "key" in caplog.text


def test_an_account_that_may_not_send_numbers_is_told_to_us_and_the_payment_called_off(
    gateway, stripe_server, caplog
):
    stripe_server.takes_numbers = False
    key = uuid4()

    outcome = authorize(gateway, key)

    assert outcome.state == "voided"
    assert gateway.find_payment(key).state == "voided"
    assert "generally unsafe" in caplog.text
    with pytest.raises(GatewayUnavailable):
        gateway.store_card(card(), customer="7")
    with pytest.raises(GatewayUnavailable):
        gateway.check_card(card())


def test_a_capture_that_will_never_be_is_refused(gateway, stripe_server):
    """As when the bank has given the money back and Stripe has not noticed yet."""
    key = uuid4()
    authorize(gateway, key)
    stripe_server.expired = True

    with pytest.raises(GatewayRefused):
        gateway.capture(key)
    assert gateway.find_payment(key).state == "authorized"


def test_decline_codes_have_their_words():
    assert get_decline_message("card_declined", "insufficient_funds") == declines.INSUFFICIENT_FUNDS
    assert get_decline_message("expired_card", None) == declines.EXPIRED
    assert get_decline_message("card_declined", "try_again_later") == declines.PROCESSING_ERROR
    for told in ("fraudulent", "lost_card", "pickup_card", "do_not_honor", "who_knows", None):
        assert get_decline_message("card_declined", told) == declines.DECLINED
    assert all(
        "You were not charged" in words for words in client.DECLINE_MESSAGES_BY_CODE.values()
    )


# --- Cards go nowhere else -----------------------------------------------------------------------


def told_by(error):
    """All that an error report could hold: texts, causes, contexts and every frame's variables."""
    seen, todo, texts = set(), [error], []
    while todo:
        each = todo.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        texts += [str(each), repr(each), repr(each.args), repr(vars(each))]
        todo += [each.__cause__, each.__context__]
        for frame, _ in traceback.walk_tb(each.__traceback__):
            if "/tests/" not in frame.f_code.co_filename:
                texts += [repr(value) for value in frame.f_locals.values()]
    return "\n".join(texts)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("error", "payment_methods$"),
        ("timeout_after", "payment_methods$"),
        ("reset_after", "payment_methods$"),
        ("rate_limit", "payment_methods$"),
        ("nonsense", "payment_methods$"),
        ("timeout_before", "confirm$"),
    ],
)
@pytest.mark.usefixtures("_hasty")
def test_no_error_and_no_log_holds_a_card(gateway, stripe_server, caplog, capfd, kind, path):
    caplog.set_level(logging.DEBUG)
    stripe_server.fail(kind, path, times=None, seconds=0.7)

    with pytest.raises(GatewayUnavailable) as error:
        authorize(gateway, uuid4(), card_with_code())

    out, err = capfd.readouterr()
    everything = told_by(error.value) + caplog.text + out + err
    assert "Stripe did not answer" in caplog.text
    assert NUMBER not in everything
    assert f"'{CODE}'" not in everything
    assert f"={CODE}" not in everything


def test_a_good_payment_logs_no_card_either(gateway, caplog, capfd):
    caplog.set_level(logging.DEBUG)

    key = uuid4()
    authorize(gateway, key, card_with_code())
    gateway.capture(key)
    gateway.store_card(card_with_code(), customer="7")

    everything = caplog.text + "".join(capfd.readouterr())
    assert "/v1/payment_methods" in everything, "the connection's own log is on"
    assert NUMBER not in everything
    assert f"={CODE}" not in everything


def test_the_sdk_logs_nothing_below_warnings():
    assert logging.getLogger("stripe").level == logging.WARNING
    assert _util.STRIPE_LOG is None
    assert _util._console_log_level() is None


def test_no_row_holds_a_card(gateway):
    gateway.store_card(card_with_code(), customer="7")
    authorize(gateway, uuid4(), card_with_code())

    rows = [*StripePayment.objects.values(), *StripeCustomer.objects.values()]
    assert NUMBER not in str(rows)
    assert NUMBER[-4:] not in str(rows)


def test_stripes_own_words_are_cut_where_they_hold_numbers():
    assert client.mask_numbers("Invalid: 4242 4242 4242 4242, cvc 987.") == ("Invalid: #, cvc #.")
    assert client.mask_numbers("No such pi_3Mtw2987") == "No such pi_3Mtw2987"


def test_a_number_is_sent_by_one_call_only(gateway, stripe_server):
    sent = []
    true = client.TimeLimitedHttpClient.request

    def request(self, method, url, headers, post_data=None):
        if NUMBER in str(post_data):
            sent.append(url.removeprefix(stripe_server.url))
        return true(self, method, url, headers, post_data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client.TimeLimitedHttpClient, "request", request)
        key = uuid4()
        authorize(gateway, key)
        gateway.capture(key)
        gateway.store_card(card(), customer="7")

    assert sent == ["/v1/payment_methods"] * 2
