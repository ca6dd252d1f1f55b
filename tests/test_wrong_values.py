"""Invalid and unusual values in every field of every operation (B1, B3).

No value crashes an operation. Every response has the envelope; an error names the field and does
not repeat its value. There are thousands of combinations, so each test covers all fields of one
operation, and each field takes its turn of the values.
"""

import json
from copy import deepcopy

import pytest
from django.contrib.auth import get_user_model

from reservations.models import Reservation
from roombook.api import csv_table
from tests.contract.schema import iterate_paths
from tests.http import post
from tests.world import OPERATIONS_BY_NAME
from tests.wrong_values import (
    CELLS,
    DATES,
    DOCUMENT,
    EVERY,
    MARK,
    UNREADABLE,
    VALUES,
    WITH_FIELDS,
    build_valid_body,
    check_envelope,
    choose,
    is_named,
    is_of_type,
    replace_value,
    send,
    send_cells,
)

# Their responses have new secrets and ids.
NEW_EACH_TIME = {
    *("Sign in", "Create reservation", "Get calendar", "Confirm email", "Create payment setup"),
    *("Change reservation", "Get receipts"),
}


PREVIEWED = {path for path, _ in iterate_paths(OPERATIONS_BY_NAME["Preview change"].request)}


def is_covered(name, path):
    """Whether a faster operation reads the cells of this field in the same way."""
    if path.startswith("PaymentInfo."):
        return name != "Update payment info"
    return name == "Change reservation" and path in PREVIEWED


@pytest.fixture
def world(world_copy):
    return world_copy


# --- Values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", WITH_FIELDS)
def test_any_value_is_accepted_or_rejected_naming_its_field(world, operation):
    for path, type_name in iterate_paths(operation.request):
        good = build_valid_body(world, operation, path)
        values = [*VALUES, *DATES] if type_name == "DateTime" else VALUES
        for value in choose(values, operation, path, type_name):
            about = (path, repr(value)[:80])
            response = send(world, operation, replace_value(good, path, value))
            body = check_envelope(response, about)
            if not is_of_type(value, type_name):
                assert response.status_code == 400, about
            if response.status_code == 400:
                assert body["Error"]["Summary"] == "InvalidRequest", about
                assert is_named(path, body), (*about, body)


MESSAGES_BY_TYPE = {
    "string": (12, "Must be text."),
    "integer": ("12", "Must be a whole number."),
    "number": (True, "Must be a number."),
    "boolean": ("true", "Must be true or false."),
    "array": ({}, "Must be a list."),
    "object": ([], "Must be an object."),
}


def iterate_forbidden_values(schema, path=""):
    """Yield the path of each field, values that the description forbids, and their messages."""
    (reference,) = schema.get("allOf", [schema])
    if "$ref" in reference:
        schema = DOCUMENT["components"]["schemas"][reference["$ref"].split("/")[-1]]
    kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    wrong, message = MESSAGES_BY_TYPE[kind]
    if "enum" in schema:
        yield path, "x", f"Must be one of {', '.join(schema['enum'])}."
    elif schema.keys() & {"pattern", "format"} and kind == "string":
        yield path, wrong, "Must be a date and time such as 2027-03-01T09:00:00"
    elif path:
        yield path, wrong, message
    if "minimum" in schema:
        yield path, schema["minimum"] - 1, f"Must be at least {schema['minimum']}."
    if "maximum" in schema:
        yield path, schema["maximum"] + 1, f"Must be at most {schema['maximum']}."
    if "maxLength" in schema:
        length = schema["maxLength"]
        yield path, "x" * (length + 1), f"Must have at most {length} characters."
    if "minLength" in schema:
        yield path, "", "Must not be empty."
    if "maxItems" in schema:
        number = schema["maxItems"]
        yield path, [{}] * (number + 1), f"Must have at most {number} elements."
    if kind == "array":
        yield from iterate_forbidden_values(schema["items"], f"{path}.0")
    for name, inner in schema.get("properties", {}).items():
        inner_path = f"{path}.{name}".lstrip(".")
        if name in schema.get("required", ()):
            yield inner_path, None, "Required."
        yield from iterate_forbidden_values(inner, inner_path)


