# ruff: noqa: RUF001 (punctuation that looks alike is what these tests are about)
"""POST /api/locations/search and /api/city-centers: which centers are found, and how they look"""

import re

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from centers import geo
from centers.models import Center
from centers.querysets import SearchCircle
from reservations.notifications import calendar
from tests.centers.test_geo import haversine
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


def test_favorites_are_those_of_the_account(search, ada):
    mine, theirs = make_center_with_room(name="A"), make_center_with_room(name="B")
    FavoriteFactory(user=ada, center=mine)
    FavoriteFactory(user=UserFactory(), center=theirs)
    flags = [(each["IsFavorite"], each["IsNotFavorite"]) for each in search()["Centers"]]
    assert flags == [(True, False), (False, True)]


def test_center_is_live_inventory_if_any_room_is(search):
    center = make_center_with_room(name="A")
    center.rooms.update(is_live_inventory=False)
    mixed = make_center_with_room(name="B")
    MeetingRoomFactory(center=mixed, is_live_inventory=False)
    assert [each["IsLiveInventory"] for each in search()["Centers"]] == [False, True]


# --- Which centers are found at all, and in which order -------------------------------------------


def test_empty_search_finds_all_centers_up_to_the_configured_number(names, settings):
    make_center_with_room(name="Here")
    make_center_with_room(name="There", latitude=None, longitude=None)
    for fields in ({}, {"Query": "", "Filters": {}}, {"Query": " , "}):
        assert names(**fields) == ["Here", "There"]
    assert names(Query="x" * 200) == []
    settings.SEARCH_MAX_RESULTS = 1
    assert names() == ["Here"]


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


def test_order_without_location_is_rank_name_id(names, city_names, settings):
    for name, rank in (("C", 2), ("B", 1), ("A", 2)):
        make_center_with_room(name=name, rank=rank)
    assert names() == city_names(Area="CO") == ["B", "A", "C"]
    settings.SEARCH_MAX_RESULTS = 2
    assert city_names(Area="CO") == ["B", "A"]


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
        ([ResourceTypeFactory().pk], []),
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
        (BOSTON, ["Boston"]),
        ({**BOSTON, "Latitude": 42.70}, ["Boston"]),
        ({**BOSTON, "Latitude": 42.73}, []),
        ({**BOSTON, "Latitude": 42.73, "RadiusInMiles": 26}, ["Boston"]),
        # With a query and without a radius, the location only sorts.
        ({**BOSTON, "Query": "Denver"}, ["Denver"]),
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
def test_distances_are_shown_from_a_location_only(search):
    centers = search(**BOSTON, Query="center")["Centers"]
    distances = [each["DistanceFromQuery"] for each in centers]
    assert distances == [0, pytest.approx(1766.5, abs=3)]
    assert all("DistanceFromQuery" not in each for each in search()["Centers"])


def test_center_without_coordinates_comes_last(search):
    make_center_with_room(name="Lost", latitude=None, longitude=None)
    make_center_with_room(name="Near")
    first, last = search(**DENVER, Query="denver")["Centers"]
    assert (first["Name"], last["Name"]) == ("Near", "Lost")
    assert "DistanceFromQuery" not in last


def find_in_circle(spots, here, radius):
    """Replace all centers by these, and return which of them are in the circle."""
    rows = []
    for index, (latitude, longitude) in enumerate(spots):
        row = Center(name=str(index), latitude=latitude, longitude=longitude, time_zone_id="UTC")
        row.update_search_columns()
        rows.append(row)
    Center.objects.all().delete()
    Center.objects.bulk_create(rows)
    found = Center.objects.within(SearchCircle.around(here, radius)).by_distance(here.vector)
    return [int(center.name) for center in found]


