"""Names of countries, states and time zones; text normalized for comparison.

Codes and names are those of ISO 3166 (pycountry) and CLDR (babel), and common names such as USA,
UK and Holland.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import pycountry
from babel import Locale
from django.conf import settings

from roombook.texts import fold_name

# Common names that neither ISO nor CLDR has. Parts of a country, such as Scotland, are not among
# them.
ALIASES = {
    "AE": ("UAE", "Emirates"),
    "CD": ("DR Congo", "DRC"),
    "CZ": ("Czech Republic",),
    "GB": ("UK", "U.K.", "Great Britain", "Britain"),
    "KR": ("Korea",),
    "MK": ("Macedonia",),
    "NL": ("Holland", "The Netherlands"),
    "SZ": ("Swaziland",),
    "TR": ("Turkey",),
    "US": ("U.S.", "U.S.A.", "America", "United States of America"),
}
# Names that contain the name of a part: a search for the part must not find the whole country.
NAMES_WITH_A_PART = {"United Kingdom of Great Britain and Northern Ireland"}
# What zoneinfo lists too: an unset zone, that of the machine, and a template of rules.
NO_PLACES = {"Factory", "localtime", "posixrules"}
# Letters that Unicode does not decompose into a plain letter and a mark.
PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "þ": "th", "æ": "ae", "œ": "oe"}
)
# The dash of a postal code or a house number, as keyboards of several languages type it.
NUMBER_DASHES = re.compile("(?<=\\d)[-‐‑‒–—―−ー](?=\\d)")
MAX_POSTAL_CODE_LENGTH = 10
# Postal addresses here use the code of the state ("Denver, CO 80202"), elsewhere its name or none.
COUNTRIES_THAT_WRITE_STATE_CODES = {"AU", "BR", "CA", "US"}


def fold_text(text: str) -> str:
    """The text without differences of case, accents and white space, for comparison."""
    plain = unicodedata.normalize("NFKD", fold_name(text))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return " ".join(plain.casefold().translate(PLAIN_LETTERS).split())


def join_numbers(text: str) -> str:
    """The normalized text with numbers that a dash divides as one: `100-0001` as `1000001`."""
    return NUMBER_DASHES.sub("", text)


def list_search_texts(texts: Iterable[str], postal_code: str) -> list[str]:
    """Normalize the texts of a place, and add what people type without a dash or a space."""
    folded = [fold_text(text) for text in texts]
    code = "".join(filter(str.isalnum, fold_text(postal_code)))
    return list(dict.fromkeys(filter(None, [*folded, *map(join_numbers, folded), code])))


def shorten_zip_code(word: str) -> str:
    """The five digits of a ZIP code with nine, which few addresses have; else the word itself."""
    return word[:5] if len(word) == 9 and word.isdecimal() else word


def list_postal_codes(text: str) -> list[str]:
    """How a postal code may be stored: `EC2A1DX` as `ec2a 1dx`, `80202-1234` also as `80202`."""
    folded = fold_text(text)
    code = "".join(filter(str.isalnum, folded))
    if len(code) > MAX_POSTAL_CODE_LENGTH:
        return [folded]
    divided = (f"{code[:at]}{by}{code[at:]}" for at in range(1, len(code)) for by in " -")
    return [folded, code, shorten_zip_code(code), *divided]


@cache
def _get_country_codes() -> dict[str, str]:
    """The two-letter code of every country by its folded names and codes."""
    codes: dict[str, str] = {}
    for country in pycountry.countries:
        for name in get_country_names(country.alpha_2):
            codes.setdefault(fold_text(name), country.alpha_2)
    # A code means its own country, even if it is also an alias of another one.
    codes.update({country.alpha_2.lower(): country.alpha_2 for country in pycountry.countries})
    return codes


def get_country_code(name: str) -> str:
    """The two-letter code of a country by any of its names or codes; empty if unknown."""
    return _get_country_codes().get(fold_text(name), "")


@cache
def get_country_names(code: str) -> tuple[str, ...]:
    """All names of a country: its codes, ISO names, CLDR names and aliases."""
    country = pycountry.countries.get(alpha_2=code)
    if country is None:
        return ()
    names = [
        country.alpha_2,
        country.alpha_3,
        country.name,
        getattr(country, "common_name", ""),
        getattr(country, "official_name", ""),
        Locale.parse("en").territories.get(code, ""),
        Locale.parse(settings.LOCALE).territories.get(code, ""),
        *ALIASES.get(code, ()),
    ]
    return tuple(dict.fromkeys(name for name in names if name))


def get_searched_country_names(code: str) -> list[str]:
    """Return the names by which a search finds the centers of a country."""
    return [name for name in get_country_names(code) if name not in NAMES_WITH_A_PART]


@cache
def _get_states(country: str) -> dict[str, tuple[str, str]]:
    """Code and name of every state of a country, by its folded code and by its folded name."""
    found: dict[str, tuple[str, str]] = {}
    subdivisions = pycountry.subdivisions.get(country_code=country) or ()
    # Some countries have a state and a city with the same name. The state, which has no parent,
    # comes first and wins.
    for state in sorted(subdivisions, key=lambda state: (bool(state.parent_code), state.code)):
        pair = (state.code.partition("-")[2], state.name)
        found.setdefault(fold_text(pair[0]), pair)
        found.setdefault(fold_text(pair[1]), pair)
    return found


def get_state_code_and_name(country: str, state: str) -> tuple[str, str]:
    """Code and name of a state by either of them. An unknown state is returned as both."""
    return _get_states(country).get(fold_text(state), (state, state))


def format_state(country: str, state: str) -> str:
    """The state as postal addresses of its country contain it: `CO` for Colorado in the US."""
    code, _ = get_state_code_and_name(country, state)
    is_code = fold_text(code) == fold_text(state)
    return code if is_code or country in COUNTRIES_THAT_WRITE_STATE_CODES else state


def find_time_zone(latitude: float, longitude: float) -> str:
    """The name of the time zone at a position; empty if it is unknown."""
    # The map of time zones takes some megabytes, and only saving a center needs it.
    from tzfpy import get_tz

    name = get_tz(longitude, latitude)
    return name if is_time_zone(name) else ""


def is_time_zone(name: str) -> bool:
    return name in _get_time_zone_names()


@cache
def _get_time_zone_names() -> set[str]:
    """The zones of places. Cached, because zoneinfo reads a folder with hundreds of files."""
    return available_timezones() - NO_PLACES


@cache
def get_time_zone(name: str) -> ZoneInfo:
    """The time zone with this name."""
    return ZoneInfo(name)
