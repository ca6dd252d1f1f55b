"""Names of places: countries and states by code or name, and text made comparable.

Codes and names are ISO 3166 (pycountry), with CLDR's names (babel) beside them, and what people
really type: USA, UK, Holland.
"""

import unicodedata
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import pycountry
from babel import Locale
from django.conf import settings

# What people type and neither ISO nor CLDR knows.
ALIASES = {
    "AE": ("UAE", "Emirates"),
    "CD": ("DR Congo", "DRC"),
    "CZ": ("Czech Republic",),
    "GB": ("UK", "U.K.", "Great Britain", "Britain", "England", "Scotland", "Wales"),
    "KR": ("Korea",),
    "MK": ("Macedonia",),
    "NL": ("Holland", "The Netherlands"),
    "SZ": ("Swaziland",),
    "TR": ("Turkey",),
    "US": ("U.S.", "U.S.A.", "America", "United States of America"),
}
# Letters that Unicode does not take apart into a plain letter and a mark.
PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "þ": "th", "æ": "ae", "œ": "oe"}
    | {"’": "'", "‘": "'", "‐": "-", "‑": "-", "–": "-"}
)
# Where letters carry the state's code ("Denver, CO 80202"); elsewhere they carry its name or none.
COUNTRIES_THAT_WRITE_STATE_CODES = {"AU", "BR", "CA", "US"}


def fold_text(text: str) -> str:
    """Text made comparable: any case and any accent are the same, and any space is one space."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return " ".join(plain.casefold().translate(PLAIN_LETTERS).split())


@cache
def _get_country_codes() -> dict[str, str]:
    """Every folded name and code of a country, with its two-letter code."""
    codes: dict[str, str] = {}
    for country in pycountry.countries:
        for name in get_country_names(country.alpha_2):
            codes.setdefault(fold_text(name), country.alpha_2)
    # A code is that country's, whatever another one is called.
    codes.update({country.alpha_2.lower(): country.alpha_2 for country in pycountry.countries})
    return codes


def get_country_code(name: str) -> str:
    """The two-letter code of a country told by code or name; nothing where it is not known."""
    return _get_country_codes().get(fold_text(name), "")


@cache
def get_country_names(code: str) -> tuple[str, ...]:
    """Everything a country is called: codes, ISO names, CLDR names, what people type."""
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


@cache
def _get_states(country: str) -> dict[str, tuple[str, str]]:
    """A country's states: folded code or name -> (code, name)."""
    found: dict[str, tuple[str, str]] = {}
    subdivisions = pycountry.subdivisions.get(country_code=country) or ()
    # Some countries have a state and a city of one name: the larger one, without a parent, wins.
    for state in sorted(subdivisions, key=lambda state: (bool(state.parent_code), state.code)):
        pair = (state.code.partition("-")[2], state.name)
        found.setdefault(fold_text(pair[0]), pair)
        found.setdefault(fold_text(pair[1]), pair)
    return found


def get_state_code_and_name(country: str, state: str) -> tuple[str, str]:
    """The code and the name of a state told by either; an unknown one is both as it was told."""
    return _get_states(country).get(fold_text(state), (state, state))


def format_state(country: str, state: str) -> str:
    """The state as its country's letters have it: in the United States `CO`, also for Colorado."""
    code, _ = get_state_code_and_name(country, state)
    told_by_code = fold_text(code) == fold_text(state)
    return code if told_by_code or country in COUNTRIES_THAT_WRITE_STATE_CODES else state


def find_time_zone(latitude: float, longitude: float) -> str:
    """The name of the time zone of a place on the map."""
    # Its map of the world takes some megabytes, which only saving a center needs.
    from tzfpy import get_tz

    name = get_tz(longitude, latitude)
    return name if is_time_zone(name) else ""


def is_time_zone(name: str) -> bool:
    """Whether this is a time zone that the server's clock knows."""
    return name in _get_time_zone_names()


@cache
def _get_time_zone_names() -> set[str]:
    """Their names: looking for them reads a folder with hundreds of files."""
    return available_timezones()


@cache
def get_time_zone(name: str) -> ZoneInfo:
    """A time zone by its name."""
    return ZoneInfo(name)
