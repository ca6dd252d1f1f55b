"""POST /api/locations/search"""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from centers import geo
from centers.models import Center
from centers.querysets import SearchCircle
from tests.centers.test_geo import haversine
from tests.factories_centers import (
    CenterFactory,
    CenterImageFactory,
    FavoriteFactory,
    FlatRateFactory,
    LandmarkFactory,
    MeetingRoomFactory,
    NeighborhoodFactory,
    RateFactory,
    ResourceTypeFactory,
    ServiceFactory,
    ServiceTypeFactory,
    make_center_with_room,
    open_every_day,
)
from tests.factories_people import UserFactory
from tests.http import jsonp, post, post_csv, table

pytestmark = pytest.mark.django_db

PATH = "/api/locations/search"
DENVER = {"Latitude": 39.7392, "Longitude": -104.9903}
BOSTON = {"Latitude": 42.3601, "Longitude": -71.0589}


@pytest.fixture
def search(client, token):
    return lambda **fields: post(client, PATH, {"Token": token, **fields})


@pytest.fixture
def names(search):
    """The names of the centers that a search finds, in order."""

    def names(**fields):
        response = search(**fields)
        assert response.status_code == 200, response.content
        return [center["Name"] for center in response.json()["Centers"]]

    return names


@pytest.fixture
def refused(search):
    """The error details of an invalid search."""

    def refused(**fields):
        response = search(**fields)
        assert response.status_code == 400
        assert response.json()["Error"]["Summary"] == "InvalidRequest"
        return response.json()["Error"]["Details"]

    return refused


# --- The answer -----------------------------------------------------------------------------------


def test_search_returns_every_field_of_a_center(search, ada):
    center = CenterFactory(
        name="Glenarm",
        street2="Floor 2",
        neighborhood=NeighborhoodFactory(
            name="LoDo",
            original_name="Lower Downtown",
            custom_title="Rooms in LoDo",
            landing_page_content="<p>Bricks</p>",
        ),
        promo_text="First hour free",
        parking_information="Under the building",
        is_new_location=True,
        is_after_hours_support_enabled=True,
    )
    open_every_day(center)
    kind = ResourceTypeFactory(name="Boardroom", position=3)
    room = MeetingRoomFactory(
        center=center,
        name="Aspen",
        resource_type=kind,
        provider="Glenarm Ltd",
        rate=RateFactory(center=center, setup_fee=20, description="Best by the day"),
    )
    projector = ServiceFactory(
        center=center,
        name="Projector",
        description="Full HD",
        resource_type=ServiceTypeFactory(name="Projection", position=1),
        rate=RateFactory(center=center, hourly=12.5, half_day=None, full_day=None),
        needs_duration=True,
        minimum_booking=1,
    )
    ServiceFactory(center=center, name="Retired", is_active=False)
    LandmarkFactory(center=center, name="Union Station", description="Trains", type="Transit")
    image = CenterImageFactory(center=center)
    FavoriteFactory(user=ada, center=center)

    response = search(**DENVER, Query="denver, co")

    assert response.status_code == 200
    pictures = {
        "ThumbnailUrl": f"http://testserver{image.thumbnail.url}",
        "FullUrl": f"http://testserver{image.image.url}",
    }
    assert response.json() == {
        "Success": True,
        "Centers": [
            {
                "Id": center.pk,
                "Name": "Glenarm",
                "Address": {
                    "Street1": "1600 Glenarm Place",
                    "Street2": "Floor 2",
                    "City": "Denver",
                    "State": "CO",
                    "PostalCode": "80202",
                    "Country": "US",
                    "Latitude": 39.7433,
                    "Longitude": -104.9903,
                    "TimeZoneId": "America/Denver",
                    "HasStreet2": True,
                    "CityStatePostalCode": "Denver, CO 80202",
                },
                "Image": pictures,
                "CenterHours": [
                    {"Value": "Mo-Su 08:00-18:00", "DisplayValue": "Mon-Sun 8:00 AM - 6:00 PM"}
                ],
                "CenterHoursConcatenated": "Mon-Sun 8:00 AM - 6:00 PM",
                "DistanceFromQuery": 0.28,
                "LowestRate": "$25.00/hour",
                "PromoText": "First hour free",
                "IsFavorite": True,
                "IsLiveInventory": True,
                "IsAfterHoursSupportEnabled": True,
                "IsNotFavorite": False,
                "MeetingRooms": [
                    {
                        "Id": room.pk,
                        "Name": "Aspen",
                        "AvailableServices": [
                            {
                                "Id": projector.pk,
                                "Name": "Projector",
                                "Description": "Full HD",
                                "Rate": {
                                    "IsFlatRate": False,
                                    "Hourly": 12.5,
                                    "BillInBlocks": False,
                                    "Description": "$12.50/hour",
                                },
                                "RateDescription": "$12.50/hour",
                                "BillAtCenter": False,
                                "MinimumBooking": 1,
                                "NeedsDuration": True,
                                "NeedsQuantity": False,
                            }
                        ],
                        "Rate": {
                            "IsFlatRate": False,
                            "Hourly": 25,
                            "HalfDay": 90,
                            "FullDay": 160,
                            "SetupFee": 20,
                            "BillInBlocks": False,
                            "Description": "Best by the day",
                        },
                        "LowestRate": "$25.00/hour",
                        "Capacity": 8,
                        "IsLiveInventory": True,
                        "Provider": "Glenarm Ltd",
                    }
                ],
                "Landmarks": [
                    {"Name": "Union Station", "Description": "Trains", "Type": "Transit"}
                ],
                "Images": [pictures],
                "ParkingInformation": "Under the building",
                "IsNewLocation": True,
                "IsNewLowPrice": False,
            }
        ],
        "FilterOptions": {
            "RoomTypes": [
                {
                    "Id": kind.pk,
                    "Name": "Boardroom",
                    "IsService": False,
                    "Position": 3,
                    "Internal": False,
                }
            ],
            "Services": [
                {
                    "Id": projector.resource_type.pk,
                    "Name": "Projection",
                    "IsService": True,
                    "Position": 1,
                    "Internal": False,
                }
            ],
            "Neighborhoods": [
                {
                    "Id": center.neighborhood.pk,
                    "OriginalName": "Lower Downtown",
                    "Name": "LoDo",
                    "City": "Denver",
                    "State": "CO",
                    "CustomTitle": "Rooms in LoDo",
                    "LandingPageContent": "<p>Bricks</p>",
                }
            ],
        },
    }
    assert list(response.json()) == ["Success", "Centers", "FilterOptions"]


