"""Invalid and unusual values in every field of every operation (B1, B3).

No value crashes an operation. Every response has the envelope; an error names the field and does
not repeat its value. There are thousands of combinations, so each test covers all fields of one
operation.
"""

import json
from copy import deepcopy

import pytest
from django.contrib.auth import get_user_model

from reservations.models import Reservation
from roombook.api import csv_table
from tests.contract import iterate_paths
from tests.factories_people import AdministratorFactory, UserFactory, issue_token
from tests.http import post
from tests.world import CARD_NUMBER, NOW, OPERATIONS_BY_NAME, SECURITY_CODE
from tests.wrong_values import (
    CELLS,
    DATES,
    EVERY,
    MARK,
    UNREADABLE,
    VALUES,
    WITH_FIELDS,
    WITH_TOKEN,
    build_valid_body,
    check_envelope,
    is_named,
    is_of_type,
    replace_value,
    send,
    send_cells,
    values_for,
)

# Their responses have new secrets and ids.
NEW_EACH_TIME = {
    *("Sign in", "Create reservation", "Get calendar", "Confirm email", "Create payment setup"),
    *("Change reservation", "Get receipts"),
}


PREVIEWED = {path for path, _ in iterate_paths(OPERATIONS_BY_NAME["Preview change"].request)}


def is_covered(name, path):
    """Whether a faster operation reads the cells of this field in the same way."""
    if path.startswith("PaymentInfo."):
        return name != "Update payment info"
    return name == "Change reservation" and path in PREVIEWED


@pytest.fixture
def world(world_copy):
    return world_copy


# --- Values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", WITH_FIELDS)
def test_any_value_is_accepted_or_rejected_naming_its_field(world, operation):
    for path, type_name in iterate_paths(operation.request):
        good = build_valid_body(world, operation, path)
        for value in values_for(type_name):
            about = (path, repr(value)[:80])
            response = send(world, operation, replace_value(good, path, value))
            body = check_envelope(response, about)
            if not is_of_type(value, type_name):
                assert response.status_code == 400, about
            if response.status_code == 400:
                assert body["Error"]["Summary"] == "InvalidRequest", about
                assert is_named(path, body), (*about, body)


@pytest.mark.parametrize("operation", WITH_FIELDS)
def test_null_is_the_same_as_absent(world, operation):
    for path, _ in iterate_paths(operation.request):
        if path.endswith(".0"):
            continue  # Elements of lists cannot be null.
        good = build_valid_body(world, operation, path)
        with_null = send(world, operation, replace_value(good, path, None))
        without = deepcopy(good)
        *above, last = path.split(".")
        node = without
        for part in above:
            node = node[int(part) if part.isdigit() else part]
        node.pop(last, None)  # Of two fields that exclude each other, one is absent.
        check_envelope(with_null, path)
        answer = send(world, operation, without)
        assert with_null.status_code == answer.status_code, path
        if operation.name not in NEW_EACH_TIME:
            assert with_null.json() == answer.json(), path


@pytest.mark.parametrize("operation", WITH_FIELDS)
def test_unreadable_value_makes_the_body_invalid(world, operation):
    for name in operation.request:
        for raw in UNREADABLE:
            fields = world.with_token(operation, replace_value(world.body(operation), name, MARK))
            text = json.dumps(fields).replace(f'"{MARK}"', raw)
            response = world.client.post(operation.path, data=text, content_type="application/json")
            body = check_envelope(response, (name, raw[:40]))
            assert response.status_code == 400, (name, raw[:40])
            assert body["Error"]["Summary"] == "InvalidRequest"


@pytest.mark.parametrize("operation", WITH_FIELDS)
def test_any_csv_cell_is_accepted_or_rejected_naming_its_field(world, operation):
    for path, type_name in iterate_paths(operation.request):
        if is_covered(operation.name, path):
            continue
        good = world.with_token(operation, world.body(operation))
        cells = {csv_table.join_path(each): text for each, text in csv_table.iterate_leaves(good)}
        others = {
            name: text
            for name, text in cells.items()
            if name != path and not name.startswith(f"{path}.")
        }
        for cell in [*CELLS, *(DATES if type_name == "DateTime" else [])]:
            about = (path, repr(cell)[:80])
            response = send_cells(world, operation, {**others, path: cell})
            body = check_envelope(response, about)
            if response.status_code == 400:
                assert is_named(path, body), (*about, body)


