"""Detection of card numbers in names and phone numbers."""

import pytest

from accounts.names import contains_card_number, phone_contains_card_number


@pytest.mark.parametrize(
    "text", ["4242424242424242", "Ada 4242-4242-4242-4242", "٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢"]
)
def test_name_with_as_many_digits_as_a_card_is_refused(text):
    assert contains_card_number(text)


@pytest.mark.parametrize(
    "text",
    [
        "4242424242424242",
        "4242 4242 4242 4242",
        "+4242424242424242",
        "378282246310005",
        "٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢",
    ],
)
def test_phone_number_that_may_be_a_card_is_refused(text):
    assert phone_contains_card_number(text)


@pytest.mark.parametrize(
    "text",
    ["", "303-555-0100", "+1 (303) 555-0100 ext. 12", "+49 30 1234567890", "0044 20 7946 0958"],
)
def test_valid_phone_number_is_accepted(text):
    assert not phone_contains_card_number(text)
