"""Stripe's SetupIntents and Checkout Sessions in setup mode, and the deletion of customers."""

from typing import Any
from uuid import uuid4

from tests.stripe_server.errors import StripeApiError, card_error, not_found

OPEN_STATUSES = ("requires_payment_method", "requires_confirmation", "requires_action")


class SetupOperations:
    """A part of the fake Stripe; `StripeOperations` has the rest."""

    # Defined by StripeOperations.
    live: Any
    test: Any
    store: Any
    create_payment_method: Any
    attach: Any

    def delete_customer(self, mode: Any, customer: dict[str, Any], _: Any) -> dict[str, Any]:
        """Delete the customer, which detaches its cards."""
        for method in mode.get_all("payment_method"):
            if method["customer"] == customer["id"]:
                method["customer"] = None
                method["metadata"]["detached"] = "1"
        del mode.objects[customer["id"]]
        return {"id": customer["id"], "object": "customer", "deleted": True}

    def create_setup_intent(self, mode: Any, params: dict[str, Any]) -> dict[str, Any]:
        if params["customer"] not in mode.objects:
            raise not_found("customer", params["customer"], "customer")
        created: dict[str, Any] = self.store(
            mode,
            "seti",
            {
                "object": "setup_intent",
                "cancellation_reason": None,
                "customer": params["customer"],
                "last_setup_error": None,
                "latest_attempt": None,
                "metadata": params.get("metadata", {}),
                "next_action": None,
                "payment_method": None,
                "payment_method_types": list(
                    params.get("allowed_payment_method_types", {}).values()
                ),
                "status": "requires_payment_method",
                "usage": params.get("usage", "off_session"),
            },
        )
        created["client_secret"] = f"{created['id']}_secret_3"
        return created

    def cancel_setup_intent(self, mode: Any, setup: dict[str, Any], _: Any) -> dict[str, Any]:
        if setup["status"] not in OPEN_STATUSES or setup.get("by_session"):
            raise StripeApiError(
                400,
                f"You cannot cancel this SetupIntent because it has a status of {setup['status']}.",
                code="setup_intent_unexpected_state",
            )
        setup["status"] = "canceled"
        return setup

    def create_session(self, mode: Any, params: dict[str, Any]) -> dict[str, Any]:
        if params["customer"] not in mode.objects:
            raise not_found("customer", params["customer"], "customer")
        created: dict[str, Any] = self.store(
            mode,
            "cs_test",
            {
                "object": "checkout.session",
                "cancel_url": params["cancel_url"],
                "customer": params["customer"],
                "expires_at": int(params["expires_at"]),
                "metadata": params.get("metadata", {}),
                "mode": params["mode"],
                "payment_intent": None,
                "payment_status": "no_payment_required",
                # Created when the customer confirms, as since version 2022-08-01.
                "setup_intent": None,
                "status": "open",
                "success_url": params["success_url"],
            },
        )
        created["url"] = f"https://checkout.stripe.com/c/pay/{created['id']}"
        return created

    def expire_session(self, mode: Any, session: dict[str, Any], _: Any) -> dict[str, Any]:
        if session["status"] != "open":
            message = 'Only Checkout Sessions with a status in ["open"] can be expired.'
            raise StripeApiError(400, message)
        session |= {"status": "expired", "url": None}
        return session

    # --- What only the customer can do -----------------------------------------------------------

    def confirm_setup(self, setup: dict[str, Any], number: str, **details: Any) -> dict[str, Any]:
        """Enter a card in Stripe's SDK. Returns the SetupIntent, also if the card is refused."""
        assert setup["status"] in OPEN_STATUSES, setup["status"]
        card = {"number": number, "exp_month": "2", "exp_year": "2031", "cvc": "123"}
        method = self.create_payment_method(self.test, {"card": card, "billing_details": details})
        outcome = self.test.outcomes[method["id"]]
        setup["latest_attempt"] = f"setatt_{uuid4().hex}"
        try:
            self.attach(self.test, method, {"customer": setup["customer"]})
        except StripeApiError as error:
            setup |= {"last_setup_error": error.body["error"], "payment_method": None}
            return setup
        if outcome == "action":
            # The customer confirms the card at the bank, so later payments succeed.
            self.test.outcomes[method["id"]] = "good"
        setup |= {
            "status": "succeeded",
            "payment_method": method["id"],
            "last_setup_error": None,
        }
        return setup

    def finish_session(self, session: dict[str, Any], number: str) -> dict[str, Any]:
        """Enter a card on Stripe's page. Returns the SetupIntent that the session has then.

        If the card is refused, the page stays open for another one.
        """
        assert session["status"] == "open", session["status"]
        if session["setup_intent"]:
            setup: dict[str, Any] = self.test.objects[session["setup_intent"]]
        else:
            setup = self.create_setup_intent(
                self.test, {"customer": session["customer"], "metadata": session["metadata"]}
            )
            setup["by_session"] = True
            session["setup_intent"] = setup["id"]
        self.confirm_setup(setup, number)
        if setup["status"] == "succeeded":
            session |= {"status": "complete", "url": None}
        return setup

    def fail_setup(self, setup: dict[str, Any]) -> None:
        """Refuse the card at the bank, without a new card."""
        error = card_error("setup_intent_authentication_failure", None)
        setup["last_setup_error"] = error.body["error"]
        setup["latest_attempt"] = f"setatt_{uuid4().hex}"
