"""Parsers: from the bytes of a body to fields, within bounds."""

import json
import time
from io import BytesIO

import pytest
from django.core.exceptions import RequestDataTooBig
from django.http import UnreadablePostError
from rest_framework.exceptions import ParseError

from roombook.api.operations import MAX_BODY_BYTES, read_body

JSON = "application/json"


def understood(response):
    assert response.status_code == 200, response.content
    return response.json()["Understood"]


# --- what is read -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"Text": "\xc3\xa9"}', JSON),
        (b'\xef\xbb\xbf{"Text": "\xc3\xa9"}', JSON),
        (b'{"Text": "\xc3\xa9"}', "Application/JSON ; Charset=UTF-8"),
        (b'{"Text": "\xc3\xa9"}', 'application/json; charset="utf-8"'),
        (b'{"Text": "\xe9"}', "application/json; charset=latin-1"),
        ('{"Text": "é"}'.encode("utf-16"), "application/json; charset=utf-16"),
        ('{"Text": "é"}'.encode("utf-16-le"), "application/json; charset=utf-16-le"),
        ('\ufeff{"Text": "é"}'.encode("utf-32-be"), "application/json; charset=utf-32-be"),
        (b'{"Text": "\\u00e9"}', "application/json; charset=us-ascii"),
        (b'{"Text": "\x51"}', "application/json; charset=cp037"),
        (b"Text\r\n\xc3\xa9\r\n", "text/csv"),
        (b"\xef\xbb\xbfText\n\xc3\xa9\n", "text/csv; header=present"),
        (b"Text\r\n\xe9\r\n", "text/csv; charset=iso-8859-1"),
    ],
)
def test_body_in_any_charset_is_parsed(post, body, content_type):
    if content_type.endswith("cp037"):
        body = '{"Text": "é"}'.encode("cp037")

    assert understood(post("/api/echo", body, content_type)) == "{'text': 'é'}"


@pytest.mark.parametrize("options", [{"CONTENT_TYPE": JSON}, {}])
def test_empty_body_has_no_fields(post, options):
    assert understood(post("/api/echo", b"", **options)) == "{}"


@pytest.mark.parametrize(
    "charset", ["nonsense", "zlib", "rot13", "idna", "punycode", "undefined", ""]
)
def test_unknown_charset_is_415(refused, charset):
    status, summary, details = refused("/api/echo", b"{}", f"{JSON}; charset={charset}")

    assert (status, summary) == (415, "UnsupportedMediaType")
    assert details == "Content-Type: The charset is not known."


@pytest.mark.parametrize(
    "content_type",
    [
        "", "text/plain", "application/xml", "application/x-www-form-urlencoded", "text/json",
        "*/*", "application/*", "multipart/form-data; boundary=x", "application/jsonp", "json",
    ],
)  # fmt: skip
def test_other_content_type_is_415(refused, content_type):
    assert refused("/api/echo", b"{}", content_type)[:2] == (415, "UnsupportedMediaType")


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "identity, gzip"])
def test_compressed_body_is_415(refused, encoding):
    assert refused("/api/echo", b"{}", HTTP_CONTENT_ENCODING=encoding)[:2] == (
        415, "UnsupportedMediaType"
    )  # fmt: skip


# --- JSON that is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b" ", b"{", b"}", b"[]", b"1", b"null", b'"a"', b"true", b"{'a': 1}", b'{"a": 1,}',
        b'{"a": 1} x', b'{"a"}', b'{"a": 01}', b'{"a": +1}', b'{"a": .5}', b'{"a": "\t"}',
        b'{"a": "\\x"}', b'{"a": "\\ud8"}', b'{"Text": "x', b"\xff", b'{"a": "\xff"}', b"\x00",
        b'{"a": NaN}', b'{"a": Infinity}', b'{"a": -Infinity}', b'{"a": 1e999}', b'{"a": -1e999}',
        b'{"a": 1, "a": 1}', b'{"a": {"b": 1, "b": 2}}', b'[{"a": 1}]', b"{}{}", b"// x\n{}",
        b'{"a": ' + b"9" * 310 + b"}", b'{"a": ' + b"9" * 5000 + b"}",
        b"\xef\xbb\xbf\xef\xbb\xbf{}",
    ],
)  # fmt: skip
def test_invalid_json_is_400(refused, body):
    assert refused("/api/echo", body)[:2] == (400, "InvalidRequest")


