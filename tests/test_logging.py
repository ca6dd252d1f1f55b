"""Log formats, request ids and the masking of card numbers."""

import io
import json
import logging
import re
import sys
from urllib.parse import quote, unquote

import pytest
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.test import RequestFactory
from django.views.debug import ExceptionReporter
from hypothesis import assume, given
from hypothesis import strategies as st

from accounts.validators import validate_phone_number
from roombook.backoffice.widgets import StaffTextField
from roombook.card_numbers import (
    find_cards,
    is_card_number,
    iter_card_windows,
    iter_valid_windows,
    mask_cards,
    passes_luhn,
)
from roombook.gunicorn_logger import MaskingFormatter
from roombook.logging import JsonLogFormatter, PlainLogFormatter, RequestIdFilter, request_id
from roombook.middleware import RequestLogMiddleware

CARD = "4242424242424242"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (CARD, "[card 4242]"),
        ("4242 4242 4242 4242", "[card 4242]"),
        ("4242  4242\n4242 -4242", "[card 4242]"),
        ("378282246310005", "[card 0005]"),
        (f"First name: {CARD}.", "First name: [card 4242]."),
        (f"12 {CARD} 123", "12 [card 4242] 123"),
        (f"{CARD} {CARD}", "[card 4242] [card 4242]"),
        ("4242_4242/4242 / 4242", "[card 4242]"),
        ("card=4242+4242+4242+4242", "card=[card 4242]"),
        ("4242\\n4242\\n4242\\n4242", "[card 4242]"),
        ("4242%204242%204242%204242", "[card 4242]"),
        (f"/api/%20{CARD}%20", "/api/%20[card 4242]%20"),
        (f"100%{CARD}", "100%[card 4242]"),
        ("\uff14\uff12" * 8, "[card \uff14\uff12\uff14\uff12]"),
        # The first twelve digits have a valid checksum too: both are masked as one.
        ("0018 4242 4242 4242 4242", "[card 4242]"),
        (f"'{CARD}'", "'[card 4242]'"),
        (f"x{CARD}y", "x[card 4242]y"),
        ("4242424242424241", "4242424242424241"),
        ("reservation 12345 at 2027-03-01 09:00", "reservation 12345 at 2027-03-01 09:00"),
        ("", ""),
    ],
)
def test_possible_card_numbers_are_masked(text, masked):
    assert mask_cards(text) == masked


@pytest.mark.parametrize(
    "separator",
    [
        *(",:;|*=~'·•#&@%^\\_\u2013—/+、<🙂\u00a0\u202f\u3000\u2028\u200b\u2060\u00ad\ufeff\u200e"),
        *("\x07", "\u0301", "\ufe0f\u20e3", ")(", "] [", " - ", ", ", "    ", "\t\t", "\n\n"),
    ],
)
def test_whatever_is_no_letter_separates_groups_for_the_mask_and_for_the_refusal(separator, caplog):
    number = separator.join(("5105", "1051", "0510", "5100"))
    caplog.set_level(logging.INFO)

    RequestLogMiddleware(lambda request: HttpResponse())(RequestFactory().get(f"/x{quote(number)}"))

    shown = [unquote(caplog.messages[0]), *map(mask_cards, (number, repr(number), quote(number)))]
    shown.append(mask_cards(json.dumps(number)))
    for text in shown:
        assert "5100]" in text
        assert "0510" not in text
    with pytest.raises(ValidationError):
        StaffTextField().clean(f"Card {number}, says Ada")
    with pytest.raises(ValidationError):
        validate_phone_number(number)


@pytest.mark.parametrize(
    "text",
    [
        # Each has the digits of a card number in a row, check digit included.
        *("+1 303 555 0105, +1 303 555 0131", "0049 30 123411 71; 0041 44 123 45 68"),
        *("+639171234482", "+49 1512 3456324", "+573001234568 / +573001234281"),
        *(
            "$4,242.42 + $424.24 + $242.42",
            "4.242.424.242.424.242,00 EUR",
            "30.00, 20.45, 21.30, 22.10",
        ),
        *("18:30, 20:45, 21:00, 22:06", "rooms 501, 502, 503, 011", "39.7392358, -104.990377"),
        "2027-01-30 09:00:00.123401",
    ],
)
def test_numbers_that_are_not_grouped_like_a_card_are_not_refused(text):
    groups = re.findall(r"\d+", text)
    windows = ("".join(groups[first : last + 1]) for first, last in iter_valid_windows(groups))
    assert any(map(is_card_number, windows))

    assert StaffTextField().clean(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("42 42 42 42 42 42 42 42", "4-2-4-2-4-2-4-2-4-2-4-2-4-2-4-2", "424 242 424 242 424 2"),
        *("4\ufe0f\u20e32\ufe0f\u20e3" * 8, "+4242 4242 4242 4242", "3782 822463 10005"),
        *("2027-03-01 4242 4242 4242 4242", "18:30 4242 4242, 4242 4242 20:45"),
    ],
)
def test_card_numbers_in_other_groups_are_refused(text):
    with pytest.raises(ValidationError):
        StaffTextField().clean(text)


