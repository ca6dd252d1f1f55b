"""The server: one function, no middleware. All requests of the benchmark are valid."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import django

# Prices and formats of money need settings and models.
django.setup()

from tests.bench.raw import centers, checkout, reservations  # noqa: E402
from tests.bench.raw.database import JSONDict  # noqa: E402

OPERATIONS: dict[str, Callable[[JSONDict, str, datetime], JSONDict]] = {
    "/api/meeting-rooms/check-availability": reservations.check_availability,
    "/api/account/reservation": reservations.get_reservation,
    "/api/reservations/cost": reservations.cost,
    "/api/locations/search": centers.search,
    "/api/reservations/create": reservations.create,
    "/api/reservations/checkout": checkout.checkout,
}


def application(environ: JSONDict, start_response: Callable[..., Any]) -> list[bytes]:
    body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    root = f"http://{environ['HTTP_HOST']}/media/"
    operation = OPERATIONS[environ["PATH_INFO"]]
    fields = {"Success": True, **operation(json.loads(body), root, datetime.now(UTC))}
    content = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(content)))]
    start_response("200 OK", headers)
    return [content]
