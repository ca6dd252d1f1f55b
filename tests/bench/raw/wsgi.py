"""The server: one function, no middleware."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import django

# Prices and formats of money need settings and models.
django.setup()

from tests.bench.raw.checkout import checkout  # noqa: E402
from tests.bench.raw.database import JSONDict, Refused  # noqa: E402
from tests.bench.raw.free_times import list_free_times  # noqa: E402
from tests.bench.raw.reservations import create, get_reservation  # noqa: E402
from tests.bench.raw.rooms import check_availability, cost  # noqa: E402
from tests.bench.raw.search import search  # noqa: E402

OPERATIONS: dict[str, Callable[[JSONDict, str, datetime], JSONDict]] = {
    "/api/meeting-rooms/check-availability": check_availability,
    "/api/meeting-rooms/free-times": list_free_times,
    "/api/account/reservation": get_reservation,
    "/api/reservations/cost": cost,
    "/api/locations/search": search,
    "/api/reservations/create": create,
    "/api/reservations/checkout": checkout,
}


def application(environ: JSONDict, start_response: Callable[..., Any]) -> list[bytes]:
    status = "200 OK"
    try:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        root = f"http://{environ['HTTP_HOST']}/media/"
        operation = OPERATIONS[environ["PATH_INFO"]]
        fields = {"Success": True, **operation(json.loads(body), root, datetime.now(UTC))}
    except Refused as refusal:
        status = refusal.status
        fields = {"Success": False, "Error": {"Summary": refusal.code}}
    content = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    start_response(
        status,
        [("Content-Type", "application/json"), ("Content-Length", str(len(content)))],
    )
    return [content]
