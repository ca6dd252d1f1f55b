"""The Stripe gateway deletes what Stripe stores of an account that is erased (B22.9)."""

import pytest

from payments.gateways.base import GatewayUnavailable
from payments.gateways.stripe_models import StripeCustomer
from payments.models import SavedCard
from payments.saved_cards import delete_cards_of_erased_account
from tests.factories_people import SavedCardFactory
from tests.payments.gateway_helpers import card

pytestmark = pytest.mark.django_db


def test_customer_is_deleted_with_its_cards_and_no_other(gateway, stripe_server):
    user = SavedCardFactory(gateway="stripe").user
    reference = gateway.store_card(card(), customer=str(user.pk))
    SavedCard.objects.update(reference=reference)
    # Left by a card that was replaced while Stripe did not answer.
    older = gateway.store_card(card(), customer=str(user.pk)).split("/")[1]
    others = gateway.store_card(card(), customer="7000").split("/")

    delete_cards_of_erased_account(user.pk)
    delete_cards_of_erased_account(user.pk)

    customer, method = reference.split("/")
    assert customer not in stripe_server.test.objects
    assert stripe_server.test.objects[method]["customer"] is None
    assert stripe_server.test.objects[older]["customer"] is None
    assert stripe_server.test.objects[others[1]]["customer"] == others[0]
    assert StripeCustomer.objects.get().reference == others[0]
    assert not SavedCard.objects.exists()


def test_customer_that_is_gone_at_stripe_is_deleted_here(gateway, stripe_server):
    customer = gateway.store_card(card(), customer="7").split("/")[0]
    del stripe_server.test.objects[customer]

    gateway.delete_customer("7")

    assert not StripeCustomer.objects.exists()


def test_customer_stays_owed_while_stripe_does_not_answer(gateway, stripe_server):
    gateway.store_card(card(), customer="7")
    stripe_server.fail("error", "DELETE /v1/customers", times=None)

    with pytest.raises(GatewayUnavailable):
        gateway.delete_customer("7")
    assert StripeCustomer.objects.exists()

    stripe_server.faults.clear()
    gateway.delete_customer("7")
    assert not StripeCustomer.objects.exists()