@hypothesis_settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.floats(-90, 90), st.floats(-180, 180)), min_size=1, max_size=6),
    st.tuples(st.floats(-90, 90), st.floats(-180, 180)),
    st.integers(1, 500),
)
def test_circle_finds_exactly_the_centers_within_the_radius(spots, around, radius):
    here = geo.Coordinates(*around)
    near = find_in_circle(spots, here, radius)
    miles = [haversine(here, geo.Coordinates(*spot)) for spot in spots]
    wanted = {index for index, distance in enumerate(miles) if distance < radius - 0.001}
    possible = {index for index, distance in enumerate(miles) if distance <= radius + 0.001}
    assert wanted <= set(near) <= possible
    distances = [miles[index] for index in near]
    assert distances == pytest.approx(sorted(distances), abs=0.01)


def test_large_circle_returns_the_nearest_centers(names, settings):
    """The nearest centers fill the page."""
    miles_away = (0, 10, 60, 130, 300, 450)
    for miles in miles_away:
        latitude = 39.7392 - miles / 69.1
        make_center_with_room(name=f"At {miles}", latitude=latitude, longitude=-104.9903)
    expected = [f"At {miles}" for miles in miles_away]
    for limit in range(1, 7):
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


def test_exact_city_postal_code_or_name_comes_first(names):
    make_center_with_room(name="Denver Road", city="Boulder", rank=1)
    make_center_with_room(name="Uptown", rank=2)
    assert names(Query="denver") == ["Uptown", "Denver Road"]
    assert names(Query="Denver, CO") == ["Uptown", "Denver Road"]
    make_center_with_room(name="Denver", city="Aurora", rank=9)
    assert names(Query="DENVER") == ["Uptown", "Denver", "Denver Road"]
    make_center_with_room(name="80202 Club", postal_code="80014", rank=0)
    assert names(Query="80202")[-1] == "80202 Club"
    make_center_with_room(name="New York Style", rank=1)
    make_center_with_room(name="Loft", city="New York", rank=2)
    assert names(Query="new york co") == ["Loft", "New York Style"]


def test_part_of_a_country_finds_only_centers_that_name_it(names):
    found = {
        "Scotland": ["Hall Scotland"],
        "Wales": ["Hall Wales"],
        "England": ["Hall England"],
        "Northern Ireland": ["Hall Northern Ireland"],
        "Ireland": ["Hall Northern Ireland"],
        "CO": ["Hall Scotland"],  # Every word may be a part of a word.
        "Edinburgh, CO": [],
    }
    london = {"city": "London", "state": "", "postal_code": "EC2A 1DX", "country": "UK"}
    in_uk = {"street1": "1 High Street", "time_zone_id": "Europe/London", **london}
    make_center_with_room(name="City", **in_uk)
    assert names(Query="UK") == names(Query="united kingdom") == names(Query="GB") == ["City"]
    assert {query: names(Query=query) for query in found} == {query: [] for query in found}

    for state in ("Scotland", "Wales", "England", "Northern Ireland"):
        make_center_with_room(name=f"Hall {state}", **in_uk | {"state": state})
    assert {query: names(Query=query) for query in found} == found


# The country, a postal code as its center has it, and how people type it.
POSTAL_CODES = [
    ("GB", "EC2A 1DX", ["EC2A1DX", "ec2a1dx", "EC2A-1DX", "EC2A1", "High EC2A1DX", "(EC2A 1DX)"]),
    ("GB", "SW1A1AA", ["SW1A 1AA", "sw1a1aa"]),
    ("CA", "M5V 2A8", ["M5V2A8", "m5v2a8", "M5V-2A8", "High Street M5V2A8"]),
    ("US", "80202", ["80202-1234", "802021234", "80202–1234", "High, CO 80202-1234", "CO 80202."]),
    ("US", "80203-4321", ["80203", "80203-4321", "802034321"]),
    ("NL", "1012 AB", ["1012AB", "1012ab", "1012-AB"]),
    ("NL", "3011AD", ["3011 AD", "3011ad"]),
    ("SE", "111 22", ["11122", "SE-111 22", "SE-11122", "111-22"]),
    ("PL", "00-950", ["00950", "00-950", "00—950", "PL-00-950"]),
    ("PL", "31045", ["31-045", "31045"]),
    ("PT", "1100-148", ["1100148", "1100-148", "1100 148"]),
    ("BR", "01310-100", ["01310100", "01310-100", "01310 100"]),
    ("JP", "150-0001", ["1500001", "150-0001", "〒150-0001", "１５０－０００１", "150−0001"]),
    ("DE", "D-80331", ["80331", "D80331", "D-80331"]),
    ("IE", "D02 AF30", ["D02AF30", "d02 af30"]),
]


