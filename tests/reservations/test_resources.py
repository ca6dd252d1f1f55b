"""Import of promo codes and allowances: accepted and refused rows."""

import datetime as dt

import pytest

from reservations.models import PromoCode
from tests.factories_centers import CenterFactory, ResourceTypeFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import AllowanceFactory, PromoCodeFactory
from tests.imports import build_csv, check, count_rows, get_cells, get_errors, load, save

pytestmark = pytest.mark.django_db


def test_promo_code_is_restricted_to_centers_and_types():
    one, two = CenterFactory(), CenterFactory()
    kind = ResourceTypeFactory(name="Board room")
    row = {
        "code": "summer",
        "percent": "12.5",
        "valid_until": "2027-08-31T23:59Z",
        "center_ids": f"{two.pk};{one.pk}",
        "room_types": "Board room",
    }
    assert load("promo-codes", build_csv(row)) == {"new": 1}

    code = PromoCode.objects.get(code="SUMMER")
    assert set(code.centers.all()) == {one, two}
    assert list(code.room_types.all()) == [kind]
    assert code.valid_until == dt.datetime(2027, 8, 31, 23, 59, tzinfo=dt.UTC)
    assert count_rows("promo-codes", build_csv(row)) == {"unchanged": 1}
    assert load("promo-codes", build_csv(row | {"center_ids": one.pk})) == {"changed": 1}
    assert list(code.centers.all()) == [one]


@pytest.mark.parametrize(
    ("fields", "columns"),
    [
        ({"percent": "10", "amount": "5.00"}, "percent amount"),
        ({"percent": "101", "amount": ""}, "percent"),
        ({"percent": "10", "center_ids": "999"}, "center_ids"),
        ({"percent": "10", "room_types": "Nothing"}, "room_types"),
        ({"percent": "10", "meeting_from": "2027-02-30"}, "meeting_from"),
        ({"percent": "10", "valid_from": "0001-01-01T00:00+14:00"}, "valid_from"),
        ({"percent": "10", "max_uses": "1"}, "max_uses"),
    ],
)
def test_wrong_promo_code_is_refused(fields, columns):
    PromoCodeFactory(code="TWICE", uses=2)

    assert get_cells(get_errors("promo-codes", build_csv({"code": "twice"} | fields))) == [
        (2, column) for column in columns.split()
    ]


def test_uses_counted_since_the_check_are_kept():
    code = PromoCodeFactory(code="BUSY", max_uses=9)
    resource, result = check("promo-codes", build_csv({"code": "BUSY", "description": "Now"}))
    PromoCode.objects.filter(pk=code.pk).update(uses=3)

    save(resource, result)

    code.refresh_from_db()
    assert (code.uses, code.description) == (3, "Now")


def test_allowance_is_found_by_account():
    UserFactory(email="ann@example.com")
    row = {"account": "Ann@example.com", "description": "Plan", "kind": "monthly", "hours": "4"}

    assert load("allowances", build_csv(row)) == {"new": 1}
    assert count_rows("allowances", build_csv(row)) == {"unchanged": 1}
    assert get_cells(get_errors("allowances", build_csv(row | {"account": "bob@example.com"}))) == [
        (2, "account")
    ]


def test_allowance_cannot_move_to_another_account():
    allowance, other = AllowanceFactory(), UserFactory()
    row = {"id": allowance.pk, "account": other.email}

    assert get_cells(get_errors("allowances", build_csv(row))) == [(2, "account")]
