"""What bookings cost under a rate, shown while its prices are typed."""

from decimal import Decimal

import pytest
from django.urls import reverse

from centers.admin.rate_examples import EXAMPLE_DURATIONS, calculate_examples, summarize_examples
from centers.models import Rate
from tests.centers.test_admin import errors_of, form_of
from tests.factories_centers import RateFactory

pytestmark = pytest.mark.django_db


def ask(client, **prices):
    return client.post(reverse("admin:centers_rate_examples"), prices)


def rate(**prices):
    return Rate(**{name: Decimal(value) for name, value in prices.items()})


def totals(each):
    return {example.length: example.total for example in calculate_examples(each)}


# --- The examples ---------------------------------------------------------------------------------


def test_each_length_is_priced_by_its_cheapest_tiers():
    assert list(totals(rate(hourly=25, half_day=90, full_day=160)).values()) == [
        *(Decimal(25), Decimal("62.50"), Decimal(90), Decimal(115), Decimal(160), Decimal(320)),
    ]


def test_the_set_up_fee_comes_once_on_top():
    with_fee = rate(hourly=25, setup_fee=20)
    assert totals(with_fee)["1 hour"] == 45
    assert calculate_examples(with_fee)[0].room == "$25.00"


def test_a_flat_rate_costs_the_same_however_long():
    flat = Rate(is_flat_rate=True, flat_rate=Decimal(50))
    assert set(totals(flat).values()) == {50}
    assert calculate_examples(flat)[-1].reasons == ["Once, however long the booking is."]


def test_whole_hours_are_billed_where_the_rate_says_so():
    assert totals(Rate(hourly=Decimal(10), bill_in_blocks=True))["2.5 hours"] == 30


def test_a_day_says_what_the_other_covers_would_have_cost():
    five = next(
        each
        for each in calculate_examples(rate(hourly=25, half_day=90))
        if each.length == "5 hours"
    )
    assert five.billed == "5 hours: half day + 1 hour"
    assert five.reasons == [
        "half day + 1 hour at $115.00; 5 hours would be $125.00, 2 half days would be $180.00"
    ]
    two_days = calculate_examples(rate(full_day=160))[-1]
    assert [reason[:16] for reason in two_days.reasons] == ["Day 1, 15 hours:", "Day 2, 17 hours:"]


def test_a_rate_without_a_price_has_no_examples():
    assert calculate_examples(Rate()) == []
    assert summarize_examples(Rate()) == ""


# --- While one types ------------------------------------------------------------------------------


def test_prices_are_tried_as_typed_and_nothing_is_saved(office):
    stored = RateFactory(hourly=Decimal(25))
    page = ask(office, name=stored.name, hourly="30", half_day="", setup_fee="5")
    told = page.content.decode()
    assert page.status_code == 200
    assert all(length in told for length, _ in EXAMPLE_DURATIONS)
    assert "$30.00" in told
    assert "$35.00" in told
    assert Rate.objects.get().hourly == 25


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ({"hourly": "a lot"}, "Enter a number."),
        ({"hourly": "-1"}, "A price is not negative."),
        ({"hourly": "1.005"}, "decimal places"),
        ({"hourly": "NaN"}, "Enter a number."),
        ({"hourly": "99999999999999"}, "digits"),
        ({"is_flat_rate": "on"}, "A flat rate needs its price."),
        ({}, "No price yet"),
        ({"hourly": ["1", "x"]}, "Enter a number."),
        ({"setup_fee": "\0"}, "Enter a number."),
    ],
)
def test_wrong_prices_are_told_in_words(office, prices, words):
    page = ask(office, **prices)
    assert page.status_code == 200
    assert words in page.content.decode()


def test_free_is_shown_as_free(office):
    assert "$0.00" in ask(office, hourly="0").content.decode()


def test_the_page_of_a_rate_shows_the_examples_without_script(office):
    stored = RateFactory(hourly=Decimal(25), half_day=None, full_day=None)
    address = reverse("admin:centers_rate_change", args=[stored.pk])
    page = office.get(address)
    assert "$62.50" in page.content.decode()
    refused = office.post(address, {**form_of(page), "hourly": "40", "name": ""})
    assert set(errors_of(refused)) == {"name"}
    assert "$100.00" in refused.content.decode()
    assert "No price yet" in office.get(reverse("admin:centers_rate_add")).content.decode()


def test_rates_of_a_center_show_what_bookings_cost(office):
    stored = RateFactory()
    page = office.get(reverse("admin:centers_center_change", args=[stored.center_id]))
    assert "$90.00 · $160.00 · $320.00" in page.content.decode()


def test_only_who_may_see_rates_may_try_them(client, staff):
    assert ask(client, hourly="5").status_code == 302
    client.force_login(staff("Viewer"))
    assert ask(client, hourly="5").status_code == 200
    nobody = staff("Viewer")
    nobody.groups.clear()
    client.force_login(nobody)
    assert ask(client, hourly="5").status_code == 403
    assert client.get(reverse("admin:centers_rate_examples")).status_code == 405
