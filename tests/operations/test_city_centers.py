"""POST /api/city-centers"""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories_centers import (
    CenterFactory,
    MeetingRoomFactory,
    NeighborhoodFactory,
    RateFactory,
    ResourceTypeFactory,
    make_center_with_room,
)
from tests.factories_people import UserFactory, issue_token
from tests.http import jsonp, post, post_csv, table

pytestmark = pytest.mark.django_db

PATH = "/api/city-centers"


@pytest.fixture
def token():
    return issue_token(UserFactory())


@pytest.fixture
def ask(client, token):
    return lambda **fields: post(client, PATH, {"Token": token, **fields})


@pytest.fixture
def names(ask):
    def names(**fields):
        response = ask(**fields)
        assert response.status_code == 200, response.content
        return [center["Name"] for center in response.json()["Centers"]]

    return names


@pytest.fixture
def world():
    make_center_with_room(name="Denver", neighborhood=NeighborhoodFactory(name="LoDo"))
    make_center_with_room(name="Boulder", city="Boulder", postal_code="80301")
    make_center_with_room(name="Seattle", city="Seattle", state="WA", postal_code="98101")
    make_center_with_room(
        name="Perth", city="Perth", state="WA", country="AU", time_zone_id="Australia/Perth"
    )
    make_center_with_room(
        name="Edinburgh",
        city="Edinburgh",
        state="Scotland",
        country="GB",
        postal_code="EH1 1AA",
        time_zone_id="Europe/London",
    )
    make_center_with_room(
        name="Paris",
        city="Paris",
        state="Île-de-France",
        country="France",
        postal_code="75001",
        time_zone_id="Europe/Paris",
        neighborhood=NeighborhoodFactory(name="Le Marais", original_name="3e arrondissement"),
    )


def test_city_centers_returns_centers_and_filter_options(ask):
    center = CenterFactory(name="Glenarm", latitude=None, longitude=None)
    kind = ResourceTypeFactory(name="Boardroom", position=1)
    rate = RateFactory(center=center, half_day=None, full_day=None, bill_in_blocks=True)
    room = MeetingRoomFactory(center=center, name="Aspen", resource_type=kind, rate=rate)

    response = ask(Area="CO")

    assert response.status_code == 200
    assert response.json() == {
        "Success": True,
        "Centers": [
            {
                "Id": center.pk,
                "Name": "Glenarm",
                "Address": {
                    "Street1": "1600 Glenarm Place",
                    "City": "Denver",
                    "State": "CO",
                    "PostalCode": "80202",
                    "Country": "US",
                    "TimeZoneId": "America/Denver",
                    "HasStreet2": False,
                    "CityStatePostalCode": "Denver, CO 80202",
                },
                "CenterHours": [],
                "LowestRate": "$25.00/hour",
                "IsFavorite": False,
                "IsLiveInventory": True,
                "IsAfterHoursSupportEnabled": False,
                "IsNotFavorite": True,
                "MeetingRooms": [
                    {
                        "Id": room.pk,
                        "Name": "Aspen",
                        "AvailableServices": [],
                        "Rate": {
                            "IsFlatRate": False,
                            "Hourly": 25,
                            "BillInBlocks": True,
                            "Description": "$25.00/hour",
                        },
                        "LowestRate": "$25.00/hour",
                        "Capacity": 8,
                        "IsLiveInventory": True,
                    }
                ],
                "Landmarks": [],
                "Images": [],
                "IsNewLocation": False,
                "IsNewLowPrice": False,
            }
        ],
        "FilterOptions": {
            "RoomTypes": [
                {
                    "Id": kind.pk,
                    "Name": "Boardroom",
                    "IsService": False,
                    "Position": 1,
                    "Internal": False,
                }
            ],
            "Services": [],
            "Neighborhoods": [],
        },
    }


