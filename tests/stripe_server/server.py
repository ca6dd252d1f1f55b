"""The HTTP server of the fake Stripe, with its idempotency keys and faults."""

import contextlib
import json
import re
import secrets
import socket
import struct
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import stripe

from tests.stripe_server.errors import KEY_IN_USE, ConnectionBroken, InvalidResponse, StripeApiError
from tests.stripe_server.operations import WEEK_SECONDS, IdempotentRequest, Mode, StripeOperations


@dataclass
class Fault:
    """A fault of requests such as `POST /v1/refunds`."""

    kind: str
    path: str
    times: int | None
    seconds: float


@dataclass
class RecordedRequest:
    """A request without its card."""

    method: str
    path: str
    params: dict[str, Any]
    idempotency_key: str | None
    is_live: bool


class StripeServer(StripeOperations):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.RLock()
        self.requests: list[RecordedRequest] = []
        self.faults: list[Fault] = []
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), StripeRequestHandler)
        self.http.daemon_threads = True
        self.http.stripe = self
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.http.serve_forever, args=(0.005,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()

    # --- What tests read -------------------------------------------------------------------------

    def calls(self, path: str, method: str = "POST") -> list[RecordedRequest]:
        return [
            each for each in self.requests if each.method == method and re.search(path, each.path)
        ]

    @property
    def intents(self) -> list[dict[str, Any]]:
        return self.test.get_all("payment_intent")

    @property
    def charges(self) -> list[dict[str, Any]]:
        return self.test.get_all("charge")

    @property
    def refunds(self) -> list[dict[str, Any]]:
        return self.test.get_all("refund")

    def intent(self, key: Any) -> dict[str, Any]:
        """The intent of our key that was confirmed, otherwise the latest one."""
        found = [i for i in self.intents if i["metadata"].get("roombook_key") == str(key)]
        return next((i for i in found if i["latest_charge"]), found[-1])

    def count_captures(self) -> int:
        return sum(charge["captured"] for charge in self.charges)

    # --- What only Stripe's dashboard, the customer's bank and time can do -----------------------

    def refund_in_dashboard(self, intent: str, amount: int) -> dict[str, Any]:
        return self.create_refund(self.test, {"payment_intent": intent, "amount": str(amount)})

    def fail_refund(self, refund: dict[str, Any]) -> None:
        charge = self.test.objects[refund["charge"]]
        charge["amount_refunded"] -= refund["amount"]
        charge["refunded"] = False
        refund["status"] = "failed"

    def capture_in_dashboard(self, intent: str) -> None:
        self.capture(self.test, self.test.objects[intent], {})

    def act_at_bank(
        self, intent: dict[str, Any] | None = None, *, confirms: bool, outcome: str = "good"
    ) -> dict[str, Any]:
        """The customer confirms a payment at the bank, by default the last one, or refuses it."""
        intent = intent or self.intents[-1]
        self.require_status(intent, "confirm", "requires_action")
        if confirms:
            with contextlib.suppress(StripeApiError):
                self.charge(self.test, intent, self.test.objects[intent["payment_method"]], outcome)
            return intent
        intent |= {
            "status": "requires_payment_method",
            "payment_method": None,
            "next_action": None,
            "last_payment_error": {
                "type": "invalid_request_error",
                "code": "payment_intent_authentication_failure",
                "message": "The provided PaymentMethod has failed authentication.",
            },
        }
        return intent

    def expire_authorization(self, intent: str) -> None:
        self.test.objects[intent] |= {"status": "canceled", "cancellation_reason": "automatic"}

    def dispute(self, intent: str, amount: int) -> dict[str, Any]:
        now = int(time.time())
        dispute = self.store(
            self.test,
            "dp",
            {
                "object": "dispute",
                "amount": amount,
                "balance_transactions": [],
                "charge": self.test.objects[intent]["latest_charge"],
                "created": now,
                "currency": self.test.objects[intent]["currency"],
                "evidence_details": {"due_by": now + WEEK_SECONDS},
                "payment_intent": intent,
                "reason": "fraudulent",
                "status": "needs_response",
            },
        )
        withdrawn = self.create_balance_transaction(self.test, dispute, -amount, 1500)
        dispute["balance_transactions"].append(withdrawn)
        return dispute

    def event(self, type_: str, about: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": self.new_id("evt"),
            "object": "event",
            "api_version": stripe.api_version,
            "created": int(time.time()),
            "data": {"object": about},
            "livemode": about["livemode"],
            "type": type_,
        }

    # --- Faults ----------------------------------------------------------------------------------

    def fail(self, kind: str, path: str = "", *, times: int | None = 1, seconds: float = 0) -> None:
        """Let the next requests fail whose method and path match the regular expression `path`.

        slow            respond after `seconds`
        timeout_before  do nothing and never respond
        timeout_after   process the request and never respond
        error           respond 500 and do nothing; stored under the idempotency key, as by Stripe
        reset_before    reset the connection and do nothing
        reset_after     process the request and reset the connection
        rate_limit      respond 429
        conflict        respond 409: another request with this key is in progress
        nonsense        respond with something that is not JSON
        """
        self.faults.append(Fault(kind, path, times, seconds))

    def next_fault(self, request: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if re.search(fault.path, request) and fault.times != 0:
                    if fault.times is not None:
                        fault.times -= 1
                    return fault
        return None

    def raise_before(self, fault: Fault) -> None:
        """Raise if the fault prevents the request from being processed."""
        if fault.kind in {"timeout_before", "reset_before"}:
            time.sleep(fault.seconds)
            raise ConnectionBroken
        if fault.kind == "rate_limit":
            raise StripeApiError(429, "Too many requests", code="rate_limit")
        if fault.kind == "conflict":
            raise KEY_IN_USE
        if fault.kind == "nonsense":
            raise InvalidResponse

    # --- Processing ------------------------------------------------------------------------------

    def answer(
        self, method: str, path: str, params: dict[str, Any], key: str | None, bearer: str
    ) -> tuple[int, dict[str, Any]]:
        match = re.fullmatch(r"(?:sk|rk)_(live|test)_\w+", bearer)
        if not match:
            raise StripeApiError(401, "Invalid API Key provided: ***")
        if bearer.startswith("rk_") and bearer.endswith("_readonly") and method != "GET":
            raise StripeApiError(403, "The provided key does not have the required permissions")
        mode = self.live if match[1] == "live" else self.test
        fault = self.next_fault(f"{method} {path}")
        if fault:
            self.raise_before(fault)
        if method != "POST" or not key:
            answer = self.perform(mode, method, path, params, fault)
        else:
            answer = self.perform_once(mode, path, params, key, fault)
        if fault and fault.kind in {"timeout_after", "reset_after"}:
            time.sleep(fault.seconds)
            raise ConnectionBroken
        return answer

    def perform_once(
        self, mode: Mode, path: str, params: dict[str, Any], key: str, fault: Fault | None
    ) -> tuple[int, dict[str, Any]]:
        """Process the request, or repeat the answer that is stored under its idempotency key."""
        request = (path, json.dumps(params, sort_keys=True))
        with self.lock:
            stored = mode.idempotent_requests.get(key)
            if stored and stored.request != request:
                message = "Keys for idempotent requests can only be used with the same parameters"
                raise StripeApiError(400, message, kind="idempotency_error")
            if stored and stored.answer is None:
                raise KEY_IN_USE
            if stored and stored.answer:
                return stored.answer
            mode.idempotent_requests[key] = IdempotentRequest(request)
        answer: tuple[int, dict[str, Any]] | None = None
        try:
            answer = self.perform(mode, "POST", path, params, fault)
        except StripeApiError as error:
            # Stripe stores declined cards and server errors, but no errors of validation.
            if error.status in {402, 500}:
                answer = error.status, error.body
            raise
        finally:
            with self.lock:
                if answer:
                    mode.idempotent_requests[key].answer = answer
                else:
                    mode.idempotent_requests.pop(key, None)
        return answer

    def perform(
        self, mode: Mode, method: str, path: str, params: dict[str, Any], fault: Fault | None
    ) -> tuple[int, dict[str, Any]]:
        if fault and fault.kind == "slow":
            time.sleep(fault.seconds)
        if fault and fault.kind == "error":
            raise StripeApiError(500, "An unknown error occurred", kind="api_error")
        with self.lock:
            return 200, self.run(mode, method, path, params)


def parse_form(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """The fields of a form as Stripe reads them: `card[number]=4242` is nested.

    Lists become `{"0": ...}`, except `expand`.
    """
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


class StripeRequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Write the response in one piece. In two, each would wait 40 ms for an acknowledgement.
    wbufsize = -1

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.serve(urlsplit(self.path).query)

    def do_DELETE(self) -> None:
        self.serve("")

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.serve(self.rfile.read(length).decode())

    def serve(self, form: str) -> None:
        server: StripeServer = self.server.stripe
        params = parse_form(parse_qsl(form, keep_blank_values=True))
        path = urlsplit(self.path).path
        key = self.headers.get("Idempotency-Key")
        bearer = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        recorded = {name: value for name, value in params.items() if name != "card"}
        is_live = "_live_" in bearer
        server.requests.append(RecordedRequest(self.command, path, recorded, key, is_live))
        try:
            status, body = server.answer(self.command, path, params, key, bearer)
        except StripeApiError as error:
            status, body = error.status, error.body
        except InvalidResponse:
            self.respond(502, b"<html>Bad Gateway</html>")
            return
        except ConnectionBroken:
            # Reset instead of closed, as after a crash.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            return
        self.respond(status, json.dumps(body).encode())

    def respond(self, status: int, body: bytes) -> None:
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
