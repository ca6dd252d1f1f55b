# ruff: noqa: RUF001 (punctuation that looks alike is what these tests are about)
"""POST /api/locations/search and /api/city-centers: which centers are found, and how they look"""

import re

import pytest

from centers.models import Center
from reservations.notifications import calendar
from tests.factories_centers import (
    CenterFactory,
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
)
from tests.factories_people import UserFactory

pytestmark = pytest.mark.django_db

PATH = "/api/locations/search"
CITY = "/api/city-centers"
DENVER = {"Latitude": 39.7392, "Longitude": -104.9903}
BOSTON = {"Latitude": 42.3601, "Longitude": -71.0589}


@pytest.fixture
def search(get):
    return lambda **fields: get(PATH, **fields)


@pytest.fixture
def names(search):
    """The names of the centers that a search finds, in order."""
    return lambda **fields: [each["Name"] for each in search(**fields)["Centers"]]


@pytest.fixture
def filtered(names):
    return lambda **filters: names(Filters=filters)


@pytest.fixture
def city_names(get):
    return lambda **fields: [each["Name"] for each in get(CITY, **fields)["Centers"]]


# --- The response ---------------------------------------------------------------------------------


def test_favorites_are_those_of_the_account_and_any_live_room_makes_a_center_live(search, ada):
    mine, theirs, mixed = (make_center_with_room(name=name) for name in "ABC")
    for user, center in ((ada, mine), (UserFactory(), theirs)):
        FavoriteFactory(user=user, center=center)
    theirs.rooms.update(is_live_inventory=False)
    MeetingRoomFactory(center=mixed, is_live_inventory=False)
    names = ("IsFavorite", "IsNotFavorite", "IsLiveInventory")
    shown = [tuple(each[name] for name in names) for each in search()["Centers"]]
    assert shown == [(True, False, True), (False, True, False), (False, True, True)]


# --- Which centers are found at all, and in which order -------------------------------------------


def test_empty_search_finds_all_centers(names):
    make_center_with_room(name="Here")
    make_center_with_room(name="There", latitude=None, longitude=None)
    for fields in ({}, {"Query": "", "Filters": {}}, {"Query": " , "}):
        assert names(**fields) == ["Here", "There"]
    assert names(Query="x" * 200) == []


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


def test_order_without_location_is_rank_name_id_up_to_the_configured_number(
    names, city_names, settings
):
    for name, rank in (("C", 2), ("B", 1), ("A", 2)):
        make_center_with_room(name=name, rank=rank)
    assert names() == city_names(Area="CO") == ["B", "A", "C"]
    settings.SEARCH_MAX_RESULTS = 2
    assert names() == city_names(Area="CO") == ["B", "A"]


# --- Filters --------------------------------------------------------------------------------------


def test_room_filters_must_be_met_by_the_same_room(filtered):
    small, large = ResourceTypeFactory(), ResourceTypeFactory()
    center = CenterFactory(name="Center")
    MeetingRoomFactory(center=center, capacity=4, resource_type=small, is_live_inventory=True)
    MeetingRoomFactory(center=center, capacity=20, resource_type=large, is_live_inventory=False)
    for filters, is_found in (
        ({"CapacityLow": 20, "ResourceTypeIds": [large.pk]}, True),
        ({"CapacityLow": 20, "ResourceTypeIds": [small.pk]}, False),
        ({"CapacityLow": 5, "CapacityHigh": 19}, False),
        ({"CapacityHigh": 0}, False),
        ({"CapacityHigh": 4, "OnlyRealtime": True}, True),
        ({"CapacityLow": 5, "OnlyRealtime": True}, False),
        ({"OnlyAfterHours": True}, False),
        ({"ResourceTypeIds": [small.pk, large.pk]}, True),
        ({"ResourceTypeIds": [], "ServiceIds": [], "NeighborhoodIds": []}, True),
        ({"_connector": "OR", "rooms__reservations__user__password__startswith": "p"}, True),
    ):
        assert filtered(**filters) == (["Center"] if is_found else []), filters
    Center.objects.update(is_after_hours_support_enabled=True)
    assert filtered(OnlyAfterHours=True) == ["Center"]


