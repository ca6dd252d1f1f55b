"""CSV and JSONP responses have the same content as JSON responses, for any text (B2)."""

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
ROWS = {operation.name: address.callback.cls.csv_rows_field for address, operation in TABLES}

# Text that a database can store: it has no NUL and no lone surrogate.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
RISKY = st.text("'=+-@\t\r\n\",;. a1é\u2028\ufeff</", max_size=8)


@pytest.fixture
def world(world_copy):
    return world_copy


def convert_to_cells(value):
    """Convert a JSON body to the form of a CSV body: all values are text, without empty ones."""
    if isinstance(value, dict):
        inner = {name: convert_to_cells(each) for name, each in value.items()}
        return {name: each for name, each in inner.items() if each is not None} or None
    if isinstance(value, list):
        return [convert_to_cells(each) for each in value] or None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


# Fields that differ in every response. A rollback does not reset PostgreSQL's sequences.
NEW_FIELDS = {
    "Sign in": {"Token"},
    "Confirm email": {"Token"},
    "Create reservation": {"Id"},
    "Create payment setup": {"Id", "ClientSecret", "Url"},
    "Change reservation": {"Id"},
    "Get receipts": {"Url"},
}


def drop_new_values(body, name):
    """Return the body without the values that differ in every response, such as ids."""
    if isinstance(body, dict):
        kept = body.keys() - NEW_FIELDS.get(name, set())
        return {key: drop_new_values(body[key], name) for key in body if key in kept}
    return [drop_new_values(each, name) for each in body] if isinstance(body, list) else body


def call_in_csv(world, name, **instead):
    response = world.call(name, ".csv", **instead)
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    return response.status_code, parse_response(response.content.decode(), rows_field=ROWS[name])


@pytest.mark.parametrize("operation", EVERY)
def test_csv_response_has_the_content_of_the_json_response(world, operation):
    name = operation.name
    body = world.call(name, ".json").json()
    status, read = call_in_csv(world, name)

    assert status == 200
    assert drop_new_values(read, name) == convert_to_cells(drop_new_values(body, name))


@pytest.mark.parametrize("operation", EVERY)
def test_jsonp_response_has_the_content_of_the_json_response(world, operation):
    name = operation.name
    body = world.call(name).json()
    wrapped = jsonp(world.call(name, "?callback=app.done"), "app.done")

    assert drop_new_values(wrapped, name) == drop_new_values(body, name)


@pytest.mark.parametrize("operation", EVERY)
def test_error_response_has_the_same_content_in_all_formats(world, operation):
    body = world.call(operation.name, AppVersion=1).json()
    status, read = call_in_csv(world, operation.name, AppVersion=1)

    assert status == 400
    assert read == convert_to_cells(body)
    assert jsonp(world.call(operation.name, "?callback=f", AppVersion=1), "f") == body


@pytest.mark.parametrize("operation", EVERY)
def test_csv_request_gets_the_response_of_the_json_request(world, operation):
    """A CSV request with the same fields as a JSON request gets the same response."""
    body = world.with_token(operation, world.body(operation))
    # An empty cell is an absent field.
    fields = {name: value for name, value in body.items() if value != ""}
    cells = {
        csv_table.join_path(path): text for path, text in csv_table.iterate_leaves(fields)
    } or {"AppVersion": ""}

    assert csv_table.parse_request(build_csv(cells)) == (convert_to_cells(fields) or {})
    response = world.call_and_roll_back(
        lambda: world.client.post(
            f"{operation.path}.json", data=build_csv(cells), content_type="text/csv"
        )
    )
    assert response.status_code == 200, response.content
    body = world.call(operation.name).json()
    assert drop_new_values(response.json(), operation.name) == drop_new_values(body, operation.name)


def build_csv(cells):
    lines = (cells.keys(), cells.values())
    return "".join(
        ",".join('"' + text.replace('"', '""') + '"' for text in line) + "\r\n" for line in lines
    )


def test_response_with_any_stored_text_has_the_same_content_in_all_formats(world):
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
        def write_and_compare():
            for model, names in rows.items():
                # A name is required.
                texts = {
                    name: data.draw(TEXTS | RISKY, name) or ("x" if name == "name" else "")
                    for name in names
                }
                model.objects.update(**texts)
            for name in ("Search locations", "Get reservation", "Get allowances"):
                instead = {"Query": None} if name == "Search locations" else {}
                body = world.call(name, **instead).json()
                assert call_in_csv(world, name, **instead) == (200, convert_to_cells(body))
                assert jsonp(world.call(name, "?callback=f", **instead), "f") == body

        world.call_and_roll_back(write_and_compare)

    check()


def test_csv_list_of_no_or_several_rows_has_the_content_of_the_json_list(world):
    body = world.call("List reservations", PageSize=2).json()
    assert len(body["Reservations"]) == 2
    assert call_in_csv(world, "List reservations", PageSize=2) == (200, convert_to_cells(body))
    empty = world.call("List reservations", Statuses=["NoShow"])

    assert empty.json() == {"Success": True, "Reservations": []}
    assert call_in_csv(world, "List reservations", Statuses=["NoShow"]) == (
        200,
        {"Success": "true"},
    )
    found = world.call("Search locations", Query=None, Filters=None, RadiusInMiles=100).json()
    assert len(found["Centers"]) == 2
    options = {"Query": None, "Filters": None, "RadiusInMiles": 100}
    assert call_in_csv(world, "Search locations", **options) == (200, convert_to_cells(found))


def test_world_has_a_valid_request_for_every_operation():
    assert set(ROWS) == set(OPERATIONS_BY_NAME)


def test_response_in_every_format_is_encoded_in_utf_8(world):
    Center.objects.update(name="Ærøskøbing 🏢")
    for end in (".json", ".csv", "?callback=f"):
        response = world.call("Update favorite", end)
        assert "Ærøskøbing 🏢" in response.content.decode("utf-8"), end
    assert post(world.client, "/api/nowhere.csv").content.decode("utf-8").startswith("Success,")