def test_parse_error_does_not_repeat_the_body(post):
    card = "4242424242424242"
    for body in (
        f'{{"{card}": 1, "{card}": 2}}',
        f'{{"a": {card}e999}}',
        f'{{"a": {card} {card}}}',
    ):
        response = post("/api/echo", body)
        assert response.status_code == 400
        assert card not in response.content.decode()


def nested(depth):
    return '{"A":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


def test_32_levels_are_parsed_and_33_are_not(post):
    assert post("/api/echo", nested(32)).status_code == 200
    response = post("/api/echo", nested(33))
    assert response.status_code == 400
    assert "deeper than 32" in response.json()["Error"]["Details"]


def test_brackets_side_by_side_or_in_strings_do_not_count_as_depth(post):
    body = json.dumps({"Text": '[{"\\' * 40, "Other": [[]] * 90, "Third": [{}] * 90})

    assert post("/api/echo", body).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000,
        '{"a":' * 40_000,
        '"' + "[" * 40 + '\\"' * 100_000,
        '"\\' * 120_000 + "[" * 40,
        "[" * 40 + '"' + "\\" * 200_000,
    ],
)
def test_hostile_nesting_is_rejected_quickly(refused, body):
    start = time.process_time()

    assert refused("/api/echo", body)[0] == 400
    assert time.process_time() - start < 2


# --- CSV ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body", [b"", b"Text", b"Text\r\na\r\nb\r\n", b'Text\r\n"a', b"Text\r\n\xff"]
)
def test_malformed_csv_is_400(refused, body):
    answer = refused("/api/echo", body, "text/csv", CONTENT_TYPE="text/csv")

    assert answer[:2] == (400, "InvalidRequest")


# --- size ---------------------------------------------------------------------------------------


def body_of(size):
    return b'{"Text": "a"}'.ljust(size)


def test_256_kib_are_read_and_one_byte_more_is_413(post, refused):
    assert post("/api/echo", body_of(MAX_BODY_BYTES)).status_code == 200
    assert refused("/api/echo", body_of(MAX_BODY_BYTES + 1)) == (413, "RequestTooLarge", "")


def test_declared_length_above_the_bound_is_rejected_without_reading(rf):
    request = rf.generic("POST", "/", b"", CONTENT_LENGTH=str(10**9))
    request._stream = None

    with pytest.raises(RequestDataTooBig):
        read_body(request)


@pytest.mark.parametrize("length", ["abc", "-5", "1.0", "٣", "9" * 19])
def test_content_length_that_is_not_a_number_is_400(rf, length):
    with pytest.raises(ParseError):
        read_body(rf.generic("POST", "/", b"", CONTENT_LENGTH=length))


def test_body_that_ends_too_early_is_400(rf):
    request = rf.generic("POST", "/", b"{}", CONTENT_LENGTH="10", **{"wsgi.input": BytesIO(b"{}")})

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


def test_chunked_body_is_read_if_the_server_marks_its_end(rf):
    request = without_length(rf, Chunks(MAX_BODY_BYTES), **{"wsgi.input_terminated": True})

    assert read_body(request) == body_of(MAX_BODY_BYTES)


def test_chunked_body_is_bounded(rf):
    chunks = Chunks(10 * MAX_BODY_BYTES)

    with pytest.raises(RequestDataTooBig):
        read_body(without_length(rf, chunks, **{"wsgi.input_terminated": True}))
    assert chunks.tell() == MAX_BODY_BYTES + 1


def test_body_without_length_and_without_marked_end_is_empty(rf):
    assert read_body(without_length(rf, Chunks(100))) == b""


def test_client_that_disconnects_while_sending_is_400(rf):
    class Gone(BytesIO):
        def read(self, size=-1):
            raise OSError("connection reset")

    with pytest.raises(UnreadablePostError):
        read_body(without_length(rf, Gone(), **{"wsgi.input_terminated": True}))


def test_malformed_chunks_are_400(rf):
    class Broken(BytesIO):
        def read(self, size=-1):
            raise ArithmeticError("Invalid chunk size: ZZ")

    with pytest.raises(ParseError):
        read_body(without_length(rf, Broken(), **{"wsgi.input_terminated": True}))
