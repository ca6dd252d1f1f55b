"""Invalid and unusual values, and requests that send them in any field."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

from tests.contract.schema import ALL_OPERATIONS, TYPES, is_list_type, iterate_paths
from tests.faults.size import LONG
from tests.http import post, post_csv

DOCUMENT = json.loads((Path(__file__).parents[1] / "docs/openapi.json").read_text())
EVERY = [pytest.param(each, id=each.name) for each in ALL_OPERATIONS]
WITH_FIELDS = [pytest.param(each, id=each.name) for each in ALL_OPERATIONS if each.request]
WITH_TOKEN = [pytest.param(each, id=each.name) for each in ALL_OPERATIONS if each.needs_token]

# A part of values that must not occur in any error response.
MARK = "zq9-mark"

TEXTS = [
    "",
    " ",
    "abc",
    f"{MARK} =1+1",
    "12",
    "true",
    f"{MARK}\x00",
    f"{MARK}\ud800",
    f"\u202e{MARK}\u2066 שלום e\u0301\u0323 👩‍👩‍👧 \ufdfa",
    "\uff11\uff12",  # Digits that JSON does not allow in numbers.
    MARK * 1280,
    "' OR 1=1; --",
    "%_\\",
    "2027-04-05",
]
# Dates that do not exist, that a change of the clock skips or repeats, or that cannot be booked.
DATES = [
    "2027-02-30T09:00:00",
    "2027-04-05T09:00:60",
    "2027-04-05T09:00:00+25:00",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-12:00",
    "2999-12-31T23:59:59-12:00",
    "1900-01-01T00:00:00Z",
    "2027-03-14T02:30:00",
    "2027-11-07T01:30:00",
    "2027-04-05t09:00",
    "2027-04-05T09:00:00.1234567",
    "20270405T090000",
    "2027-W14-1T09:00:00",
]
NUMBERS = [0, -1, 1, 2**31 - 1, 2**31, 2**63, -(2**63) - 1, 10**300, 1.5, -0.0, 1e308, 0.001]
OTHERS = [True, False, [], {}, [MARK], [[]], [None], {"Is": MARK}, [1] * 101, [{}] * 101]
VALUES = [*TEXTS, *NUMBERS, *OTHERS]

# Text that is not strict JSON: the whole body is rejected.
UNREADABLE = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-1e999",
    "9" * 5000,
    "01",
    "'x'",
    "[" * 40 + "]" * 40,
    '{"A":' * 40 + "1" + "}" * 40,
    '{"A":1,"A":2}',
    '"\\ud8"',
    "tru",
    "[1,]",
]

CELLS = [
    *(" ", "abc", f"{MARK}\x00", f"\u202e{MARK} \u05e9", "\uff11", "\u0663", MARK * 1280),
    *("0", "-1", "+1", "2147483648", "9223372036854775808", "1.5", "1e999", "NaN", "1_000", "0x10"),
    *("TRUE", "false", "null", '[{"Id":1}]', "=1+1", "'=1+1", 'say "x",', "line\r\nend"),
]

# Fields that are validated together: an error may name any of them.
TOGETHER = [
    {"StartDate", "EndDate", "ServiceOptions.0.DurationHours"},
    {"From", "To"},
    {"CurrentPassword", "NewPassword", "ConfirmNewPassword"},
    {"Latitude", "Longitude"},
    {"Area", "CityName", "AreaType"},
    {"Filters.CapacityLow", "Filters.CapacityHigh"},
    {"UseSavedPaymentInfo", "PaymentInfo"},
    {"NumberOfAttendees", "Attendees"},
    # A code belongs to its address.
    {"EmailAddress", "Code"},
]


# Each value is sent to every third field of a type, and in the long form to every field.
TURNS = 1 if LONG else 3


def choose(values, operation, path, type_name):
    """The values whose turn it is at this field. Two fields of a type share all values."""
    same = [
        (each.name, its_path)
        for each in ALL_OPERATIONS
        for its_path, kind in iterate_paths(each.request)
        if kind == type_name
    ]
    turns = min(TURNS, len(same))
    return values[same.index((operation.name, path)) % turns :: turns]


def is_of_type(value, type_name):
    """Whether the JSON type of the value is the type of the field in the contract."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match type_name:
        case "bool" | "boolean":
            return isinstance(value, bool)
        case "int" | "int?":
            return is_number and isinstance(value, int)
        case "decimal" | "double":
            return is_number
        case _ if is_list_type(type_name):
            return isinstance(value, list)
        case _ if type_name in TYPES:
            return isinstance(value, dict)
    return isinstance(value, str)


def replace_value(body, path, value):
    """Return a copy of the body with another value at the path."""
    body = deepcopy(body)
    *above, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    node = body
    for part in above:
        node = node[part]
    node[last] = value
    return body


def check_envelope(response, about):
    """Check the status and the envelope of a success or an error, and return the body."""
    documented = DOCUMENT["paths"][response.request["PATH_INFO"]]["post"]["responses"]
    assert response.status_code < 500, about
    assert str(response.status_code) in documented, about
    body = response.json()
    if response.status_code == 200:
        assert body["Success"] is True, about
        return body
    assert list(body) == ["Success", "Error"], about
    assert body["Success"] is False, about
    assert {*body["Error"]} <= {"Summary", "Message", "Details"}, about
    assert body["Error"]["Summary"], about
    assert body["Error"]["Message"], about
    assert MARK not in response.content.decode(), about
    return body


def is_named(path, body):
    """Whether an error names this field, a field inside it, or one that is validated with it."""
    related = {path}.union(
        *(group for group in TOGETHER if any(path.startswith(each) for each in group))
    )
    names = [line.split(": ")[0] for line in body["Error"].get("Details", "").split("\n")]
    return any(name == each or name.startswith(f"{each}.") for name in names for each in related)


def build_valid_body(world, operation, path):
    """Return a valid request, in which the test replaces the value at the path."""
    good = world.body(operation)
    if path.startswith("PaymentInfo."):
        # The validation is the same, and much faster than a booking or a change.
        if operation.name == "Checkout":
            good["TestMode"] = True
        elif operation.name == "Change reservation":
            good["ReservationId"] = 2**31 - 1
    return good


def send(world, operation, body):
    return world.call_and_roll_back(
        lambda: post(world.client, operation.path, world.with_token(operation, body))
    )


def send_cells(world, operation, cells):
    """Send the cells as CSV; the response is JSON."""
    return world.call_and_roll_back(
        lambda: post_csv(
            world.client, operation.path, cells, headers={"Accept": "application/json"}
        )
    )
