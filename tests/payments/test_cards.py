"""Card validation (B8.1)."""

import traceback
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments.cards import detect_brand, parse_card
from roombook.card_numbers import passes_luhn
from roombook.errors import InvalidRequest

NOW = datetime(2027, 3, 15, 12, 0, tzinfo=UTC)
GOOD = {
    "first_name": "Ada",
    "last_name": "Lovelace",
    "credit_card_number": "4242 4242 4242 4242",
    "security_code": "123",
    "expiration_date": datetime(2031, 2, 1, tzinfo=UTC),
}


def problems(**fields):
    with pytest.raises(InvalidRequest) as refused:
        parse_card({**GOOD, **fields}, now=NOW)
    return refused.value.fields


def with_check_digit(digits):
    return next(f"{digits}{last}" for last in range(10) if passes_luhn(f"{digits}{last}"))


@pytest.mark.parametrize(
    ("number", "brand"),
    [
        ("4242424242424242", "Visa"),
        (with_check_digit("400000000000000000"), "Visa"),
        ("5555555555554444", "MasterCard"),
        (with_check_digit("222100000000000"), "MasterCard"),
        (with_check_digit("272099999999999"), "MasterCard"),
        ("378282246310005", "AmericanExpress"),
        ("6011111111111117", "Discover"),
        (with_check_digit("644000000000000"), "Discover"),
        ("3056930009020004", "DinersClub"),
        ("38520000023237", "DinersClub"),
        ("3566002020360505", "JCB"),
        ("6200000000000005", "UnionPay"),
        ("6304000000000000", "Maestro"),
    ],
)
def test_detect_brand_knows_every_network(number, brand):
    assert passes_luhn(number)
    assert detect_brand(number) == brand


@pytest.mark.parametrize(
    "number",
    [
        "0" * 16,  # no network
        "2220999999999999",  # just outside MasterCard
        "2721000000000000",
        "42424242424242",  # no length of Visa
        "",
        "４" * 16,  # noqa: RUF001 (full-width digits)
    ],
)
def test_detect_brand_of_other_numbers_is_none(number):
    assert detect_brand(number) is None


@given(st.text("0123456789", min_size=11, max_size=18))
def test_luhn_rejects_any_single_wrong_digit(digits):
    number = with_check_digit(digits)
    for place, digit in enumerate(number):
        wrong = str((int(digit) + 1) % 10)
        assert not passes_luhn(number[:place] + wrong + number[place + 1 :])


def test_card_is_valid_until_the_end_of_its_month():
    east, west = timezone(timedelta(hours=13)), timezone(timedelta(hours=-11))
    for good in [
        datetime(2027, 3, 1, tzinfo=UTC),
        datetime(2027, 3, 31, 23, 59, tzinfo=UTC),
        datetime(2027, 3, 1, tzinfo=east),
        datetime(2027, 3, 31, 23, tzinfo=west),
    ]:
        card = parse_card({**GOOD, "expiration_date": good}, now=NOW)
        assert (card.exp_year, card.exp_month) == (2027, 3)
    late = datetime(2027, 2, 28, 23, 59, tzinfo=UTC)
    assert problems(expiration_date=late) == {
        "payment_info.expiration_date": "This card has expired."
    }


def test_repr_of_card_hides_number_and_code():
    card = parse_card({**GOOD, "security_code": "987"}, now=NOW)

    for text in (repr(card), str(card), f"{card}", repr([card.number, card.security_code])):
        assert "4242424242424242" not in text
        assert "987" not in text
    try:
        raise ValueError(card)
    except ValueError as error:
        shown = "".join(traceback.format_exception(error))
        captured = traceback.TracebackException.from_exception(error, capture_locals=True)
        assert "4242424242424242" not in shown + "".join(captured.format())