def test_search_returns_the_picture_of_a_room(search):
    center = CenterFactory()
    image = CenterImageFactory.build(center=center).image
    room = MeetingRoomFactory(center=center, picture=image)
    (info,) = search().json()["Centers"][0]["MeetingRooms"]
    assert info["Picture"] == {
        "ThumbnailUrl": f"http://testserver{room.picture_thumbnail.url}",
        "FullUrl": f"http://testserver{room.picture.url}",
    }


def test_search_as_csv_has_one_row_per_center(client, token):
    for name, street2 in (("A", ""), ("B", "=1+1")):
        center = CenterFactory(name=name, street2=street2)
        MeetingRoomFactory(center=center, name="Room", resource_type=room_type())
    header, *rows = table(post_csv(client, f"{PATH}.csv", {"Token": token, "Query": "Denver"}))
    cells = [dict(zip(header, row, strict=True)) for row in rows]
    first, second = Center.objects.order_by("name")
    assert header[:4] == ["Success", "Centers.Id", "Centers.Name", "Centers.Address.Street1"]
    assert header[-5:] == [f"FilterOptions.RoomTypes.0.{name}" for name in TYPE_FIELDS]
    assert cells[0] == expected_cells(first, type_cells=room_type_cells())
    assert cells[1] == expected_cells(second, type_cells=dict.fromkeys(room_type_cells(), ""))
    assert cells[1]["Centers.Address.Street2"] == "'=1+1"


TYPE_FIELDS = ["Id", "Name", "IsService", "Position", "Internal"]


def room_type():
    return ResourceTypeFactory._meta.model.objects.get_or_create(name="Boardroom")[0]


def room_type_cells():
    values = [str(room_type().pk), "Boardroom", "false", "0", "false"]
    names = [f"FilterOptions.RoomTypes.0.{name}" for name in TYPE_FIELDS]
    return dict(zip(names, values, strict=True))


