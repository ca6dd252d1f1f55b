"""Real responses against the contract's tables, and the checker that compares them."""

import pytest

from tests.contract.conformance import ConformanceChecker
from tests.contract.schema import ALL_OPERATIONS, CONTRACT, TYPES, iterate_paths

EVERY = [pytest.param(each, id=each.name) for each in ALL_OPERATIONS]

# No response has these: only customers fill them in. The contract names them in ServiceInfo all
# the same; requests send them in ServiceOption.
NEVER_ANSWERED = {("ServiceInfo", "DurationHours"), ("ServiceInfo", "Quantity")}
# Of flat rates, and of special price lists: operations/test_list_prices.py has both.
NEVER_ANSWERED |= {("PriceInfo", "FlatRate"), ("PriceInfo", "Name")}
# Of the terms of a center: operations/test_terms.py has it.
NEVER_ANSWERED |= {("CancellationTermsInfo", "Name")}
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

    # Only one of two ways to say what is asked for is sent.
    others = {"List free times": {"CenterId"}, "Get terms": {"RoomId", "StartDate"}}
    missing = others.get(operation.name, set())
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

    assert checker.differences == set()
    # CenterInfo alone occurs only where nothing was searched for.
    seen = checker.seen | {("CenterInfo", field) for _, field in checker.seen}
    types = {name: fields for name, fields in TYPES.items() if name not in ONLY_IN_REQUESTS}
    assert {(name, field) for name in types for field in types[name]} - seen == NEVER_ANSWERED


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("Sign in", {}),
        ("Sign in", {"Success": 1}),
        ("Sign in", {"Success": True, "Extra": 1}),
        ("Sign in", {"Success": True, "Error": {}}),
        ("Sign in", {"Success": False, "Token": "x"}),
        ("Sign in", {"Success": False, "Error": "x"}),
        ("Sign in", {"Token": "x", "Success": True}),
        ("Sign in", {"Success": True, "Token": ""}),
        ("Sign in", {"Success": True, "Token": None}),
        ("Sign in", {"Success": True, "UserInfo": {"Id": True}}),
        ("Sign in", {"Success": True, "UserInfo": {"Id": "1"}}),
        ("Sign in", {"Success": True, "UserInfo": {"id": 1}}),
        ("Check room availability", {"Success": True, "IsAvailable": 1}),
        *(("Reservation cost", {"Success": True, "Total": wrong}) for wrong in (True, "1", 1.005)),
        *(
            ("Get reservation", {"Success": True, "Reservation": {"Start": wrong}})
            for wrong in (1, "2027-03-01", "2027-03-01T09:00:00", "2027-03-01T09:00:00.5Z")
        ),
        ("Search locations", {"Success": True, "Centers": {}}),
        ("Search locations", {"Success": True, "Centers": [{"Id": 1}, {"Id": 1.5}]}),
    ],
)
def test_difference_from_the_contract_is_found(checker, name, body):
    checker.check_response(CONTRACT.operations[name], body)

    assert len(checker.differences) == 1
