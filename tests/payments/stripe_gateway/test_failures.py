"""The Stripe gateway: timeouts and errors, and where card numbers go."""

import logging
import traceback
from dataclasses import replace
from uuid import uuid4

import pytest

from payments.cards import Secret
from payments.gateways.base import GatewayRefused, GatewayUnavailable
from payments.gateways.stripe import client
from tests.payments.gateway_helpers import authorize, card

pytestmark = pytest.mark.django_db

NUMBER, CODE = "4242424242424242", "987"


def card_with_code():
    return replace(card(), security_code=Secret(CODE))


# --- Trouble --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["reset_before", "reset_after", "conflict"])
def test_one_failed_request_is_retried_once(gateway, stripe_server, kind):
    key = uuid4()
    stripe_server.fail(kind, "confirm$")

    assert authorize(gateway, key).state == "authorized"
    assert len(stripe_server.calls("confirm$")) == 2
    stripe_server.fail(kind, "capture$")
    assert gateway.capture(key).state == "captured"
    assert stripe_server.count_captures() == 1


@pytest.mark.parametrize("kind", ["rate_limit", "conflict", "nonsense", "error"])
@pytest.mark.parametrize("path", ["payment_methods$", "payment_intents$", "confirm$"])
def test_request_without_answer_is_unavailable(gateway, stripe_server, path, kind):
    key = uuid4()
    stripe_server.fail(kind, path, times=2)
    with pytest.raises(GatewayUnavailable):
        authorize(gateway, key)

    assert gateway.find_payment(key) is None
    assert gateway.void(key).state == "voided"
    assert not stripe_server.charges


@pytest.mark.parametrize("kind", ["timeout_before", "timeout_after", "slow"])
def test_operation_takes_no_longer_than_gateway_timeout(gateway, stripe_server, settings, kind):
    settings.GATEWAY_TIMEOUT = 1
    stripe_server.fail(kind, times=None, seconds=0.8)

    with pytest.raises(GatewayUnavailable):
        authorize(gateway, uuid4())
    # Each request alone is within the limit; together they exceed it.
    assert len(stripe_server.requests) <= (2 if kind == "slow" else 1)


@pytest.mark.parametrize("key", ["", "pk_test_public", "sk_test_wrong key"])
def test_rejected_secret_key_is_unavailable_and_logged(gateway, settings, key, caplog):
    settings.STRIPE_SECRET_KEY = key

    with pytest.raises(GatewayUnavailable):
        authorize(gateway, uuid4())
    assert "key" in caplog.text


def test_account_without_card_number_permission_voids_and_logs(gateway, stripe_server, caplog):
    stripe_server.accepts_card_numbers = False
    key = uuid4()

    outcome = authorize(gateway, key)

    assert outcome.state == "voided"
    assert gateway.find_payment(key).state == "voided"
    assert "generally unsafe" in caplog.text
    with pytest.raises(GatewayUnavailable):
        gateway.store_card(card(), customer="7")
    with pytest.raises(GatewayUnavailable):
        gateway.check_card(card())


def test_impossible_capture_is_refused(gateway, stripe_server):
    """The bank has released the authorization, but Stripe still shows it as open."""
    key = uuid4()
    authorize(gateway, key)
    stripe_server.expired = True

    with pytest.raises(GatewayRefused):
        gateway.capture(key)
    assert gateway.find_payment(key).state == "authorized"


# --- Cards go nowhere else ------------------------------------------------------------------------


def dump_error(error):
    """Everything that an error report could contain: messages, causes, contexts and variables."""
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
@pytest.mark.usefixtures("_short_timeout")
def test_errors_and_logs_hold_no_card(gateway, stripe_server, caplog, capfd, kind, path):
    caplog.set_level(logging.DEBUG)
    stripe_server.fail(kind, path, times=None, seconds=0.7)

    with pytest.raises(GatewayUnavailable) as error:
        authorize(gateway, uuid4(), card_with_code())

    out, err = capfd.readouterr()
    everything = dump_error(error.value) + caplog.text + out + err
    assert "Stripe did not answer" in caplog.text
    assert NUMBER not in everything
    assert f"'{CODE}'" not in everything
    assert f"={CODE}" not in everything


def test_sdk_logger_is_set_to_warning():
    assert logging.getLogger("stripe").level == logging.WARNING


def test_numbers_in_stripe_messages_are_masked():
    assert client.mask_numbers("Invalid: 4242 4242 4242 4242, cvc 987.") == ("Invalid: #, cvc #.")
    assert client.mask_numbers("No such pi_3Mtw2987") == "No such pi_3Mtw2987"


def test_card_number_is_sent_by_one_call_only(gateway, stripe_server):
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