def expected_cells(center, *, type_cells):
    (room,) = center.rooms.all()
    street2 = f"'{center.street2}" if center.street2 else ""
    cells = {
        "Id": str(center.pk),
        "Name": center.name,
        "Address.Street1": "1600 Glenarm Place",
        "Address.Street2": street2,
        "Address.City": "Denver",
        "Address.State": "CO",
        "Address.PostalCode": "80202",
        "Address.Country": "US",
        "Address.Latitude": "39.7433",
        "Address.Longitude": "-104.9903",
        "Address.TimeZoneId": "America/Denver",
        "Address.HasStreet2": "true" if street2 else "false",
        "Address.CityStatePostalCode": "Denver, CO 80202",
        "LowestRate": "$25.00/hour",
        "IsFavorite": "false",
        "IsLiveInventory": "true",
        "IsAfterHoursSupportEnabled": "false",
        "IsNotFavorite": "true",
        "MeetingRooms.0.Id": str(room.pk),
        "MeetingRooms.0.Name": "Room",
        "MeetingRooms.0.Rate.IsFlatRate": "false",
        "MeetingRooms.0.Rate.Hourly": "25.0",
        "MeetingRooms.0.Rate.HalfDay": "90.0",
        "MeetingRooms.0.Rate.FullDay": "160.0",
        "MeetingRooms.0.Rate.BillInBlocks": "false",
        "MeetingRooms.0.Rate.Description": "$25.00/hour, $90.00/half day, $160.00/day",
        "MeetingRooms.0.LowestRate": "$25.00/hour",
        "MeetingRooms.0.Capacity": "8",
        "MeetingRooms.0.IsLiveInventory": "true",
        "IsNewLocation": "false",
        "IsNewLowPrice": "false",
    }
    prefixed = {f"Centers.{name}": value for name, value in cells.items()}
    return {"Success": "true", **prefixed, **type_cells}


def test_search_without_matches_returns_an_empty_list(client, search, token):
    body = {
        "Success": True,
        "Centers": [],
        "FilterOptions": {"RoomTypes": [], "Services": [], "Neighborhoods": []},
    }
    assert search(Query="nowhere").json() == body
    fields = {"Token": token, "Query": "nowhere"}
    assert jsonp(post(client, f"{PATH}?callback=show", fields), "show") == body
    assert table(post(client, f"{PATH}.csv", fields)) == [["Success"], ["true"]]


def test_search_request_as_csv_reads_filters_and_numbers_as_text(client, token):
    center = make_center_with_room()
    row = {
        "Token": token,
        "Latitude": "39.7392",
        "Longitude": "-104.9903",
        "RadiusInMiles": "10",
        "Filters.CapacityLow": "8",
        "Filters.ResourceTypeIds.0": str(center.rooms.get().resource_type_id),
        "Filters.OnlyRealtime": "true",
    }
    assert len(post_csv(client, PATH, row).json()["Centers"]) == 1
    row["Filters.CapacityLow"] = "9"
    assert post_csv(client, PATH, row).json()["Centers"] == []


# --- Which centers are found at all ---------------------------------------------------------------


def test_empty_search_finds_all_centers(names):
    make_center_with_room(name="Here")
    make_center_with_room(name="There", latitude=None, longitude=None)
    assert names() == ["Here", "There"]
    assert names(Query="", Filters={}) == ["Here", "There"]
    assert names(Query=" , ") == ["Here", "There"]


def test_center_without_an_active_priced_room_is_not_found(names):
    make_center_with_room(name="Inactive", is_active=False)
    CenterFactory(name="Empty")
    MeetingRoomFactory(center__name="Inactive room", is_active=False)
    MeetingRoomFactory(center__name="No rate", rate=None)
    for name, prices in (
        ("No tier", {"hourly": None, "half_day": None, "full_day": None, "flat_rate": 9}),
        ("No flat price", {"is_flat_rate": True, "flat_rate": None}),
    ):
        center = CenterFactory(name=name)
        MeetingRoomFactory(center=center, rate=RateFactory(center=center, **prices))
    center = CenterFactory(name="Free")
    MeetingRoomFactory(center=center, rate=FlatRateFactory(center=center, flat_rate=0))
    assert names() == ["Free"]


# --- Place ----------------------------------------------------------------------------------------


