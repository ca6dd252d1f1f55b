"""Does a running service keep the contract? Asked from outside, as a client would."""

import datetime as dt
import json
from collections.abc import Iterator
from getpass import getpass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from django.core.management.base import BaseCommand, CommandError, CommandParser

from roombook.api import conformance, contract

ALL = {each.name: each for each in (*contract.OPERATIONS, *contract.EXTENSIONS)}
MAX_RESERVATIONS = 5


class Command(BaseCommand):
    help = (
        "Sign in to a running service, call the operations that change nothing, and print each"
        " field whose name, type or order is not the contract's; exits with 1 when there is any."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("base_url", help="Such as http://127.0.0.1:8000")
        parser.add_argument("--email", required=True, help="A customer's account.")
        parser.add_argument("--password", help="Asked for where it is not given.")
        parser.add_argument(
            "--timeout", type=float, default=10, help="Seconds that one answer may take (10)."
        )

    def handle(
        self, *, base_url: str, email: str, password: str | None, timeout: float, **_: Any
    ) -> None:
        service = Service(base_url, timeout)
        for line in tour(service, email, password or getpass()):
            self.stdout.write(line)
        for name in ALL:
            if name not in service.called:
                self.stdout.write(f"not called: {ALL[name].path}")
        for type_name in sorted(conformance.types_of(ALL[name] for name in service.called)):
            if unseen := service.comparison.unseen(type_name):
                self.stdout.write(f"never seen: {', '.join(unseen)} of {type_name}")
        for line in service.comparison.differences:
            self.stdout.write(self.style.ERROR(f"difference: {line}"))
        if count := len(service.comparison.differences):
            raise CommandError(f"Differences from the contract: {count}.")
        self.stdout.write("No difference from the contract.")


class Service:
    """The service as a client sees it; every answer is compared on its way."""

    def __init__(self, base_url: str, timeout: float) -> None:
        if urlsplit(base_url).scheme not in {"http", "https"}:
            raise CommandError("BASE_URL begins with http:// or https://.")
        self.base_url = base_url.rstrip("/")
        self.timeout = timeout
        self.token: str | None = None
        self.called: set[str] = set()
        self.comparison = conformance.Comparison()

    def call(self, name: str, expected: int = 200, **fields: Any) -> dict[str, Any]:
        """The answer's body; `{}` where it is not what was expected, which is told as such."""
        operation = ALL[name]
        self.called.add(name)
        if operation.needs_token:
            fields["Token"] = self.token
        status, body = self._post(operation.path, fields)
        self.comparison.answer(operation, body)
        if status == expected and isinstance(body, dict):
            return body
        code = body.get("Error", {}).get("Summary", "") if isinstance(body, dict) else ""
        self.comparison.differences[
            f"{operation.path}: answered {status} {code}".rstrip() + f", not {expected}"
        ] = None
        return {}

    def _post(self, path: str, fields: dict[str, Any]) -> tuple[int, Any]:
        request = Request(
            self.base_url + path,
            data=json.dumps(fields).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json"},
            method="POST",
        )
        try:
            try:
                with urlopen(request, timeout=self.timeout) as response:
                    status, text = response.status, response.read()
            except HTTPError as refusal:
                with refusal:
                    status, text = refusal.code, refusal.read()
        except OSError as error:
            raise CommandError(f"{self.base_url} cannot be reached: {error}") from error
        try:
            return status, json.loads(text)
        except ValueError:
            return status, None


def tour(service: Service, email: str, password: str) -> Iterator[str]:
    """Call what changes nothing; tells what it finds."""
    signed_in = service.call("Sign in", EmailAddress=email, Password=password)
    service.token = signed_in.get("Token")
    if not service.token:
        raise CommandError("Signing in failed: " + "; ".join(service.comparison.differences))
    try:
        yield f"signed in to {service.base_url}"
        yield from _centers(service)
        yield from _reservations(service)
        # A failure has the same envelope.
        service.call("Get reservation", expected=400)
    finally:
        service.call("Sign out")


def _centers(service: Service) -> Iterator[str]:
    centers = _list(service.call("Search locations"), "Centers")
    yield f"{len(centers)} centers found"
    if not centers:
        return
    address = centers[0].get("Address", {})
    if "Latitude" in address and "Longitude" in address:
        place: dict[str, Any] = {name: address[name] for name in ("Latitude", "Longitude")}
        service.call("Search locations", **place)
    if "Country" in address:
        service.call("City centers", AreaType="Country", Area=address["Country"])
    rooms = _list(centers[0], "MeetingRooms")
    if not rooms:
        return
    # No offset: the clock of the center.
    day = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=7)
    span: dict[str, Any] = {"StartDate": f"{day}T10:00:00", "EndDate": f"{day}T11:00:00"}
    room, center = rooms[0].get("Id"), centers[0].get("Id")
    service.call("Check room availability", RoomId=room, CenterId=center, **span)
    service.call("Reservation cost", MeetingRoomId=room, **span)


def _reservations(service: Service) -> Iterator[str]:
    reservations = _list(service.call("List reservations"), "Reservations")
    yield f"{len(reservations)} reservations of this account"
    # One of each status: they differ in what they show.
    chosen = {each.get("Status"): each.get("Id") for each in reservations}
    for number in list(chosen.values())[:MAX_RESERVATIONS]:
        service.call("Get reservation", Id=number)
        service.call("Get allowances", ReservationId=number)


def _list(fields: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects in a list, whatever the service sent instead: that is compared elsewhere."""
    found = fields.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
