"""Real responses against the contract's tables, and the checker that compares them."""

import pytest

from tests.contract.conformance import VALUE_CHECKS, ConformanceChecker
from tests.contract.schema import ALL_OPERATIONS, CONTRACT, TYPES, iterate_paths
from tests.http import post

EVERY = [pytest.param(each, id=each.name) for each in ALL_OPERATIONS]

# No response has these: only customers fill them in. The contract names them in ServiceInfo all
# the same; requests send them in ServiceOption.
NEVER_ANSWERED = {("ServiceInfo", "DurationHours"), ("ServiceInfo", "Quantity")}
ONLY_IN_REQUESTS = {"AccountPaymentInfo", "SearchFilterCriteria"}


@pytest.fixture
def world(world_copy):
    return world_copy


@pytest.fixture
def checker():
    return ConformanceChecker(CONTRACT)


# --- Real responses -------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", EVERY)
def test_good_requests_have_every_field_of_the_contract(world, operation):
    def paths(value, prefix=""):
        for name, inner in value.items():
            path = f"{prefix}{name}"
            yield path
            if isinstance(inner, list):
                path, inner = f"{path}.0", inner[0]
                yield path
            if isinstance(inner, dict):
                yield from paths(inner, f"{path}.")

    # One of both is sent: CenterId or RoomIds.
    missing = {"CenterId"} if operation.name == "List free times" else set()
    expected = [path for path, _ in iterate_paths(operation.request) if path not in missing]
    assert list(paths(world.body(operation))) == expected


def test_every_response_conforms_and_every_field_occurs(world, checker):
    for operation in ALL_OPERATIONS:
        response = world.call(operation.name, AppVersion="2.10.0")
        assert response.status_code == 200, (operation.name, response.content)
        checker.check_response(operation, response.json())
        # The good requests are answered in full.
        expected = ["Success", *operation.response]
        if operation.name == "Export account":
            # Message takes the place of a large Export.
            expected.remove("Message")
        assert list(response.json()) == expected, operation.name
    failure = world.call("Get reservation", Id=None)
    checker.check_response(CONTRACT.operations["Get reservation"], failure.json())

    assert list(checker.differences) == []
    # CenterInfo alone occurs only where nothing was searched for.
    seen = checker.seen
    seen["CenterInfo"] |= seen["CenterInfoFull"] & set(TYPES["CenterInfo"])
    types = {name: fields for name, fields in TYPES.items() if name not in ONLY_IN_REQUESTS}
    unseen = {(name, field) for name in types for field in {*types[name]} - {*seen.get(name, ())}}
    assert unseen == NEVER_ANSWERED


@pytest.mark.parametrize("operation", EVERY)
def test_every_failure_conforms(world, checker, operation):
    requests = [
        {"AppVersion": 1},
        {
            **world.with_token(operation, {}),
            **{name: {"Is": "wrong"} for name in operation.request},
        },
        {**world.body(operation), "Token": "wrong"},
    ]

    for body in requests:
        response = post(world.client, operation.path, body)
        checker.check_response(operation, response.json())
        if response.status_code != 200:
            assert list(response.json()) == ["Success", "Error"]

    assert list(checker.differences) == []


# --- The checker ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "difference"),
    [
        ([], "the body is a list and no ResponseBase"),
        ({}, "the body lacks Success"),
        ({"Success": 1}, "Success is a number and no boolean"),
        ({"Success": True, "Extra": 1}, "Extra is not in the contract"),
        ({"Success": True, "Error": {}}, "Error is not in the contract"),
        ({"Success": False, "Token": "x"}, "Token is not in the contract"),
        ({"Success": False, "Error": "x"}, "Error is a string and no ResponseError"),
        ({"Token": "x", "Success": True}, "the body has its fields in another order"),
        ({"Success": True, "Token": ""}, "Token is an empty string and no string"),
        ({"Success": True, "Token": None}, "Token is null and no string"),
        ({"Success": True, "UserInfo": {"Id": True}}, "UserInfo.Id is a boolean and no int"),
        ({"Success": True, "UserInfo": {"Id": "1"}}, "UserInfo.Id is a string and no int"),
        ({"Success": True, "UserInfo": {"id": 1}}, "UserInfo.id is not in the contract"),
    ],
)
def test_a_difference_names_the_path_of_its_field(checker, body, difference):
    checker.check_response(CONTRACT.operations["Sign in"], body)

    assert f"/api/sign-in: {difference}" in checker.differences


@pytest.mark.parametrize(
    ("type_name", "right", "wrong"),
    [
        ("decimal", [0, 12.5, -20.25], [True, "12.5", 12.499]),
        ("double", [0, -104.9903], [False, "1"]),
        ("DateTime", ["2027-03-01T09:00:00-07:00"], ["2027-03-01", "2027-03-01T09:00:00", 1]),
        ("bool", [True, False], [0, 1, "true"]),
        ("int", [0, -1], [1.0, False]),
    ],
)
def test_values_are_checked_by_their_json_type(type_name, right, wrong):
    check = VALUE_CHECKS[type_name]

    assert all(map(check, right))
    assert not any(map(check, wrong))


def test_a_difference_in_a_list_is_reported_once(checker):
    rooms = [{"Id": 1, "Rate": {"Hourly": "25"}}, {"Id": 2, "Rate": {"Hourly": "30"}}]

    checker.check_response(
        CONTRACT.operations["Search locations"],
        {"Success": True, "Centers": [{"MeetingRooms": rooms}]},
    )

    assert list(checker.differences) == [
        "/api/locations/search: Centers.MeetingRooms.Rate.Hourly is a string and no decimal"
    ]
