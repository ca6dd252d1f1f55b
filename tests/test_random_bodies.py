"""Random requests of valid and invalid values never crash and always get the envelope."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roombook.api.conformance import ConformanceChecker
from roombook.api.contract_schema import get_element_type, is_list_type
from tests.contract import ALL_OPERATIONS, CONTRACT, TYPES
from tests.http import post

EVERY = [pytest.param(each, id=each.name) for each in ALL_OPERATIONS if each.request]

IDS = st.integers(1, 40) | st.integers()
NUMBERS = st.integers(-3, 1200) | st.floats(allow_nan=False, allow_infinity=False) | st.integers()
DATES = st.datetimes().map(str) | st.sampled_from(
    ["2027-04-06T09:00:00", "2027-04-06T13:30:00", "2027-04-06T18:00:00Z", "2027-04-07T09:00:00"]
)
TEXTS = st.text(max_size=12) | st.sampled_from(
    ["Denver", "SPRING", "ACME", "State", "New", "4242424242424242", "737", "quiet-harbour-42"]
)
# Lone surrogates cannot be encoded in UTF-8, but JSON can escape them.
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
KINDS = {
    "bool": st.booleans(),
    "int": IDS,
    "int?": IDS,
    "double": NUMBERS,
    "decimal": NUMBERS,
    "DateTime": DATES,
}


@pytest.fixture
def world(world_copy):
    return world_copy


def build_values(type_name, good):
    """Return a strategy: the valid value, other values of the right type, or any value."""
    if is_list_type(type_name):
        element = good[0] if good else None
        right = st.lists(build_values(get_element_type(type_name), element), max_size=3)
    elif type_name in TYPES:
        right = build_objects(TYPES[type_name], good)
    else:
        right = KINDS.get(type_name, TEXTS)
    return st.one_of(st.just(good), st.just(good), right, right, ANYTHING)


def build_objects(fields, good):
    return st.fixed_dictionaries(
        {},
        optional={
            name: build_values(type_name, good.get(name)) for name, type_name in fields.items()
        },
    )


@pytest.mark.parametrize("operation", EVERY)
def test_random_requests_get_conforming_responses(world, operation):
    good = world.body(operation)

    @settings(max_examples=40)
    @given(build_objects(operation.request, good))
    def check(fields):
        body = world.with_token(operation, {**good, **fields})
        response = world.call_and_roll_back(lambda: post(world.client, operation.path, body))
        assert response.status_code < 500
        checker = ConformanceChecker(CONTRACT)
        checker.check_response(operation, response.json())
        assert not checker.differences

    check()
