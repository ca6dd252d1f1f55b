"""The pages of allowances, promo codes and partners, with what is left of them."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from django.urls import reverse

from reservations.desk.promo_codes_and_allowances import get_hours_left
from reservations.models import Allowance, AllowanceEntry, PromoCode
from tests.admin_forms import errors_of
from tests.admin_forms import form_of as fields_of
from tests.backoffice.many import many
from tests.factories_people import UserFactory
from tests.factories_reservations import ReservationFactory, make_room

pytestmark = pytest.mark.django_db

TODAY = date(2027, 3, 10)
NOW = datetime(2027, 3, 10, 12, tzinfo=UTC)
THEN = datetime(2026, 5, 1, tzinfo=UTC)


def url(model, page, *args):
    return reverse(f"admin:reservations_{model}_{page}", args=args)


def form_of(page):
    """The form data that a browser sends; an empty multiple select is not sent."""
    fields = fields_of(page)
    return {
        name: value
        for name, value in fields.items()
        if value or name not in ("centers", "room_types")
    }


def text_of(page):
    return " ".join(page.text.split())


def enter(allowance, hours, *, at=NOW, period=None, reservation=None):
    AllowanceEntry.objects.create(
        allowance=allowance,
        hours=hours,
        at=at,
        period=period,
        reservation=reservation or ReservationFactory(user=allowance.user),
        reason="Test",
    )


@pytest.fixture
def reservation():
    return many(make_room(), UserFactory(), 1, start=THEN)[0]


def test_monthly_allowance_has_the_hours_of_the_month_left(reservation):
    monthly = Allowance.objects.create(
        user=reservation.user, description="Plan", kind=Allowance.Kind.MONTHLY, hours=10
    )
    enter(monthly, -4, period=date(2027, 3, 1), reservation=reservation)
    enter(monthly, 1, period=date(2027, 3, 1), reservation=reservation)
    enter(monthly, -2, period=date(2027, 4, 1), reservation=reservation)
    assert get_hours_left([monthly], TODAY) == {monthly.pk: 7}
    assert get_hours_left([monthly], date(2027, 2, 1)) == {monthly.pk: 10}


@pytest.mark.time_machine(NOW, tick=False)
def test_one_off_allowance_carries_hours_over(office, reservation):
    gift = Allowance.objects.create(user=reservation.user, description="Gift", hours=10)
    enter(gift, -4, at=datetime(2027, 1, 5, tzinfo=UTC), reservation=reservation)
    enter(gift, -3, at=datetime(2027, 2, 5, tzinfo=UTC), reservation=reservation)
    assert get_hours_left([gift], TODAY) == {gift.pk: 3}
    page = text_of(office.get(url("allowance", "change", gift.pk)))
    assert f"Reservation {reservation.pk}</a>" in page
    assert ">3</td>" in text_of(office.get(url("allowance", "changelist")))


def test_allowance_page_used_hours_keep_their_account_and_kind_and_are_not_lowered(
    office, reservation
):
    gift = Allowance.objects.create(user=reservation.user, description="Gift", hours=10)
    address = url("allowance", "change", gift.pk)
    assert {"user", "kind"} < set(form_of(office.get(address)))
    enter(gift, -4, reservation=reservation)
    data = form_of(office.get(address))
    assert not {"user", "kind"} & set(data)
    assert set(errors_of(office.post(address, {**data, "hours": "3"}))) == {"hours"}
    assert errors_of(office.post(address, {**data, "hours": "4"})) == {}


def test_promo_codes_show_what_is_left(office):
    promo = PromoCode.objects.create(code="SPRING", percent=10, max_uses=5, uses=2, budget=100)
    PromoCode.objects.filter(pk=promo.pk).update(spent=Decimal("12.50"))

    for page in (url("promocode", "changelist"), url("promocode", "change", promo.pk)):
        page = text_of(office.get(page))
        assert "2 of 5, 3 left" in page
        assert "$12.50 of $100.00, $87.50 left" in page


def test_promo_code_page_invalid_data_shows_error(office):
    PromoCode.objects.create(code="OTHER", percent=10)
    promo = PromoCode.objects.create(code="SPRING", percent=10)
    PromoCode.objects.filter(pk=promo.pk).update(uses=3, spent=Decimal(30))
    address = url("promocode", "change", promo.pk)
    valid = form_of(office.get(address)) | {"valid_from_1": "09:00", "valid_until_1": "09:00"}
    days = {"valid_from_0": "2027-03-01", "valid_until_0": "2027-03-03"}
    for fields, wrong in (
        ({"percent": "10", "amount": "5"}, {"percent", "amount"}),
        ({"percent": "", "amount": ""}, {"percent"}),
        ({"percent": "101"}, {"percent"}),
        ({"percent": "", "amount": "0"}, {"amount"}),
        ({"max_uses": "1", "budget": "1"}, {"max_uses", "budget"}),
        ({"minimum_spend": "-1", "code": ""}, {"minimum_spend", "code"}),
        ({"valid_from_0": "2027-03-04"}, {"valid_until"}),
        ({"meeting_from": "2027-03-02", "meeting_until": "2027-03-01"}, {"meeting_until"}),
        ({"code": "OTHER"}, {"code"}),
    ):
        refused = errors_of(office.post(address, {**valid, **days, **fields}))
        assert wrong <= refused.keys() - {"__all__"} == refused.keys(), (fields, refused)
