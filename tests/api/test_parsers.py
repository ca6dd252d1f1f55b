"""Parsers: from the bytes of a body to fields, within bounds."""

import json
import time
from io import BytesIO

import pytest
from django.core.exceptions import RequestDataTooBig
from django.http import UnreadablePostError
from rest_framework.exceptions import ParseError

from roombook.api.formats import CSVParser, JSONParser
from roombook.api.operations import MAX_BODY_BYTES, read_body

JSON = "application/json"
PATH = "/api/sign-in"


def parse(body, media_type=JSON):
    parser = CSVParser if media_type.startswith("text/csv") else JSONParser
    return parser().parse(BytesIO(body), media_type)


# --- What is read -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"Text": "\xc3\xa9"}', JSON),
        (b'\xef\xbb\xbf{"Text": "\xc3\xa9"}', JSON),
        (b'{"Text": "\xc3\xa9"}', 'application/json; Charset="UTF-8"'),
        (b'{"Text": "\xe9"}', "application/json; charset=latin-1"),
        ('{"Text": "é"}'.encode("utf-16"), "application/json; charset=utf-16"),
        ('\ufeff{"Text": "é"}'.encode("utf-32-be"), "application/json; charset=utf-32-be"),
        (b"Text\r\n\xc3\xa9\r\n", "text/csv"),
        (b"\xef\xbb\xbfText\n\xc3\xa9\n", "text/csv; header=present"),
        (b"Text\r\n\xe9\r\n", "text/csv; charset=iso-8859-1"),
    ],
)
def test_body_in_any_charset_is_parsed(body, content_type):
    assert parse(body, content_type) == {"Text": "é"}


@pytest.mark.parametrize("options", [{"CONTENT_TYPE": JSON}, {}])
def test_empty_body_has_no_fields(refused, options):
    assert refused(PATH, b"", **options)[2] == "EmailAddress: Required.\nPassword: Required."


@pytest.mark.parametrize("charset", ["nonsense", "zlib", "idna", "undefined", ""])
def test_unknown_charset_is_415(refused, charset):
    status, summary, details = refused(PATH, b"{}", f"{JSON}; charset={charset}")

    assert (status, summary) == (415, "UnsupportedMediaType")
    assert details == "Content-Type: The charset is not known."


@pytest.mark.parametrize(
    ("content_type", "options"),
    [
        *(("", {}), ("application/x-www-form-urlencoded", {}), ("*/*", {}), ("json", {})),
        *((JSON, {"HTTP_CONTENT_ENCODING": encoding}) for encoding in ("gzip", "identity, gzip")),
    ],
)
def test_other_content_type_or_compressed_body_is_415(refused, content_type, options):
    assert refused(PATH, b"{}", content_type, **options)[:2] == (415, "UnsupportedMediaType")


# --- What is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b" ", b"{", b"[]", b"1", b"null", b"{'a': 1}", b'{"a": 1,}', b'{"a": 1} x', b'{"a": "\t"}',
        b'{"a": "\\ud8"}', b'{"Text": "x', b'{"a": "\xff"}', b"\x00", b'{"a": NaN}',
        b'{"a": -Infinity}', b'{"a": -1e999}', b'{"a": 1, "a": 1}', b'{"a": {"b": 1, "b": 2}}',
        b'{"a": ' + b"9" * 310 + b"}", b'{"a": ' + b"9" * 5000 + b"}",
        b"\xef\xbb\xbf\xef\xbb\xbf{}",
    ],
)  # fmt: skip
def test_invalid_json_is_refused(body):
    with pytest.raises(ParseError):
        parse(body)


@pytest.mark.parametrize("body", [b"", b"Text", b"Text\r\na\r\nb\r\n", b"Text\r\n\xff"])
def test_malformed_csv_is_400(refused, body):
    answer = refused(PATH, body, CONTENT_TYPE="text/csv")

    assert answer[:2] == (400, "InvalidRequest")
    assert "Required." not in answer[2]


def test_parse_error_does_not_repeat_the_body(refused):
    card = "4242424242424242"
    for body in (
        f'{{"{card}": 1, "{card}": 2}}',
        f'{{"a": {card}e999}}',
        f'{{"a": {card} {card}}}',
    ):
        status, _, details = refused(PATH, body)
        assert status == 400
        assert card not in details


def test_32_levels_are_parsed_and_33_are_not():
    def nest(depth):
        return b'{"A":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"

    assert parse(nest(32))
    with pytest.raises(ParseError, match="deeper than 32"):
        parse(nest(33))
    # Brackets side by side or in strings do not count.
    side_by_side = {"Text": '[{"\\' * 40, "Other": [[]] * 90, "Third": [{}] * 90}
    assert parse(json.dumps(side_by_side).encode()) == side_by_side


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'"\\' * 120_000 + b"[" * 40, b"[" * 40 + b'"' + b"\\" * 200_000]
)
def test_hostile_nesting_is_rejected_quickly(body):
    start = time.process_time()

    with pytest.raises(ParseError):
        parse(body)
    assert time.process_time() - start < 2


# --- Size ---------------------------------------------------------------------------------------


def body_of(size):
    return b'{"Text": "a"}'.ljust(size)


def test_256_kib_are_read_and_one_byte_more_is_413(refused):
    assert refused(PATH, body_of(MAX_BODY_BYTES))[0] == 400
    assert refused(PATH, body_of(MAX_BODY_BYTES + 1)) == (413, "RequestTooLarge", "")


def test_declared_length_above_the_bound_is_rejected_without_reading(rf):
    request = rf.generic("POST", "/", b"", CONTENT_LENGTH=str(10**9))
    request._stream = None

    with pytest.raises(RequestDataTooBig):
        read_body(request)


@pytest.mark.parametrize("length", ["-5", "٣", "9" * 19, "10"])
def test_content_length_that_is_no_number_or_more_than_was_sent_is_400(rf, length):
    request = rf.generic(
        "POST", "/", b"{}", CONTENT_LENGTH=length, **{"wsgi.input": BytesIO(b"{}")}
    )

    with pytest.raises(ParseError):
        read_body(request)


class Chunks(BytesIO):
    """A body of unknown length, as gunicorn hands it over."""

    def __init__(self, size):
        super().__init__(body_of(size))

    def read(self, size=-1):
        assert size >= 0, "never without bound"
        return super().read(size)


def without_length(rf, chunks, **options):
    environ = rf._base_environ(
        PATH_INFO="/", REQUEST_METHOD="POST", **{"wsgi.input": chunks, **options}
    )
    return rf.request(**environ)


def test_chunked_body_is_read_within_the_bound_if_the_server_marks_its_end(rf):
    is_marked = {"wsgi.input_terminated": True}
    largest, larger = Chunks(MAX_BODY_BYTES), Chunks(10 * MAX_BODY_BYTES)

    assert read_body(without_length(rf, largest, **is_marked)) == body_of(MAX_BODY_BYTES)
    with pytest.raises(RequestDataTooBig):
        read_body(without_length(rf, larger, **is_marked))
    assert larger.tell() == MAX_BODY_BYTES + 1
    assert read_body(without_length(rf, Chunks(100))) == b""


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (OSError("connection reset"), UnreadablePostError),
        (ArithmeticError("Invalid chunk size: ZZ"), ParseError),
    ],
)
def test_client_that_disconnects_or_sends_malformed_chunks_is_400(rf, raised, expected):
    class Broken(BytesIO):
        def read(self, size=-1):
            raise raised

    with pytest.raises(expected):
        read_body(without_length(rf, Broken(), **{"wsgi.input_terminated": True}))
