"""Amounts of money: exact decimals, rounded and formatted in one way.

A deployment has one currency (settings.CURRENCY). Amounts have at most two decimal places: a
currency with three (KWD) is rounded to hundredths, one with none (JPY) to whole units.
"""

from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any

from babel.numbers import format_compact_currency, format_currency, get_currency_precision
from django.conf import settings
from django.db import models

DECIMAL_PLACES = 2

ZERO = Decimal(0)
# The largest amount that fits into a MoneyField.
MAX_AMOUNT = Decimal("9999999999.99")
# SQLite adds in binary floating point. The tolerance is smaller than any coin.
ROUNDING_TOLERANCE = Decimal("0.0001")


class MoneyField(models.DecimalField):
    """An amount in the deployment's currency, up to MAX_AMOUNT."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("max_digits", 12)
        kwargs.setdefault("decimal_places", DECIMAL_PLACES)
        super().__init__(*args, **kwargs)


def get_minor_digits(currency: str | None = None) -> int:
    """The number of decimal places of amounts in this currency, at most two."""
    return min(get_currency_precision(currency or settings.CURRENCY), DECIMAL_PLACES)


def round_amount(amount: Decimal | int, currency: str | None = None) -> Decimal:
    """The amount rounded half up to the currency's minor unit, always with two decimal places."""
    step = Decimal(1).scaleb(-get_minor_digits(currency))
    return Decimal(amount).quantize(step, rounding=ROUND_HALF_UP).quantize(Decimal("0.01"))


def to_hundredths(amount: Decimal | None) -> int:
    """An amount in whole hundredths; 0 for None."""
    return int((amount or ZERO).scaleb(DECIMAL_PLACES).to_integral_value())


def from_hundredths(hundredths: int | None) -> Decimal:
    """The amount with two decimal places; 0.00 for None."""
    return Decimal(hundredths or 0).scaleb(-DECIMAL_PLACES)


def take_share(hundredths: int, part: int, whole: int, currency: str) -> int:
    """`hundredths * part / whole`, rounded as an amount; 0 if the whole is."""
    share = from_hundredths(hundredths) * part / whole if whole else ZERO
    return to_hundredths(round_amount(share, currency))


def format_amount(amount: Decimal | int, currency: str | None = None) -> str:
    """The amount in the service's locale: `$175.00`, `-$20.00`. `currency` is the deployment's."""
    currency = currency or settings.CURRENCY
    return _format_currency(round_amount(amount, currency), currency, settings.LOCALE)


def format_compact_amount(amount: Decimal | int) -> str:
    """The approximate amount, for charts and tiles: `$59.3K`."""
    return str(
        format_compact_currency(
            round_amount(amount), settings.CURRENCY, locale=settings.LOCALE, fraction_digits=1
        )
    )


# A search formats the same few prices again and again.
@lru_cache(maxsize=4096)
def _format_currency(amount: Decimal, currency: str, locale: str) -> str:
    return str(format_currency(amount, currency, locale=locale))