def test_time_of_a_log_line_is_never_masked():
    for second in range(60):
        line = f"2027-03-01 09:00:{second:02},123 INFO roombook"
        assert mask_cards(line) == line


@st.composite
def cards(draw):
    digits = draw(st.text("0123456789", min_size=11, max_size=18))
    return next(digits + last for last in "0123456789" if passes_luhn(digits + last))


@given(cards(), st.text(max_size=20), st.text(max_size=20))
def test_card_number_in_any_text_is_masked(card, before, after):
    assume(not before[-1:].isdigit() and not after[:1].isdigit())

    assert card not in mask_cards(before + card + after)


@given(st.lists(st.text("0123456789٣", min_size=1, max_size=19), max_size=8))
def test_cards_are_found_exactly_where_the_checksum_is_valid(groups):
    valid = [
        (first, last)
        for first, last in iter_card_windows([len(group) for group in groups])
        if passes_luhn("".join(groups[first : last + 1]))
    ]

    found = find_cards(groups)

    assert all(any(a <= first <= last <= b for a, b in found) for first, last in valid)
    assert all(any(first == a for first, _ in valid) for a, _ in found)


def test_masking_takes_linear_time_in_groups():
    for groups in (100, 1000, 10_000):
        assert len(list(iter_card_windows([1] * groups))) <= 8 * groups
    assert list(iter_card_windows([20] * 1000)) == []


@pytest.fixture(params=[JsonLogFormatter, PlainLogFormatter])
def logger(request):
    """A logger with a handler as in the settings; `written()` returns its output."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RequestIdFilter())
    handler.setFormatter(request.param())
    logger = logging.Logger("trial")
    logger.addHandler(handler)
    logger.written = stream.getvalue
    return logger


def test_every_part_of_a_log_record_is_masked(logger):
    try:
        raise ValueError(f"not a name: {CARD}")
    except ValueError:
        logger.exception("failed for %s", CARD, extra={"holder": f"4242 4242 {CARD[8:]}"})
    logger.info({"number": CARD})
    logger.info("spread over\u00a04242\u00a04242\u00a04242\u00a04242")

    out = logger.written()

    assert "not a name: [card 4242]" in out
    assert CARD not in out.replace(" ", "").replace("\u00a0", "").replace("\\u00a0", "")


@pytest.mark.parametrize("formatter", [JsonLogFormatter(), PlainLogFormatter(), MaskingFormatter()])
@pytest.mark.parametrize(
    "path",
    [
        *("/calendar/3f5e.ics", "/Calendar/3f5e", "/admin/invitation/Mg/3f5e/"),
        "/payments/return?payment_intent=pi_1&payment_intent_client_secret=pi_1_secret_3f5e",
    ],
)
@pytest.mark.parametrize("text", ['line "GET {} HTTP/1.1" of x', "'{}'\nof x", "x{}?"])
def test_secrets_of_paths_are_masked_in_any_text(formatter, path, text):
    record = logging.makeLogRecord({"msg": text.format(path), "request_id": "r"})

    line = formatter.format(record)

    assert "3f5e" not in line
    if isinstance(formatter, JsonLogFormatter):
        line = json.loads(line)["message"]
    before, after = text.split("{}")
    assert before in line
    assert after.strip("?") in line


def test_every_log_line_has_the_request_id(logger):
    token = request_id.set("the-id")
    logger.info("inside")
    request_id.reset(token)

    assert "the-id" in logger.written()


def test_json_log_line_is_one_object():
    record = logging.makeLogRecord(
        {"name": "trial", "levelname": "INFO", "msg": "two\nlines", "request_id": "r", "ms": 1.5}
    )

    line = JsonLogFormatter().format(record)

    assert "\n" not in line
    assert {k: v for k, v in json.loads(line).items() if k != "time"} == {
        "level": "INFO",
        "logger": "trial",
        "request_id": "r",
        "message": "two\nlines",
        "ms": 1.5,
    }


def test_every_log_handler_masks_cards():
    for handler in settings.LOGGING["handlers"].values():
        factory = settings.LOGGING["formatters"][handler["formatter"]]["()"]
        assert factory in {
            "roombook.logging.JsonLogFormatter",
            "roombook.logging.PlainLogFormatter",
        }
    assert logging.getLogger("django").handlers == []


def report(request):
    secret_number = CARD  # noqa: F841  (a report would show it)
    try:
        raise ValueError("out of order")
    except ValueError:
        return ExceptionReporter(request, *sys.exc_info()).get_traceback_text()


@pytest.mark.parametrize("request_", [None, RequestFactory().post("/admin/", {"number": CARD})])
def test_error_reports_hold_no_values(request_):
    assert CARD not in report(request_)
    assert "out of order" in report(request_)
