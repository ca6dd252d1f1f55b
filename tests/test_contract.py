"""Code, addresses and real answers against the contract's tables, field by field."""

import pytest
from rest_framework import serializers as drf

from reservations.serializers import ReservationSummary
from roombook import urls
from roombook.api import conformance
from roombook.api import serializers as ours
from tests.contract import (
    ENUMERATIONS,
    EXTENSIONS,
    OPERATIONS,
    REQUEST_BASE,
    TYPES,
    element_of,
    is_list,
    paths_of,
)
from tests.http import post
from tests.world import OPERATIONS_BY_NAME

EVERY = [pytest.param(each, id=each.name) for each in (*OPERATIONS, *EXTENSIONS)]

# The first that fits: the finer classes stand before those that they refine.
KINDS = [
    (ours.IntegerField, {"int", "int?"}),
    (ours.BooleanField, {"bool", "boolean"}),
    (ours.DoubleField, {"double"}),
    (ours.DecimalField, {"decimal"}),
    (ours.DateTimeField, {"DateTime"}),
    (ours.ChoiceField, {"string", *ENUMERATIONS}),
    (ours.UrlField, {"string"}),
    (ours.TextField, {"string", *ENUMERATIONS}),
]

# What no answer can have: only customers fill these in, on their way to the service. (The contract
# names them in ServiceInfo all the same; ServiceOption is where they come back.)
NEVER_ANSWERED = {("ServiceInfo", "DurationHours"), ("ServiceInfo", "Quantity")}


@pytest.fixture
def world(world_copy):
    return world_copy


def view_of(operation):
    tables = [
        *zip(urls.contract_paths, OPERATIONS, strict=True),
        *zip(urls.extension_paths, EXTENSIONS, strict=True),
    ]
    return next(address.callback.cls for address, told in tables if told is operation)


def walk(field, type_name, path):
    """Yield each field that was compared; fails at the first that is not the contract's."""
    yield path
    if is_list(type_name):
        assert isinstance(field, drf.ListSerializer | drf.ListField), path
        yield from walk(field.child, element_of(type_name), f"{path}.0")
    elif type_name in TYPES:
        assert isinstance(field, ours.ContractSerializer), path
        yield from walk_fields(field.fields, fields_of(field, type_name), path)
    else:
        kind = next(names for cls, names in KINDS if isinstance(field, cls))
        assert type_name in kind, path


def walk_fields(fields, told, path):
    assert list(fields) == list(told), path
    for name, type_name in told.items():
        yield from walk(fields[name], type_name, f"{path}.{name}" if path else name)


def fields_of(field, type_name):
    if isinstance(field, ReservationSummary):
        # Only so much of it inside an allowance, so that the nesting ends (B14.3).
        assert type_name == "ReservationInfo"
        return {name: TYPES[type_name][name] for name in ("Id", "Start", "End", "Status")}
    return TYPES[type_name]


# --- Code ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", EVERY)
def test_requests_have_the_contracts_fields_in_its_order_and_of_its_types(operation):
    view = view_of(operation)

    walked = list(walk_fields(view.Input().fields, operation.request, ""))

    assert walked == [path for path, _ in paths_of(operation.request)]
    assert view.requires_token is operation.needs_token


@pytest.mark.parametrize("operation", EVERY)
def test_answers_have_the_contracts_fields_in_its_order_and_of_its_types(operation):
    walked = list(walk_fields(view_of(operation).Output().fields, operation.response, ""))

    assert len(walked) == len(set(walked)) >= len(operation.response)


@pytest.mark.parametrize("operation", EVERY)
def test_no_field_of_a_request_is_of_no_use_only_because_it_is_read_only(operation):
    def read_only(field):
        field = getattr(field, "child", field)
        inner = getattr(field, "fields", {}).values()
        return field.read_only or any(map(read_only, inner))

    assert not any(map(read_only, view_of(operation).Input().fields.values()))


def test_the_walk_finds_what_is_wrong():
    """The test of the test: a missing, an extra, a misplaced and a wrongly typed field."""

    class Rate(ours.ContractSerializer):
        FullDay = ours.DecimalField()
        Hourly = ours.DecimalField()

    wrong = [
        {"FullDay": "decimal"},
        {"FullDay": "decimal", "Hourly": "decimal", "HalfDay": "decimal"},
        {"Hourly": "decimal", "FullDay": "decimal"},
        {"FullDay": "decimal", "Hourly": "double"},
        {"FullDay": "decimal", "Hourly": "IList<decimal>"},
        {"FullDay": "decimal", "Hourly": "RateInfo"},
    ]

    assert list(walk_fields(Rate().fields, dict.fromkeys(["FullDay", "Hourly"], "decimal"), ""))
    for told in wrong:
        with pytest.raises(AssertionError):
            list(walk_fields(Rate().fields, told, ""))


