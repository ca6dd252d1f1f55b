"""A stand-in for Stripe on this machine: what our gateway uses of its API, as it is documented.

    with StripeServer() as server:
        settings.STRIPE_API_BASE = server.url

It honours idempotency keys (replays, also of stored errors; refuses other parameters; answers 409
while the first is at work), captures later, refuses what Stripe refuses, and keeps real and test
objects apart by the key. Parameters that the SDK's own API version does not have are refused.
`fail()` switches faults on. What only Stripe's dashboard can do has its own methods.

No card number is kept, only what the test number stands for.
"""

import contextlib
import itertools
import json
import re
import secrets
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import stripe
from stripe import params as known

# Documented test numbers: what Stripe answers when they are charged, as (code, decline code).
DECLINES = {
    "4000000000000002": ("card_declined", "generic_decline"),
    "4000000000009995": ("card_declined", "insufficient_funds"),
    "4000000000009987": ("card_declined", "lost_card"),
    "4000000000009979": ("card_declined", "stolen_card"),
    "4000000000000069": ("expired_card", None),
    "4000000000000127": ("incorrect_cvc", None),
    "4000000000000119": ("processing_error", None),
    "4000000000006975": ("card_declined", "card_velocity_exceeded"),
    "4100000000000019": ("card_declined", "fraudulent"),
}
ONLY_WHEN_CHARGED = {"4000000000000341": ("card_declined", "generic_decline")}
ASKS_FOR_MORE = {"4000002500003155", "4000002760003184"}
GOOD = {
    **dict.fromkeys(("4242424242424242", "4000056655665556"), "visa"),
    **dict.fromkeys(("5555555555554444", "2223003122003222", "5105105105105100"), "mastercard"),
    **dict.fromkeys(("378282246310005", "371449635398431"), "amex"),
    "6011111111111117": "discover",
    "3056930009020004": "diners",
    "3566002020360505": "jcb",
    "6200000000000005": "unionpay",
}
WEEK = 7 * 24 * 60 * 60


class Refusal(Exception):
    """An error in Stripe's own shape."""

    def __init__(
        self, status: int, message: str, *, kind: str = "invalid_request_error", **more: Any
    ) -> None:
        self.status = status
        self.body = {"error": {"type": kind, "message": message, **more}}
        super().__init__(message)


def unknown(what: str, reference: str, param: str) -> Refusal:
    message = f"No such {what}: '{reference}'"
    return Refusal(404, message, code="resource_missing", param=param)


IN_USE = Refusal(
    409,
    "There is currently another in-progress request using this key",
    kind="idempotency_error",
    code="idempotency_key_in_use",
)


def card_error(code: str, decline_code: str | None, **more: Any) -> Refusal:
    told = {"code": code, "message": "Your card was declined."}
    if decline_code:
        told["decline_code"] = decline_code
    return Refusal(402, told.pop("message"), kind="card_error", **told, **more)


@dataclass
class Fault:
    """Trouble with requests such as `POST /v1/refunds`."""

    kind: str
    path: str
    times: int | None
    seconds: float


@dataclass
class Seen:
    """A request, without what was in it of a card."""

    method: str
    path: str
    params: dict[str, Any]
    idempotency_key: str | None
    is_live: bool


@dataclass
class Stored:
    """What an idempotency key stands for; no answer yet: it is being worked on."""

    asked: tuple[str, str]
    answer: tuple[int, dict[str, Any]] | None = None


