# ruff: noqa: RUF001 (letters that look alike are what these tests are about)
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roombook import places


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Île-de-France", "ile-de-france"),
        ("  São   Paulo ", "sao paulo"),
        ("København", "kobenhavn"),
        ("Łódź", "lodz"),
        ("STRASSE", "straße"),
        ("Đà Nẵng", "da nang"),
        ("Çırağan", "ciragan"),
        ("Œuvre", "oeuvre"),
        ("İstanbul", "istanbul"),
        ("ＤＥＮＶＥＲ", "denver"),
        ("Côte d’Ivoire", "cote d'ivoire"),
    ],
)
def test_any_case_and_any_accent_are_the_same(text, same):
    assert places.fold_text(text) == places.fold_text(same)


@given(st.text())
def test_folding_twice_is_folding_once(text):
    assert places.fold_text(places.fold_text(text)) == places.fold_text(text)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("us", "US"),
        ("USA", "US"),
        ("United States", "US"),
        ("united states of america", "US"),
        ("UK", "GB"),
        ("Great Britain", "GB"),
        ("DEU", "DE"),
        ("Germany", "DE"),
        ("south korea", "KR"),
        ("Holland", "NL"),
        ("cote d'ivoire", "CI"),
        ("Georgia", "GE"),
        ("Atlantis", ""),
        ("", ""),
    ],
)
def test_a_country_is_known_by_code_and_name(name, code):
    assert places.get_country_code(name) == code


def test_every_country_is_known_by_all_its_names():
    for code in ("US", "GB", "DE", "CD", "CG", "KR", "KP"):
        for name in (code, *places.get_country_names(code)[:3]):
            assert places.get_country_code(name) == code


@pytest.mark.parametrize(
    ("country", "state", "pair"),
    [
        ("US", "co", ("CO", "Colorado")),
        ("US", "COLORADO", ("CO", "Colorado")),
        ("CA", "Quebec", ("QC", "Quebec")),
        ("DE", "BE", ("BE", "Berlin")),
        ("FR", "ile-de-france", ("IDF", "Île-de-France")),
        ("US", "Nowhere", ("Nowhere", "Nowhere")),
        ("", "CO", ("CO", "CO")),
    ],
)
def test_a_state_is_known_by_code_and_name(country, state, pair):
    assert places.get_state_code_and_name(country, state) == pair


@pytest.mark.parametrize(
    ("country", "state", "written"),
    [
        ("US", "Colorado", "CO"),
        ("US", "co", "CO"),
        ("FR", "Île-de-France", "Île-de-France"),
        ("FR", "idf", "IDF"),
        ("US", "Nowhere", "Nowhere"),
        ("US", "", ""),
    ],
)
def test_a_state_is_written_as_letters_have_it(country, state, written):
    assert places.format_state(country, state) == written


@pytest.mark.parametrize(
    ("latitude", "longitude", "zone"),
    [
        (39.7392, -104.9903, "America/Denver"),
        (35.68, 139.69, "Asia/Tokyo"),
        (-33.87, 151.21, "Australia/Sydney"),
    ],
)
def test_the_time_zone_of_a_place(latitude, longitude, zone):
    assert places.find_time_zone(latitude, longitude) == zone


def test_time_zones_are_those_that_the_server_knows():
    assert places.is_time_zone("America/Denver")
    assert not places.is_time_zone("America/Atlantis")
    assert not places.is_time_zone("")