# --- The contract itself --------------------------------------------------------------------------


def test_the_tables_name_no_type_that_is_not_told():
    fields = [
        each
        for operation in OPERATIONS_BY_NAME.values()
        for each in (operation.request, operation.response)
    ]
    named = {element_of(name) for each in (*fields, *TYPES.values()) for name in each.values()}

    assert named <= {*TYPES, *conformance.PLAIN}
    assert set(TYPES) - named == {"ResponseError"}


def test_the_thirteen_are_thirteen_and_no_path_stands_twice():
    assert len(OPERATIONS) == 13
    assert len({each.path for each in OPERATIONS_BY_NAME.values()}) == len(OPERATIONS_BY_NAME) == 20


# --- Real answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", EVERY)
def test_the_good_requests_have_every_field_of_the_contract(world, operation):
    def paths(value, above=""):
        for name, inner in value.items():
            path = f"{above}{name}"
            yield path
            if isinstance(inner, list):
                path, inner = f"{path}.0", inner[0]
                yield path
            if isinstance(inner, dict):
                yield from paths(inner, f"{path}.")

    assert list(paths(world.body(operation))) == [path for path, _ in paths_of(operation.request)]


def test_every_answer_is_as_the_contract_says_and_every_field_of_it_occurs(world):
    comparison = conformance.Comparison()

    for name, operation in OPERATIONS_BY_NAME.items():
        response = world.call(name, AppVersion="2.10.0")
        assert response.status_code == 200, (name, response.content)
        comparison.answer(operation, response.json())
        # Only what was asked for, in full.
        assert list(response.json()) == ["Success", *operation.response], name
    refusal = world.call("Get reservation", Id=None)
    comparison.answer(OPERATIONS_BY_NAME["Get reservation"], refusal.json())

    assert list(comparison.differences) == []
    seen = comparison.seen
    # A CenterInfo alone is only answered where nothing was searched for.
    seen["CenterInfo"] |= {name for name in seen["CenterInfoFull"] if name in TYPES["CenterInfo"]}
    answered = conformance.types_of(OPERATIONS_BY_NAME.values()) | {"ResponseError"}
    never = {(name, field) for name in answered for field in comparison.unseen(name)}
    assert never == NEVER_ANSWERED
    # Types that only go in.
    assert set(TYPES) - answered == {"AccountPaymentInfo", "SearchFilterCriteria"}


@pytest.mark.parametrize("operation", EVERY)
def test_every_refusal_is_as_the_contract_says(world, operation):
    comparison = conformance.Comparison()
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
        comparison.answer(operation, response.json())
        if response.status_code != 200:
            assert list(response.json()) == ["Success", "Error"]

    assert list(comparison.differences) == []


def test_the_values_of_enumerations_are_those_that_the_contract_names_and_more():
    from accounts.models import UserType
    from centers.search.locations import AreaType
    from reservations.models import LineItemType
    from reservations.models.status import Status

    known = {
        "UserTypes": UserType,
        "AreaTypes": AreaType,
        "ReservationStatuses": Status,
        "LineItemType": LineItemType,
    }

    assert set(known) == set(ENUMERATIONS)
    for name, values in ENUMERATIONS.items():
        assert values <= {str(each) for each in known[name]}, name


def test_app_version_is_part_of_every_request(world):
    assert list(REQUEST_BASE) == ["AppVersion"]
    for name in OPERATIONS_BY_NAME:
        assert world.call(name, AppVersion=7).json()["Error"]["Details"].startswith("AppVersion:")


# --- The comparison -------------------------------------------------------------------------------


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
def test_a_difference_is_told_by_the_fields_path(body, difference):
    comparison = conformance.Comparison()

    comparison.answer(OPERATIONS_BY_NAME["Sign in"], body)

    assert f"/api/sign-in: {difference}" in comparison.differences


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
def test_values_are_judged_by_their_json_type(type_name, right, wrong):
    judge = conformance.PLAIN[type_name]

    assert all(map(judge, right))
    assert not any(map(judge, wrong))


def test_a_difference_in_a_list_is_told_once():
    comparison = conformance.Comparison()
    rates = [{"Id": 1, "Rate": {"Hourly": "25"}}, {"Id": 2, "Rate": {"Hourly": "30"}}]

    comparison.answer(
        OPERATIONS_BY_NAME["Search locations"],
        {"Success": True, "Centers": [{"MeetingRooms": rates}]},
    )

    assert list(comparison.differences) == [
        "/api/locations/search: Centers.MeetingRooms.Rate.Hourly is a string and no decimal"
    ]
