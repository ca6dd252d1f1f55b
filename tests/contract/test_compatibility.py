"""Nothing that a client of the last release relies on changes, unless CHANGELOG.md says so."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

from tests.contract.compatibility import find_breaking_changes
from tests.contract.tables import OPERATIONS

ROOT = Path(__file__).parents[2]
RELEASES = ROOT / "docs/releases"
CURRENT = json.loads((ROOT / "docs/openapi.json").read_text())


def get_version(path):
    return [int(part) for part in path.stem.removeprefix("openapi-").split(".")]


LAST_RELEASE = json.loads(max(RELEASES.glob("openapi-*.json"), key=get_version).read_text())


def test_breaking_changes_since_the_last_release_are_in_the_changelog():
    changelog = " ".join((ROOT / "CHANGELOG.md").read_text().replace("`", "").split())

    unnamed = [
        each for each in find_breaking_changes(LAST_RELEASE, CURRENT) if each not in changelog
    ]

    assert unnamed == [], "A client may break. Undo it, or copy these lines to CHANGELOG.md."


def test_first_release_has_the_operations_of_the_contract():
    first = json.loads((RELEASES / "openapi-0.1.0.json").read_text())

    assert list(first["paths"]) == [each.path for each in OPERATIONS]


def change_checkout(document):
    return document["paths"]["/api/reservations/checkout"]["post"]


def change_schema(document, name):
    return document["components"]["schemas"][name]


BREAKING = [
    (
        lambda new: new["paths"].pop("/api/sign-in"),
        "/api/sign-in: the operation was removed.",
    ),
    (
        lambda new: change_checkout(new)["parameters"].pop(0),
        "/api/reservations/checkout: the parameter format was removed.",
    ),
    (
        lambda new: change_checkout(new)["parameters"][0].update(required=True),
        "/api/reservations/checkout: the parameter format became required.",
    ),
    (
        lambda new: change_checkout(new)["parameters"][0]["schema"]["enum"].remove("csv"),
        "/api/reservations/checkout: format: the value csv is no longer accepted.",
    ),
    (
        lambda new: change_checkout(new)["requestBody"]["content"].pop("text/csv"),
        "/api/reservations/checkout: the request can no longer be text/csv.",
    ),
    (
        lambda new: change_checkout(new)["responses"]["200"]["content"].pop("text/csv"),
        "/api/reservations/checkout: the response can no longer be text/csv.",
    ),
    (
        lambda new: change_checkout(new)["responses"].update(
            {"410": change_checkout(new)["responses"].pop("402")}
        ),
        "/api/reservations/checkout: CardDeclined has the status 410 instead of 402.",
    ),
    (
        lambda new: change_schema(new, "CheckoutRequest")["properties"].pop("PartnerCode"),
        "/api/reservations/checkout request: the field PartnerCode was removed.",
    ),
    (
        lambda new: change_schema(new, "CheckoutRequest")["required"].append("TestMode"),
        "/api/reservations/checkout request: the field TestMode became required.",
    ),
    (
        lambda new: change_schema(new, "CheckoutResponse").pop("required"),
        "/api/reservations/checkout response: the field Success is no longer always present.",
    ),
    (
        lambda new: change_schema(new, "MeetingRoomInfo")["properties"].pop("Capacity"),
        "MeetingRoomInfo: the field Capacity was removed.",
    ),
    (
        lambda new: change_schema(new, "RateInfo")["properties"]["Hourly"].update(type="string"),
        "RateInfo.Hourly: the type changed from number to string.",
    ),
    (
        lambda new: change_schema(new, "RateInfo")["properties"]["Hourly"].update(
            type=["number", "null"]
        ),
        "RateInfo.Hourly: the type changed from number to null number.",
    ),
    (
        lambda new: change_schema(new, "SearchFilterCriteria")["properties"]["CapacityLow"].update(
            type="integer"
        ),
        "SearchFilterCriteria.CapacityLow: the type changed from integer null int32"
        " to integer int32.",
    ),
    (
        lambda new: change_schema(new, "ServiceOption")["properties"]["Quantity"].update(
            maximum=10, minimum=1
        ),
        "ServiceOption.Quantity: maximum changed from 1000 to 10.",
    ),
    (
        lambda new: change_schema(new, "SearchFilterCriteria")["properties"]["ServiceIds"][
            "items"
        ].update(minimum=2),
        "SearchFilterCriteria.ServiceIds[]: minimum changed from 1 to 2.",
    ),
    (
        lambda new: change_schema(new, "ReservationCostRequest")["properties"]["EndDate"].update(
            pattern="^today$"
        ),
        "/api/reservations/cost request.EndDate: the pattern changed.",
    ),
    (
        lambda new: change_schema(new, "CityCentersRequest")["properties"]["Area"].update(enum=[]),
        "/api/city-centers request.Area: only some values are accepted now.",
    ),
]


@pytest.mark.parametrize(("change", "sentence"), BREAKING, ids=[each for _, each in BREAKING])
def test_breaking_change_is_found(change, sentence):
    changed = deepcopy(CURRENT)
    change(changed)

    assert sentence in find_breaking_changes(CURRENT, changed)


def test_additions_and_texts_break_nothing():
    changed = deepcopy(CURRENT)
    changed["info"]["description"] = "Other words."
    changed["paths"]["/api/new"] = changed["paths"]["/api/sign-in"]
    change_schema(changed, "CheckoutRequest")["properties"]["Tip"] = {"type": "number"}
    change_schema(changed, "CheckoutResponse")["properties"]["Tip"] = {"type": "number"}
    change_schema(changed, "CheckoutResponse")["properties"]["Status"]["x-extensible-enum"].pop()
    change_schema(changed, "ServiceOption")["properties"]["Quantity"]["maximum"] = 2000
    change_schema(changed, "CityCentersRequest")["properties"]["AreaType"]["enum"].append("Moon")

    assert find_breaking_changes(CURRENT, changed) == []