@pytest.mark.parametrize("name", ["Update payment info", "Checkout"])
def test_card_data_is_never_repeated(world, name):
    """Neither if the card is valid nor if any other field is invalid."""
    operation = OPERATIONS_BY_NAME[name]
    for path, _ in iterate_paths(operation.request):
        for value in ("", "abc", 0, [], {}, "2020-01-01T00:00:00Z", CARD_NUMBER):
            response = send(world, operation, replace_value(world.body(operation), path, value))
            check_envelope(response, (path, value))
            text = response.content.decode()
            assert CARD_NUMBER not in text, path
            assert f'"{SECURITY_CODE}"' not in text, path
    number = "4111 1111 1111 1112"
    for value in (number, number.replace(" ", "-"), number.replace(" ", "")):
        for field in ("CreditCardNumber", "SecurityCode", "FirstName", "LastName", "CompanyName"):
            body = replace_value(world.body(operation), f"PaymentInfo.{field}", value)
            response = send(world, operation, body)
            assert response.status_code == 400
            assert value not in response.content.decode()
            assert f"PaymentInfo.{field}:" in response.json()["Error"]["Details"]


# --- Unknown fields -----------------------------------------------------------------------------


@pytest.mark.parametrize("operation", EVERY)
def test_unknown_fields_change_nothing(world, operation):
    extra = {
        "Status": "Confirmed",
        "TotalCost": 0.01,
        "Total": 0,
        "UserId": world.bob.pk,
        "User": {"Id": world.bob.pk},
        "IsStaff": True,
        "is_staff": True,
        "is_superuser": True,
        "IsActive": False,
        "Type": "Administrator",
        "HoldUntil": "2099-01-01T00:00:00Z",
        "_connector": "OR",
        "room__owner__password__startswith": "p",
        "__class__": "x",
        "pk": 1,
        "": 1,
    }

    def add_extra_fields(value):
        if isinstance(value, dict):
            return {**{name: add_extra_fields(inner) for name, inner in value.items()}, **extra}
        return [add_extra_fields(each) for each in value] if isinstance(value, list) else value

    def get_state():
        users = get_user_model().objects.order_by("pk").values("pk", "is_staff", "is_superuser")
        rows = Reservation.objects.values("user", "status", "total_cost", "room", "start")
        return list(users), sorted(map(str, rows))

    def call_and_get_state(body):
        def post_and_get_state():
            return post(world.client, operation.path, body), get_state()

        return world.call_and_roll_back(post_and_get_state)

    good = world.with_token(operation, world.body(operation))
    plain, state = call_and_get_state(good)
    response, state_with_extra = call_and_get_state(
        {**add_extra_fields(good), **good} if not good else add_extra_fields(good)
    )

    assert plain.status_code == response.status_code == 200
    assert state_with_extra == state
    if operation.name not in NEW_EACH_TIME:
        assert response.json() == plain.json()


# --- Ids of others ------------------------------------------------------------------------------


def test_reservation_of_another_account_gets_the_response_of_a_missing_one(world):
    operations_with_id = [
        (each, name)
        for each in OPERATIONS_BY_NAME.values()
        for name in each.request
        if name in {"Id", "ReservationId"}
    ]
    assert len(operations_with_id) == 10
    staff_token = issue_token(AdministratorFactory())
    for status in ("New", "Confirmed"):
        Reservation.objects.filter(pk=world.bobs_reservation.pk).update(
            status=status, hold_until=None if status == "Confirmed" else NOW
        )
        for operation, name in operations_with_id:
            tests = [{}, {"TestMode": True}] if "TestMode" in operation.request else [{}]
            for more in tests:
                good = {**world.body(operation), **more}
                body_with_bobs_id = {**good, name: world.bobs_reservation.pk}
                answers = [
                    send(world, operation, body_with_bobs_id),
                    send(world, operation, {**good, name: 2**31 - 1}),
                    # A staff member's Token shows no more than a customer's (B7.1).
                    post(world.client, operation.path, {**body_with_bobs_id, "Token": staff_token}),
                ]
                assert {each.status_code for each in answers} == {404}, (operation, status)
                assert len({each.content for each in answers}) == 1, (operation, status)
                assert answers[0].json()["Error"]["Summary"] == "NotFound"
        world.bobs_reservation.refresh_from_db()
        assert world.bobs_reservation.status == status