def test_city_centers_supports_csv_and_jsonp(client, token):
    center = make_center_with_room(name="Denver")
    row = {"Token": token, "AreaType": "City", "Area": "denver"}
    header, line = table(post_csv(client, f"{PATH}.csv", row))
    cells = dict(zip(header, line, strict=True))
    assert cells["Success"] == "true"
    assert cells["Centers.Id"] == str(center.pk)
    assert cells["Centers.Address.CityStatePostalCode"] == "Denver, CO 80202"
    body = jsonp(post(client, f"{PATH}.json?callback=cb", row), "cb")
    assert [each["Name"] for each in body["Centers"]] == ["Denver"]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"Area": "CO"}, ["Boulder", "Denver"]),
        ({"Area": "colorado"}, ["Boulder", "Denver"]),
        ({"AreaType": "State", "Area": "Washington"}, ["Seattle"]),
        ({"AreaType": "State", "Area": "WESTERN AUSTRALIA"}, ["Perth"]),
        ({"AreaType": "State", "Area": "wa"}, ["Perth", "Seattle"]),
        ({"AreaType": "State", "Area": "ile-de-france"}, ["Paris"]),
        ({"AreaType": "State", "Area": "IDF"}, ["Paris"]),
        ({"AreaType": "Country", "Area": "US"}, ["Boulder", "Denver", "Seattle"]),
        ({"AreaType": "Country", "Area": "usa"}, ["Boulder", "Denver", "Seattle"]),
        ({"AreaType": "Country", "Area": "United States"}, ["Boulder", "Denver", "Seattle"]),
        ({"AreaType": "Country", "Area": "FRA"}, ["Paris"]),
        ({"AreaType": "City", "Area": "PERTH"}, ["Perth"]),
        ({"AreaType": "City", "Area": "Per"}, []),
        ({"AreaType": "Neighborhood", "Area": "lodo"}, ["Denver"]),
        ({"AreaType": "Neighborhood", "Area": "3E Arrondissement"}, ["Paris"]),
        ({"AreaType": "PostalCode", "Area": "75001"}, ["Paris"]),
        ({"CityName": "boulder"}, ["Boulder"]),
        ({"Area": "CO", "CityName": "Boulder"}, ["Boulder"]),
        ({"Area": "WA", "CityName": "Boulder"}, []),
        ({"AreaType": "Country", "Area": "us", "CityName": " seattle "}, ["Seattle"]),
        ({"Area": "Scotland"}, ["Edinburgh"]),
        ({"Area": "SCT"}, ["Edinburgh"]),
        ({"AreaType": "Country", "Area": "Scotland"}, []),
        ({"AreaType": "Country", "Area": "England"}, []),
        ({"AreaType": "Country", "Area": "UK"}, ["Edinburgh"]),
        ({"Area": "Atlantis"}, []),
        ({"AreaType": "Country", "Area": "Atlantis"}, []),
        ({"AreaType": "Neighborhood", "Area": "Atlantis"}, []),
        ({"AreaType": "PostalCode", "Area": "7500%"}, []),
    ],
)
@pytest.mark.usefixtures("world")
def test_area_is_found_by_name_or_code(names, fields, found):
    assert names(**fields) == found


def test_city_centers_are_sorted_by_rank_name_id_and_limited(names, settings):
    for name, rank in (("C", 2), ("B", 1), ("A", 2)):
        make_center_with_room(name=name, rank=rank)
    assert names(Area="CO") == ["B", "A", "C"]
    settings.SEARCH_MAX_RESULTS = 2
    assert names(Area="CO") == ["B", "A"]


def test_filters_narrow_centers_but_not_options(ask):
    center = make_center_with_room(name="Small")
    MeetingRoomFactory(center=CenterFactory(name="Large"), capacity=40)
    body = ask(Area="CO", Filters={"CapacityLow": 20}).json()
    assert [each["Name"] for each in body["Centers"]] == ["Large"]
    kinds = {each["Id"] for each in body["FilterOptions"]["RoomTypes"]}
    assert center.rooms.get().resource_type_id in kinds
    assert len(kinds) == 2


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({}, "Area: Area or CityName is needed."),
        ({"Area": " ", "CityName": ""}, "Area: Area or CityName is needed."),
        ({"AreaType": "City"}, "Area: Area or CityName is needed."),
        (
            {"AreaType": "Planet", "Area": "Earth"},
            "AreaType: Must be one of State, Country, City, Neighborhood, PostalCode.",
        ),
        (
            {"AreaType": "state", "Area": "CO"},
            "AreaType: Must be one of State, Country, City, Neighborhood, PostalCode.",
        ),
        ({"Area": "x" * 256}, "Area: Must have at most 255 characters."),
        ({"Area": 5}, "Area: Must be text."),
        (
            {"Area": "CO", "Filters": {"CapacityLow": 2, "CapacityHigh": 1}},
            "Filters.CapacityLow: This is above CapacityHigh.",
        ),
    ],
)
def test_invalid_fields_are_rejected_by_name(ask, fields, details):
    response = ask(**fields)
    assert response.status_code == 400
    assert response.json()["Error"]["Summary"] == "InvalidRequest"
    assert response.json()["Error"]["Details"] == details


def test_more_centers_send_no_more_queries(ask):
    counts = []
    for more in (1, 19):
        for _ in range(more):
            make_center_with_room()
        with CaptureQueriesContext(connection) as queries:
            body = ask(AreaType="Neighborhood", Area="none", CityName="Denver").json()
            body = ask(Area="CO").json()
        counts.append((len(body["Centers"]), len(queries)))
    assert [found for found, _ in counts] == [1, 20]
    assert counts[0][1] == counts[1][1]


def test_request_without_token_is_rejected(client):
    assert post(client, PATH, {"Area": "CO"}).status_code == 401