@pytest.mark.parametrize("operation", WITH_FIELDS)
def test_value_that_the_description_forbids_is_refused_by_name(world, operation):
    """Types, bounds and required fields are those of docs/openapi.json."""
    body = DOCUMENT["paths"][operation.path]["post"]["requestBody"]["content"]
    for path, value, message in iterate_forbidden_values(body["application/json"]["schema"]):
        if path == "Token":
            continue
        good = build_valid_body(world, operation, path)
        response = send(world, operation, replace_value(good, path, value))
        about = (path, repr(value)[:80], response.content)
        assert response.status_code == 400, about
        lines = response.json()["Error"]["Details"].split("\n")
        assert any(line.startswith(f"{path}: {message}") for line in lines), about


@pytest.mark.parametrize("operation", WITH_FIELDS)
def test_null_is_the_same_as_absent(world, operation):
    for path, _ in iterate_paths(operation.request):
        if path.endswith(".0"):
            continue  # Elements of lists cannot be null.
        good = build_valid_body(world, operation, path)
        with_null = send(world, operation, replace_value(good, path, None))
        without = deepcopy(good)
        *above, last = path.split(".")
        node = without
        for part in above:
            node = node[int(part) if part.isdigit() else part]
        node.pop(last, None)  # Of two fields that exclude each other, one is absent.
        check_envelope(with_null, path)
        answer = send(world, operation, without)
        assert with_null.status_code == answer.status_code, path
        if operation.name not in NEW_EACH_TIME:
            assert with_null.json() == answer.json(), path


@pytest.mark.parametrize("operation", WITH_FIELDS)
def test_unreadable_value_makes_the_body_invalid(world, operation):
    for name, type_name in operation.request.items():
        for raw in choose(UNREADABLE, operation, name, type_name):
            fields = world.with_token(operation, replace_value(world.body(operation), name, MARK))
            text = json.dumps(fields).replace(f'"{MARK}"', raw)
            response = world.client.post(operation.path, data=text, content_type="application/json")
            body = check_envelope(response, (name, raw[:40]))
            assert response.status_code == 400, (name, raw[:40])
            assert body["Error"]["Summary"] == "InvalidRequest"


@pytest.mark.parametrize("operation", WITH_FIELDS)
def test_any_csv_cell_is_accepted_or_rejected_naming_its_field(world, operation):
    for path, type_name in iterate_paths(operation.request):
        if is_covered(operation.name, path):
            continue
        good = world.with_token(operation, world.body(operation))
        cells = {csv_table.join_path(each): text for each, text in csv_table.iterate_leaves(good)}
        others = {
            name: text
            for name, text in cells.items()
            if name != path and not name.startswith(f"{path}.")
        }
        values = [*CELLS, *DATES] if type_name == "DateTime" else CELLS
        for cell in choose(values, operation, path, type_name):
            about = (path, repr(cell)[:80])
            response = send_cells(world, operation, {**others, path: cell})
            body = check_envelope(response, about)
            if response.status_code == 400:
                assert is_named(path, body), (*about, body)


# --- Unknown fields -----------------------------------------------------------------------------


@pytest.mark.parametrize("operation", EVERY)
def test_unknown_fields_change_nothing(world, operation):
    extra = {
        "Status": "Confirmed",
        "TotalCost": 0.01,
        "Total": 0,
        "UserId": world.bob.pk,
        "User": {"Id": world.bob.pk},
        "IsStaff": True,
        "is_staff": True,
        "is_superuser": True,
        "IsActive": False,
        "Type": "Administrator",
        "HoldUntil": "2099-01-01T00:00:00Z",
        "_connector": "OR",
        "room__owner__password__startswith": "p",
        "__class__": "x",
        "pk": 1,
        "": 1,
    }

    def add_extra_fields(value):
        if isinstance(value, dict):
            return {**{name: add_extra_fields(inner) for name, inner in value.items()}, **extra}
        return [add_extra_fields(each) for each in value] if isinstance(value, list) else value

    def get_state():
        users = get_user_model().objects.order_by("pk").values("pk", "is_staff", "is_superuser")
        rows = Reservation.objects.values("user", "status", "total_cost", "room", "start")
        return list(users), sorted(map(str, rows))

    def call_and_get_state(body):
        def post_and_get_state():
            return post(world.client, operation.path, body), get_state()

        return world.call_and_roll_back(post_and_get_state)

    good = world.with_token(operation, world.body(operation))
    plain, state = call_and_get_state(good)
    response, state_with_extra = call_and_get_state(
        {**add_extra_fields(good), **good} if not good else add_extra_fields(good)
    )

    assert plain.status_code == response.status_code == 200
    assert state_with_extra == state
    if operation.name not in NEW_EACH_TIME:
        assert response.json() == plain.json()
