"""POST /api/reservation/update-promo-code and /api/reservations/update-allowances"""

from datetime import date
from decimal import Decimal

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
from tests.operations.helpers import refused

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PROMO_CODE = "/api/reservation/update-promo-code"
ALLOWANCES = "/api/reservations/update-allowances"


@pytest.fixture
def drafted(ada):
    """A draft of three hours for 75 dollars."""
    return make_draft(ada)


@pytest.mark.parametrize(
    ("path", "fields"),
    [(PROMO_CODE, {"PromoCode": "TEN"}), (PROMO_CODE, {"PromoCode": ""}), (ALLOWANCES, {})],
)
def test_change_of_reservation_that_is_not_new_is_refused(call, ada, path, fields):
    PromoCodeFactory(code="TEN")
    row = ReservationFactory(user=ada, status=Status.NEW)
    for status in Status:
        if status == Status.NEW:
            continue
        row = ReservationFactory(user=ada, status=status)
        error = refused(call(path, ReservationId=row.pk, **fields), 409, "ReservationNotOpen")
        assert error["Message"] == "This reservation can no longer be changed."


# --- Promo codes ----------------------------------------------------------------------------------


@pytest.fixture
def apply(call, drafted):
    return lambda code: call(PROMO_CODE, ReservationId=drafted.pk, PromoCode=code)


@pytest.fixture
def apply_ten(apply):
    PromoCodeFactory(code="TEN")
    return apply("ten").json()


def test_update_sets_the_code_and_returns_the_reservation(read, drafted, apply):
    PromoCodeFactory(code="TEN")
    before = read(drafted)

    response = apply("ten")

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
    assert response.json()["UpdatedReservation"] == read(drafted)


UNKNOWN = "This promo code cannot be used for this booking."


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"is_active": False}, UNKNOWN),
        ({"meeting_from": date(2027, 3, 4)}, UNKNOWN),
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
@pytest.mark.usefixtures("apply_ten")
def test_refused_code_leaves_the_reservation_unchanged(apply, read, drafted, terms, message):
    PromoCodeFactory(code="BAD", **terms)
    before = read(drafted)

    error = refused(apply("BAD"), 409, "PromoCodeInvalid")

    assert error == {"Summary": "PromoCodeInvalid", "Message": message}
    assert read(drafted) == before


# --- Allowances -----------------------------------------------------------------------------------


@pytest.fixture
def plan(ada):
    return AllowanceFactory(user=ada, description="Plan", hours=1, is_automatic=False)


@pytest.fixture
def gift(ada):
    return AllowanceFactory(user=ada, description="Gift", hours=10)


@pytest.fixture
def choose(call, plan, gift, drafted):
    return lambda *ids, **fields: call(
        ALLOWANCES, **{"ReservationId": drafted.pk, "AllowanceIds": ids, **fields}
    )


def test_update_applies_only_the_selected_allowances(choose, read, ada, plan, gift):
    drafted = make_draft(ada)
    before = read(drafted)
    assert before["TotalCost"] == 0
    assert [each["Allowance"]["Id"] for each in before["Allowances"]] == [gift.pk]
    brief = {name: before[name] for name in ("Id", "Start", "End", "Status")}

    def show(allowance, description, hours, discount, *, is_used):
        return {
            "Reservation": brief,
            "Allowance": {"Description": description, "Id": allowance.pk},
            "NumberOfHours": hours,
            "DiscountApplied": discount,
            "InUse": is_used,
        }

    response = choose(plan.pk, ReservationId=drafted.pk)

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
            "Allowances": [show(plan, "Plan", 1, 25, is_used=True)],
            "CanApplyAllowances": True,
            "UsableAllowances": [show(gift, "Gift", 3, 75, is_used=False)],
        },
    }
    assert response.json()["UpdatedReservation"] == read(drafted)


@pytest.mark.parametrize("nothing", [[], None])
def test_empty_selection_removes_allowances_permanently(choose, ada, gift, nothing):
    drafted = make_draft(ada)
    shown = choose(ReservationId=drafted.pk, AllowanceIds=nothing).json()["UpdatedReservation"]
    assert (shown["TotalCost"], shown["Allowances"]) == (75, [])

    PromoCodeFactory(code="TEN")
    assert apply_promo_code(drafted.pk, "TEN", user=ada, now=NOW).total_cost == 67.5


def test_invalid_allowances_are_all_named_and_nothing_changes(choose, read, drafted, plan):
    before = read(drafted)

    error = refused(choose(plan.pk, AllowanceFactory().pk, 2**31 - 1), 400, "InvalidRequest")

    assert error["Details"].splitlines() == [
        "AllowanceIds.1: This allowance is not valid for this booking.",
        "AllowanceIds.2: This allowance is not valid for this booking.",
    ]
    assert read(drafted) == before
