"""POST /api/reservation/update-promo-code and /api/reservations/update-allowances

What is refused is in tests/reservations/test_allowances.py.
"""

import pytest

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


@pytest.mark.parametrize(
    ("path", "fields"),
    [(PROMO_CODE, {"PromoCode": "TEN"}), (PROMO_CODE, {"PromoCode": ""}), (ALLOWANCES, {})],
)
def test_change_of_reservation_that_is_not_new_is_refused(call, ada, path, fields):
    PromoCodeFactory(code="TEN")
    for status in set(Status) - {Status.NEW}:
        row = ReservationFactory(user=ada, status=status)
        error = refused(call(path, ReservationId=row.pk, **fields), 409, "ReservationNotOpen")
        assert error["Message"] == "This reservation can no longer be changed."


def test_promo_code_adds_its_line_and_the_reservation_is_returned(get, call, read, ada):
    PromoCodeFactory(code="TEN", max_uses=9)
    drafted = make_draft(ada)
    before = read(drafted)

    updated = get(PROMO_CODE, ReservationId=drafted.pk, PromoCode="ten")["UpdatedReservation"]

    assert updated == read(drafted)
    line = {"Amount": "-$7.50", "Description": "Promo code TEN, 10% off", "Type": "Promotion"}
    lines = [*before["LineItems"], {**line, "Total": -7.5}]
    assert updated == {**before, "TotalCost": 67.5, "LineItems": lines, "Promotion": "TEN"}
    wrong = call(PROMO_CODE, ReservationId=drafted.pk, PromoCode="ELEVEN")
    assert refused(wrong, 409, "PromoCodeInvalid")["Message"] == (
        "This promo code cannot be used for this booking."
    )
    assert read(drafted) == updated


def test_update_applies_only_the_selected_allowances_for_good(get, read, ada):
    plan = AllowanceFactory(user=ada, hours=1, is_automatic=False)
    gift = AllowanceFactory(user=ada, hours=10)
    drafted = make_draft(ada)
    before = read(drafted)

    def select(*ids):
        fields = {"ReservationId": drafted.pk, "AllowanceIds": ids}
        updated = get(ALLOWANCES, **fields)["UpdatedReservation"]
        assert updated == read(drafted)
        return updated

    def get_ids(usages):
        return [each["Allowance"]["Id"] for each in usages]

    assert (before["TotalCost"], get_ids(before["Allowances"])) == (0, [gift.pk])
    updated = select(plan.pk)
    assert (updated["TotalCost"], len(updated["LineItems"])) == (50, 2)
    assert get_ids(updated["Allowances"]) == [plan.pk]
    assert get_ids(updated["UsableAllowances"]) == [gift.pk]
    assert select()["TotalCost"] == 75
    PromoCodeFactory(code="TEN")
    code = {"ReservationId": drafted.pk, "PromoCode": "TEN"}
    assert get(PROMO_CODE, **code)["UpdatedReservation"]["TotalCost"] == 67.5
