"""The format of a response: path suffix, then ?format=, then Accept."""

import pytest

from roombook.api.formats import (
    CSVRenderer,
    JSONPRenderer,
    JSONRenderer,
    select_by_accept_header,
)

RENDERERS = [JSONRenderer(), CSVRenderer()]


@pytest.mark.parametrize(
    ("accept", "name"),
    [
        ("", "json"),
        ("Application/JSON; charset=utf-8", "json"),
        ("text/*", "csv"),
        ("TEXT/CSV ; header=present", "csv"),
        ("text/csv, application/json", "json"),
        ("text/csv, application/json;q=0.9", "csv"),
        ("application/json;q=0, */*", "csv"),
        ("text/csv;q=0, */*", "json"),
        ("text/csv, */*", "csv"),
        ("text/csv;q=0.1, */*", "json"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "json"),
        ("text/csv; q=1.5", "csv"),
        ("text/csv; q=nonsense", "csv"),
        ("text/csv; Q=0, application/json; q=0.1", "json"),
        (";;;, text/csv,,", "csv"),
        ("garbage", None),
        ("*/*;q=0", None),
        ("application/javascript", None),
        ("\x00", None),
    ],
)
def test_accept_header_selects_by_quality_then_specificity_then_json(accept, name):
    chosen = select_by_accept_header(accept, RENDERERS, with_jsonp=False)

    assert (chosen.format if chosen else None) == name


@pytest.mark.parametrize(
    ("accept", "name"),
    [
        ("application/javascript", "json"),
        ("text/javascript;q=0.5, text/csv", "csv"),
        ("application/xml", None),
    ],
)
def test_javascript_types_mean_json_if_there_is_a_callback(accept, name):
    chosen = select_by_accept_header(accept, RENDERERS, with_jsonp=True)

    assert (chosen.format if chosen else None) == name


JSON, CSV = "application/json", "text/csv; charset=utf-8"
PATH = "/api/sign-in"


@pytest.mark.parametrize(
    ("end", "accept", "content_type"),
    [
        ("", "text/csv", CSV),
        (".json", "text/csv", JSON),
        (".csv", "image/png", CSV),
        (".csv?format=json", "application/json", CSV),
        (".json?format=xml", "*/*", JSON),
        ("?format=csv", "application/json", CSV),
        ("?format=csv&format=json", "text/csv", JSON),
        ("?format=", "text/csv", CSV),
        ("?Format=csv", "*/*", JSON),
        (".csv?callback=alert(1)", "*/*", CSV),
    ],
)
def test_suffix_precedes_format_which_precedes_accept(post, end, accept, content_type):
    response = post(f"{PATH}{end}", HTTP_ACCEPT=accept)

    assert b"EmailAddress: Required." in response.content
    assert response["Content-Type"] == content_type


@pytest.mark.parametrize(
    "wanted",
    [{"QUERY_STRING": "format=xml"}, {"QUERY_STRING": "format=JSON"}, {"HTTP_ACCEPT": "image/png"}],
)
def test_unknown_format_is_406_as_json(refused, wanted):
    assert refused(PATH, **wanted) == (406, "NotAcceptable", "")


def test_406_is_wrapped_if_the_callback_is_valid(post):
    response = post(f"{PATH}?callback=cb&format=xml")

    assert response.status_code == 406
    assert response.content.startswith(b'/**/cb({"Success":false')


@pytest.mark.parametrize("suffix", [".xml", ".JSON", ".", "/", ".csv.json", "%0A", ".json%0A"])
def test_unknown_suffix_is_an_unknown_path(refused, suffix):
    assert refused(f"{PATH}{suffix}")[:2] == (404, "NotFound")


@pytest.mark.parametrize("charset", ["utf-16", "nonsense"])
def test_query_is_parsed_whatever_the_charset_of_the_body(post, charset):
    content_type = f"application/json; charset={charset}"
    response = post(f"{PATH}?format=csv", "{}".encode("utf-16"), content_type)

    assert response["Content-Type"] == CSV


# --- JSONP --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["$", "jQuery123_456", "A" * 128, "a.$b._c1"])
def test_valid_callback_wraps_the_response(post, name):
    response = post(f"{PATH}?callback={name}")

    assert response["Content-Type"] == "application/javascript; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"
    content = response.content.decode()
    assert (content[: len(name) + 6], content[-4:]) == (f"/**/{name}({{", "}});")


@pytest.mark.parametrize(
    "name", ["", "alert(1)", "<script>", "a..b", ".a", "a.", "1a", "a-b", "A" * 129, "é", "a%0A"]
)
def test_invalid_callback_is_400_and_not_wrapped(post, name):
    response = post(f"{PATH}?callback={name}")

    assert response.status_code == 400
    assert response["Content-Type"] == JSON
    assert response.json()["Error"]["Details"] == "callback: Must be dotted JavaScript names."


def test_wrapped_response_cannot_end_a_script_or_a_line():
    content = JSONPRenderer("cb").render({"Text": "</script>\u2028\u2029x"})

    assert content == rb'/**/cb({"Text":"<\/script>\u2028\u2029x"});'
