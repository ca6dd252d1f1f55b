# ruff: noqa: RUF001 (letters that look alike are what these tests are about)
import pytest

from roombook import places


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Île-de-France", "ile-de-france"),
        ("  São   Paulo ", "sao paulo"),
        ("København", "kobenhavn"),
        ("STRASSE", "straße"),
        ("Çırağan", "ciragan"),
        ("Œuvre", "oeuvre"),
        ("İstanbul", "istanbul"),
        ("ＤＥＮＶＥＲ", "denver"),
        ("Côte d’Ivoire", "cote d'ivoire"),
    ],
)
def test_fold_text_ignores_case_and_accents(text, same):
    assert places.fold_text(text) == places.fold_text(same)


COUNTRIES = {
    "US": ["us", "USA", "United States", "united states of america"],
    "GB": ["UK", "Great Britain", "United Kingdom of Great Britain and Northern Ireland"],
    "DE": ["DEU", "Germany"],
    "KR": ["south korea"],
    "NL": ["Holland"],
    "CI": ["cote d'ivoire"],
    "GE": ["Georgia"],
    # Parts of a country are no names of it.
    "": ["England", "Scotland", "Wales", "Northern Ireland", "Atlantis", ""],
}


@pytest.mark.parametrize(
    ("name", "code"), [(name, code) for code, names in COUNTRIES.items() for name in names]
)
def test_country_code_is_found_by_code_and_name(name, code):
    assert places.get_country_code(name) == code


@pytest.mark.parametrize(
    ("country", "state", "pair"),
    [
        ("US", "co", ("CO", "Colorado")),
        ("CA", "Quebec", ("QC", "Quebec")),
        ("DE", "BE", ("BE", "Berlin")),
        ("FR", "ile-de-france", ("IDF", "Île-de-France")),
        ("US", "Nowhere", ("Nowhere", "Nowhere")),
        ("", "CO", ("CO", "CO")),
    ],
)
def test_state_is_found_by_code_and_name(country, state, pair):
    assert places.get_state_code_and_name(country, state) == pair


@pytest.mark.parametrize(
    ("country", "state", "written"),
    [
        ("US", "Colorado", "CO"),
        ("US", "co", "CO"),
        ("FR", "Île-de-France", "Île-de-France"),
        ("FR", "idf", "IDF"),
        ("US", "", ""),
    ],
)
def test_state_is_formatted_as_its_country_writes_it(country, state, written):
    assert places.format_state(country, state) == written