@pytest.fixture
def two_cities():
    make_center_with_room(name="Denver center", promo_text="x")
    make_center_with_room(
        name="Boston center",
        city="Boston",
        state="MA",
        postal_code="02108",
        latitude=42.3601,
        longitude=-71.0589,
        time_zone_id="America/New_York",
    )


@pytest.mark.usefixtures("two_cities")
def test_location_without_query_searches_25_miles(names):
    assert names(**BOSTON) == ["Boston center"]
    assert names(Latitude=42.70, Longitude=-71.0589) == ["Boston center"]  # 23.5 miles
    assert names(Latitude=42.73, Longitude=-71.0589) == []  # 25.6 miles
    assert names(Latitude=42.73, Longitude=-71.0589, RadiusInMiles=26) == ["Boston center"]


@pytest.mark.usefixtures("two_cities")
def test_location_with_query_and_no_radius_only_sorts(names, search):
    assert names(**BOSTON, Query="Denver") == ["Denver center"]
    assert names(**BOSTON, Query="center") == ["Boston center", "Denver center"]
    assert names(**DENVER, Query="center") == ["Denver center", "Boston center"]
    distances = [
        each["DistanceFromQuery"] for each in search(**BOSTON, Query="center").json()["Centers"]
    ]
    assert distances == [0, pytest.approx(1766.5, abs=3)]


@pytest.mark.usefixtures("two_cities")
def test_location_query_and_radius_combine(names):
    assert names(**BOSTON, Query="Denver", RadiusInMiles=500) == []
    assert names(**BOSTON, Query="center", RadiusInMiles=1) == ["Boston center"]


@pytest.mark.usefixtures("two_cities")
def test_search_without_location_has_no_distances(search):
    assert all("DistanceFromQuery" not in each for each in search().json()["Centers"])


def test_center_without_coordinates_comes_last(search):
    make_center_with_room(name="Lost", latitude=None, longitude=None)
    make_center_with_room(name="Near")
    first, last = search(**DENVER, Query="denver").json()["Centers"]
    assert (first["Name"], last["Name"]) == ("Near", "Lost")
    assert "DistanceFromQuery" not in last


def test_search_crosses_the_date_line(names):
    make_center_with_room(
        name="West", latitude=-16.8, longitude=179.95, time_zone_id="Pacific/Fiji"
    )
    make_center_with_room(
        name="East", latitude=-16.8, longitude=-179.9, time_zone_id="Pacific/Fiji"
    )
    assert names(Latitude=-16.8, Longitude=180) == ["West", "East"]
    assert names(Latitude=-16.8, Longitude=-180) == ["West", "East"]


def test_search_around_a_pole_finds_all_longitudes(names):
    make_center_with_room(name="Pole", latitude=89.9, longitude=10, time_zone_id="UTC")
    assert names(Latitude=89.9, Longitude=-170) == ["Pole"]
    assert names(Latitude=90, Longitude=0) == ["Pole"]


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"Latitude": 1}, "Longitude: Latitude and Longitude come together."),
        ({"Longitude": 1}, "Latitude: Latitude and Longitude come together."),
        ({"Latitude": 91, "Longitude": 0}, "Latitude: Must be at most 90."),
        ({"Latitude": 0, "Longitude": -181}, "Longitude: Must be at least -180."),
        ({"Latitude": "1", "Longitude": 0}, "Latitude: Must be a number."),
        ({"Latitude": True, "Longitude": 0}, "Latitude: Must be a number."),
        ({**DENVER, "RadiusInMiles": 0}, "RadiusInMiles: Must be at least 1."),
        ({**DENVER, "RadiusInMiles": 501}, "RadiusInMiles: Must be at most 500."),
        ({**DENVER, "RadiusInMiles": 1.5}, "RadiusInMiles: Must be a whole number."),
        ({"Query": "x" * 201}, "Query: Must have at most 200 characters."),
        ({"Query": "a b c d e f g h i"}, "Query: A query has at most 8 words."),
        ({"Query": 5}, "Query: Must be text."),
        ({"Filters": []}, "Filters: Must be an object."),
        (
            {"Filters": {"CapacityLow": 5, "CapacityHigh": 4}},
            "Filters.CapacityLow: This is above CapacityHigh.",
        ),
        ({"Filters": {"CapacityLow": -1}}, "Filters.CapacityLow: Must be at least 0."),
        ({"Filters": {"ServiceIds": [0]}}, "Filters.ServiceIds.0: Must be at least 1."),
        (
            {"Filters": {"ServiceIds": [1] * 101}},
            "Filters.ServiceIds: Must have at most 100 elements.",
        ),
        ({"Filters": {"OnlyRealtime": 1}}, "Filters.OnlyRealtime: Must be true or false."),
    ],
)
def test_invalid_fields_are_rejected_by_name(refused, fields, details):
    assert refused(**fields) == details


