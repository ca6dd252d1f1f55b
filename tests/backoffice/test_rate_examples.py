"""The examples of what bookings cost with a rate, also while its prices are being entered."""

import datetime as dt
from decimal import Decimal

import pytest
from django.urls import reverse

from centers.admin.rates import (
    calculate_examples,
    find_price_warnings,
    summarize_examples,
)
from centers.models import Rate
from tests.admin_forms import form_of
from tests.backoffice.reading import messages_of
from tests.factories_centers import RateFactory

pytestmark = pytest.mark.django_db

TODAY = dt.date(2027, 3, 1)


def post_prices(client, **prices):
    return client.post(reverse("admin:centers_rate_examples"), prices)


def build_rate(**prices):
    return Rate(**{name: Decimal(value) for name, value in prices.items()})


def get_totals(rate):
    return {
        example.duration_text: example.total for example in calculate_examples(rate, today=TODAY)
    }


def test_examples_are_priced_by_their_cheapest_tiers():
    assert list(get_totals(build_rate(hourly=25, half_day=90, full_day=160)).values()) == [
        *(Decimal(25), Decimal("62.50"), Decimal(90), Decimal(115), Decimal(160), Decimal(320)),
    ]
    # The set-up fee is added once.
    rate = build_rate(hourly=25, setup_fee=20)
    assert get_totals(rate)["1 hour"] == 45
    assert calculate_examples(rate, today=TODAY)[0].room_text == "$25.00"
    flat = Rate(is_flat_rate=True, flat_rate=Decimal(50))
    assert set(get_totals(flat).values()) == {50}
    reasons = ["Charged once, regardless of the duration."]
    assert calculate_examples(flat, today=TODAY)[-1].reasons == reasons
    assert calculate_examples(Rate(), today=TODAY) == []
    assert summarize_examples(Rate()) == ""


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ({"hourly": "a lot"}, "Enter a number."),
        ({"hourly": "30", "setup_fee": "5"}, "$35.00"),
        ({"is_flat_rate": "on"}, "Enter the price of the flat rate."),
        ({}, "No price yet"),
        ({"setup_fee": "\0"}, "Enter a number."),
    ],
)
def test_entered_prices_show_examples_or_a_message(office, prices, message):
    page = post_prices(office, **prices)
    assert page.status_code == 200
    assert message in page.content.decode()


@pytest.mark.parametrize(
    ("prices", "warnings"),
    [
        ({"hourly": 90, "half_day": 90, "full_day": 90}, []),
        ({"hourly": 91, "full_day": 90}, ["An hour ($91.00) costs more than a full day ($90.00)."]),
        (
            {"hourly": 95, "half_day": 90, "full_day": 80},
            [
                "An hour ($95.00) costs more than half a day ($90.00).",
                "Half a day ($90.00) costs more than a full day ($80.00).",
            ],
        ),
        ({"is_flat_rate": True, "flat_rate": 50, "hourly": 91, "half_day": 90}, []),
    ],
)
def test_price_of_a_shorter_time_above_that_of_a_longer_one_warns(prices, warnings):
    assert find_price_warnings(build_rate(**prices)) == warnings


def test_rate_with_an_hour_above_half_a_day_warns_before_and_after_saving(office):
    rate = RateFactory(hourly=Decimal(25), half_day=Decimal(90), full_day=None)
    warning = "An hour ($100.00) costs more than half a day ($90.00)."
    assert warning in post_prices(office, name="Usual", hourly="100", half_day="90").text
    page = reverse("admin:centers_rate_change", args=[rate.pk])
    of_center = reverse("admin:centers_center_change", args=[rate.center_id]) + "?tab=rate"
    for url, field in ((page, "hourly"), (of_center, "rates-0-hourly")):
        Rate.objects.update(hourly=25)
        saved = office.post(url, {**form_of(office.get(url)), field: "100.00"})
        assert ("warning", f"{rate.name}: {warning}") in messages_of(saved)
        rate.refresh_from_db()
        assert rate.hourly == 100
    assert warning in office.get(page).text