def test_center_lists_only_rooms_that_meet_the_filters(search):
    center = CenterFactory()
    MeetingRoomFactory(center=center, name="Small", capacity=4)
    MeetingRoomFactory(center=center, name="Large", capacity=20, is_live_inventory=False)
    MeetingRoomFactory(center=center, name="Inactive", capacity=30, is_active=False)
    MeetingRoomFactory(center=center, name="Unpriced", capacity=30, rate=None)
    (found,) = search(Filters={"CapacityLow": 5})["Centers"]
    assert [room["Name"] for room in found["MeetingRooms"]] == ["Large"]
    # The center itself stays what it is.
    assert found["IsLiveInventory"] is True
    (found,) = search()["Centers"]
    assert [room["Name"] for room in found["MeetingRooms"]] == ["Large", "Small"]


def test_service_filter_requires_all_services(filtered):
    coffee, screen, retired = (ServiceTypeFactory() for _ in range(3))
    center = make_center_with_room(name="Both")
    for kind in (coffee, coffee, screen):
        ServiceFactory(center=center, resource_type=kind)
    ServiceFactory(center=make_center_with_room(name="Coffee"), resource_type=coffee)
    ServiceFactory(center=center, resource_type=retired, is_active=False)
    for kinds, found in (
        ([coffee.pk], ["Both", "Coffee"]),
        ([coffee.pk, screen.pk, coffee.pk], ["Both"]),
        ([retired.pk], []),
        ([coffee.pk, 2_000_000_000], []),
    ):
        assert filtered(ServiceIds=kinds) == found


def test_neighborhood_filter_accepts_any_of_them(filtered):
    one, other = NeighborhoodFactory(), NeighborhoodFactory()
    make_center_with_room(name="One", neighborhood=one)
    make_center_with_room(name="Other", neighborhood=other)
    make_center_with_room(name="None")
    assert filtered(NeighborhoodIds=[one.pk]) == ["One"]
    assert filtered(NeighborhoodIds=[one.pk, other.pk]) == ["One", "Other"]


def test_filter_options_ignore_the_filters(search, get, settings):
    boardroom = ResourceTypeFactory(name="Boardroom", position=2)
    desk, attic = (ResourceTypeFactory(name=name, position=1) for name in ("Desk", "Attic"))
    internal = ResourceTypeFactory(name="Storage", internal=True)
    unused = ResourceTypeFactory(name="Unused")
    center = CenterFactory(neighborhood=NeighborhoodFactory(name="LoDo"))
    for kind in (boardroom, desk, attic, internal):
        MeetingRoomFactory(center=center, resource_type=kind)
    MeetingRoomFactory(center=center, resource_type=unused, is_active=False)
    for name, position, is_internal in (("Coffee", 5, False), ("Screen", 4, False), ("Keys", 1, 1)):
        kind = ServiceTypeFactory(name=name, position=position, internal=is_internal)
        ServiceFactory(center=center, resource_type=kind)
    make_center_with_room(city="Boston", neighborhood=NeighborhoodFactory(name="Back Bay"))

    body = search(Query="denver", Filters={"CapacityLow": 1000})

    assert body["Centers"] == []
    assert get(CITY, CityName="denver", Filters={"CapacityLow": 1000}) == body
    options = {
        kind: [each["Name"] for each in choices] for kind, choices in body["FilterOptions"].items()
    }
    assert options == {
        "RoomTypes": ["Attic", "Desk", "Boardroom"],
        "Services": ["Screen", "Coffee"],
        "Neighborhoods": ["LoDo"],
    }
    # They ignore the limit, too.
    make_center_with_room(name="Another", neighborhood=NeighborhoodFactory(name="RiNo"))
    settings.SEARCH_MAX_RESULTS = 1
    options = search(Query="denver")["FilterOptions"]
    assert [each["Name"] for each in options["Neighborhoods"]] == ["LoDo", "RiNo"]