def test_fields_at_their_bounds_are_accepted(names):
    make_center_with_room(name="Center")
    assert names(**DENVER, RadiusInMiles=500, Query="c e n t e r c e") == ["Center"]
    assert names(Query="x" * 200) == []


# --- Query ----------------------------------------------------------------------------------------


@pytest.fixture
def munich():
    center = make_center_with_room(
        name="Café Müller",
        street1="Straße der Ølprøver 5",
        street2="Hinterhof",
        street3="Aufgang C",
        city="München",
        state="BY",
        postal_code="80331",
        country="Germany",
        latitude=48.137,
        longitude=11.575,
        time_zone_id="Europe/Berlin",
        neighborhood=NeighborhoodFactory(name="Altstadt", original_name="Graggenau"),
    )
    LandmarkFactory(center=center, name="Marienplatz")
    return center


@pytest.mark.parametrize(
    "query",
    [
        "cafe muller",
        "CAFÉ",
        "strasse",
        "olprover",
        "hinterhof",
        "aufgang c",
        "munchen",
        "mÜn",
        "by",
        "Bayern",
        "80331",
        "033",
        "DE",
        "deu",
        "germany",
        "altstadt",
        "graggenau",
        "marienplatz, münchen",
        "München,BY,80331,Germany",
    ],
)
@pytest.mark.usefixtures("munich")
def test_query_finds_every_text_of_a_center(names, query):
    assert names(Query=query) == ["Café Müller"]


@pytest.mark.parametrize("query", ["Hamburg", "München Hamburg", "%", "_", "cafemuller", "\\", "'"])
@pytest.mark.usefixtures("munich")
def test_query_with_an_unknown_word_finds_nothing(names, query):
    assert names(Query=query) == []


def test_query_finds_country_and_state_by_all_names(names):
    make_center_with_room(name="Center")
    for query in ("USA", "united states", "america", "Colorado", "co", "Denver, Colorado, USA"):
        assert names(Query=query) == ["Center"], query


def test_search_text_follows_neighborhood_and_landmarks(names, munich):
    munich.neighborhood.name = "Lehel"
    munich.neighborhood.save()
    landmark = munich.landmarks.get()
    landmark.name = "Isartor"
    landmark.save()
    assert names(Query="lehel isartor") == ["Café Müller"]
    assert names(Query="altstadt") == names(Query="marienplatz") == []
    munich.landmarks.all().delete()
    assert names(Query="isartor") == []
    munich.neighborhood = None
    munich.save(update_fields=["neighborhood"])
    assert names(Query="lehel") == []
    munich.name = "Salvator"
    munich.save(update_fields=["name"])
    assert names(Query="salvator") == ["Salvator"]


# --- Order ----------------------------------------------------------------------------------------


def test_order_without_location_is_rank_name_id(names):
    make_center_with_room(name="B", rank=1)
    make_center_with_room(name="A", rank=2)
    make_center_with_room(name="C", rank=1)
    assert names() == ["B", "C", "A"]


def test_exact_city_postal_code_or_name_comes_first(names):
    make_center_with_room(name="Denver Road", city="Boulder", rank=1)
    make_center_with_room(name="Uptown", rank=2)
    assert names(Query="denver") == ["Uptown", "Denver Road"]
    assert names(Query="Denver, CO") == ["Uptown", "Denver Road"]
    make_center_with_room(name="Denver", city="Aurora", rank=9)
    assert names(Query="DENVER") == ["Uptown", "Denver", "Denver Road"]
    make_center_with_room(name="80202 Club", postal_code="80014", rank=0)
    assert names(Query="80202")[-1] == "80202 Club"


