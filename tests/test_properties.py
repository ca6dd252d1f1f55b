"""One answer in three formats: CSV and JSONP say what JSON says, whatever the texts hold (B2)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from centers.models import Center, Landmark, MeetingRoom, Rate, Service
from reservations.models import Allowance, Attendee, LineItem
from roombook import urls
from roombook.api import csv_table
from tests.contract import EXTENSIONS, OPERATIONS
from tests.csv_responses import parse_response
from tests.http import jsonp, post
from tests.world import OPERATIONS_BY_NAME

EVERY = [pytest.param(each, id=each.name) for each in (*OPERATIONS, *EXTENSIONS)]
TABLES = [*zip(urls.contract_paths, OPERATIONS), *zip(urls.extension_paths, EXTENSIONS)]  # noqa: B905
ROWS = {told.name: address.callback.cls.csv_rows_field for address, told in TABLES}

# What a database can hold: no NUL, no half of a surrogate pair.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
RISKY = st.text("'=+-@\t\r\n\",;. a1é\u2028\ufeff</", max_size=8)


@pytest.fixture
def world(world_copy):
    return world_copy


def as_cells(value):
    """A JSON answer as CSV tells it: all values text, and nothing where nothing is."""
    if isinstance(value, dict):
        inner = {name: as_cells(each) for name, each in value.items()}
        return {name: each for name, each in inner.items() if each is not None} or None
    if isinstance(value, list):
        return [as_cells(each) for each in value] or None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def settled(body, name):
    """The body without what is fresh in each answer."""
    if name == "Sign in":
        return {**body, "Token": None}
    if name == "Create reservation":
        # Sequences of PostgreSQL go on where a request is undone.
        def without_ids(value):
            if isinstance(value, dict):
                return {key: without_ids(each) for key, each in value.items() if key != "Id"}
            return [without_ids(each) for each in value] if isinstance(value, list) else value

        return without_ids(body)
    return body


def in_csv(world, name, **instead):
    response = world.call(name, ".csv", **instead)
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    return response.status_code, parse_response(response.content.decode(), rows_field=ROWS[name])


@pytest.mark.parametrize("operation", EVERY)
def test_csv_says_what_json_says(world, operation):
    name = operation.name
    body = world.call(name, ".json").json()
    status, read = in_csv(world, name)

    assert status == 200
    assert settled(read, name) == as_cells(settled(body, name)) | (
        {"Token": None} if name == "Sign in" else {}
    )


@pytest.mark.parametrize("operation", EVERY)
def test_jsonp_says_what_json_says(world, operation):
    name = operation.name
    body = world.call(name).json()
    wrapped = jsonp(world.call(name, "?callback=app.done"), "app.done")

    assert settled(wrapped, name) == settled(body, name)


@pytest.mark.parametrize("operation", EVERY)
def test_refusals_say_the_same_too(world, operation):
    body = world.call(operation.name, AppVersion=1).json()
    status, read = in_csv(world, operation.name, AppVersion=1)

    assert status == 400
    assert read == as_cells(body)
    assert jsonp(world.call(operation.name, "?callback=f", AppVersion=1), "f") == body


@pytest.mark.parametrize("operation", EVERY)
def test_what_json_asks_csv_can_ask(world, operation):
    """A request flattened by the same rule is the same request."""
    fields = world.with_token(operation, world.body(operation))
    cells = {
        csv_table.join_path(path): text for path, text in csv_table.iterate_leaves(fields)
    } or {"AppVersion": ""}

    assert csv_table.parse_request(csv_of(cells)) == (as_cells(fields) or {})
    response = world.call_and_roll_back(
        lambda: world.client.post(
            f"{operation.path}.json", data=csv_of(cells), content_type="text/csv"
        )
    )
    assert response.status_code == 200, response.content
    body = world.call(operation.name).json()
    assert settled(response.json(), operation.name) == settled(body, operation.name)


def csv_of(cells):
    lines = (cells.keys(), cells.values())
    return "".join(
        ",".join('"' + text.replace('"', '""') + '"' for text in line) + "\r\n" for line in lines
    )


def test_whatever_staff_and_customers_write_every_format_says_the_same(world):
    rows = {
        Center: ["name", "street1", "promo_text", "parking_information"],
        MeetingRoom: ["provider"],
        Service: ["description"],
        Rate: ["description"],
        Landmark: ["name", "description", "type"],
        Attendee: ["name", "company_name"],
        LineItem: ["description"],
        Allowance: ["description"],
    }

    @settings(max_examples=30)
    @given(st.data())
    def check(data):
        def ask():
            for model, names in rows.items():
                # Nobody can leave a name empty.
                texts = {
                    name: data.draw(TEXTS | RISKY, name) or ("x" if name == "name" else "")
                    for name in names
                }
                model.objects.update(**texts)
            for name in ("Search locations", "Get reservation", "Get allowances"):
                instead = {"Query": None} if name == "Search locations" else {}
                body = world.call(name, **instead).json()
                assert in_csv(world, name, **instead) == (200, as_cells(body))
                assert jsonp(world.call(name, "?callback=f", **instead), "f") == body

        world.call_and_roll_back(ask)

    check()


def test_many_rows_are_read_back_row_by_row(world):
    body = world.call("List reservations", Statuses=[]).json()
    assert len(body["Reservations"]) == 1
    empty = world.call("List reservations", Statuses=["NoShow"])

    assert empty.json() == {"Success": True, "Reservations": []}
    assert in_csv(world, "List reservations", Statuses=["NoShow"]) == (
        200,
        {"Success": "true"},
    )
    found = world.call("Search locations", Query=None, Filters=None, RadiusInMiles=100).json()
    assert len(found["Centers"]) == 2
    options = {"Query": None, "Filters": None, "RadiusInMiles": 100}
    assert in_csv(world, "Search locations", **options) == (200, as_cells(found))


def test_the_good_requests_are_of_every_operation():
    assert set(ROWS) == set(OPERATIONS_BY_NAME)


def test_an_answer_is_bytes_of_utf_8(world):
    Center.objects.update(name="Ærøskøbing 🏢")
    for end in (".json", ".csv", "?callback=f"):
        response = world.call("Update favorite", end)
        assert "Ærøskøbing 🏢" in response.content.decode("utf-8"), end
    assert post(world.client, "/api/nowhere.csv").content.decode("utf-8").startswith("Success,")
