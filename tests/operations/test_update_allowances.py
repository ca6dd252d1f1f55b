"""POST /api/reservations/update-allowances"""

import pytest

from reservations.booking.drafts import apply_promo_code
from reservations.models.status import Status
from tests.factories_reservations import (
    NOW,
    AllowanceFactory,
    PromoCodeFactory,
    ReservationFactory,
    make_draft,
)
from tests.http import jsonp, post, post_csv, table

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/reservations/update-allowances"


@pytest.fixture
def plan(ada):
    return AllowanceFactory(user=ada, description="Plan", hours=1, is_automatic=False)


@pytest.fixture
def gift(ada):
    return AllowanceFactory(user=ada, description="Gift", hours=10)


@pytest.fixture
def drafted(ada, plan, gift):
    """A draft of three hours for 75 dollars, paid by the gift."""
    return make_draft(ada)


@pytest.fixture
def choose(client, token, drafted):
    def choose(*ids, **fields):
        body = {"Token": token, "ReservationId": drafted.pk, "AllowanceIds": ids, **fields}
        return post(client, PATH, body)

    return choose


@pytest.fixture
def read(client, token, drafted):
    def read():
        body = {"Token": token, "Id": drafted.pk}
        return post(client, "/api/account/reservation", body).json()["Reservation"]

    return read


def in_use(shown):
    return [(each["Allowance"]["Id"], each["NumberOfHours"]) for each in shown["Allowances"]]


def test_update_applies_only_the_selected_allowances(choose, read, plan, gift):
    before = read()
    assert (before["TotalCost"], in_use(before)) == (0, [(gift.pk, 3)])
    brief = {name: before[name] for name in ("Id", "Start", "End", "Status")}

    response = choose(plan.pk)

    assert response.status_code == 200
    assert response.json() == {
        "Success": True,
        "UpdatedReservation": {
            **before,
            "TotalCost": 50,
            "LineItems": [
                before["LineItems"][0],
                {
                    "Amount": "-$25.00",
                    "Description": "Plan, 1 hour",
                    "Total": -25,
                    "Type": "Allowance",
                    "AllowanceId": plan.pk,
                },
            ],
            "Allowances": [
                {
                    "Reservation": brief,
                    "Allowance": {"Description": "Plan", "Id": plan.pk},
                    "NumberOfHours": 1,
                    "DiscountApplied": 25,
                    "InUse": True,
                }
            ],
            "CanApplyAllowances": True,
            "UsableAllowances": [
                {
                    "Reservation": brief,
                    "Allowance": {"Description": "Gift", "Id": gift.pk},
                    "NumberOfHours": 3,
                    "DiscountApplied": 75,
                    "InUse": False,
                }
            ],
        },
    }
    assert response.json()["UpdatedReservation"] == read()


def test_update_accepts_and_returns_csv_and_jsonp(client, token, drafted, plan, gift):
    body = {
        "Token": token,
        "ReservationId": drafted.pk,
        "AllowanceIds.0": plan.pk,
        "AllowanceIds.1": gift.pk,
    }
    header, row = table(post_csv(client, f"{PATH}.csv", body))
    cells = dict(zip(header, row, strict=True))
    assert cells["UpdatedReservation.TotalCost"] == "0.0"
    assert cells["UpdatedReservation.Allowances.1.Allowance.Id"] == str(gift.pk)

    body = {"Token": token, "ReservationId": drafted.pk, "AllowanceIds": []}
    wrapped = jsonp(post(client, f"{PATH}?callback=cb", body), "cb")
    assert wrapped["UpdatedReservation"]["Allowances"] == []


@pytest.mark.parametrize("nothing", [[], None])
def test_empty_selection_removes_allowances_permanently(choose, ada, drafted, nothing):
    shown = choose(AllowanceIds=nothing).json()["UpdatedReservation"]
    assert (shown["TotalCost"], shown["Allowances"]) == (75, [])

    PromoCodeFactory(code="TEN")
    assert apply_promo_code(drafted.pk, "TEN", user=ada, now=NOW).total_cost == 67.5


def test_selected_allowances_are_applied_in_order_of_use(choose, plan, gift):
    """Neither allowance expires; the older one is used first."""
    shown = choose(gift.pk, plan.pk, gift.pk).json()["UpdatedReservation"]
    assert in_use(shown) == [(plan.pk, 1), (gift.pk, 2)]


def test_invalid_allowances_are_named_and_nothing_changes(choose, read, plan):
    before = read()
    somebody_elses = AllowanceFactory()

    response = choose(plan.pk, somebody_elses.pk, 2**31 - 1)

    assert response.status_code == 400
    assert response.json()["Error"]["Summary"] == "InvalidRequest"
    assert response.json()["Error"]["Details"].splitlines() == [
        "AllowanceIds.1: This allowance is not valid for this booking.",
        "AllowanceIds.2: This allowance is not valid for this booking.",
    ]
    assert read() == before


@pytest.mark.parametrize("status", [status for status in Status if status != Status.NEW])
def test_update_of_reservation_that_is_not_new_is_refused(choose, ada, status):
    row = ReservationFactory(user=ada, status=status)
    response = choose(ReservationId=row.pk)
    assert response.status_code == 409
    assert response.json()["Error"]["Summary"] == "ReservationNotOpen"


def test_reservation_of_another_account_is_not_found(choose):
    answers = [choose(ReservationId=pk) for pk in (make_draft().pk, 2**31 - 1)]
    assert {each.status_code for each in answers} == {404}
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"ReservationId": None}, "ReservationId: Required."),
        ({"AllowanceIds": 1}, "AllowanceIds: Must be a list."),
        ({"AllowanceIds": ["1"]}, "AllowanceIds.0: Must be a whole number."),
        ({"AllowanceIds": [1, 0]}, "AllowanceIds.1: Must be at least 1."),
        ({"AllowanceIds": [1] * 101}, "AllowanceIds: Must have at most 100 elements."),
    ],
)
def test_invalid_request_names_the_wrong_fields(choose, fields, details):
    response = choose(**fields)
    assert response.status_code == 400
    assert response.json()["Error"]["Details"] == details


def test_request_without_token_is_refused(client):
    assert post(client, PATH, {"ReservationId": 1}).status_code == 401