@pytest.mark.parametrize(
    "query", ["Scotland", "Wales", "England", "Northern Ireland", "Ireland", "CO", "Edinburgh, CO"]
)
def test_part_of_a_country_finds_only_centers_that_name_it(names, query):
    london = {"city": "London", "state": "", "postal_code": "EC2A 1DX", "country": "UK"}
    in_uk = {"street1": "1 High Street", "time_zone_id": "Europe/London"}
    make_center_with_room(name="City", **in_uk | london)
    assert names(Query=query) == []
    assert names(Query="UK") == names(Query="united kingdom") == names(Query="GB") == ["City"]

    for state in ("Scotland", "Wales", "England", "Northern Ireland"):
        make_center_with_room(name=f"Hall {state}", **in_uk | london | {"state": state})
    found = {
        "Scotland": ["Hall Scotland"],
        "Wales": ["Hall Wales"],
        "England": ["Hall England"],
        "Northern Ireland": ["Hall Northern Ireland"],
        "Ireland": ["Hall Northern Ireland"],
        "CO": ["Hall Scotland"],  # Every word may be a part of a word.
        "Edinburgh, CO": [],
    }
    assert names(Query=query) == found[query]


def test_city_of_two_words_is_exact_among_other_words(names):
    make_center_with_room(name="New York Style", rank=1)
    make_center_with_room(name="Loft", city="New York", rank=2)
    assert names(Query="new york co") == ["Loft", "New York Style"]


def test_order_with_location_is_nearest_first(names):
    make_center_with_room(name="Far", latitude=39.9, rank=1)
    make_center_with_room(name="Near", latitude=39.75, rank=2)
    assert names(**DENVER) == ["Near", "Far"]
    assert names(**DENVER, Query="denver") == ["Near", "Far"]


def test_search_returns_at_most_the_configured_number(names, settings):
    settings.SEARCH_MAX_RESULTS = 2
    for name in "CBA":
        make_center_with_room(name=name)
    assert names() == ["A", "B"]


# --- Filters --------------------------------------------------------------------------------------


@pytest.fixture
def filtered(names):
    return lambda **filters: names(Filters=filters)


def test_room_filters_must_be_met_by_the_same_room(filtered):
    small, large = ResourceTypeFactory(), ResourceTypeFactory()
    center = CenterFactory(name="Center")
    MeetingRoomFactory(center=center, capacity=4, resource_type=small, is_live_inventory=True)
    MeetingRoomFactory(center=center, capacity=20, resource_type=large, is_live_inventory=False)
    assert filtered(CapacityLow=20, ResourceTypeIds=[large.pk]) == ["Center"]
    assert filtered(CapacityLow=20, ResourceTypeIds=[small.pk]) == []
    assert filtered(CapacityLow=5, CapacityHigh=19) == []
    assert filtered(CapacityHigh=4, OnlyRealtime=True) == ["Center"]
    assert filtered(CapacityLow=5, OnlyRealtime=True) == []
    assert filtered(ResourceTypeIds=[small.pk, large.pk]) == ["Center"]


def test_center_lists_only_rooms_that_meet_the_filters(search):
    center = CenterFactory()
    MeetingRoomFactory(center=center, name="Small", capacity=4)
    MeetingRoomFactory(center=center, name="Large", capacity=20, is_live_inventory=False)
    MeetingRoomFactory(center=center, name="Inactive", capacity=30, is_active=False)
    MeetingRoomFactory(center=center, name="Unpriced", capacity=30, rate=None)
    (found,) = search(Filters={"CapacityLow": 5}).json()["Centers"]
    assert [room["Name"] for room in found["MeetingRooms"]] == ["Large"]
    # The center itself stays what it is.
    assert found["IsLiveInventory"] is True
    (found,) = search().json()["Centers"]
    assert [room["Name"] for room in found["MeetingRooms"]] == ["Large", "Small"]


def test_service_filter_requires_all_services(filtered):
    coffee, screen = ServiceTypeFactory(), ServiceTypeFactory()
    center = make_center_with_room(name="Both")
    ServiceFactory(center=center, resource_type=coffee)
    ServiceFactory(center=center, resource_type=coffee)
    ServiceFactory(center=center, resource_type=screen)
    ServiceFactory(center=make_center_with_room(name="Coffee"), resource_type=coffee)
    retired = ServiceTypeFactory()
    ServiceFactory(center=center, resource_type=retired, is_active=False)
    assert filtered(ServiceIds=[coffee.pk]) == ["Both", "Coffee"]
    assert filtered(ServiceIds=[coffee.pk, screen.pk, coffee.pk]) == ["Both"]
    assert filtered(ServiceIds=[retired.pk]) == []
    assert filtered(ServiceIds=[ResourceTypeFactory().pk]) == []
    assert filtered(ServiceIds=[coffee.pk, 2_000_000_000]) == []


