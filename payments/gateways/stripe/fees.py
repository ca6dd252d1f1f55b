"""What Stripe charges: the fees of balance transactions.

Stripe creates the balance transaction of a charge at its capture or some time after it. Reading one
needs a permission of its own if the key is restricted. Therefore no request that moves money asks
for it.
"""

from decimal import Decimal
from typing import TYPE_CHECKING

import stripe

from payments.gateways.base import GatewayFees
from payments.gateways.stripe.client import call_stripe, from_minor_units
from payments.gateways.stripe.intents import to_gateway_refund
from roombook import money

if TYPE_CHECKING:
    from stripe.params import PaymentIntentRetrieveParams, RefundListParams


def fetch_fees(api: stripe.StripeClient, intent_id: str) -> GatewayFees:
    """The fees of an intent's charge and of its refunds, as far as Stripe knows them."""
    of_charge: PaymentIntentRetrieveParams = {"expand": ["latest_charge.balance_transaction"]}
    intent = call_stripe(lambda: api.v1.payment_intents.retrieve(intent_id, of_charge))
    charge = intent.latest_charge
    if not isinstance(charge, stripe.Charge):
        return GatewayFees()
    fee = get_fee(charge.balance_transaction, charge.currency)
    if not charge.amount_refunded:
        return GatewayFees(fee)
    of_refunds: RefundListParams = {
        "payment_intent": intent_id,
        "limit": 100,
        "expand": ["data.balance_transaction"],
    }
    page = call_stripe(lambda: api.v1.refunds.list(of_refunds))
    refund_fees = [
        (to_gateway_refund(refund), get_fee(refund.balance_transaction, refund.currency))
        for refund in page.data
    ]
    return GatewayFees(fee, [(refund, each) for refund, each in refund_fees if each is not None])


def get_dispute_fee(dispute: stripe.Dispute) -> Decimal | None:
    """The fees of a dispute, less what Stripe returned of them; None if no money was withdrawn."""
    fees = [get_fee(each, dispute.currency) for each in dispute.balance_transactions]
    known = [fee for fee in fees if fee is not None]
    return sum(known, money.ZERO) if known else None


def get_fee(transaction: stripe.BalanceTransaction | str | None, currency: str) -> Decimal | None:
    """The fee of an expanded balance transaction, None if there is none yet.

    Stripe charges it in the currency of the account's balance. If that is another one than
    `currency`, the fee is converted by the exchange rate of the payment itself.
    """
    if not isinstance(transaction, stripe.BalanceTransaction):
        return None
    fee = from_minor_units(transaction.fee, transaction.currency)
    if transaction.currency != currency:
        if not transaction.exchange_rate:
            return None
        fee /= Decimal(str(transaction.exchange_rate))
    return money.round_amount(fee, currency.upper())
