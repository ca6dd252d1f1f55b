"""Stripe's operations on refunds, and the balance transactions that say what they cost."""

from typing import Any

from tests.stripe_server.errors import StripeApiError, not_found
from tests.stripe_server.routes import parse_int


class BalanceOperations:
    """A part of the fake Stripe; `StripeOperations` has the rest."""

    # Defined by StripeOperations.
    store: Any
    list_page: Any

    def add_fee(self, mode: Any, charge: dict[str, Any]) -> None:
        """Create the balance transaction of a captured charge: 2.9 percent and 30 cents."""
        fee = (charge["amount"] * 29 + 500) // 1000 + 30
        created = self.create_balance_transaction(mode, charge, charge["amount"], fee)
        charge["balance_transaction"] = created["id"]

    def create_balance_transaction(
        self, mode: Any, source: dict[str, Any], amount: int, fee: int
    ) -> dict[str, Any]:
        created: dict[str, Any] = self.store(
            mode,
            "txn",
            {
                "object": "balance_transaction",
                "amount": amount,
                "currency": source["currency"],
                "exchange_rate": None,
                "fee": fee,
                "net": amount - fee,
                "source": source["id"],
                "status": "pending",
            },
        )
        return created

    def create_refund(self, mode: Any, params: dict[str, Any]) -> dict[str, Any]:
        intent = mode.objects.get(params["payment_intent"])
        if intent is None:
            raise not_found("payment_intent", params["payment_intent"], "payment_intent")
        charge = mode.objects.get(intent["latest_charge"] or "")
        if charge is None or not charge["captured"]:
            message = "This PaymentIntent does not have a successful charge to refund."
            raise StripeApiError(400, message, code="payment_intent_unexpected_state")
        amount = parse_int(params, "amount")
        left = charge["amount"] - charge["amount_refunded"]
        if not left:
            message = f"Charge {charge['id']} has already been refunded."
            raise StripeApiError(400, message, code="charge_already_refunded")
        if not 0 < amount <= left:
            message = f"Refund amount ({amount}) is greater than unrefunded amount ({left})"
            raise StripeApiError(400, message, param="amount")
        charge["amount_refunded"] += amount
        charge["refunded"] = amount == left
        refund: dict[str, Any] = self.store(
            mode,
            "re",
            {
                "object": "refund",
                "amount": amount,
                "balance_transaction": None,
                "charge": charge["id"],
                "currency": charge["currency"],
                "metadata": params.get("metadata", {}),
                "payment_intent": intent["id"],
                "reason": None,
                "status": "succeeded",
            },
        )
        # Stripe keeps the fee of the charge.
        created = self.create_balance_transaction(mode, refund, -amount, 0)
        refund["balance_transaction"] = created["id"]
        return refund

    def list_refunds(self, mode: Any, params: dict[str, Any]) -> dict[str, Any]:
        intent = params.get("payment_intent")
        rows = [r for r in mode.get_all("refund") if intent in {None, r["payment_intent"]}]
        page: dict[str, Any] = self.list_page("/v1/refunds", rows, params)
        return page
