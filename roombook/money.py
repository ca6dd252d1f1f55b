"""Money: exact decimals, one rule of rounding, and the words people read.

One currency a deployment (settings.CURRENCY). Amounts are kept and told with at most two
places: a currency with three (KWD) is kept to hundredths, one with none (JPY) to whole units.
"""

from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any

from babel.numbers import format_compact_currency, format_currency, get_currency_precision
from django.conf import settings
from django.db import models

DECIMAL_PLACES = 2

ZERO = Decimal(0)
# What a MoneyField can hold.
MAX_AMOUNT = Decimal("9999999999.99")


class MoneyField(models.DecimalField):
    """A column of money: up to 9,999,999,999.99 in the deployment's currency."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("max_digits", 12)
        kwargs.setdefault("decimal_places", DECIMAL_PLACES)
        super().__init__(*args, **kwargs)


def get_minor_digits(currency: str | None = None) -> int:
    """How many decimal places an amount of this currency has, at most two."""
    return min(get_currency_precision(currency or settings.CURRENCY), DECIMAL_PLACES)


def round_amount(amount: Decimal | int, currency: str | None = None) -> Decimal:
    """The amount half-up to the currency's minor unit, with two places."""
    step = Decimal(1).scaleb(-get_minor_digits(currency))
    return Decimal(amount).quantize(step, rounding=ROUND_HALF_UP).quantize(Decimal("0.01"))


def format_amount(amount: Decimal | int) -> str:
    """The amount as people of the service's locale write it: `$175.00`, `-$20.00`."""
    return _format_currency(round_amount(amount), settings.CURRENCY, settings.LOCALE)


def format_compact_amount(amount: Decimal | int) -> str:
    """About the amount, where there is little room: `$59.3K`."""
    return str(
        format_compact_currency(
            round_amount(amount), settings.CURRENCY, locale=settings.LOCALE, fraction_digits=1
        )
    )


# A search tells the same few prices over and over.
@lru_cache(maxsize=4096)
def _format_currency(amount: Decimal, currency: str, locale: str) -> str:
    return str(format_currency(amount, currency, locale=locale))