# --- Location and radius --------------------------------------------------------------------------


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
@pytest.mark.parametrize(
    ("fields", "found"),
    [
        # Without a query, 25 miles: these are at 23.5 and 25.6.
        ({**BOSTON, "Latitude": 42.70}, ["Boston"]),
        ({**BOSTON, "Latitude": 42.73}, []),
        ({**BOSTON, "Latitude": 42.73, "RadiusInMiles": 26}, ["Boston"]),
        # With a query and without a radius, the location only sorts.
        ({**BOSTON, "Query": "center"}, ["Boston", "Denver"]),
        ({**DENVER, "Query": "center"}, ["Denver", "Boston"]),
        ({**DENVER, "RadiusInMiles": 500, "Query": "c e n t e r c e"}, ["Denver"]),
        ({**BOSTON, "Query": "Denver", "RadiusInMiles": 500}, []),
        ({**BOSTON, "Query": "center", "RadiusInMiles": 1}, ["Boston"]),
    ],
)
def test_location_query_and_radius_combine(names, fields, found):
    assert names(**fields) == [f"{each} center" for each in found]


@pytest.mark.usefixtures("two_cities")
def test_distances_are_shown_from_a_location_only_and_a_center_without_one_comes_last(search):
    make_center_with_room(name="Lost center", latitude=None, longitude=None)
    near, far, lost = search(**BOSTON, Query="center")["Centers"]
    assert (near["DistanceFromQuery"], lost["Name"]) == (0, "Lost center")
    assert far["DistanceFromQuery"] == pytest.approx(1766.5, abs=3)
    assert "DistanceFromQuery" not in lost
    assert all("DistanceFromQuery" not in each for each in search()["Centers"])


@pytest.mark.parametrize(
    ("here", "inside", "outside"),
    [
        # Across the date line, over a pole, and in the corner of the box around the circle.
        ((0, 179.9), [(0, -179.9), (0.3, 179.9)], [(0, 179.4), (0, -179.4), (0.4, 179.9)]),
        ((89.9, 0), [(89.9, 180), (89.7, -90)], [(89.6, 180), (-89.9, 0)]),
        ((60, 0), [(60.2, 0.4), (60, 0.7)], [(60.3, 0.6), (60, -0.75)]),
    ],
)
def test_circle_of_25_miles_crosses_the_date_line_and_the_poles(names, here, inside, outside):
    for latitude, longitude in [here, *inside, *outside]:
        name = f"At {latitude} {longitude}"
        make_center_with_room(name=name, latitude=latitude, longitude=longitude)
    found = names(Latitude=here[0], Longitude=here[1], RadiusInMiles=25)
    assert found == [f"At {latitude} {longitude}" for latitude, longitude in [here, *inside]]


def test_large_circle_returns_the_nearest_centers_that_fill_the_page(names, settings):
    miles_away = (0, 10, 60, 130, 300, 450)
    for miles in miles_away:
        latitude = 39.7392 - miles / 69.1
        make_center_with_room(name=f"At {miles}", latitude=latitude, longitude=-104.9903)
    expected = [f"At {miles}" for miles in miles_away]
    for limit in (1, 3, 6):
        settings.SEARCH_MAX_RESULTS = limit
        assert names(**DENVER, RadiusInMiles=500) == expected[:limit]
        assert names(**DENVER, RadiusInMiles=100) == expected[:3][:limit]


# --- The text query -------------------------------------------------------------------------------


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


@pytest.mark.usefixtures("munich")
def test_query_finds_every_text_of_a_center_and_nothing_else(names):
    for query in (
        *("cafe muller", "CAFÉ", "strasse", "olprover", "hinterhof", "aufgang c", "munchen", "mÜn"),
        *("by", "Bayern", "80331", "033", "DE", "deu", "germany", "altstadt", "graggenau"),
        *("marienplatz, münchen", "München,BY,80331,Germany"),
    ):
        assert names(Query=query) == ["Café Müller"], query
    for query in ("Hamburg", "München Hamburg", "%", "_", "cafemuller", "\\", "'"):
        assert names(Query=query) == [], query


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


def test_exact_city_postal_code_or_name_comes_first(names):
    make_center_with_room(name="Denver Road", city="Boulder", rank=1)
    make_center_with_room(name="Uptown", rank=2)
    assert names(Query="denver") == ["Uptown", "Denver Road"]
    assert names(Query="Denver, CO") == ["Uptown", "Denver Road"]
    make_center_with_room(name="Denver", city="Aurora", rank=9)
    assert names(Query="DENVER") == ["Uptown", "Denver", "Denver Road"]
    make_center_with_room(name="80202 Club", postal_code="80014", rank=0)
    assert names(Query="80202")[-1] == "80202 Club"
    # However it is divided.
    make_center_with_room(name="St. Louis-Park Style", rank=1)
    make_center_with_room(name="Loft", city="St. Louis-Park", rank=2)
    for query in ("st. louis-park co", "(St. Louis-Park)", "ST. LOUIS-PARK."):
        assert names(Query=query) == ["Loft", "St. Louis-Park Style"], query
    assert len(names(Query="St Louis Park")) == 2


