"""POST /api/reservations/get-allowances"""

from datetime import date

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reservations.booking.drafts import select_allowances
from tests.factories_centers import CenterFactory
from tests.factories_reservations import (
    NOW,
    AllowanceFactory,
    MonthlyAllowanceFactory,
    make_booking,
    make_draft,
    make_room,
)
from tests.http import jsonp, post, post_csv, table

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/reservations/get-allowances"


@pytest.fixture
def ask(client, token):
    return lambda pk: post(client, PATH, {"Token": token, "ReservationId": pk})


@pytest.fixture
def allowances(ask):
    def allowances(reservation):
        return [
            (
                each["Allowance"]["Description"],
                each["NumberOfHours"],
                each["DiscountApplied"],
                each["InUse"],
            )
            for each in ask(reservation.pk).json()["Allowances"]
        ]

    return allowances


def test_allowances_in_use_and_available_are_listed(ask, ada):
    gift = AllowanceFactory(user=ada, description="Gift", hours=4, is_automatic=False)
    plan = MonthlyAllowanceFactory(user=ada, description="Plan", hours=2)
    # 5 hours for 115: half a day and an hour.
    reservation = make_draft(ada, hours=5)
    brief = {
        "Id": reservation.pk,
        "Start": "2027-03-03T09:00:00-07:00",
        "End": "2027-03-03T14:00:00-07:00",
        "Status": "New",
    }

    response = ask(reservation.pk)

    assert response.status_code == 200
    assert response.json() == {
        "Success": True,
        "Allowances": [
            {
                "Reservation": brief,
                "Allowance": {"Description": "Plan", "Id": plan.pk},
                "NumberOfHours": 2,
                "DiscountApplied": 46,
                "InUse": True,
            },
            {
                "Reservation": brief,
                "Allowance": {"Description": "Gift", "Id": gift.pk},
                "NumberOfHours": 4,
                "DiscountApplied": 92,
                "InUse": False,
            },
        ],
    }


def test_csv_has_one_row_per_allowance(client, token, ada):
    first = AllowanceFactory(user=ada, description="=1+1", hours=1)
    second = AllowanceFactory(user=ada, description="Gift", hours=1, is_automatic=False)
    reservation = make_draft(ada, hours=1)
    body = {"Token": token, "ReservationId": reservation.pk}
    brief = [str(reservation.pk), "2027-03-03T09:00:00-07:00", "2027-03-03T10:00:00-07:00", "New"]

    assert table(post_csv(client, f"{PATH}.csv", body)) == [
        [
            "Success",
            "Allowances.Reservation.Id",
            "Allowances.Reservation.Start",
            "Allowances.Reservation.End",
            "Allowances.Reservation.Status",
            "Allowances.Allowance.Description",
            "Allowances.Allowance.Id",
            "Allowances.NumberOfHours",
            "Allowances.DiscountApplied",
            "Allowances.InUse",
        ],
        ["true", *brief, "'=1+1", str(first.pk), "1", "25.0", "true"],
        ["true", *brief, "Gift", str(second.pk), "1", "25.0", "false"],
    ]


def test_no_allowances_are_an_empty_list_and_one_csv_row(client, token, ada):
    body = {"Token": token, "ReservationId": make_draft(ada).pk}
    assert post(client, PATH, body).json() == {"Success": True, "Allowances": []}
    assert table(post_csv(client, f"{PATH}.csv", body)) == [["Success"], ["true"]]


def test_response_can_be_jsonp(client, token, ada):
    body = {"Token": token, "ReservationId": make_draft(ada).pk}
    assert jsonp(post(client, f"{PATH}?callback=cb", body), "cb") == {
        "Success": True,
        "Allowances": [],
    }


def test_only_allowances_valid_for_the_booking_are_listed(allowances, ada):
    AllowanceFactory(user=ada, valid_until=date(2027, 3, 2))
    AllowanceFactory(user=ada, is_active=False)
    AllowanceFactory()
    AllowanceFactory(user=ada).centers.add(CenterFactory())
    AllowanceFactory(user=ada, description="Mine")
    assert allowances(make_draft(ada)) == [("Mine", 3, 75, True)]


def test_allowances_are_ordered_by_expiry(allowances, ada):
    AllowanceFactory(user=ada, description="for ever", is_automatic=False)
    AllowanceFactory(
        user=ada, description="month's end", valid_until=date(2027, 3, 31), is_automatic=False
    )
    MonthlyAllowanceFactory(user=ada, description="monthly", is_automatic=False)
    AllowanceFactory(
        user=ada, description="tomorrow", valid_until=date(2027, 3, 4), is_automatic=False
    )
    assert [name for name, *_ in allowances(make_draft(ada))] == [
        *("tomorrow", "monthly", "month's end", "for ever")
    ]


def test_manually_selected_allowance_is_in_use(allowances, ada):
    AllowanceFactory(user=ada, description="First")
    second = AllowanceFactory(user=ada, description="Second")
    reservation = make_draft(ada)
    select_allowances(reservation.pk, [second.pk], user=ada, now=NOW)
    assert allowances(reservation) == [("Second", 3, 75, True), ("First", 3, 75, False)]


def test_allowances_of_a_booking_are_listed(allowances, ada):
    AllowanceFactory(user=ada, description="Plan", hours=2)
    assert allowances(make_booking(ada)) == [("Plan", 2, 50, True)]


def test_allowance_hours_are_rounded_down(allowances, ada):
    AllowanceFactory(user=ada, description="Plan", is_automatic=False)
    assert allowances(make_draft(ada, hours=2.75)) == [("Plan", 2, 50, False)]


def test_reservation_of_another_account_is_not_found(ask):
    answers = [ask(make_draft().pk), ask(2**31 - 1)]
    assert {each.status_code for each in answers} == {404}
    assert answers[0].content == answers[1].content
    assert answers[0].json()["Error"]["Summary"] == "NotFound"


@pytest.mark.parametrize(
    ("value", "details"),
    [
        (None, "ReservationId: Required."),
        ("1", "ReservationId: Must be a whole number."),
        (-1, "ReservationId: Must be at least 1."),
    ],
)
def test_invalid_request_names_the_wrong_fields(ask, value, details):
    response = ask(value)
    assert response.status_code == 400
    assert response.json()["Error"]["Details"] == details


def test_query_count_is_independent_of_allowances(ask, ada, django_assert_num_queries):
    AllowanceFactory(user=ada, hours=1)
    room = make_room()
    reservation = make_draft(ada, room)
    with CaptureQueriesContext(connection) as one:
        assert len(ask(reservation.pk).json()["Allowances"]) == 1
    for _ in range(19):
        AllowanceFactory(user=ada, hours=1).centers.add(room.center)
    select_allowances(
        reservation.pk, list(ada.allowances.values_list("pk", flat=True)), user=ada, now=NOW
    )
    with django_assert_num_queries(len(one)):
        assert len(ask(reservation.pk).json()["Allowances"]) == 20


def test_request_without_token_is_refused(client):
    assert post(client, PATH, {"ReservationId": 1}).status_code == 401
