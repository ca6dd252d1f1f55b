"""The format of a response: path suffix, then ?format=, then Accept."""

import pytest

from roombook.api.formats import (
    CSVRenderer,
    JSONRenderer,
    select_by_accept_header,
)

RENDERERS = [JSONRenderer(), CSVRenderer()]

ACCEPTS = [
    ("", "json"),
    ("*/*", "json"),
    ("application/json", "json"),
    ("Application/JSON", "json"),
    ("application/json; charset=utf-8", "json"),
    ("application/json;version=2;q=0.4", "json"),
    ("application/*", "json"),
    ("text/csv", "csv"),
    ("TEXT/CSV ; header=present", "csv"),
    ("text/*", "csv"),
    ("text/csv, application/json", "json"),
    ("text/csv, application/json;q=0.9", "csv"),
    ("application/json;q=0, text/csv", "csv"),
    ("application/json;q=0, */*", "csv"),
    ("text/csv;q=0, */*", "json"),
    ("text/csv, */*", "csv"),
    ("text/csv, */*;q=0.1", "csv"),
    ("text/csv;q=0.1, */*", "json"),
    ("application/json, text/plain, */*", "json"),
    ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "json"),
    ("text/csv; q=1.5", "csv"),
    ("text/csv; q=nonsense", "csv"),
    ("text/csv; q=0.001", "csv"),
    ("text/csv; q=-1", "csv"),
    ("text/csv; Q=0, application/json; q=0.1", "json"),
    (",,text/csv,,", "csv"),
    (";;;, text/csv", "csv"),
    ("text/csv;q=0.5;q=0.6", "csv"),
    ("garbage", None),
    ("image/png", None),
    ("*/*;q=0", None),
    ("text/csv;q=0, application/json;q=0.000", None),
    ("*/json", None),
    ("application", None),
    ("application/javascript", None),
    ('"', None),
    ("\x00", None),
]


@pytest.mark.parametrize(("accept", "name"), ACCEPTS)
def test_accept_header_selects_by_quality_then_specificity_then_json(accept, name):
    chosen = select_by_accept_header(accept, RENDERERS, with_jsonp=False)

    assert (chosen.format if chosen else None) == name


@pytest.mark.parametrize(
    ("accept", "name"),
    [
        ("application/javascript", "json"),
        ("text/javascript, */*; q=0.01", "json"),
        ("text/javascript;q=0.5, text/csv", "csv"),
        ("application/xml", None),
    ],
)
def test_javascript_types_mean_json_if_there_is_a_callback(accept, name):
    chosen = select_by_accept_header(accept, RENDERERS, with_jsonp=True)

    assert (chosen.format if chosen else None) == name


JSON, CSV = "application/json", "text/csv; charset=utf-8"

FORMAT_REQUESTS = [
    ("/api/nothing", "text/csv", CSV),
    ("/api/nothing.json", "text/csv", JSON),
    ("/api/nothing.csv", "application/json", CSV),
    ("/api/nothing.csv", "image/png", CSV),
    ("/api/nothing.csv?format=json", "application/json", CSV),
    ("/api/nothing.json?format=xml", "*/*", JSON),
    ("/api/nothing?format=csv", "application/json", CSV),
    ("/api/nothing?format=json", "text/csv", JSON),
    ("/api/nothing?format=csv&format=json", "text/csv", JSON),
    ("/api/nothing?format=", "text/csv", CSV),
    ("/api/nothing?Format=csv", "*/*", JSON),
]


@pytest.mark.parametrize(("path", "accept", "content_type"), FORMAT_REQUESTS)
def test_suffix_precedes_format_which_precedes_accept(post, path, accept, content_type):
    response = post(path, HTTP_ACCEPT=accept)

    assert response.status_code == 200
    assert response["Content-Type"] == content_type


@pytest.mark.parametrize("value", ["xml", "JSON", "api", "json ", "javascript"])
def test_unknown_format_is_406_as_json(refused, value):
    assert refused("/api/nothing", QUERY_STRING=f"format={value}") == (406, "NotAcceptable", "")


def test_unsatisfiable_accept_header_is_406_as_json(refused):
    assert refused("/api/nothing", HTTP_ACCEPT="image/png") == (406, "NotAcceptable", "")


def test_406_is_wrapped_if_the_callback_is_valid(post):
    response = post("/api/nothing?callback=cb&format=xml")

    assert response.status_code == 406
    assert response.content.startswith(b'/**/cb({"Success":false')


@pytest.mark.parametrize(
    "suffix", [".xml", ".JSON", ".", "/", ".json/", ".csv.json", "%0A", ".json%0A"]
)
def test_unknown_suffix_is_an_unknown_path(post, suffix):
    response = post(f"/api/nothing{suffix}")

    assert response.status_code == 404
    assert b"NotFound" in response.content


@pytest.mark.parametrize("charset", ["utf-16", "utf-32", "nonsense"])
def test_query_is_parsed_whatever_the_charset_of_the_body(client, charset):
    response = client.generic(
        "POST",
        "/api/nothing?format=csv",
        "{}".encode("utf-16"),
        content_type=f"application/json; charset={charset}",
    )

    assert response["Content-Type"] == CSV


# --- JSONP --------------------------------------------------------------------------------------

SCRIPT = "application/javascript; charset=utf-8"


@pytest.mark.parametrize(
    "name", ["cb", "a.b.c", "$", "_x1", "jQuery123_456", "A" * 128, "__proto__", "a.$b._c1"]
)
def test_valid_callback_wraps_the_response(post, name):
    response = post(f"/api/nothing?callback={name}")

    assert response.status_code == 200
    assert response["Content-Type"] == SCRIPT
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response.content.decode() == f'/**/{name}({{"Success":true}});'


@pytest.mark.parametrize(
    "name",
    [
        "", "alert(1)", "<script>", "a..b", ".a", "a.", "1a", "a b", "a-b", "a[0]", "A" * 129, "é",
        "a%0A", "%00", "a;b", "a/**/", "%EF%BC%A1",
    ],
)  # fmt: skip
def test_invalid_callback_is_400_and_not_wrapped(post, name):
    response = post(f"/api/nothing?callback={name}")

    assert response.status_code == 400
    assert response["Content-Type"] == JSON
    assert response.json()["Error"]["Details"] == "callback: Must be dotted JavaScript names."


def test_wrapped_response_cannot_end_a_script_or_a_line(post):
    response = post("/api/mirror?callback=cb", {"Text": "</script>\u2028\u2029x"})

    assert b"</" not in response.content
    assert b"<\\/script>\\u2028\\u2029" in response.content


@pytest.mark.parametrize("name", ["cb", "alert(1)"])
def test_callback_is_ignored_for_csv(post, name):
    response = post(f"/api/nothing.csv?callback={name}")

    assert response.status_code == 200
    assert response.content == b"Success\r\ntrue\r\n"


# --- CSV answers --------------------------------------------------------------------------------


def test_csv_rows_are_the_list_with_columns_in_the_contracts_order(post):
    response = post("/api/rows.csv", {"Many": 2})

    assert response.content.decode() == (
        "Success,Before,Rows.Id,Rows.Name,Rows.Note,Rows.Price,Rows.Rooms.0.Id,"
        "Rows.Rooms.0.Tags.0,After.Id,After.Name\r\n"
        "true,b,1,'=1+1,,12.5,,,3,after\r\n"
        'true,,2,"a ""b"", c\r\nd",late,,7,x,,\r\n'
    )
