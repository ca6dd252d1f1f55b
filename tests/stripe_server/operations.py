"""Stripe's operations on customers, payment methods, intents, charges, refunds and setups."""

import itertools
import json
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tests.stripe_server.cards import BRANDS, get_outcome, split_outcome
from tests.stripe_server.errors import StripeApiError, card_error, not_found
from tests.stripe_server.routes import ROUTES, check_parameters, parse_int

WEEK_SECONDS = 7 * 24 * 60 * 60
# Of SetupIntents for which a card can be entered.
OPEN_STATUSES = ("requires_payment_method", "requires_confirmation", "requires_action")


@dataclass
class IdempotentRequest:
    """The request of an idempotency key. Without an answer it is still in progress."""

    request: tuple[str, str]
    answer: tuple[int, dict[str, Any]] | None = None


@dataclass
class Mode:
    """Everything that Stripe stores in live mode or in test mode."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    idempotent_requests: dict[str, IdempotentRequest] = field(default_factory=dict)

    def get_all(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.objects.values() if each["object"] == kind]


class StripeOperations:
    def __init__(self) -> None:
        self.live, self.test = Mode(), Mode()
        # Whether the account may send card numbers itself.
        self.accepts_card_numbers = True
        # Whether a capture creates its balance transaction at once, and the key may read it.
        self.settles_at_once = True
        self.may_read_balance = True
        # Whether all authorizations have expired.
        self.expired = False
        # The `livemode` of new objects; None: the mode of the key.
        self.livemode: bool | None = None
        self.numbers = itertools.count(1)
        self.page_size = 100

    def run(self, mode: Mode, method: str, path: str, params: dict[str, Any]) -> dict[str, Any]:
        for verb, pattern, name, allowed in ROUTES:
            match = re.fullmatch(pattern, path)
            if verb == method and match:
                check_parameters(params, allowed)
                target = self.find_target(mode, match)
                result: dict[str, Any] = getattr(self, name)(mode, *target, params)
                return self.render(mode, result, expand=params.get("expand", {}))
        raise StripeApiError(404, f"Unrecognized request URL ({method}: {path})")

    def find_target(self, mode: Mode, match: re.Match[str]) -> list[dict[str, Any]]:
        """The object that the path names, if it names one."""
        if not match.groups():
            return []
        kind = {"payment_intents": "payment_intent", "payment_methods": "PaymentMethod"}
        plural = match.string.split("/")[2]
        if match[1] not in mode.objects:
            param = "intent" if plural == "payment_intents" else "payment_method"
            raise not_found(kind.get(plural, plural.removesuffix("s")), match[1], param)
        return [mode.objects[match[1]]]

    def store(self, mode: Mode, prefix: str, created: dict[str, Any]) -> dict[str, Any]:
        is_live = mode is self.live if self.livemode is None else self.livemode
        created |= {"id": self.new_id(prefix), "livemode": is_live}
        created.setdefault("created", int(time.time()))
        mode.objects[created["id"]] = created
        return created

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_3{next(self.numbers):04}{secrets.token_hex(8)}"

    def render(self, mode: Mode, stored: dict[str, Any], *, expand: Any) -> dict[str, Any]:
        """A copy of an object as the response contains it."""
        copy: dict[str, Any] = json.loads(json.dumps(stored))
        if not self.may_read_balance and "balance_transaction" in str(expand):
            raise StripeApiError(403, "The provided key does not have the required permissions")
        for path in expand:
            self.expand(mode, copy, path.split("."))
        return copy

    def expand(self, mode: Mode, rendered: dict[str, Any], path: list[str]) -> None:
        """Replace the id at the path by a copy of its object."""
        name, *rest = path
        if name == "data":
            for row in rendered["data"]:
                self.expand(mode, row, rest)
        elif rendered.get(name):
            rendered[name] = json.loads(json.dumps(mode.objects[rendered[name]]))
            if rest:
                self.expand(mode, rendered[name], rest)

    def retrieve(self, mode: Mode, stored: dict[str, Any], _: Any) -> dict[str, Any]:
        return stored

    def create_payment_method(self, mode: Mode, params: dict[str, Any]) -> dict[str, Any]:
        if not self.accepts_card_numbers:
            # Stripe's error without that permission: a 402 that concerns no card.
            raise StripeApiError(
                402,
                "Sending credit card numbers directly to the Stripe API is generally unsafe."
                " To continue processing use Stripe.js, the Stripe mobile bindings, or Stripe"
                " Elements.",
            )
        card = params["card"]
        number = card["number"]
        if not re.fullmatch(r"\d{12,19}", number):
            raise card_error("incorrect_number", None, param="card[number]")
        if int(card["exp_year"]) < time.gmtime().tm_year:
            raise card_error("invalid_expiry_year", None, param="card[exp_year]")
        brand = BRANDS.get(number, "visa")
        created = self.store(
            mode,
            "pm",
            {
                "object": "payment_method",
                "type": "card",
                "billing_details": params.get("billing_details", {}),
                "card": {
                    "brand": brand,
                    "checks": {"cvc_check": "unchecked" if "cvc" in card else None},
                    "exp_month": int(card["exp_month"]),
                    "exp_year": int(card["exp_year"]),
                    "last4": number[-4:],
                },
                "customer": None,
                "metadata": {},
            },
        )
        mode.outcomes[created["id"]] = get_outcome(number, is_live=mode is self.live)
        return created

    def attach(self, mode: Mode, method: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
        if params["customer"] not in mode.objects:
            raise not_found("customer", params["customer"], "customer")
        if method["metadata"].get("detached"):
            raise StripeApiError(400, "The payment method was detached and may not be used again.")
        outcome = mode.outcomes[method["id"]]
        if "/" in outcome and not outcome.startswith("late/"):
            raise card_error(*split_outcome(outcome))
        method["customer"] = params["customer"]
        return method

    def detach(self, mode: Mode, method: dict[str, Any], _: Any) -> dict[str, Any]:
        if not method["customer"]:
            raise StripeApiError(
                400,
                "The payment method you provided is not attached to a customer so detachment is"
                " impossible.",
            )
        method["customer"] = None
        method["metadata"]["detached"] = "1"
        return method

    def create_customer(self, mode: Mode, params: dict[str, Any]) -> dict[str, Any]:
        return self.store(
            mode,
            "cus",
            {
                "object": "customer",
                "description": params.get("description"),
                "metadata": params.get("metadata", {}),
            },
        )

    def create_intent(self, mode: Mode, params: dict[str, Any]) -> dict[str, Any]:
        amount = parse_int(params, "amount")
        if amount < 50:
            raise StripeApiError(
                400, "Amount must be at least $0.50 usd", code="amount_too_small", param="amount"
            )
        if amount > 99_999_999:
            message = "Amount is too large"
            raise StripeApiError(400, message, code="amount_too_large", param="amount")
        customer = params.get("customer")
        if customer and customer not in mode.objects:
            raise not_found("customer", customer, "customer")
        created = self.store(
            mode,
            "pi",
            {
                "object": "payment_intent",
                "amount": amount,
                "cancellation_reason": None,
                "capture_method": params.get("capture_method", "automatic_async"),
                "client_secret": "pi_secret",
                "currency": params["currency"],
                "customer": customer,
                "description": params.get("description"),
                "last_payment_error": None,
                "latest_charge": None,
                "metadata": params.get("metadata", {}),
                "next_action": None,
                "payment_method": None,
                "status": "requires_payment_method",
            },
        )
        if params.get("confirm") == "true":
            self.confirm(mode, created, params)
        return created

    def confirm(self, mode: Mode, intent: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
        self.require_status(intent, "confirm", "requires_payment_method", "requires_confirmation")
        method = mode.objects.get(params.get("payment_method", ""))
        if method is None or method["object"] != "payment_method":
            raise not_found("PaymentMethod", params.get("payment_method", ""), "payment_method")
        if method["metadata"].get("detached") or method["customer"] != intent["customer"]:
            raise StripeApiError(
                400,
                "The provided PaymentMethod was previously used with a PaymentIntent without"
                " Customer attachment, or was detached from a Customer. It may not be used again.",
            )
        outcome = mode.outcomes[method["id"]]
        if outcome == "action" and params.get("off_session") != "true":
            intent |= {
                "status": "requires_action",
                "payment_method": method["id"],
                "next_action": self.make_next_action(intent, params.get("return_url")),
            }
            return intent
        if outcome == "action":
            outcome = "authentication_required/authentication_required"
        return self.charge(mode, intent, method, outcome)

    def make_next_action(self, intent: dict[str, Any], return_url: str | None) -> dict[str, Any]:
        if not return_url:
            return {"type": "use_stripe_sdk", "use_stripe_sdk": {}}
        bank = {"url": f"https://hooks.stripe.com/3d_secure/{intent['id']}"}
        return {
            "type": "redirect_to_url",
            "redirect_to_url": {**bank, "return_url": return_url},
        }

    def charge(
        self, mode: Mode, intent: dict[str, Any], method: dict[str, Any], outcome: str
    ) -> dict[str, Any]:
        charge = self.create_charge(mode, intent, method)
        intent |= {"latest_charge": charge["id"], "next_action": None}
        if outcome != "good":
            code, decline_code = split_outcome(outcome)
            error = card_error(code, decline_code, charge=charge["id"])
            charge["status"] = "failed"
            charge["payment_method_details"]["card"].pop("capture_before")
            intent |= {
                "status": "requires_payment_method",
                "payment_method": None,
                "last_payment_error": {**error.body["error"], "payment_method": dict(method)},
            }
            error.body["error"]["payment_intent"] = self.render(mode, intent, expand={})
            raise error
        intent |= {
            "status": "requires_capture",
            "payment_method": method["id"],
            "last_payment_error": None,
        }
        return intent

    def create_charge(
        self, mode: Mode, intent: dict[str, Any], method: dict[str, Any]
    ) -> dict[str, Any]:
        return self.store(
            mode,
            "ch",
            {
                "object": "charge",
                "amount": intent["amount"],
                "amount_captured": 0,
                "amount_refunded": 0,
                "balance_transaction": None,
                "captured": False,
                "currency": intent["currency"],
                "metadata": intent["metadata"],
                "payment_intent": intent["id"],
                "payment_method": method["id"],
                "payment_method_details": {
                    "type": "card",
                    "card": {**method["card"], "capture_before": int(time.time()) + WEEK_SECONDS},
                },
                "refunded": False,
                "status": "succeeded",
            },
        )

    def capture(self, mode: Mode, intent: dict[str, Any], _: Any) -> dict[str, Any]:
        self.require_status(intent, "capture", "requires_capture")
        if self.expired:
            message = "The authorization has expired."
            raise StripeApiError(400, message, code="charge_expired_for_capture")
        charge = mode.objects[intent["latest_charge"]]
        charge |= {"captured": True, "amount_captured": charge["amount"]}
        charge["payment_method_details"]["card"].pop("capture_before")
        if self.settles_at_once:
            self.add_fee(mode, charge)
        intent["status"] = "succeeded"
        return intent

    def cancel(self, mode: Mode, intent: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
        self.require_status(
            *(intent, "cancel", "requires_payment_method", "requires_capture"),
            *("requires_confirmation", "requires_action"),
        )
        intent |= {
            "status": "canceled",
            "cancellation_reason": params.get("cancellation_reason"),
            "next_action": None,
        }
        return intent

    def require_status(self, intent: dict[str, Any], verb: str, *statuses: str) -> None:
        if intent["status"] not in statuses:
            raise StripeApiError(
                400,
                f"This PaymentIntent could not be {verb}ed because it has a status of"
                f" {intent['status']}.",
                code="payment_intent_unexpected_state",
                payment_intent=dict(intent),
            )

    def list_intents(self, mode: Mode, params: dict[str, Any]) -> dict[str, Any]:
        return self.list_page("/v1/payment_intents", mode.get_all("payment_intent"), params)

    def list_page(
        self, url: str, rows: list[dict[str, Any]], params: dict[str, Any]
    ) -> dict[str, Any]:
        """A page of objects, the latest first. `page_size` makes pages smaller for tests."""
        since = int(params.get("created", {}).get("gte", 0))
        found = [row for row in rows[::-1] if row["created"] >= since]
        ids = [row["id"] for row in found]
        if "starting_after" in params:
            found = found[ids.index(params["starting_after"]) + 1 :]
        size = min(parse_int(params, "limit"), self.page_size)
        return {
            "object": "list",
            "url": url,
            "has_more": len(found) > size,
            "data": found[:size],
        }

    # --- Refunds, and the balance transactions that say what they cost ---------------------------

    def add_fee(self, mode: Mode, charge: dict[str, Any]) -> None:
        """Create the balance transaction of a captured charge: 2.9 percent and 30 cents."""
        fee = (charge["amount"] * 29 + 500) // 1000 + 30
        created = self.create_balance_transaction(mode, charge, charge["amount"], fee)
        charge["balance_transaction"] = created["id"]

    def create_balance_transaction(
        self, mode: Mode, source: dict[str, Any], amount: int, fee: int
    ) -> dict[str, Any]:
        return self.store(
            mode,
            "txn",
            {
                "object": "balance_transaction",
                "amount": amount,
                "currency": source["currency"],
                "exchange_rate": None,
                "fee": fee,
            },
        )

    def create_refund(self, mode: Mode, params: dict[str, Any]) -> dict[str, Any]:
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
        refund = self.store(
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
                "status": "succeeded",
            },
        )
        # Stripe keeps the fee of the charge.
        created = self.create_balance_transaction(mode, refund, -amount, 0)
        refund["balance_transaction"] = created["id"]
        return refund

    def list_refunds(self, mode: Mode, params: dict[str, Any]) -> dict[str, Any]:
        intent = params.get("payment_intent")
        rows = [r for r in mode.get_all("refund") if intent in {None, r["payment_intent"]}]
        return self.list_page("/v1/refunds", rows, params)

    # --- SetupIntents, Checkout Sessions in setup mode, and the deletion of customers ------------

    def delete_customer(self, mode: Mode, customer: dict[str, Any], _: Any) -> dict[str, Any]:
        """Delete the customer, which detaches its cards."""
        for method in mode.get_all("payment_method"):
            if method["customer"] == customer["id"]:
                method["customer"] = None
                method["metadata"]["detached"] = "1"
        del mode.objects[customer["id"]]
        return {"id": customer["id"], "object": "customer", "deleted": True}

    def create_setup_intent(self, mode: Mode, params: dict[str, Any]) -> dict[str, Any]:
        if params["customer"] not in mode.objects:
            raise not_found("customer", params["customer"], "customer")
        created = self.store(
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
                "status": "requires_payment_method",
            },
        )
        created["client_secret"] = f"{created['id']}_secret_3"
        return created

    def cancel_setup_intent(self, mode: Mode, setup: dict[str, Any], _: Any) -> dict[str, Any]:
        if setup["status"] not in OPEN_STATUSES or setup.get("by_session"):
            raise StripeApiError(
                400,
                f"You cannot cancel this SetupIntent because it has a status of {setup['status']}.",
                code="setup_intent_unexpected_state",
            )
        setup["status"] = "canceled"
        return setup

    def create_session(self, mode: Mode, params: dict[str, Any]) -> dict[str, Any]:
        if params["customer"] not in mode.objects:
            raise not_found("customer", params["customer"], "customer")
        created = self.store(
            mode,
            "cs_test",
            {
                "object": "checkout.session",
                "customer": params["customer"],
                "expires_at": int(params["expires_at"]),
                "metadata": params.get("metadata", {}),
                # Created when the customer confirms, as since version 2022-08-01.
                "setup_intent": None,
                "status": "open",
                "success_url": params["success_url"],
            },
        )
        created["url"] = f"https://checkout.stripe.com/c/pay/{created['id']}"
        return created

    def expire_session(self, mode: Mode, session: dict[str, Any], _: Any) -> dict[str, Any]:
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
            setup = self.test.objects[session["setup_intent"]]
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
