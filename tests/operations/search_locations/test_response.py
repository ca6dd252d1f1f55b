"""POST /api/locations/search: its response, and what a search costs"""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from centers.models import Center
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
from tests.operations.search_locations.helpers import DENVER, PATH

pytestmark = pytest.mark.django_db


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


def test_search_returns_at_most_the_configured_number(names, settings):
    settings.SEARCH_MAX_RESULTS = 2
    for name in "CBA":
        make_center_with_room(name=name)
    assert names() == ["A", "B"]


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
