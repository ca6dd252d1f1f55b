"""Random requests from the OpenAPI description: no answer is a crash, each is as described.

schemathesis makes them: JSON and CSV, valid and invalid, with each format of the response. In the
short form, tests/test_wrong_values.py has all fields, tests/contract all responses.
"""

import copy
import json
from functools import partial
from pathlib import Path

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from roombook.api.fields import MAX_INT
from tests.contract.conformance import ConformanceChecker
from tests.contract.openapi import render_csv
from tests.contract.schema import ALL_OPERATIONS, CONTRACT
from tests.factories_people import PASSWORD, UserFactory, issue_token
from tests.faults.size import LONG
from tests.world import CODE, END, NEW_EMAIL, START

DOCUMENT = json.loads((Path(__file__).parents[2] / "docs/openapi.json").read_text())
EXAMPLES = 100
# The client of schemathesis cannot read what it asks for, which is gzip.
HEADERS = {"Accept-Encoding": "identity"}
# JSON Schema cannot express all rules, such as that the end of a booking is after its start.
UNSUITABLE = [checks.positive_data_acceptance, checks.negative_data_rejection]

pytestmark = pytest.mark.skipif(not LONG, reason="thousands of requests: make faults")


@schemathesis.serializer("text/csv")
def serialize_csv(context, value):
    return render_csv(value) if isinstance(value, dict) and value else str(value)


@pytest.fixture
def world(world_copy, settings):
    settings.ALLOWED_HOSTS = ["localhost"]  # as schemathesis calls the service
    # The end of a request would close the connection, and with it the transaction of the test.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield world_copy
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def describe_world(world):
    """The description with values that exist, so that requests are not refused at once."""
    document = copy.deepcopy(DOCUMENT)
    rooms = [world.room.pk, world.other_center.rooms.get().pk]
    known = {
        "Id": [world.reservation.pk, MAX_INT],
        "ReservationId": [world.reservation.pk, world.bobs_reservation.pk],
        "RoomId": rooms,
        "MeetingRoomId": rooms,
        "CenterId": [world.center.pk],
        "EmailAddress": [world.ada.email, NEW_EMAIL],
        "NewEmailAddress": ["countess@example.com"],
        "Code": [CODE],
        "Password": [PASSWORD],
        "CurrentPassword": [PASSWORD],
        "NewPassword": ["noisy-harbour-43"],
        "ConfirmNewPassword": ["noisy-harbour-43"],
        "Token": [world.token],
        "StartDate": [START.isoformat()],
        "EndDate": [END.isoformat()],
        "From": [START.isoformat()],
        "To": [END.isoformat()],
        "PromoCode": ["SPRING"],
        "PartnerCode": ["ACME"],
        "CreditCardNumber": ["4242424242424242", "4000000000000002"],
        "SecurityCode": ["737"],
        "ExpirationDate": ["2031-02-28T00:00:00Z"],
        "FirstName": ["Ada"],
        "LastName": ["Lovelace"],
        "WebhookId": [world.webhook.pk],
        "AccessKey": [world.access_key],
        "PaymentSetupId": [world.payment_setup],
        "ReturnUrl": ["https://app.example.com/"],
    }
    for type_name, schema in document["components"]["schemas"].items():
        fields = schema["properties"]
        if type_name.endswith("Request") or type_name == "AccountPaymentInfo":
            fields |= {name: {"enum": known[name]} for name in fields if name in known}
        if type_name == "AccountPaymentInfo":
            # Each is optional, because gateways need different ones.
            schema["required"] = [name for name in fields if name in known]
    delete_account = document["components"]["schemas"]["DeleteAccountRequest"]["properties"]
    # Ada's account is in use, and so cannot be deleted.
    delete_account["Token"] = {"enum": [issue_token(UserFactory())]}
    for path in document["paths"].values():
        content = path["post"]["requestBody"]["content"]
        # The columns of CSV are the fields of JSON.
        content["text/csv"] = content["application/json"]
    return document


@pytest.mark.parametrize("mode", GenerationMode, ids=lambda each: each.value)
@pytest.mark.parametrize("operation", ALL_OPERATIONS, ids=lambda each: each.name)
def test_random_requests_are_answered_as_described(operation, mode, world):
    schema = schemathesis.openapi.from_dict(describe_world(world))
    schema.app = get_wsgi_application()
    checker = ConformanceChecker(CONTRACT)
    statuses = set()

    @hypothesis_settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(schema[operation.path]["POST"].as_strategy(generation_mode=mode))
    def send(case):
        response = world.call_and_roll_back(partial(case.call, headers=HEADERS))
        assert response.status_code < 500
        statuses.add(response.status_code)
        case.validate_response(response, excluded_checks=UNSUITABLE)
        if response.headers["content-type"][0] == "application/json":
            body = response.json()
            checker.check_response(operation, body)
            assert body["Success"] == (response.status_code == 200)
        assert list(checker.differences) == []

    send()
    if mode is GenerationMode.POSITIVE:
        assert 200 in statuses