# The country, a postal code as its center has it, and how people type it.
POSTAL_CODES = [
    ("GB", "EC2A 1DX", ["EC2A1DX", "ec2a1dx", "EC2A-1DX", "EC2A1", "High EC2A1DX", "(EC2A 1DX)"]),
    ("GB", "SW1A1AA", ["SW1A 1AA"]),
    ("CA", "M5V 2A8", ["M5V2A8", "M5V-2A8", "High Street M5V2A8"]),
    ("US", "80202", ["80202-1234", "802021234", "80202–1234", "High, CO 80202-1234", "CO 80202."]),
    ("US", "80203-4321", ["80203", "802034321"]),
    ("NL", "1012 AB", ["1012ab", "1012-AB"]),
    ("SE", "111 22", ["11122", "SE-111 22", "SE-11122", "111-22"]),
    ("PL", "00-950", ["00950", "00—950", "PL-00-950"]),
    ("JP", "150-0001", ["1500001", "〒150-0001", "１５０－０００１", "150−0001"]),
    ("DE", "D-80331", ["80331", "D80331"]),
    ("IE", "D02 AF30", ["d02 af30"]),
]


def test_postal_code_is_found_with_and_without_its_space_or_dash(names, city_names):
    for country, code, _ in POSTAL_CODES:
        fields = {"country": country, "postal_code": code, "city": "Denver", "state": "CO"}
        make_center_with_room(name=f"At {code}", street1="12-14 High Street", **fields)
    for _, code, spellings in POSTAL_CODES:
        for query in (code, *spellings):
            assert names(Query=query) == [f"At {code}"], query
            # An area is a whole code and nothing else.
            is_area = re.fullmatch(r"(?!SE|PL|EC2A1$|80203$|80331$)[\w－−–—-]+", query)
            if is_area:
                assert city_names(AreaType="PostalCode", Area=query) == [f"At {code}"], query
    for query in ("EC2A1DY", "80204-1234", "00-951", "12-15 high", "150-00011"):
        assert names(Query=query) == [], query
        assert city_names(AreaType="PostalCode", Area=query) == [], query
    assert len(names(Query="12–14 high")) == len(POSTAL_CODES)


DIVIDED = """Denver. | Denver - CO | Denver;CO | Denver, Colorado, USA | Denver/CO | Denver—CO
    | Denver-CO | Denver (CO) | Denver, CO. | "Denver" | denver: co | - Denver | Denver，CO
    | Denver、CO | • Denver | Denver, U.S.A. | > Denver, CO | Denver\tCO | o’hare, #200
    | 200 (O'Hare) | Denver\N{NO-BREAK SPACE}CO | Denver · CO | Denver,,CO | Denver & CO"""


def test_query_is_read_whatever_divides_its_words(names):
    make_center_with_room(name="Rooms", street1="5 O'Hare Way, Suite #200")
    for query in [*DIVIDED.split("|"), "Denver | CO | USA", "Denver " * 40]:
        assert names(Query=query) == ["Rooms"], query
    for query in ("...", ";", "- -", "Denver; TX", "Denver-Boulder"):
        assert names(Query=query) == [], query


def test_address_is_found_as_our_emails_show_it(names):
    fields = {"street1": "1701 Wynkoop Street", "street2": "Suite #210-220, 2nd floor"}
    center = make_center_with_room(name="Rooms & Desks at Union Station", **fields)
    address = f"{center.name}, {calendar.format_postal_address(center)}"
    lines = address.replace(", ", "\r\n")
    assert len(address.split()) > 16
    for query in (f"> Where: {lines}", address.upper(), address.replace("80202", "80202-1234")):
        assert names(Query=query) == names(Query=query, **BOSTON) == [center.name], query