def test_allowance_of_another_account_gets_the_response_of_a_missing_one(world):
    operation = OPERATIONS_BY_NAME["Update allowances"]
    answers = [
        world.call(operation.name, AllowanceIds=[number])
        for number in (world.allowances[2].pk, 2**31 - 1)
    ]

    assert answers[0].status_code == 400
    assert answers[0].content == answers[1].content
    assert answers[0].json()["Error"]["Details"].startswith("AllowanceIds.0: ")


@pytest.mark.parametrize("name", ["Reservation cost", "Create reservation"])
def test_service_of_another_center_gets_the_response_of_a_missing_one(world, name):
    answers = [
        world.call(name, ServiceOptions=[{"ServiceId": number}])
        for number in (world.other_service.pk, 2**31 - 1)
    ]

    assert answers[0].status_code == 400
    assert answers[0].content == answers[1].content
    assert answers[0].json()["Error"]["Details"].startswith("ServiceOptions.0.ServiceId: ")


def test_room_of_another_center_gets_the_response_of_a_missing_one(world):
    name = "Check room availability"
    answers = [
        world.call(name, CenterId=world.other_center.pk),
        world.call(name, CenterId=2**31 - 1),
        world.call(name, RoomId=2**31 - 1),
        world.call("Reservation cost", MeetingRoomId=2**31 - 1),
        world.call("Create reservation", MeetingRoomId=2**31 - 1),
        world.call("Update favorite", CenterId=2**31 - 1),
    ]

    assert {each.status_code for each in answers} == {404}
    assert len({each.content for each in answers}) == 1


# --- Tokens -------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", WITH_TOKEN)
def test_every_kind_of_invalid_token_gets_the_same_response(world, operation):
    ada = UserFactory(email="gone@example.com")
    signed_out, disabled = issue_token(ada), issue_token(UserFactory(is_active=False))
    ada.tokens.all().delete()
    changed = issue_token(ada)
    ada.set_password("noisy-harbour-43")
    ada.save()
    expired = issue_token(ada, age=NOW - NOW.replace(year=2026))
    wrong = [
        *(signed_out, disabled, changed, expired),
        *(world.token[:-1], f"{world.token}x", f" {world.token}", f"{world.token}\n"),
        *(world.token.swapcase(), "x" * 64, "é" * 64, *VALUES),
    ]

    answers = [post(world.client, operation.path, world.body(operation))]
    answers += [
        post(world.client, operation.path, {**world.body(operation), "Token": token})
        for token in (None, *wrong)
    ]
    # Fields are validated after the Token.
    answers.append(post(world.client, operation.path, dict.fromkeys(operation.request, "wrong")))

    assert {each.status_code for each in answers} == {401}
    assert {each.content for each in answers} == {answers[0].content}
    assert {each["WWW-Authenticate"] for each in answers} == {"Token"}
    assert answers[0].json() == {
        "Success": False,
        "Error": {"Summary": "NotSignedIn", "Message": "Please sign in again."},
    }


@pytest.mark.parametrize("operation", WITH_TOKEN[:2])
def test_token_in_csv_is_checked_like_in_json(world, operation):
    for cell in CELLS:
        response = send_cells(world, operation, {"Token": cell, "Id": "1"})
        assert response.status_code == 401, cell
        assert response.json()["Error"]["Summary"] == "NotSignedIn"


def test_sign_in_ignores_any_token(world):
    for token in (*VALUES, world.token, None):
        assert world.call("Sign in", Token=token).status_code == 200
