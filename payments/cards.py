"""Card validation: which cards are accepted, and what of them may be shown. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypedDict

from django.db import models

from accounts.validators import CARD_NUMBER_IN_NAME
from roombook.card_numbers import find_brand, has_digits_of_a_card, passes_luhn
from roombook.errors import InvalidRequest


class CardBrand(models.TextChoices):
    """The values of CardType in the API."""

    VISA = "Visa", "Visa"
    MASTERCARD = "MasterCard", "MasterCard"
    AMERICAN_EXPRESS = "AmericanExpress", "American Express"
    DISCOVER = "Discover", "Discover"
    DINERS_CLUB = "DinersClub", "Diners Club"
    JCB = "JCB", "JCB"
    UNION_PAY = "UnionPay", "UnionPay"
    MAESTRO = "Maestro", "Maestro"


MAX_YEARS_UNTIL_EXPIRY = 50
# Decimal places of a latitude or longitude: 10 cm, and too few digits for a card number.
COORDINATE_PLACES = 6


class CardFields(TypedDict, total=False):
    """The fields of a card in a request, by our names. Fields that were left out are missing."""

    first_name: str
    last_name: str
    company_name: str
    credit_card_number: str
    security_code: str
    expiration_date: datetime
    billing_address: Mapping[str, object]


HOLDER_FIELDS: tuple[Literal["first_name", "last_name", "company_name"], ...] = (
    *("first_name", "last_name", "company_name"),
)


class Secret(str):
    """Text whose repr is masked, so that tracebacks, logs and error reports do not show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'********'"


@dataclass(frozen=True, slots=True)
class Card:
    """A card from a request, on its way to the gateway. It is never stored."""

    number: str = field(repr=False)
    security_code: str = field(repr=False)
    brand: CardBrand
    exp_year: int
    exp_month: int
    first_name: str
    last_name: str
    company_name: str = ""
    billing_address: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def last4(self) -> str:
        return self.number[-4:]

    @property
    def has_cvv(self) -> bool:
        return bool(self.security_code)


def detect_brand(number: str) -> CardBrand | None:
    """The network that issued the number, None if it is unknown."""
    brand = find_brand(number)
    return CardBrand(brand) if brand else None


def parse_card(payment_info: CardFields, *, now: datetime) -> Card:
    """The card of a request. Raises InvalidRequest, which names every invalid field.

    The messages never echo the submitted value, which may be a card number.
    """
    problems: dict[str, str] = {}
    number, brand = _parse_number(payment_info, problems)
    exp_year, exp_month = _parse_expiry(payment_info, now, problems)
    holder = _parse_holder(payment_info, problems)
    card = Card(
        number=Secret(number),
        security_code=Secret(_parse_security_code(payment_info, brand, problems)),
        brand=brand or CardBrand.VISA,
        exp_year=exp_year,
        exp_month=exp_month,
        first_name=holder["first_name"],
        last_name=holder["last_name"],
        company_name=holder["company_name"],
        billing_address=_parse_billing_address(payment_info, problems),
    )
    if problems:
        raise InvalidRequest({f"payment_info.{name}": reason for name, reason in problems.items()})
    return card


def _parse_number(info: CardFields, problems: dict[str, str]) -> tuple[str, CardBrand | None]:
    number = re.sub(r"[ -]", "", info.get("credit_card_number") or "")
    brand = None
    if not number:
        problems["credit_card_number"] = "A card number is needed."
    elif not re.fullmatch(r"\d{12,19}", number, re.ASCII) or not passes_luhn(number):
        problems["credit_card_number"] = "This is not a valid card number."
    else:
        brand = detect_brand(number)
        if brand is None:
            problems["credit_card_number"] = "Cards of this kind are not accepted."
    return number, brand


def _parse_security_code(
    info: CardFields, brand: CardBrand | None, problems: dict[str, str]
) -> str:
    code = (info.get("security_code") or "").strip()
    if not code:
        return ""
    if brand is None:
        lengths, description = "{3,4}", "3 or 4"
    elif brand == CardBrand.AMERICAN_EXPRESS:
        lengths, description = "{4}", "4"
    else:
        lengths, description = "{3}", "3"
    if not re.fullmatch(rf"\d{lengths}", code, re.ASCII):
        problems["security_code"] = f"The security code has {description} digits."
    return code


def _parse_expiry(info: CardFields, now: datetime, problems: dict[str, str]) -> tuple[int, int]:
    expires = info.get("expiration_date")
    if expires is None:
        problems["expiration_date"] = "The date of expiry is needed."
        return now.year, now.month
    # Take the month in the client's own UTC offset: a phone in Berlin sends March as midnight of
    # March 1st, which is still February in UTC.
    if (expires.year, expires.month) < (now.year, now.month):
        problems["expiration_date"] = "This card has expired."
    elif expires.year > now.year + MAX_YEARS_UNTIL_EXPIRY:
        problems["expiration_date"] = "No card is valid for so long."
    return expires.year, expires.month


def _parse_holder(
    info: CardFields, problems: dict[str, str]
) -> dict[Literal["first_name", "last_name", "company_name"], str]:
    holder = {name: (info.get(name) or "").strip() for name in HOLDER_FIELDS}
    for name, text in holder.items():
        if not text and name != "company_name":
            problems[name] = "The cardholder's name is needed."
        elif has_digits_of_a_card(text):
            problems[name] = CARD_NUMBER_IN_NAME
    return holder


def _parse_billing_address(info: CardFields, problems: dict[str, str]) -> dict[str, object]:
    address = dict(info.get("billing_address") or {})
    for name, value in address.items():
        if isinstance(value, str) and has_digits_of_a_card(value):
            problems[f"billing_address.{name}"] = "This looks like a card number."
        elif isinstance(value, float):
            address[name] = round(value, COORDINATE_PLACES)
    return address