@dataclass
class Books:
    """Everything that Stripe keeps in one of its modes."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    stored: dict[str, Stored] = field(default_factory=dict)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.objects.values() if each["object"] == kind]


class StripeServer:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.live, self.test = Books(), Books()
        self.seen: list[Seen] = []
        self.faults: list[Fault] = []
        # Whether the account may send card numbers itself.
        self.takes_numbers = True
        # Whether reserved money is back with the customers already.
        self.expired = False
        # What the answers say of the mode; None: the truth.
        self.livemode: bool | None = None
        self.numbers = itertools.count(1)
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.stripe = self
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.http.serve_forever, args=(0.005,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()

    # --- For tests -------------------------------------------------------------------------------

    def fail(self, kind: str, path: str = "", *, times: int | None = 1, seconds: float = 0) -> None:
        """Trouble with the next so many requests of which `path`, a regular expression, tells.

        slow            answers after `seconds`
        timeout_before  never answers, and does nothing
        timeout_after   does it, and never answers
        error           500, nothing was done; stored under the idempotency key, as Stripe does
        reset_before    breaks the connection instead of doing it
        reset_after     does it, and breaks the connection
        rate_limit      429
        conflict        409: another request with the same key is at work
        nonsense        answers what is no JSON
        """
        self.faults.append(Fault(kind, path, times, seconds))

    def calls(self, path: str, method: str = "POST") -> list[Seen]:
        return [each for each in self.seen if each.method == method and re.search(path, each.path)]

    @property
    def intents(self) -> list[dict[str, Any]]:
        return self.test.of("payment_intent")

    @property
    def charges(self) -> list[dict[str, Any]]:
        return self.test.of("charge")

    @property
    def refunds(self) -> list[dict[str, Any]]:
        return self.test.of("refund")

    def intent(self, key: Any) -> dict[str, Any]:
        """The one intent of our key that was ever confirmed, else the last one."""
        mine = [i for i in self.intents if i["metadata"].get("roombook_key") == str(key)]
        return next((i for i in mine if i["latest_charge"]), mine[-1])

    def captured(self) -> int:
        """How often money was taken."""
        return sum(charge["captured"] for charge in self.charges)

    # --- What only the dashboard, the customer's bank and time can do ----------------------------

    def refund_in_dashboard(self, intent: str, amount: int) -> dict[str, Any]:
        return self.make_refund(self.test, {"payment_intent": intent, "amount": str(amount)})

    def fail_refund(self, refund: dict[str, Any]) -> None:
        charge = self.test.objects[refund["charge"]]
        charge["amount_refunded"] -= refund["amount"]
        charge["refunded"] = False
        refund["status"] = "failed"

    def capture_in_dashboard(self, intent: str) -> None:
        self.capture(self.test, self.test.objects[intent], {})

    def lapse(self, intent: str) -> None:
        """The customer's bank gives reserved money back."""
        self.test.objects[intent] |= {"status": "canceled", "cancellation_reason": "automatic"}

    def dispute(self, intent: str, amount: int) -> dict[str, Any]:
        now = int(time.time())
        return self.keep(
            self.test,
            "dp",
            {
                "object": "dispute",
                "amount": amount,
                "charge": self.test.objects[intent]["latest_charge"],
                "created": now,
                "currency": self.test.objects[intent]["currency"],
                "evidence": {},
                "evidence_details": {
                    "due_by": now + WEEK,
                    "has_evidence": False,
                    "past_due": False,
                    "submission_count": 0,
                },
                "is_charge_refundable": False,
                "metadata": {},
                "payment_intent": intent,
                "reason": "fraudulent",
                "status": "needs_response",
            },
        )

    def event(self, type_: str, about: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": self.new_id("evt"),
            "object": "event",
            "api_version": stripe.api_version,
            "created": int(time.time()),
            "data": {"object": about},
            "livemode": about["livemode"],
            "pending_webhooks": 1,
            "request": {"id": None, "idempotency_key": None},
            "type": type_,
        }

    # --- Answering -------------------------------------------------------------------------------

    def answer(
        self, method: str, path: str, params: dict[str, Any], key: str | None, bearer: str
    ) -> tuple[int, dict[str, Any]]:
        match = re.fullmatch(r"(?:sk|rk)_(live|test)_\w+", bearer)
        if not match:
            raise Refusal(401, "Invalid API Key provided: ***")
        books = self.live if match[1] == "live" else self.test
        fault = self.next_fault(f"{method} {path}")
        if fault:
            self.turn_away(fault)
        if method != "POST" or not key:
            answer = self.perform(books, method, path, params, fault)
        else:
            answer = self.once(books, path, params, key, fault)
        if fault and fault.kind in {"timeout_after", "reset_after"}:
            time.sleep(fault.seconds)
            raise Broken
        return answer

    def turn_away(self, fault: Fault) -> None:
        """What happens to a request before Stripe has begun to look at it."""
        if fault.kind in {"timeout_before", "reset_before"}:
            time.sleep(fault.seconds)
            raise Broken
        if fault.kind == "rate_limit":
            raise Refusal(429, "Too many requests", code="rate_limit")
        if fault.kind == "conflict":
            raise IN_USE
        if fault.kind == "nonsense":
            raise Nonsense

    def once(
        self, books: Books, path: str, params: dict[str, Any], key: str, fault: Fault | None
    ) -> tuple[int, dict[str, Any]]:
        """Do it, unless the idempotency key stands for something already."""
        asked = (path, json.dumps(params, sort_keys=True))
        with self.lock:
            stored = books.stored.get(key)
            if stored and stored.asked != asked:
                message = "Keys for idempotent requests can only be used with the same parameters"
                raise Refusal(400, message, kind="idempotency_error")
            if stored and stored.answer is None:
                raise IN_USE
            if stored and stored.answer:
                return stored.answer
            books.stored[key] = Stored(asked)
        answer: tuple[int, dict[str, Any]] | None = None
        try:
            answer = self.perform(books, "POST", path, params, fault)
        except Refusal as refusal:
            # What fails before it begins is not stored; a declined card and a crash are.
            if refusal.status in {402, 500}:
                answer = refusal.status, refusal.body
            raise
        finally:
            with self.lock:
                if answer:
                    books.stored[key].answer = answer
                else:
                    books.stored.pop(key, None)
        return answer

    def perform(
        self, books: Books, method: str, path: str, params: dict[str, Any], fault: Fault | None
    ) -> tuple[int, dict[str, Any]]:
        if fault and fault.kind == "slow":
            time.sleep(fault.seconds)
        if fault and fault.kind == "error":
            raise Refusal(500, "An unknown error occurred", kind="api_error")
        with self.lock:
            return 200, self.do(books, method, path, params)

    def next_fault(self, request: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if re.search(fault.path, request) and fault.times != 0:
                    if fault.times is not None:
                        fault.times -= 1
                    return fault
        return None

    # --- Stripe's operations ---------------------------------------------------------------------

    def do(self, books: Books, method: str, path: str, params: dict[str, Any]) -> dict[str, Any]:
        for verb, pattern, name, allowed in ROUTES:
            match = re.fullmatch(pattern, path)
            if verb == method and match:
                check_names(params, allowed)
                made: dict[str, Any] = getattr(self, name)(books, *self.found(books, match), params)
                return self.shown(books, made, expand=params.get("expand", {}))
        raise Refusal(404, f"Unrecognized request URL ({method}: {path})")

    def found(self, books: Books, match: re.Match[str]) -> list[dict[str, Any]]:
        """The object that the path names."""
        if not match.groups():
            return []
        kind = {"payment_intents": "payment_intent", "payment_methods": "PaymentMethod"}
        plural = match.string.split("/")[2]
        if match[1] not in books.objects:
            param = "intent" if plural == "payment_intents" else "payment_method"
            raise unknown(kind.get(plural, plural.removesuffix("s")), match[1], param)
        return [books.objects[match[1]]]

    def keep(self, books: Books, prefix: str, made: dict[str, Any]) -> dict[str, Any]:
        is_live = books is self.live if self.livemode is None else self.livemode
        made |= {"id": self.new_id(prefix), "livemode": is_live}
        made.setdefault("created", int(time.time()))
        books.objects[made["id"]] = made
        return made

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_3{next(self.numbers):04}{secrets.token_hex(8)}"

    def shown(self, books: Books, made: dict[str, Any], *, expand: Any) -> dict[str, Any]:
        copy: dict[str, Any] = json.loads(json.dumps(made))
        if "latest_charge" in expand and copy.get("latest_charge"):
            copy["latest_charge"] = json.loads(json.dumps(books.objects[copy["latest_charge"]]))
        return copy

    def retrieve(self, books: Books, made: dict[str, Any], _: Any) -> dict[str, Any]:
        return made

    def make_method(self, books: Books, params: dict[str, Any]) -> dict[str, Any]:
        if not self.takes_numbers:
            # What an account without that permission is told: a 402 that is about no card.
            raise Refusal(
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
        brand = GOOD.get(number, "visa")
        made = self.keep(
            books,
            "pm",
            {
                "object": "payment_method",
                "type": "card",
                "billing_details": params.get("billing_details", {}),
                "card": {
                    "brand": brand,
                    "checks": {"cvc_check": "unchecked" if "cvc" in card else None},
                    "country": "US",
                    "exp_month": int(card["exp_month"]),
                    "exp_year": int(card["exp_year"]),
                    "fingerprint": "mToisGZ01V71BCos",
                    "funding": "credit",
                    "last4": number[-4:],
                },
                "customer": None,
                "metadata": {},
            },
        )
        books.outcomes[made["id"]] = self.outcome(books, number)
        return made

    def outcome(self, books: Books, number: str) -> str:
        """What charging it will do, in a word that is no number."""
        is_test = number in {*GOOD, *DECLINES, *ONLY_WHEN_CHARGED, *ASKS_FOR_MORE}
        if is_test == (books is self.live):
            mode = "live_mode_test_card" if is_test else "test_mode_live_card"
            return f"card_declined/{mode}"
        if number in ASKS_FOR_MORE:
            return "action"
        code, decline_code = DECLINES.get(number) or ONLY_WHEN_CHARGED.get(number) or ("", "")
        late = "late/" if number in ONLY_WHEN_CHARGED else ""
        return f"{late}{code}/{decline_code or ''}" if code else "good"

    def attach(
        self, books: Books, method: dict[str, Any], params: dict[str, Any]
    ) -> dict[str, Any]:
        if params["customer"] not in books.objects:
            raise unknown("customer", params["customer"], "customer")
        if method["metadata"].get("spent"):
            raise Refusal(400, "The payment method was detached and may not be used again.")
        outcome = books.outcomes[method["id"]]
        if "/" in outcome and not outcome.startswith("late/"):
            raise card_error(*parted(outcome))
        method["customer"] = params["customer"]
        return method

    def detach(self, books: Books, method: dict[str, Any], _: Any) -> dict[str, Any]:
        if not method["customer"]:
            raise Refusal(
                400,
                "The payment method you provided is not attached to a customer so detachment is"
                " impossible.",
            )
        method["customer"] = None
        method["metadata"]["spent"] = "1"
        return method

    def make_customer(self, books: Books, params: dict[str, Any]) -> dict[str, Any]:
        return self.keep(
            books,
            "cus",
            {
                "object": "customer",
                "description": params.get("description"),
                "metadata": params.get("metadata", {}),
            },
        )

    def make_intent(self, books: Books, params: dict[str, Any]) -> dict[str, Any]:
        amount = whole(params, "amount")
        if amount < 50:
            raise Refusal(
                400, "Amount must be at least $0.50 usd", code="amount_too_small", param="amount"
            )
        if amount > 99_999_999:
            raise Refusal(400, "Amount is too large", code="amount_too_large", param="amount")
        customer = params.get("customer")
        if customer and customer not in books.objects:
            raise unknown("customer", customer, "customer")
        made = self.keep(
            books,
            "pi",
            {
                "object": "payment_intent",
                "amount": amount,
                "amount_capturable": 0,
                "amount_received": 0,
                "automatic_payment_methods": None,
                "canceled_at": None,
                "cancellation_reason": None,
                "capture_method": params.get("capture_method", "automatic_async"),
                "client_secret": "pi_secret",
                "confirmation_method": "automatic",
                "currency": params["currency"],
                "customer": customer,
                "description": params.get("description"),
                "last_payment_error": None,
                "latest_charge": None,
                "metadata": params.get("metadata", {}),
                "next_action": None,
                "payment_method": None,
                "payment_method_types": list(
                    params.get("allowed_payment_method_types", {}).values()
                ),
                "status": "requires_payment_method",
            },
        )
        if params.get("confirm") == "true":
            self.confirm(books, made, params)
        return made

    def confirm(
        self, books: Books, intent: dict[str, Any], params: dict[str, Any]
    ) -> dict[str, Any]:
        self.require(intent, "confirm", "requires_payment_method", "requires_confirmation")
        method = books.objects.get(params.get("payment_method", ""))
        if method is None or method["object"] != "payment_method":
            raise unknown("PaymentMethod", params.get("payment_method", ""), "payment_method")
        if method["metadata"].get("spent") or method["customer"] != intent["customer"]:
            raise Refusal(
                400,
                "The provided PaymentMethod was previously used with a PaymentIntent without"
                " Customer attachment, or was detached from a Customer. It may not be used again.",
            )
        outcome = books.outcomes[method["id"]]
        if outcome == "action" and params.get("off_session") != "true":
            intent |= {
                "status": "requires_action",
                "payment_method": method["id"],
                "next_action": {"type": "use_stripe_sdk", "use_stripe_sdk": {}},
            }
            return intent
        if outcome == "action":
            outcome = "authentication_required/authentication_required"
        charge = self.make_charge(books, intent, method)
        intent["latest_charge"] = charge["id"]
        if outcome != "good":
            code, decline_code = parted(outcome)
            refusal = card_error(code, decline_code, charge=charge["id"])
            charge |= {"status": "failed", "paid": False, "failure_code": code}
            charge["payment_method_details"]["card"].pop("capture_before")
            intent |= {
                "status": "requires_payment_method",
                "payment_method": None,
                "last_payment_error": {**refusal.body["error"], "payment_method": dict(method)},
            }
            refusal.body["error"]["payment_intent"] = self.shown(books, intent, expand={})
            raise refusal
        intent |= {
            "status": "requires_capture",
            "payment_method": method["id"],
            "amount_capturable": intent["amount"],
            "last_payment_error": None,
        }
        return intent

    def make_charge(
        self, books: Books, intent: dict[str, Any], method: dict[str, Any]
    ) -> dict[str, Any]:
        return self.keep(
            books,
            "ch",
            {
                "object": "charge",
                "amount": intent["amount"],
                "amount_captured": 0,
                "amount_refunded": 0,
                "captured": False,
                "currency": intent["currency"],
                "failure_code": None,
                "metadata": intent["metadata"],
                "paid": True,
                "payment_intent": intent["id"],
                "payment_method": method["id"],
                "payment_method_details": {
                    "type": "card",
                    "card": {**method["card"], "capture_before": int(time.time()) + WEEK},
                },
                "refunded": False,
                "status": "succeeded",
            },
        )

    def capture(self, books: Books, intent: dict[str, Any], _: Any) -> dict[str, Any]:
        self.require(intent, "capture", "requires_capture")
        if self.expired:
            message = "The authorization has expired."
            raise Refusal(400, message, code="charge_expired_for_capture")
        charge = books.objects[intent["latest_charge"]]
        charge |= {"captured": True, "amount_captured": charge["amount"]}
        charge["payment_method_details"]["card"].pop("capture_before")
        intent |= {
            "status": "succeeded",
            "amount_capturable": 0,
            "amount_received": intent["amount"],
        }
        return intent

    def cancel(
        self, books: Books, intent: dict[str, Any], params: dict[str, Any]
    ) -> dict[str, Any]:
        self.require(
            *(intent, "cancel", "requires_payment_method", "requires_capture"),
            *("requires_confirmation", "requires_action"),
        )
        intent |= {
            "status": "canceled",
            "canceled_at": int(time.time()),
            "cancellation_reason": params.get("cancellation_reason"),
            "amount_capturable": 0,
            "next_action": None,
        }
        return intent

    def require(self, intent: dict[str, Any], verb: str, *statuses: str) -> None:
        if intent["status"] not in statuses:
            raise Refusal(
                400,
                f"This PaymentIntent could not be {verb}ed because it has a status of"
                f" {intent['status']}.",
                code="payment_intent_unexpected_state",
                payment_intent=dict(intent),
            )

    def make_refund(self, books: Books, params: dict[str, Any]) -> dict[str, Any]:
        intent = books.objects.get(params["payment_intent"])
        if intent is None:
            raise unknown("payment_intent", params["payment_intent"], "payment_intent")
        charge = books.objects.get(intent["latest_charge"] or "")
        if charge is None or not charge["captured"]:
            message = "This PaymentIntent does not have a successful charge to refund."
            raise Refusal(400, message, code="payment_intent_unexpected_state")
        amount = whole(params, "amount")
        left = charge["amount"] - charge["amount_refunded"]
        if not left:
            message = f"Charge {charge['id']} has already been refunded."
            raise Refusal(400, message, code="charge_already_refunded")
        if not 0 < amount <= left:
            message = f"Refund amount ({amount}) is greater than unrefunded amount ({left})"
            raise Refusal(400, message, param="amount")
        charge["amount_refunded"] += amount
        charge["refunded"] = amount == left
        return self.keep(
            books,
            "re",
            {
                "object": "refund",
                "amount": amount,
                "charge": charge["id"],
                "currency": charge["currency"],
                "metadata": params.get("metadata", {}),
                "payment_intent": intent["id"],
                "reason": None,
                "status": "succeeded",
            },
        )

    def list_refunds(self, books: Books, params: dict[str, Any]) -> dict[str, Any]:
        intent = params["payment_intent"]
        rows = [each for each in books.of("refund") if each["payment_intent"] == intent]
        return {"object": "list", "url": "/v1/refunds", "has_more": False, "data": rows[::-1]}


METHOD = r"/v1/payment_methods/(\w+)"
INTENT = r"/v1/payment_intents/(\w+)"
# The last column is what the SDK's own API version lets one say.
ROUTES = [
    ("POST", "/v1/payment_methods", "make_method", known.PaymentMethodCreateParams),
    ("GET", METHOD, "retrieve", known.PaymentMethodRetrieveParams),
    ("POST", rf"{METHOD}/attach", "attach", known.PaymentMethodAttachParams),
    ("POST", rf"{METHOD}/detach", "detach", known.PaymentMethodDetachParams),
    ("POST", "/v1/customers", "make_customer", known.CustomerCreateParams),
    ("POST", "/v1/payment_intents", "make_intent", known.PaymentIntentCreateParams),
    ("GET", INTENT, "retrieve", known.PaymentIntentRetrieveParams),
    ("POST", rf"{INTENT}/confirm", "confirm", known.PaymentIntentConfirmParams),
    ("POST", rf"{INTENT}/capture", "capture", known.PaymentIntentCaptureParams),
    ("POST", rf"{INTENT}/cancel", "cancel", known.PaymentIntentCancelParams),
    ("POST", "/v1/refunds", "make_refund", known.RefundCreateParams),
    ("GET", "/v1/refunds", "list_refunds", known.RefundListParams),
    ("GET", r"/v1/disputes/(\w+)", "retrieve", known.DisputeRetrieveParams),
]


class Broken(Exception):
    """No answer: the connection ends."""


class Nonsense(Exception):
    """An answer from somebody on the way."""


def check_names(params: dict[str, Any], allowed: Any) -> None:
    for name in params:
        if name == "payment_method_types":
            message = "payment_method_types is no longer supported"
            raise Refusal(400, message, code="payment_method_types_no_longer_supported")
        if name not in allowed.__annotations__:
            message = f"Received unknown parameter: {name}"
            raise Refusal(400, message, code="parameter_unknown", param=name)


def whole(params: dict[str, Any], name: str) -> int:
    if not re.fullmatch(r"-?\d+", str(params.get(name, ""))):
        raise Refusal(400, f"Invalid integer: {name}", code="parameter_invalid_integer", param=name)
    return int(params[name])


def parted(outcome: str) -> tuple[str, str | None]:
    code, decline_code = outcome.removeprefix("late/").split("/")
    return code, decline_code or None


def nested(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """`card[number]=4242` as Stripe reads it; lists become `{"0": ...}`, read by their values."""
    tree: dict[str, Any] = {}
    for name, value in pairs:
        *path, last = re.findall(r"[^\[\]]+", name)
        branch = tree
        for part in path:
            branch = branch.setdefault(part, {})
        branch[last] = value
    if isinstance(tree.get("expand"), dict):
        tree["expand"] = list(tree["expand"].values())
    return tree


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer in one piece: in two, each would wait for an acknowledgement for 40 ms.
    wbufsize = -1

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.serve(urlsplit(self.path).query)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.serve(self.rfile.read(length).decode())

    def serve(self, form: str) -> None:
        server: StripeServer = self.server.stripe
        params = nested(parse_qsl(form, keep_blank_values=True))
        path = urlsplit(self.path).path
        key = self.headers.get("Idempotency-Key")
        bearer = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        shown = {name: value for name, value in params.items() if name != "card"}
        server.seen.append(Seen(self.command, path, shown, key, "_live_" in bearer))
        try:
            status, body = server.answer(self.command, path, params, key, bearer)
        except Refusal as refusal:
            status, body = refusal.status, refusal.body
        except Nonsense:
            self.reply(502, b"<html>Bad Gateway</html>")
            return
        except Broken:
            # Reset, not closed: what a crash in between looks like.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            return
        self.reply(status, json.dumps(body).encode())

    def reply(self, status: int, body: bytes) -> None:
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Request-Id", f"req_{secrets.token_hex(7)}")
            if status == 500:
                self.send_header("Stripe-Should-Retry", "false")
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
