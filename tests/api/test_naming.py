"""Conversion between the contract's names and Python names."""

import pytest

from roombook.naming import to_contract_name, to_contract_path, to_snake_case

PAIRS = [
    ("Id", "id"),
    ("HasCVV", "has_cvv"),
    ("Last4DigitsOfCreditCardNumber", "last4_digits_of_credit_card_number"),
    ("Street1", "street1"),
    ("HasStreet2", "has_street2"),
    ("TimeZoneId", "time_zone_id"),
    ("CityStatePostalCode", "city_state_postal_code"),
    ("IsAfterHoursSupportEnabled", "is_after_hours_support_enabled"),
    ("RadiusInMiles", "radius_in_miles"),
]


@pytest.mark.parametrize(("wire", "ours"), PAIRS)
def test_names_convert_in_both_directions(wire, ours):
    assert to_snake_case(wire) == ours
    assert to_contract_name(ours) == wire


def test_path_converts_to_contract_names():
    assert to_contract_path("service_options.2.quantity") == "ServiceOptions.2.Quantity"
    assert to_contract_path("payment_info.has_cvv") == "PaymentInfo.HasCVV"
