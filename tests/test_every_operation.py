"""One table of all operations: what each answers in any format, without a Token, to the ids of
others, and if it is repeated (B2, B7, B23), and how many queries it may execute.

Wrong values of all fields are in test_wrong_values.py, and the rules of a single operation in
operations/. An operation, or a field with an id, that is missing from the table makes a test fail.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps

from payments.models import PaymentSetup
from reservations.models import Reservation
from roombook import urls
from roombook.api import csv_table
from tests.contract.schema import EXTENSIONS, iterate_paths
from tests.contract.tables import OPERATIONS
from tests.csv_responses import parse_response
from tests.factories_people import AdministratorFactory, UserFactory, issue_token
from tests.http import jsonp, post
from tests.webhooks.helpers import make_endpoint
from tests.world import NOW, OPERATIONS_BY_NAME, World
from tests.wrong_values import VALUES, WITH_TOKEN, replace_value, send, send_cells

MISSING_ID = 2**31 - 1
NOT_FOUND = "404 NotFound"


@dataclass(frozen=True)
class Id:
    """What a request gets with an id that does not exist, or is not for the caller."""

    response: str
    # The id of a row that exists, if there are rows that are not for the caller.
    of_others: Callable[[World], Any] = lambda world: MISSING_ID
    missing: Any = MISSING_ID
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """The answers of an operation to requests that are valid but for what a test changes."""

    # The maximum number of queries, including that for the Token (see test_query_budget.py). Raise
    # one only with a reason.
    queries: int
    # What the same request gets again: the same response, another one, or an error.
    again: str = "the same"
    # The tables of which the second request adds rows.
    adds: tuple[str, ...] = ()
    # The fields that differ in every response.
    new_fields: tuple[str, ...] = ()
    # Whether a request with a known Idempotency-Key gets the first response.
    accepts_key: bool = False
    ids: Mapping[str, Id] = field(default_factory=dict)


def make_setup_of_bob(world):
    setup = PaymentSetup.objects.get(key=world.payment_setup)
    setup.pk, setup.user, setup.reference = None, world.bob, "setup_2"
    setup.key = uuid4()
    setup.save()
    return str(setup.key)


RESERVATION = Id(NOT_FOUND, lambda world: world.bobs_reservation.pk)
OWN = {"ReservationId": RESERVATION}
SERVICE = {
    "ServiceOptions.0.ServiceId": Id("400 InvalidRequest", lambda world: world.other_service.pk)
}
# What apps send of guests is ignored but for names and addresses.
GUEST = {"Attendees.0.Id": Id("200")}
BOOKING = {"MeetingRoomId": Id(NOT_FOUND), **SERVICE}
FILTERS = {
    f"Filters.{name}.0": Id("200") for name in ("ResourceTypeIds", "ServiceIds", "NeighborhoodIds")
}
FAILED_ATTEMPT = ("accounts.AttemptWindow",)
CODE_BY_EMAIL = ("accounts.EmailCode", "accounts.OutboxMessage")
INSTEAD_OF_RESERVATION = {"ReservationId": None, "StartDate": "2027-04-01T09:00:00"}
NEW_BOOKING = ("Reservation", "LineItem", "Attendee", "ChosenService", "AllowanceUse")
TABLE = {
    "Sign in": Row(9, "another", ("accounts.ApiToken",), ("Token",)),
    "Get reservation": Row(14, ids={"Id": RESERVATION}),
    # Including one for the audit log, as the two operations that save a card.
    "Update account info": Row(5),
    "Update payment info": Row(14),
    "Remove account thumbnail": Row(4),
    "Change password": Row(9, "400 InvalidRequest", FAILED_ATTEMPT),
    "Search locations": Row(9, ids=FILTERS),
    "City centers": Row(9, ids=FILTERS),
    "Check room availability": Row(
        3,
        ids={
            "CenterId": Id(NOT_FOUND, lambda world: world.other_center.pk),
            "RoomId": Id(NOT_FOUND, lambda world: world.other_center.rooms.get().pk),
        },
    ),
    "Reservation cost": Row(3, ids=BOOKING),
    # Including one that stores that the new total was shown.
    "Update promo code": Row(33, ids=OWN),
    "Get allowances": Row(14, ids=OWN),
    # One for the network, which is limited with SIGN_UP=open.
    "Checkout": Row(49, ids=OWN),
    "List prices": Row(3, ids={"RoomId": Id(NOT_FOUND)}),
    "List free times": Row(
        5, ids={"CenterId": Id(NOT_FOUND, more={"RoomIds": None}), "RoomIds.0": Id(NOT_FOUND)}
    ),
    "Find alternatives": Row(12, ids={"RoomId": Id(NOT_FOUND), **SERVICE}),
    "Get payment action": Row(5, ids=OWN),
    # Including one that locks the account.
    "Create reservation": Row(
        29,
        "another",
        tuple(f"reservations.{each}" for each in NEW_BOOKING),
        ("Id",),
        accepts_key=True,
        ids=BOOKING | GUEST,
    ),
    # It reads what the ledger of the reservation holds and must hold.
    "Cancel reservation": Row(29, ids=OWN),
    "Get terms": Row(7, ids=OWN | {"RoomId": Id(NOT_FOUND, more=INSTEAD_OF_RESERVATION)}),
    # It issues a receipt, with what pays for the booking and the billing address.
    "Get receipts": Row(21, new_fields=("Url",), ids=OWN),
    "Preview change": Row(50, ids=OWN | BOOKING | GUEST),
    # The change is applied twice: to price it, and after the payment.
    "Change reservation": Row(125, "another", new_fields=("Id",), ids=OWN | BOOKING | GUEST),
    # Including one that stores that the new total was shown.
    "Update allowances": Row(
        30,
        adds=("backoffice.AuditEntry",),
        ids=OWN
        | {"AllowanceIds.0": Id("400 InvalidRequest", lambda world: world.allowances[2].pk)},
    ),
    "List reservations": Row(14),
    "Get calendar": Row(2),
    "Export account": Row(37),
    "Delete account": Row(60, "401 NotSignedIn"),
    "Update favorite": Row(10, ids={"CenterId": Id(NOT_FOUND)}),
    "Remove payment info": Row(7),
    "Create payment setup": Row(
        10,
        "another",
        ("payments.PaymentSetup", "payments.SandboxSetup"),
        ("Id", "ClientSecret", "Url"),
        accepts_key=True,
    ),
    "Complete payment setup": Row(
        19, ids={"PaymentSetupId": Id(NOT_FOUND, make_setup_of_bob, missing="no such setup")}
    ),
    "Sign out": Row(2, "401 NotSignedIn"),
    "Create account": Row(8, adds=CODE_BY_EMAIL),
    "Confirm email": Row(14, "400 InvalidRequest", FAILED_ATTEMPT, ("Token",)),
    "Request password reset": Row(8, adds=CODE_BY_EMAIL),
    "Reset password": Row(14, "400 InvalidRequest", FAILED_ATTEMPT),
    "Change email": Row(14, adds=CODE_BY_EMAIL),
    "List reservation changes": Row(
        3, ids={"WebhookId": Id("401 InvalidCredentials", lambda world: make_endpoint().pk)}
    ),
}
EVERY = [pytest.param(each, id=each.name) for each in OPERATIONS_BY_NAME.values()]
WITH_IDS = [
    pytest.param(operation, path, id=f"{operation.name}: {path}")
    for operation in OPERATIONS_BY_NAME.values()
    for path in TABLE[operation.name].ids
]
PATHS = [*zip(urls.contract_paths, OPERATIONS), *zip(urls.extension_paths, EXTENSIONS)]  # noqa: B905
ROWS = {operation.name: address.callback.cls.csv_rows_field for address, operation in PATHS}


def is_id(path, type_name):
    names = [each for each in path.split(".") if not each.isdigit()]
    return names[-1].endswith(("Id", "Ids")) and (type_name == "int" or names == ["PaymentSetupId"])


@pytest.fixture
def world(world_copy):
    return world_copy


def test_table_has_all_operations_and_all_ids():
    assert list(TABLE) == list(OPERATIONS_BY_NAME) == list(ROWS)
    for name, row in TABLE.items():
        paths = dict(iterate_paths(OPERATIONS_BY_NAME[name].request))
        assert set(row.ids) == {each for each in paths if is_id(each, paths[each])}, name


# --- Formats --------------------------------------------------------------------------------------


def convert_to_cells(value):
    """Convert a JSON body to the form of a CSV body: all values are text, without empty ones."""
    if isinstance(value, dict):
        inner = {name: convert_to_cells(each) for name, each in value.items()}
        return {name: each for name, each in inner.items() if each is not None} or None
    if isinstance(value, list):
        return [convert_to_cells(each) for each in value] or None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def drop_new_values(body, name):
    """Return the body without the values that differ in every response, such as ids."""
    if isinstance(body, dict):
        # A rollback does not reset PostgreSQL's sequences.
        kept = body.keys() - set(TABLE[name].new_fields)
        return {key: drop_new_values(body[key], name) for key in body if key in kept}
    return [drop_new_values(each, name) for each in body] if isinstance(body, list) else body


def call_in_csv(world, name, **instead):
    response = world.call(name, ".csv", **instead)
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    return response.status_code, parse_response(response.content.decode(), rows_field=ROWS[name])


@pytest.mark.parametrize("operation", EVERY)
def test_csv_and_jsonp_responses_have_the_content_of_the_json_response(world, operation):
    name = operation.name
    body = drop_new_values(world.call(name, ".json").json(), name)
    status, read = call_in_csv(world, name)
    wrapped = jsonp(world.call(name, "?callback=app.done"), "app.done")

    assert status == 200
    assert drop_new_values(read, name) == convert_to_cells(body)
    assert drop_new_values(wrapped, name) == body
    error = world.call(name, AppVersion=1).json()
    assert call_in_csv(world, name, AppVersion=1) == (400, convert_to_cells(error))
    assert jsonp(world.call(name, "?callback=f", AppVersion=1), "f") == error


@pytest.mark.parametrize("operation", EVERY)
def test_csv_request_gets_the_response_of_the_json_request(world, operation):
    body = world.with_token(operation, world.body(operation))
    # An empty cell is an absent field.
    fields = {name: value for name, value in body.items() if value != ""}
    cells = {
        csv_table.join_path(path): text for path, text in csv_table.iterate_leaves(fields)
    } or {"AppVersion": ""}
    response = send_cells(world, operation, cells)

    assert response.status_code == 200, response.content
    body = world.call(operation.name).json()
    assert drop_new_values(response.json(), operation.name) == drop_new_values(body, operation.name)


# --- One center -----------------------------------------------------------------------------------


def test_other_operations_return_the_center_as_the_search_does(world):
    def ask(name, **fields):
        return world.call(name, **fields).json()

    found = ask("Search locations")
    (center,) = found["Centers"]
    del center["DistanceFromQuery"]

    assert ask("City centers") == {**found, "Centers": [center]}
    reservation = ask("Get reservation")["Reservation"]
    assert reservation["Center"] == center
    assert reservation["MeetingRoom"] == center["MeetingRooms"][0]
    updated = ask("Update favorite", IsFavorite=False)["UpdatedCenter"]
    assert updated.items() >= {"IsFavorite": False, "IsNotFavorite": True}.items()
    of_the_account = {"IsFavorite": True, "IsNotFavorite": False}
    assert updated | of_the_account == {name: center[name] for name in updated}
    # What only a full center has.
    assert center.keys() - updated.keys() == {
        *("MeetingRooms", "Landmarks", "Images"),
        *("ParkingInformation", "IsNewLocation", "IsNewLowPrice"),
    }


# --- Tokens ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", WITH_TOKEN)
def test_every_kind_of_invalid_token_gets_the_same_response(world, operation):
    ada = UserFactory(email="gone@example.com")
    signed_out, disabled = issue_token(ada), issue_token(UserFactory(is_active=False))
    ada.tokens.all().delete()
    changed = issue_token(ada)
    ada.set_password("noisy-harbour-43")
    ada.save()
    expired = issue_token(ada, age=NOW - NOW.replace(year=2026))
    wrong = [
        *(signed_out, disabled, changed, expired),
        *(world.token[:-1], f"{world.token}x", f" {world.token}", f"{world.token}\n"),
        *(world.token.swapcase(), "x" * 64, "é" * 64, *VALUES),
    ]

    answers = [post(world.client, operation.path, world.body(operation))]
    answers += [
        post(world.client, operation.path, {**world.body(operation), "Token": token})
        for token in (None, *wrong)
    ]
    # Fields are validated after the Token.
    answers.append(post(world.client, operation.path, dict.fromkeys(operation.request, "wrong")))

    assert {each.status_code for each in answers} == {401}
    assert {each.content for each in answers} == {answers[0].content}
    assert {each["WWW-Authenticate"] for each in answers} == {"Token"}
    assert answers[0].json() == {
        "Success": False,
        "Error": {"Summary": "NotSignedIn", "Message": "Please sign in again."},
    }


def test_sign_in_ignores_any_token(world):
    for token in (*VALUES, world.token, None):
        assert world.call("Sign in", Token=token).status_code == 200


# --- Ids of others --------------------------------------------------------------------------------


def describe(response):
    error = response.json().get("Error", {})
    return " ".join([str(response.status_code), *filter(None, [error.get("Summary")])])


@pytest.mark.parametrize(("operation", "path"), WITH_IDS)
def test_id_of_others_gets_the_response_of_a_missing_one(world, operation, path):
    expected = TABLE[operation.name].ids[path]
    of_others = expected.of_others(world)
    bodies = [{**world.body(operation), **expected.more}]
    if "TestMode" in operation.request:
        bodies.append({**bodies[0], "TestMode": True})
    answers = [
        send(world, operation, replace_value(good, path, number))
        for good in bodies
        for number in (of_others, expected.missing)
    ]

    assert {describe(each) for each in answers} == {expected.response}
    assert len({str(drop_new_values(each.json(), operation.name)) for each in answers}) == 1
    error = answers[0].json().get("Error", {})
    if expected.response == "400 InvalidRequest":
        assert error["Details"].startswith(f"{path}: ")


@pytest.mark.parametrize("status", ["New", "Confirmed"])
def test_reservation_of_another_account_is_not_found_whatever_its_status(world, status):
    staff_token = issue_token(AdministratorFactory())
    row = Reservation.objects.filter(pk=world.bobs_reservation.pk)
    is_booked = status == "Confirmed"
    row.update(
        status=status,
        hold_until=None if is_booked else NOW,
        booked_at=NOW if is_booked else None,
    )
    before = row.values().get()
    found = 0
    for operation in OPERATIONS_BY_NAME.values():
        for path, expected in TABLE[operation.name].ids.items():
            if expected is not RESERVATION:
                continue
            body = {**world.body(operation), path: world.bobs_reservation.pk}
            # A staff member's Token shows no more than a customer's (B7.1).
            for token in (world.token, staff_token):
                response = post(world.client, operation.path, {**body, "Token": token})
                assert describe(response) == NOT_FOUND, (operation, token)
            found += 1

    assert found == 11
    assert row.values().get() == before


# --- Repeated requests ----------------------------------------------------------------------------


def count_rows():
    models = apps.get_models()
    return {each._meta.label: each._base_manager.count() for each in models if each._meta.managed}


def send_twice(world, operation, **extra):
    """Send the valid request twice; return both responses, and the rows that the second added."""
    body = world.with_token(operation, world.body(operation))

    def send_both():
        first = post(world.client, operation.path, body, **extra)
        before = count_rows()
        second = post(world.client, operation.path, body, **extra)
        after = count_rows()
        return first, second, {each for each in after if after[each] != before[each]}

    return world.call_and_roll_back(send_both)


@pytest.mark.parametrize("operation", EVERY)
def test_repeated_request_gets_the_response_of_the_table(world, operation):
    row = TABLE[operation.name]
    first, second, new_rows = send_twice(world, operation)

    assert first.status_code == 200
    assert new_rows == set(row.adds)
    if row.again in {"the same", "another"}:
        assert second.status_code == 200
        is_same = drop_new_values(first.json(), operation.name) == drop_new_values(
            second.json(), operation.name
        )
        assert is_same or row.again == "another"
        if not row.new_fields:
            assert second.content == first.content
    else:
        assert describe(second) == row.again


@pytest.mark.parametrize("operation", EVERY)
def test_idempotency_key_gets_the_first_response_where_it_is_accepted(world, operation):
    key = {"HTTP_IDEMPOTENCY_KEY": "8c5a0e9e-7f5b-4b7c-9d0a-3f1d2b6c4e21"}
    invalid = world.call_and_roll_back(
        lambda: post(
            world.client,
            operation.path,
            world.with_token(operation, world.body(operation)),
            HTTP_IDEMPOTENCY_KEY="",
        )
    )
    if not TABLE[operation.name].accepts_key:
        assert invalid.status_code == 200
        return
    first, second, new_rows = send_twice(world, operation, **key)

    assert describe(invalid) == "400 InvalidRequest"
    assert first.status_code == 200
    assert second.content == first.content
    assert new_rows == set()
