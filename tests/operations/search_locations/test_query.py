"""POST /api/locations/search: the text query"""

import pytest

from tests.factories_centers import LandmarkFactory, NeighborhoodFactory, make_center_with_room

pytestmark = pytest.mark.django_db


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
