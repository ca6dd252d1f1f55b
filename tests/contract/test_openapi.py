"""docs/openapi.json and docs/openapi-3.0.json: up to date, and with the demo data."""

import datetime as dt
import json
import os
import re
import tomllib
from functools import partial
from pathlib import Path

import pytest
import time_machine
from django.core.management import call_command

from accounts.models import CodePurpose, User
from accounts.views import EXAMPLE_CODE
from payments.setups import EXAMPLE_SETUP
from reservations.demo.accounts import DEMO
from reservations.integrations.events import publish_events
from reservations.serializers import EXAMPLE_BOOKED, EXAMPLE_DRAFT
from reservations.views.integrations import EXAMPLE_ACCESS_KEY
from roombook import urls
from roombook.api.operations import EXAMPLE_TOKEN
from tests.conftest import restart_ids
from tests.contract import openapi
from tests.contract.schema import get_operations
from tests.factories_people import make_email_code, make_entered_setup
from tests.webhooks.helpers import make_endpoint
from tests.world import NOW, World

ROOT = Path(__file__).parents[2]
FILES = {"openapi.json": "OPENAPI_3_1", "openapi-3.0.json": "OPENAPI_3_0"}
DOCUMENT = json.loads((ROOT / "docs/openapi.json").read_text())
VIEWS = get_operations([*urls.contract_paths, *urls.extension_paths])


# --- The files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_file_is_valid_and_up_to_date(name, tmp_path):
    options = ["--format", "openapi-json", "--validate", "--fail-on-warn"]
    options += ["--custom-settings", f"tests.contract.openapi.{FILES[name]}"]

    call_command("spectacular", *options, "--file", str(tmp_path / name))

    is_equal = (tmp_path / name).read_bytes() == (ROOT / "docs" / name).read_bytes()
    assert is_equal, "Run `make contract-docs`."


def test_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert DOCUMENT["info"]["version"] == project["version"]


# --- Examples -------------------------------------------------------------------------------------

# A list of which the JSON is longer is shortened to its first element.
MAX_LIST_LENGTH = 600
# Tokens, addresses of pictures and calendars, ids of events.
RANDOM_DIGITS = re.compile("[0-9a-f]{32,}")
RANDOM_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
CURSOR = "the cursor of the next page"


def build_example_response(value):
    """The value without random parts and without most elements of long lists."""
    match value:
        case dict():
            fields = {name: build_example_response(each) for name, each in value.items()}
            return fields | ({"NextCursor": CURSOR} if "NextCursor" in fields else {})
        case list():
            elements = [build_example_response(each) for each in value]
            return elements[:1] if len(json.dumps(elements)) > MAX_LIST_LENGTH else elements
        case str() if RANDOM_UUID.fullmatch(value):
            return EXAMPLE_SETUP
        case str():
            return RANDOM_DIGITS.sub(lambda found: ("0123456789abcdef" * 4)[: len(found[0])], value)
    return value


@pytest.mark.django_db
@pytest.mark.usefixtures("tiny_pictures")
def test_examples_succeed_with_the_demo_data_and_get_the_example_responses(client, settings):
    restart_ids()
    settings.PUBLIC_URL = "https://rooms.example.com"

    def send(path, body, token="", media_type="application/json"):
        body = body.replace(EXAMPLE_TOKEN, token).replace(EXAMPLE_ACCESS_KEY, access_key)
        response = client.post(f"{path}.json", data=body, content_type=media_type)
        assert response.status_code == 200, (path, media_type, response.content)
        return response.json()

    examples = {path: openapi.build_example(view) for path, view in VIEWS.items()}
    answers = {}
    with time_machine.travel(NOW, tick=False):
        call_command("seed_demo", force=True, small=True, verbosity=0)
        endpoint = make_endpoint(created_at=NOW - dt.timedelta(days=90))
        access_key = endpoint.issue_access_key()
        publish_events(now=NOW)
        guest = User.objects.get(email="guest@roombook.example")
        make_email_code(CodePurpose.PASSWORD_RESET, guest.email, guest, EXAMPLE_CODE)
        make_email_code(CodePurpose.EMAIL_CHANGE, "new@roombook.example", guest, EXAMPLE_CODE)
        make_entered_setup(User.objects.get(email=DEMO), now=NOW, key=EXAMPLE_SETUP)
        token = send("/api/sign-in", json.dumps(examples["/api/sign-in"]))["Token"]
        create = "/api/reservations/create"
        draft = send(create, json.dumps(examples[create]), token)
        assert draft["Reservation"]["Id"] == EXAMPLE_DRAFT
        later = json.dumps(examples[create]).replace("T09:00", "T15:00").replace("T14:00", "T17:00")
        booked = send(create, later, token)["Reservation"]["Id"]
        # The other draft uses the included hours.
        select = "/api/reservations/update-allowances"
        without = {**examples[select], "ReservationId": booked, "AllowanceIds": []}
        send(select, json.dumps(without), token)
        check_out = "/api/reservations/checkout"
        send(check_out, json.dumps({**examples[check_out], "ReservationId": booked}), token)
        assert booked == EXAMPLE_BOOKED
        unused = examples["/api/sign-in"] | {"EmailAddress": "leaving@roombook.example"}
        tokens = {"/api/account/delete": send("/api/sign-in", json.dumps(unused))["Token"]}
        for path, example in examples.items():
            signed_in = tokens.get(path, token)
            answers[path] = build_example_response(
                World.call_and_roll_back(partial(send, path, json.dumps(example), signed_in))
            )
            csv_body = openapi.render_csv(example)
            World.call_and_roll_back(partial(send, path, csv_body, signed_in, "text/csv"))

    if "WRITE_EXAMPLES" in os.environ:
        openapi.EXAMPLE_RESPONSES.write_text(json.dumps(answers, indent=1) + "\n")
    stored = json.loads(openapi.EXAMPLE_RESPONSES.read_text())
    assert answers == stored, "Run `make contract-docs`."