def test_neighborhood_filter_accepts_any_of_them(filtered):
    one, other = NeighborhoodFactory(), NeighborhoodFactory()
    make_center_with_room(name="One", neighborhood=one)
    make_center_with_room(name="Other", neighborhood=other)
    make_center_with_room(name="None")
    assert filtered(NeighborhoodIds=[one.pk]) == ["One"]
    assert filtered(NeighborhoodIds=[one.pk, other.pk]) == ["One", "Other"]
    assert filtered(NeighborhoodIds=[2_000_000_000]) == []


def test_after_hours_filter_finds_only_such_centers(filtered):
    make_center_with_room(name="Day")
    make_center_with_room(name="Night", is_after_hours_support_enabled=True)
    assert filtered(OnlyAfterHours=True) == ["Night"]
    assert filtered(OnlyAfterHours=False) == ["Day", "Night"]


def test_empty_filters_and_unknown_fields_are_ignored(filtered):
    make_center_with_room(name="Center")
    empty = {"ResourceTypeIds": [], "ServiceIds": [], "NeighborhoodIds": []}
    assert filtered(**empty, CapacityLow=None) == ["Center"]
    assert filtered(_connector="OR", rooms__reservations__user__password__startswith="p") == [
        "Center"
    ]


def test_filter_options_ignore_the_filters(search):
    boardroom = ResourceTypeFactory(name="Boardroom", position=2)
    desk, attic = (ResourceTypeFactory(name=name, position=1) for name in ("Desk", "Attic"))
    internal = ResourceTypeFactory(name="Storage", internal=True)
    unused = ResourceTypeFactory(name="Unused")
    center = CenterFactory(neighborhood=NeighborhoodFactory(name="LoDo"))
    for kind in (boardroom, desk, attic, internal):
        MeetingRoomFactory(center=center, resource_type=kind)
    MeetingRoomFactory(center=center, resource_type=unused, is_active=False)
    ServiceFactory(center=center, resource_type=ServiceTypeFactory(name="Coffee", position=5))
    ServiceFactory(center=center, resource_type=ServiceTypeFactory(name="Screen", position=4))
    ServiceFactory(
        center=center, resource_type=ServiceTypeFactory(name="Keys", position=1, internal=True)
    )
    make_center_with_room(city="Boston", neighborhood=NeighborhoodFactory(name="Back Bay"))

    body = search(Query="denver", Filters={"CapacityLow": 1000}).json()

    assert body["Centers"] == []
    options = {
        kind: [each["Name"] for each in choices] for kind, choices in body["FilterOptions"].items()
    }
    assert options == {
        "RoomTypes": ["Attic", "Desk", "Boardroom"],
        "Services": ["Screen", "Coffee"],
        "Neighborhoods": ["LoDo"],
    }


def test_filter_options_include_centers_beyond_the_limit(search, settings):
    settings.SEARCH_MAX_RESULTS = 1
    make_center_with_room()
    make_center_with_room()
    body = search().json()
    assert len(body["Centers"]) == 1
    assert len(body["FilterOptions"]["RoomTypes"]) == 2


# --- Derived fields -------------------------------------------------------------------------------


def test_favorites_are_those_of_the_account(search, ada):
    mine, theirs = make_center_with_room(name="A"), make_center_with_room(name="B")
    FavoriteFactory(user=ada, center=mine)
    FavoriteFactory(user=UserFactory(), center=theirs)
    flags = [(c["IsFavorite"], c["IsNotFavorite"]) for c in search().json()["Centers"]]
    assert flags == [(True, False), (False, True)]


def test_center_is_live_inventory_if_any_room_is(search):
    center = make_center_with_room(name="A")
    center.rooms.update(is_live_inventory=False)
    mixed = make_center_with_room(name="B")
    MeetingRoomFactory(center=mixed, is_live_inventory=False)
    assert [c["IsLiveInventory"] for c in search().json()["Centers"]] == [False, True]


