from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roombook import money


@pytest.mark.parametrize(
    ("amount", "result"),
    [("0.005", "0.01"), ("-0.005", "-0.01"), ("2.675", "2.68"), ("2.6749", "2.67"), (3, "3.00")],
)
def test_rounding_is_half_up_to_the_minor_unit(amount, result):
    assert str(money.round_amount(Decimal(amount))) == result


def test_rounding_follows_the_currency():
    assert str(money.round_amount(Decimal("2.5"), "JPY")) == "3.00"
    assert str(money.round_amount(Decimal("2.555"), "KWD")) == "2.56"


@pytest.mark.parametrize(
    ("amount", "text"),
    [("175", "$175.00"), ("-20", "-$20.00"), ("1234567.891", "$1,234,567.89"), ("0", "$0.00")],
)
def test_amount_is_formatted_for_people(amount, text):
    assert money.format_amount(Decimal(amount)) == text


def test_amount_is_formatted_for_the_currency(settings):
    settings.CURRENCY = "JPY"
    assert money.format_amount(Decimal("175.4")) == "¥175"


@given(st.decimals(-(10**9), 10**9, places=4))
def test_rounding_changes_an_amount_by_half_a_cent_at_most(amount):
    assert abs(money.round_amount(amount) - amount) <= Decimal("0.005")
    assert money.round_amount(money.round_amount(amount)) == money.round_amount(amount)
