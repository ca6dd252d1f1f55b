"""POST /api/reservation/update-promo-code"""

from datetime import date
from decimal import Decimal

import pytest

from reservations.models.status import Status
from tests.factories_reservations import (
    NOW,
    AmountOffPromoCodeFactory,
    PromoCodeFactory,
    ReservationFactory,
    make_draft,
)
from tests.http import jsonp, post, post_csv, table

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/reservation/update-promo-code"
UNKNOWN = {
    "Summary": "PromoCodeInvalid",
    "Message": "This promo code cannot be used for this booking.",
}


@pytest.fixture
def drafted(ada):
    return make_draft(ada)


@pytest.fixture
def apply(client, token, drafted):
    def apply(code, **fields):
        body = {"Token": token, "ReservationId": drafted.pk, "PromoCode": code, **fields}
        return post(client, PATH, body)

    return apply


@pytest.fixture
def read(client, token, drafted):
    def read():
        body = {"Token": token, "Id": drafted.pk}
        return post(client, "/api/account/reservation", body).json()["Reservation"]

    return read


def test_update_sets_the_code_and_returns_the_reservation(apply, read):
    PromoCodeFactory(code="TEN")
    before = read()

    response = apply("ten")

    assert response.status_code == 200
    assert response.json() == {
        "Success": True,
        "UpdatedReservation": {
            **before,
            "TotalCost": 67.5,
            "LineItems": [
                *before["LineItems"],
                {
                    "Amount": "-$7.50",
                    "Description": "Promo code TEN, 10% off",
                    "Total": -7.5,
                    "Type": "Promotion",
                },
            ],
            "Promotion": "TEN",
        },
    }
    assert response.json()["UpdatedReservation"] == read()


def test_update_accepts_and_returns_csv_and_jsonp(client, token, drafted):
    AmountOffPromoCodeFactory(code="OFF")
    body = {"Token": token, "ReservationId": drafted.pk, "PromoCode": " off "}

    header, row = table(post_csv(client, f"{PATH}.csv", body))
    cells = dict(zip(header, row, strict=True))
    assert cells["UpdatedReservation.Promotion"] == "OFF"
    assert cells["UpdatedReservation.TotalCost"] == "55.0"

    wrapped = jsonp(post(client, f"{PATH}?callback=cb", body), "cb")
    assert wrapped["UpdatedReservation"]["Promotion"] == "OFF"


def test_new_code_replaces_the_previous_one(apply):
    PromoCodeFactory(code="TEN")
    AmountOffPromoCodeFactory(code="OFF")
    apply("TEN")
    shown = apply("OFF").json()["UpdatedReservation"]
    assert (shown["Promotion"], shown["TotalCost"]) == ("OFF", 55)


@pytest.mark.parametrize("nothing", ["", "  ", None])
def test_missing_or_empty_code_removes_it(apply, nothing):
    PromoCodeFactory(code="TEN")
    apply("TEN")
    shown = apply(nothing).json()["UpdatedReservation"]
    assert "Promotion" not in shown
    assert shown["TotalCost"] == 75


def test_removing_without_a_code_changes_nothing(apply, read):
    before = read()
    assert apply("").json()["UpdatedReservation"] == before


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"is_active": False}, UNKNOWN["Message"]),
        ({"meeting_from": date(2027, 3, 4)}, UNKNOWN["Message"]),
        ({"valid_until": NOW}, "This promo code has expired."),
        ({"valid_from": NOW.replace(hour=17)}, "This promo code is not valid yet."),
        ({"max_uses": 0}, "This promo code has been used up."),
        ({"budget": Decimal("7.49")}, "This promo code has been used up."),
        ({"max_uses_per_account": 0}, "You have used this promo code already."),
        (
            {"minimum_spend": Decimal(100)},
            "This promo code is for bookings of $100.00 or more.",
        ),
    ],
)
def test_refused_code_leaves_the_reservation_unchanged(apply, read, terms, message):
    PromoCodeFactory(code="TEN")
    PromoCodeFactory(code="BAD", **terms)
    apply("TEN")
    before = read()

    response = apply("BAD")

    assert response.status_code == 409
    assert response.json() == {
        "Success": False,
        "Error": {"Summary": "PromoCodeInvalid", "Message": message},
    }
    assert read() == before


def test_inapplicable_code_has_the_error_of_an_unknown_code(apply):
    elsewhere = PromoCodeFactory(code="ELSEWHERE")
    elsewhere.centers.add(ReservationFactory().room.center)
    assert apply("NONESUCH").content == apply("ELSEWHERE").content
    assert apply("NONESUCH").json()["Error"] == UNKNOWN


def test_update_after_twenty_refusals_in_an_hour_is_limited(apply):
    PromoCodeFactory(code="TEN")
    for _ in range(20):
        assert apply("GUESS").status_code == 409
    response = apply("TEN")
    assert response.status_code == 429
    assert response.json()["Error"]["Summary"] == "TooManyRequests"
    assert response["Retry-After"] == "3600"


@pytest.mark.parametrize("status", [status for status in Status if status != Status.NEW])
@pytest.mark.parametrize("code", ["TEN", ""])
def test_update_of_reservation_that_is_not_new_is_refused(apply, ada, status, code):
    PromoCodeFactory(code="TEN")
    row = ReservationFactory(user=ada, status=status)
    response = apply(code, ReservationId=row.pk)
    assert response.status_code == 409
    assert response.json() == {
        "Success": False,
        "Error": {
            "Summary": "ReservationNotOpen",
            "Message": "This reservation can no longer be changed.",
        },
    }


def test_reservation_of_another_account_is_not_found(apply):
    answers = [apply("TEN", ReservationId=pk) for pk in (make_draft().pk, 2**31 - 1)]
    assert {each.status_code for each in answers} == {404}
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"ReservationId": None}, "ReservationId: Required."),
        ({"ReservationId": "1"}, "ReservationId: Must be a whole number."),
        ({"PromoCode": 10}, "PromoCode: Must be text."),
        ({"PromoCode": "x" * 51}, "PromoCode: Must have at most 50 characters."),
        (
            {"PromoCode": "a\0b"},
            "PromoCode: Must not hold a NUL character or half of a surrogate pair.",
        ),
    ],
)
def test_invalid_request_names_the_wrong_fields(apply, fields, details):
    response = apply("TEN", **fields)
    assert response.status_code == 400
    assert response.json()["Error"]["Details"] == details


def test_request_without_token_is_refused(client):
    assert post(client, PATH, {"ReservationId": 1}).status_code == 401
