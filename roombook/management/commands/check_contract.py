"""Checks from outside, as a client, whether a running service keeps the contract."""

import datetime as dt
import json
import os
from collections.abc import Iterator
from getpass import getpass
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from django.core.management.base import BaseCommand, CommandError, CommandParser

from roombook.api.conformance import ConformanceChecker
from roombook.api.contract_schema import load_contract
from roombook.api.rendering import JSONDict

MAX_RESERVATIONS = 5


class Command(BaseCommand):
    help = (
        "Sign in to a running service, call the operations that change nothing, and print each"
        " field whose name, type or order is not the contract's; exits with 1 when there is any."
        " The password is read from the environment variable PASSWORD, or prompted for."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("base_url", help="Such as http://127.0.0.1:8000")
        parser.add_argument("--email", required=True, help="A customer's account.")
        parser.add_argument(
            "--timeout", type=float, default=10, help="Seconds to wait for one response (10)."
        )

    def handle(self, *, base_url: str, email: str, timeout: float, **_: object) -> None:
        service = ServiceClient(base_url, timeout)
        # No option, because everybody on the machine can read the arguments of a program.
        password = os.environ.get("PASSWORD") or getpass()
        checker = service.checker
        for line in call_operations(service, email, password):
            self.stdout.write(line)
        operations = checker.contract.operations
        for name in operations:
            if name not in service.called:
                self.stdout.write(f"not called: {operations[name].path}")
        called = [operations[name] for name in service.called]
        for type_name in sorted(checker.contract.get_response_types(called)):
            if unseen := checker.get_unseen_fields(type_name):
                self.stdout.write(f"never seen: {', '.join(unseen)} of {type_name}")
        for line in checker.differences:
            self.stdout.write(self.style.ERROR(f"difference: {line}"))
        if count := len(checker.differences):
            raise CommandError(f"Differences from the contract: {count}.")
        self.stdout.write("No difference from the contract.")


class ServiceClient:
    """A client of the service that checks every response against the contract."""

    def __init__(self, base_url: str, timeout: float) -> None:
        if urlsplit(base_url).scheme not in {"http", "https"}:
            raise CommandError("BASE_URL begins with http:// or https://.")
        self.base_url = base_url.rstrip("/")
        self.timeout = timeout
        self.token: str | None = None
        self.called: set[str] = set()
        self.checker = ConformanceChecker(load_contract())

    def call(self, name: str, expected_status: int = 200, **fields: object) -> JSONDict:
        """Return the response's body; an unexpected status is a difference, and returns {}."""
        operation = self.checker.contract.operations[name]
        self.called.add(name)
        if operation.needs_token:
            fields["Token"] = self.token
        status, body = self._post(operation.path, fields)
        self.checker.check_response(operation, body)
        if status == expected_status and isinstance(body, dict):
            return body
        code = body.get("Error", {}).get("Summary", "") if isinstance(body, dict) else ""
        answered = f"{operation.path}: answered {status} {code}".rstrip()
        self.checker.differences[f"{answered}, not {expected_status}"] = None
        return {}

    def _post(self, path: str, fields: JSONDict) -> tuple[int, object]:
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
            except HTTPError as error:
                with error:
                    status, text = error.code, error.read()
        except OSError as error:
            raise CommandError(f"{self.base_url} cannot be reached: {error}") from error
        try:
            return status, json.loads(text)
        except ValueError:
            return status, None


def call_operations(service: ServiceClient, email: str, password: str) -> Iterator[str]:
    """Call the operations that change nothing; yield lines about what was found."""
    signed_in = service.call("Sign in", EmailAddress=email, Password=password)
    service.token = signed_in.get("Token")
    if not service.token:
        differences = "; ".join(service.checker.differences)
        raise CommandError(f"Signing in failed: {differences}")
    try:
        yield f"signed in to {service.base_url}"
        yield from _call_center_operations(service)
        yield from _call_reservation_operations(service)
        # A failure has the same envelope.
        service.call("Get reservation", expected_status=400)
    finally:
        service.call("Sign out")


def _call_center_operations(service: ServiceClient) -> Iterator[str]:
    centers = _get_objects(service.call("Search locations"), "Centers")
    yield f"{len(centers)} centers found"
    if not centers:
        return
    address = centers[0].get("Address", {})
    if "Latitude" in address and "Longitude" in address:
        coordinates: JSONDict = {name: address[name] for name in ("Latitude", "Longitude")}
        service.call("Search locations", **coordinates)
    if "Country" in address:
        service.call("City centers", AreaType="Country", Area=address["Country"])
    rooms = _get_objects(centers[0], "MeetingRooms")
    if not rooms:
        return
    # Without an offset: the center's local time.
    day = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=7)
    span: JSONDict = {"StartDate": f"{day}T10:00:00", "EndDate": f"{day}T11:00:00"}
    room_id, center_id = rooms[0].get("Id"), centers[0].get("Id")
    service.call("Check room availability", RoomId=room_id, CenterId=center_id, **span)
    service.call("Find alternatives", RoomId=room_id, **span)
    times = {"From": span["StartDate"], "To": span["EndDate"]}
    service.call("List free times", RoomIds=[room_id], **times)
    service.call("Reservation cost", MeetingRoomId=room_id, **span)


def _call_reservation_operations(service: ServiceClient) -> Iterator[str]:
    reservations = _get_objects(service.call("List reservations"), "Reservations")
    yield f"{len(reservations)} reservations of this account"
    # One of each status: their fields differ.
    ids = {each.get("Status"): each.get("Id") for each in reservations}
    for reservation_id in list(ids.values())[:MAX_RESERVATIONS]:
        service.call("Get reservation", Id=reservation_id)
        service.call("Get allowances", ReservationId=reservation_id)


def _get_objects(fields: JSONDict, name: str) -> list[JSONDict]:
    """Return the objects of a list; anything else is reported by the checker."""
    found = fields.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