@pytest.fixture
def by_postal_code():
    for country, code, _ in POSTAL_CODES:
        fields = {"country": country, "postal_code": code, "city": "Denver", "state": "CO"}
        make_center_with_room(name=f"At {code}", street1="12-14 High Street", **fields)


@pytest.mark.usefixtures("by_postal_code")
def test_postal_code_is_found_with_and_without_its_space_or_dash(names, city_names):
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


def test_city_with_punctuation_comes_first_however_it_is_divided(names):
    for rank, city in enumerate(("Aurora", "St. Louis", "Winston-Salem", "Salem")):
        make_center_with_room(name=f"St. Louis Winston-Salem {city}", city=city, rank=rank)
    for query in ("St. Louis", "st. louis, co", "ST. LOUIS.", "(St. Louis)"):
        assert names(Query=query)[0].endswith("St. Louis"), query
    assert names(Query="winston-salem")[0].endswith("Winston-Salem")
    assert len(names(Query="St Louis")) == len(names(Query="Winston Salem")) == 4


def test_address_is_found_as_our_emails_show_it(names):
    center = make_center_with_room(
        name="Rooms & Desks at Union Station",
        street1="1701 Wynkoop Street",
        street2="Suite #210-220, 2nd floor",
    )
    make_center_with_room(name="Elsewhere")
    address = f"{center.name}, {calendar.format_postal_address(center)}"
    lines = address.replace(", ", "\n")
    assert len(address.split()) > 16
    for query in (
        *(address, lines, lines.replace("\n", "\r\n"), lines.replace("\n", ",\n  ")),
        *(f"Where: {address}", f"Where\t{address}", f"> Where: {lines}", f"Where:\n{lines}"),
        *(address.upper(), address.replace("80202", "80202-1234"), address.replace(", ", " • ")),
    ):
        assert names(Query=query) == [center.name], query
        assert names(Query=query, **BOSTON) == [center.name], query


@pytest.mark.parametrize("divide", [", ", " ", "; "])
def test_city_and_part_of_the_united_kingdom_find_the_city(names, divide):
    for city, state, code in (
        *(("London", "", "EC2A 1DX"), ("Edinburgh", "Scotland", "EH1 1AA")),
        *(("Cardiff", "", "CF10 1EP"), ("Belfast", "", "BT1 5GS")),
    ):
        in_uk = {"country": "UK", "time_zone_id": "Europe/London", "street1": "1 High Street"}
        make_center_with_room(name=city, city=city, state=state, postal_code=code, **in_uk)
    make_center_with_room(name="Canada", city="London", state="ON", country="CA")
    make_center_with_room(name="Newcastle", city="Newcastle", state="NSW", country="AU")
    for place, found in (
        *(("London|England", ["London"]), ("london|england|UK", ["London"])),
        *(("England|London", ["London"]), ("EC2A1DX|England", ["London"])),
        *(("Edinburgh|Scotland", ["Edinburgh"]), ("Cardiff|Wales", ["Cardiff"])),
        *(("Belfast|Northern Ireland|United Kingdom", ["Belfast"]), ("Denver|England", [])),
        *(("Newcastle|New South Wales", ["Newcastle"]), ("New England", []), ("England", [])),
        *(("Northern Ireland", []), ("London|Ontario", ["Canada"])),
    ):
        assert names(Query=place.replace("|", divide)) == found, place


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
    ):
        assert city_names(**fields) == found, fields