def test_lowest_rate_is_the_lowest_entry_price_of_the_rooms(search):
    center = CenterFactory()
    for prices in ({"hourly": 30}, {"hourly": 20}, {"hourly": None, "half_day": 5}):
        MeetingRoomFactory(center=center, rate=RateFactory(center=center, **prices))
    assert search().json()["Centers"][0]["LowestRate"] == "$20.00/hour"


# --- Cost -----------------------------------------------------------------------------------------


def equipped_center(index):
    center = make_center_with_room(
        name=f"Center {index:02}", neighborhood=NeighborhoodFactory(), latitude=39.7 + index / 1000
    )
    for _ in range(3):
        MeetingRoomFactory(center=center)
        ServiceFactory(center=center)
        LandmarkFactory(center=center)
    CenterImageFactory(center=center)


def test_more_centers_send_no_more_queries(search):
    counts = []
    for centers in (range(1), range(1, 20)):
        for index in centers:
            equipped_center(index)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            body = search(**DENVER, Query="denver", Filters={"CapacityLow": 2}).json()
        counts.append((len(body["Centers"]), len(queries)))
    assert counts == [(1, 11), (20, 11)]


def test_request_without_token_is_rejected(client):
    assert post(client, PATH, {}).status_code == 401


# --- Against a plain reading of the rule ----------------------------------------------------------


@hypothesis_settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.floats(-90, 90), st.floats(-180, 180)), min_size=1, max_size=6),
    st.tuples(st.floats(-90, 90), st.floats(-180, 180)),
    st.integers(1, 500),
)
def test_circle_finds_exactly_the_centers_within_the_radius(
    transactional_places, spots, around, radius
):
    here = geo.Coordinates(*around)
    near = transactional_places(spots, here, radius)
    miles = [haversine(here, geo.Coordinates(*spot)) for spot in spots]
    wanted = sorted(
        (distance, index) for index, distance in enumerate(miles) if distance < radius - 0.001
    )
    possible = {index for index, distance in enumerate(miles) if distance <= radius + 0.001}
    assert {index for _, index in wanted} <= set(near) <= possible
    distances = [miles[index] for index in near]
    assert distances == pytest.approx(sorted(distances), abs=0.01)


@pytest.fixture
def transactional_places():
    """Replace all centers by these, and return which of them are in the circle."""

    def ask(spots, here, radius):
        rows = []
        for index, (latitude, longitude) in enumerate(spots):
            row = Center(
                name=str(index), latitude=latitude, longitude=longitude, time_zone_id="UTC"
            )
            row.update_search_columns()
            rows.append(row)
        Center.objects.all().delete()
        Center.objects.bulk_create(rows)
        found = Center.objects.within(SearchCircle.around(here, radius)).by_distance(here.vector)
        return [int(center.name) for center in found]

    return ask


def test_capacity_high_of_zero_finds_nothing(names):
    make_center_with_room()
    assert names(Filters={"CapacityHigh": 0}) == []
    assert names(**DENVER, RadiusInMiles=500, Filters={"CapacityHigh": 0}) == []


def test_large_circle_returns_the_nearest_centers(names, settings):
    """The nearest centers fill the page."""
    for miles in (0, 10, 60, 130, 300, 450):
        make_center_with_room(
            name=f"At {miles}", latitude=39.7392 - miles / 69.1, longitude=-104.9903
        )
    expected = [f"At {miles}" for miles in (0, 10, 60, 130, 300, 450)]
    for limit in range(1, 7):
        settings.SEARCH_MAX_RESULTS = limit
        assert names(**DENVER, RadiusInMiles=500) == expected[:limit]
        assert names(**DENVER, RadiusInMiles=100) == expected[:3][:limit]


def test_filter_options_are_the_same_for_a_full_page(search, settings):
    for _ in range(3):
        center = make_center_with_room(neighborhood=NeighborhoodFactory())
        ServiceFactory(center=center)
    options = search(**DENVER).json()["FilterOptions"]
    assert len(options["RoomTypes"]) == len(options["Services"]) == 3
    assert len(options["Neighborhoods"]) == 3

    settings.SEARCH_MAX_RESULTS = 1
    assert search(**DENVER).json()["FilterOptions"] == options
    assert search(**DENVER, Filters={"CapacityLow": 99}).json()["FilterOptions"] == options