def test_part_of_the_united_kingdom_is_found_as_a_state_or_after_its_city(names):
    in_uk = {"country": "UK", "time_zone_id": "Europe/London", "street1": "1 High Street"}
    for city, state, code in (
        *(("London", "", "EC2A 1DX"), ("Edinburgh", "Scotland", "EH1 1AA")),
        *(("Cardiff", "", "CF10 1EP"), ("Belfast", "", "BT1 5GS")),
    ):
        make_center_with_room(name=city, city=city, state=state, postal_code=code, **in_uk)
    make_center_with_room(name="Canada", city="London", state="ON", country="CA")
    make_center_with_room(name="Newcastle", city="Newcastle", state="NSW", country="AU")
    for query, found in (
        *(("London, England", ["London"]), ("london; england UK", ["London"])),
        *(("England London", ["London"]), ("EC2A1DX, England", ["London"])),
        *(("Edinburgh, Scotland", ["Edinburgh"]), ("Cardiff Wales", ["Cardiff"])),
        *(("Belfast, Northern Ireland, United Kingdom", ["Belfast"]), ("Denver, England", [])),
        *(("Newcastle, New South Wales", ["Newcastle"]), ("New England", []), ("England", [])),
        # Every word may be a part of a word.
        *(("Scotland", ["Edinburgh"]), ("CO", ["Edinburgh"]), ("Leith, CO", [])),
        *(("Northern Ireland", []), ("London, Ontario", ["Canada"])),
        *((name, ["Belfast", "Cardiff", "Edinburgh", "London"]) for name in ("UK", "GB")),
    ):
        assert names(Query=query) == found, query


# --- City centers ---------------------------------------------------------------------------------


@pytest.fixture
def many_areas():
    for name, fields in {
        "Denver": {"neighborhood": NeighborhoodFactory(name="LoDo")},
        "Boulder": {"postal_code": "80301"},
        "Seattle": {"state": "WA", "postal_code": "98101"},
        "Perth": {"state": "WA", "country": "AU", "time_zone_id": "Australia/Perth"},
        "Edinburgh": {
            "state": "Scotland",
            "country": "GB",
            "postal_code": "EH1 1AA",
            "time_zone_id": "Europe/London",
        },
        "Paris": {
            "state": "Île-de-France",
            "country": "France",
            "postal_code": "75001",
            "time_zone_id": "Europe/Paris",
            "neighborhood": NeighborhoodFactory(
                name="Le Marais", original_name="3e arrondissement"
            ),
        },
    }.items():
        make_center_with_room(name=name, city=name, **fields)


@pytest.mark.usefixtures("many_areas")
def test_area_is_found_by_name_or_code(city_names):
    for fields, found in (
        ({"Area": "colorado"}, ["Boulder", "Denver"]),
        ({"AreaType": "State", "Area": "Washington"}, ["Seattle"]),
        ({"AreaType": "State", "Area": "WESTERN AUSTRALIA"}, ["Perth"]),
        ({"AreaType": "State", "Area": "wa"}, ["Perth", "Seattle"]),
        ({"AreaType": "State", "Area": "ile-de-france"}, ["Paris"]),
        ({"AreaType": "Country", "Area": "United States"}, ["Boulder", "Denver", "Seattle"]),
        ({"AreaType": "Country", "Area": "FRA"}, ["Paris"]),
        ({"AreaType": "City", "Area": "PERTH"}, ["Perth"]),
        ({"AreaType": "City", "Area": "Per"}, []),
        ({"AreaType": "Neighborhood", "Area": "lodo"}, ["Denver"]),
        ({"AreaType": "Neighborhood", "Area": "3E Arrondissement"}, ["Paris"]),
        ({"AreaType": "PostalCode", "Area": "75001"}, ["Paris"]),
        ({"CityName": "boulder"}, ["Boulder"]),
        ({"Area": "WA", "CityName": "Boulder"}, []),
        ({"Area": "SCT"}, ["Edinburgh"]),
        ({"AreaType": "Country", "Area": "Scotland"}, []),
        ({"AreaType": "Country", "Area": "UK"}, ["Edinburgh"]),
        ({"AreaType": "Country", "Area": "Atlantis"}, []),
        ({"AreaType": "PostalCode", "Area": "7500%"}, []),
    ):
        assert city_names(**fields) == found, fields
