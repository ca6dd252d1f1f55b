"""Detection of card numbers in names, phone numbers and e-mail addresses."""

import time

import pytest

from accounts.validators import email_contains_card_number, phone_contains_card_number


@pytest.mark.parametrize(
    "text",
    [
        *("4242424242424242", "4242 4242 4242 4242", "+4242424242424242", "378282246310005"),
        *("+378282246310005", "+3782 822463 10005", " +36227206271667", "+1234567890123456"),
        *("٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢", "④②④②④②④②④②④②④②④②"),
        # A prefix, a zero or an extension hides none.
        *("0042424242 42424242", "011 4242 4242 4242 4242", "00378282246310005"),
        *("0378282246310005", "011 3782 822463 10005", "Tel. +3782 822463 10005"),
        *("(0)4242 4242 4242 4242", "4242 4242 4242 ext. 4242", "4242 4242 x 4242 4242"),
        *("4222222222222", "4242,4242;4242|4242", "4242\u200b4242\u200b4242\u200b4242"),
    ],
)
def test_phone_number_that_may_be_a_card_is_refused(text):
    assert phone_contains_card_number(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "303-555-0100", "+1 (303) 555-0100 ext. 12", "+49 30 1234567890"),
        # Numbers that pass the check of card numbers.
        *("0049 30 123456 71", "0041 44 123 45 68", "0043 1 23456789 03", "00 33 1 42 68 53 05"),
        *("011 49 30 123456 78", "(011) 44 20 7946 0953", "0011 61 2 9876 5438", "0171 5012345676"),
        *("+49 (0)30 123456 75", "+ 49 30 1234567 03", "\uff0b49 30 123456 71", "030/123456-78900"),
        *("Tel. 0049 30 123456 71", "+0049 30 123456 71", "00\u06649 30 123456 71"),
        # With an extension, which may make it as long as a card number.
        *("303-555-0100 x 1236", "+1 303 555 0100, extension 12347", "1 303 555 0100 ext 4247"),
        *("+49 30 12345678 Durchwahl 1233", "0049 30 123456-71 #4242"),
        # Cards' check digits, but too short, or of no brand.
        *("+4222222222222", "+501800000009", "+88888888888888", "+888888888888880"),
    ],
)
def test_valid_phone_number_is_accepted(text):
    assert not phone_contains_card_number(text)


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [
        ("4242424242424242", True),
        ("4242.4242-4242_4242", True),
        ("ada+4242+4242--4242.4242", True),
        ("1.4242424242424242.2", True),
        ("6205500000000000004", True),
        ("٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢", True),
        ("ada@4242424242424242", False),
        ("4242424242424241", False),
        ("0000000000000000", False),
        ("42424242a42424242", False),
        ("20270301120000.ada", False),
    ],
)
def test_email_with_a_card_number_in_its_local_part_is_refused(name, is_refused):
    address = f"{name}.example.com" if "@" in name else f"{name}@example.com"
    assert email_contains_card_number(address) is is_refused


def test_addresses_with_many_groups_of_digits_are_checked_fast():
    address = "1." * 120 + "1@example.com"
    start = time.process_time()

    # As many as one reservation has attendees. It takes a tenth of a second.
    assert not any(email_contains_card_number(address) for _ in range(100))

    assert time.process_time() - start < 1
