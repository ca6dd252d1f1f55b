"""POST /api/reservations/create with the header Idempotency-Key (B23)"""

from datetime import timedelta

import pytest
import time_machine
from django.core.management import call_command
from django.forms.models import model_to_dict
from django.test import Client

from reservations.models import Reservation
from roombook.api import csv_table
from roombook.api.operations import Operation
from roombook.models import SavedResponse
from tests.concurrency import run_concurrently
from tests.factories_centers import ServiceFactory
from tests.factories_people import UserFactory, issue_token
from tests.factories_reservations import NOW, make_draft
from tests.http import post, post_csv
from tests.operations.helpers import refused
from tests.operations.test_drafts import GRACE, NINE_TO_TWELVE

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/reservations/create"
KEY = {"HTTP_IDEMPOTENCY_KEY": "8c5a0e9e-7f5b-4b7c-9d0a-3f1d2b6c4e21"}


@pytest.fixture
def body(token, room):
    coffee = ServiceFactory(center=room.center, needs_duration=True, needs_quantity=True)
    option = {"ServiceId": coffee.pk, "Quantity": 2, "DurationHours": 1.5}
    booking = {"MeetingRoomId": room.pk, **NINE_TO_TWELVE, "ServiceOptions": [option]}
    return {"Token": token, **booking, "Attendees": [GRACE]}


@pytest.mark.parametrize("path", [PATH, f"{PATH}.csv", f"{PATH}.json?callback=app.show"])
def test_repeated_create_gives_the_first_response_byte_for_byte(client, ada, body, path):
    first = post(client, path, body, **KEY)
    # What the customer does in between does not change the response.
    Reservation.objects.update(total_cost=1)
    other_app = {**body, "Token": issue_token(ada), "AppVersion": "2.0", "Unknown": 1}
    cells = {csv_table.join_path(each): text for each, text in csv_table.iterate_leaves(body)}
    cells["ServiceOptions.0.DurationHours"] = "1.50"
    repeated = [
        post(client, path, other_app, **KEY),
        post_csv(client, path, cells, **KEY),
        post(client, path, body, **KEY),
    ]

    assert first.status_code == 200
    for each in repeated:
        assert (each.status_code, each.content) == (200, first.content)
        assert each["Content-Type"] == first["Content-Type"]
    assert Reservation.objects.count() == 1


def test_key_with_another_body_or_that_is_not_printable_ascii_is_refused(client, body):
    post(client, PATH, body, **KEY)

    for change in ({"StartDate": "2027-03-03T09:00:00Z"}, {"Attendees": []}):
        refused(post(client, PATH, {**body, **change}, **KEY), 409, "IdempotencyKeyReused")
    for key in ("a" * 256, "tab\there", "caf\xe9"):
        response = post(client, PATH, body, HTTP_IDEMPOTENCY_KEY=key)
        assert refused(response, 400, "InvalidRequest")["Details"] == (
            "Idempotency-Key: Must have 1 to 255 printable ASCII characters."
        )
    assert Reservation.objects.count() == 1


def test_other_keys_other_accounts_and_no_key_create_again(client, body):
    other_account = {**body, "Token": issue_token(UserFactory())}
    keys = [{"HTTP_IDEMPOTENCY_KEY": key} for key in (" ~", "a" * 255, "A" * 255)]
    later = {"StartDate": "2027-03-04T09:00:00", "EndDate": "2027-03-04T12:00:00"}
    answers = [
        *(post(client, PATH, body, **key) for key in (*keys, {}, {})),
        post(client, PATH, {**other_account, **later}, **keys[0]),
    ]

    assert len({each.json()["Reservation"]["Id"] for each in answers}) == len(answers)


def test_refused_create_can_be_tried_again_with_the_same_key(client, body, room, settings):
    settings.CREATES_PER_HOUR = 1
    other = make_draft(UserFactory(), room, start=NOW + timedelta(days=2))
    taken = {"StartDate": other.start.isoformat(), "EndDate": other.end.isoformat()}

    refused(post(client, PATH, {**body, **taken}, **KEY), 409, "SlotUnavailable")
    refused(post(client, PATH, {**body, "MeetingRoomId": 0}, **KEY), 400, "InvalidRequest")
    assert not SavedResponse.objects.exists()
    other.delete()

    # Even with another body: no response was saved. Repeated requests do not count.
    assert [post(client, PATH, body, **KEY).status_code for _ in range(3)] == [200] * 3
    assert post(client, PATH, body).status_code == 429


def test_key_is_free_after_a_day_and_its_response_deleted(client, body):
    first = post(client, PATH, body, **KEY)
    with time_machine.travel(NOW + timedelta(hours=24, seconds=-1), tick=False):
        call_command("erase_expired", verbosity=0)
        repeated = post(client, PATH, body, **KEY)
    with time_machine.travel(NOW + timedelta(hours=24), tick=False):
        again = post(client, PATH, {**body, "NumberOfAttendees": 4}, **KEY)
        call_command("erase_expired", verbosity=0)
    assert SavedResponse.objects.count() == 1
    with time_machine.travel(NOW + timedelta(hours=48), tick=False):
        call_command("erase_expired", verbosity=0)

    assert repeated.content == first.content
    assert again.json()["Reservation"]["Id"] != first.json()["Reservation"]["Id"]
    assert not SavedResponse.objects.exists()


def test_neither_key_nor_body_is_stored_and_both_are_recognized_with_another_secret_key(
    client, body, settings
):
    key = {"HTTP_IDEMPOTENCY_KEY": "4242 4242 4242 4242"}
    first = post(client, PATH, body, **key)

    stored = model_to_dict(SavedResponse.objects.get())
    content = stored.pop("content")
    # Four digits alone can be a part of a hash.
    assert "42424242" not in (str(stored) + content).replace(" ", "")
    assert GRACE["EmailAddress"] not in str(stored)
    assert body["Token"] not in str(stored) + content
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-" * 8
    assert post(client, PATH, body, **key).content == first.content


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_parallel_creates_with_one_key_create_one_reservation(body):
    answers = run_concurrently([lambda: post(Client(), PATH, body, **KEY)] * 16)

    assert {(each.status_code, each.content) for each in answers} == {(200, answers[0].content)}
    assert Reservation.objects.count() == SavedResponse.objects.count() == 1


def test_secret_response_is_never_saved():
    with pytest.raises(TypeError, match="secret"):
        type("Leak", (Operation,), {"accepts_idempotency_key": True, "returns_secret": True})
