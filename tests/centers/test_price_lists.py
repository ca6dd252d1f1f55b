"""Special price lists: when they hold, what a day costs with them, and which overlap (B12.2)."""

import datetime as dt
import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise, product
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from centers import price_lists, rates
from centers.hours import WEEKDAYS
from centers.models import PriceList, Rate
from centers.span import Span
from tests.centers.test_rates import FULL, rate
from tests.concurrency import run_concurrently
from tests.factories_centers import PriceListFactory, RateFactory, ServiceFactory
from tests.faults.size import LONG

DENVER = ZoneInfo("America/Denver")
TODAY = dt.date(2027, 1, 1)
ZONES = [ZoneInfo(name) for name in ("America/Denver", "Australia/Lord_Howe", "Africa/Cairo")]


def price_list(name="Evening", starts=18, ends=0, **fields) -> PriceList:
    times = {"starts": time(starts), "ends": time(ends)}
    return PriceList(**{"name": name, "hourly": Decimal(30), **times, **fields})


def price(some_rate, start, hours) -> rates.RoomPrice:
    start = start.astimezone(UTC)
    return rates.price_room(some_rate, Span(start, start + timedelta(hours=hours)), DENVER)


def with_lists(some_rate, *lists):
    return replace(some_rate, special_prices=lists)


EVENING = with_lists(FULL, price_list())
MONDAY_3_PM = datetime(2027, 3, 1, 15, tzinfo=DENVER)


@pytest.mark.parametrize(
    ("some_rate", "hours", "total", "explanation", "rate_text"),
    [
        (EVENING, 2, "50.00", "2 hours", "$25.00/hour"),
        (
            *(EVENING, 5, "135.00", "5 hours: 3 hours + evening 2 hours"),
            "$25.00/hour + evening $30.00/hour",
        ),
        (
            *(EVENING, 26, "415.00", "26 hours over 2 days: day + 3 hours + evening 6 hours"),
            "$160.00/day + $25.00/hour + evening $30.00/hour",
        ),
        (
            with_lists(FULL, price_list(half_day=Decimal(100))),
            *(8, "205.00", "8 hours: 3 hours + evening (half day + 1 hour)"),
            "$25.00/hour + evening $100.00/half day + evening $30.00/hour",
        ),
        # Rounded to full hours, for each list on its own.
        (
            with_lists(rate(25, bill_in_blocks=True), price_list()),
            *(3.5, "105.00", "3.5 hours (billed as 4): 3 hours + evening 1 hour"),
            "$25.00/hour + evening $30.00/hour",
        ),
    ],
)
def test_bill_names_the_hours_of_each_list(some_rate, hours, total, explanation, rate_text):
    priced = price(some_rate, MONDAY_3_PM, hours)
    assert (str(priced.total), priced.explanation) == (total, explanation)
    assert priced.rate_text == rate_text


# --- When a list holds ----------------------------------------------------------------------------


def valid(first=None, last=None, **fields):
    """The fields of a list that is valid from the first to the last of these days."""
    days = {"valid_from": first, "valid_until": last}
    return fields | {name: dt.date.fromisoformat(day) for name, day in days.items() if day}


def yearly(first, last):
    return valid(first, last, is_yearly=True)


@pytest.mark.parametrize(
    ("fields", "days", "others"),
    [
        ({"weekdays": "sat,sun"}, "2027-03-06 2027-03-07", "2027-03-05 2027-03-08"),
        (
            valid("2027-03-01", "2027-03-02"),
            *("2027-03-01 2027-03-02", "2027-02-28 2027-03-03 2028-03-01"),
        ),
        (valid(last="2027-03-02"), "1999-01-01 2027-03-02", "2027-03-03"),
        (yearly("2020-12-01", "2020-12-31"), "2027-12-01 2019-12-31", "2027-11-30 2028-01-01"),
        (yearly("2020-12-20", "2021-01-06"), "2027-12-20 2028-01-06", "2027-12-19 2028-01-07"),
        (yearly("2020-02-29", "2020-02-29"), "2028-02-29", "2027-02-28 2027-03-01"),
    ],
)
def test_list_holds_on_its_days_only(fields, days, others):
    each = price_list(**fields)
    assert all(price_lists.holds_on(each, dt.date.fromisoformat(day)) for day in days.split())
    assert not any(price_lists.holds_on(each, dt.date.fromisoformat(day)) for day in others.split())


@pytest.mark.parametrize(
    ("day", "starts", "ends", "hours"),
    [
        # The clock goes back at 2:00: the hour from 1:00 counts twice, as it elapses.
        (dt.date(2027, 11, 7), time(1), time(2), 2),
        (dt.date(2027, 11, 7), time(0), time(0), 25),
        # It goes forward at 2:00.
        (dt.date(2027, 3, 14), time(1), time(4), 2),
        (dt.date(2027, 3, 14), time(2), time(3), 0),
    ],
)
def test_repeated_and_skipped_hours_count_as_they_elapse(day, starts, ends, hours):
    each = PriceList(starts=starts, ends=ends)
    [(_, whole_day)] = Span(
        *(datetime.combine(at, time(), DENVER) for at in (day, day + timedelta(days=1)))
    ).split_by_local_day(DENVER)
    parts = price_lists.split([each], day, whole_day, DENVER)
    held = sum((part.duration for part, by in parts if by), timedelta())
    assert held == timedelta(hours=hours)
    assert (parts[0][0].start, parts[-1][0].end) == (whole_day.start, whole_day.end)
    assert all(one.end == other.start for (one, _), (other, _) in pairwise(parts))


@pytest.mark.parametrize(
    ("one", "other", "moment"),
    [
        ({}, {"weekdays": "sat", "starts": 9}, "Sat 2027-01-02 18:00"),
        ({}, {"ends": 18, "starts": 9}, None),
        ({"weekdays": "mon,tue"}, {"weekdays": "wed"}, None),
        (valid("2027-05-01"), {"weekdays": "sat", "starts": 0}, "Sat 2027-05-01 18:00"),
        (valid(last="2027-05-01"), valid("2027-05-02"), None),
        (
            yearly("2027-12-01", "2027-12-31"),
            *(yearly("2027-12-31", "2028-01-02"), "Fri 2027-12-31 18:00"),
        ),
        (yearly("2027-12-01", "2027-12-31"), yearly("2027-06-01", "2027-08-02"), None),
        # Only in the past: still the same moment.
        (valid(last="2026-05-01"), valid("2026-04-01", weekdays="sat"), "Sat 2026-04-04 18:00"),
    ],
)
def test_overlapping_lists_are_named_with_a_moment(one, other, moment):
    lists = [price_list(**one), price_list(**{"name": "Other", **other})]
    expected = f"Evening and Other would both hold on {moment}." if moment else ""
    assert price_lists.find_overlap(lists, today=TODAY) == expected
    assert bool(price_lists.find_overlap(lists[::-1], today=TODAY)) is bool(moment)


# --- Against brute force --------------------------------------------------------------------------

amounts = st.none() | st.decimals(0, 500, places=2)
days = st.dates(dt.date(2027, 1, 1), dt.date(2028, 12, 31))


@st.composite
def draw_list(draw) -> PriceList:
    """A list that can hold; most hold on many days, so that bookings meet their boundaries."""
    first, last = sorted(draw(st.sets(st.integers(0, 96), min_size=2, max_size=2)))
    weekdays = draw(st.just(()) | st.sets(st.sampled_from(WEEKDAYS), max_size=6))
    since, until = draw(st.just((None, None)) | st.tuples(st.none() | days, st.none() | days))
    is_yearly = draw(st.booleans())
    if since and until and since > until and not is_yearly:
        since, until = until, since
    return PriceList(
        name=draw(st.sampled_from(["Evening", "Weekend", "VIP"])),
        weekdays=PriceList._meta.get_field("weekdays").to_python(",".join(weekdays)),
        starts=time(first // 4, first % 4 * 15),
        ends=time(last // 4 % 24, last % 4 * 15),
        valid_from=since,
        valid_until=until,
        is_yearly=is_yearly,
        hourly=draw(st.decimals(1, 500, places=2)),
        half_day=draw(amounts),
        full_day=draw(amounts),
    )


lists = draw_list()
some_rates = st.builds(
    lambda hourly, half_day, full_day, **fields: rate(hourly, half_day, full_day, **fields),
    *(amounts, amounts, amounts),
    bill_in_blocks=st.booleans(),
    special_prices=st.lists(lists, max_size=3, unique_by=lambda each: each.name).map(tuple),
)


def holds_at(each: PriceList, at: datetime) -> bool:
    """Whether a list holds at a local time, read from its fields one by one."""
    if each.weekdays and f"{at:%a}".lower() not in each.weekdays.split(","):
        return False
    if at.time() < each.starts or (each.ends != time() and at.time() >= each.ends):
        return False
    day, first, last = at.date(), each.valid_from, each.valid_until
    if each.is_yearly:
        key = f"{day:%m%d}"
        since = f"{first:%m%d}" if first else "0101"
        until = f"{last:%m%d}" if last else "1231"
        return since <= key <= until if since <= until else not until < key < since
    return (first is None or first <= day) and (last is None or day <= last)


def brute_force(hours: Decimal, some_rate) -> Decimal:
    """The least price of any number of full days, half days and steps that reaches the hours."""
    step = Decimal(1) if some_rate.bill_in_blocks else Decimal("0.25")
    steps = int(-(-hours // step)) + 1 if some_rate.hourly is not None else 0
    totals = []
    for full, half in product(
        range(2 if some_rate.full_day is not None else 1),
        range(8 if some_rate.half_day is not None else 1),
    ):
        for count in range(steps + 1):
            reached = full * 100 + half * 4 + count * step
            if reached >= hours:
                totals.append(
                    full * (some_rate.full_day or 0)
                    + half * (some_rate.half_day or 0)
                    + count * step * (some_rate.hourly or 0)
                )
    return min(totals)


def price_by_quarters(some_rate, span: Span, zone: ZoneInfo) -> Decimal:
    """Assign each quarter of an hour to a list, and find the cheapest tiers of each by trying."""
    counts: Counter = Counter()
    at = span.start
    while at < span.end:
        local = at.astimezone(zone).replace(tzinfo=None)
        held = [each for each in some_rate.special_prices if holds_at(each, local)]
        assert len(held) <= 1
        counts[local.date(), held[0].name if held else ""] += 1
        at += timedelta(minutes=15)
    by_name = {each.name: each for each in some_rate.special_prices}
    total = Decimal(0)
    for (_, name), quarters in counts.items():
        prices = by_name.get(name, some_rate)
        tiers = rate(prices.hourly, prices.half_day, prices.full_day)
        tiers.bill_in_blocks = some_rate.bill_in_blocks
        total += brute_force(Decimal(quarters) / 4, tiers)
    return rates.round_amount(total)


@settings(max_examples=10_000 if LONG else 300)
@given(some_rates, st.sampled_from(ZONES), st.integers(0, 4 * 24 * 700), st.integers(1, 130))
@example(EVENING, DENVER, 4 * 24 * 310, 100)
def test_price_is_that_of_the_best_tiers_for_each_quarter(some_rate, zone, first, quarters):
    assume(rates.is_usable(some_rate))
    assume(not price_lists.find_overlap(some_rate.special_prices, today=TODAY))
    start = datetime(2027, 1, 1, tzinfo=UTC) + first * timedelta(minutes=15)
    span = Span(start, start + quarters * timedelta(minutes=15))
    priced = rates.price_room(some_rate, span, zone)
    assert priced.total == price_by_quarters(some_rate, span, zone)
    if quarters > 1 and len(priced.days) == 1:
        shorter = Span(start, span.end - timedelta(minutes=15))
        assert rates.price_room(some_rate, shorter, zone).total <= priced.total


@settings(max_examples=200)
@given(lists, lists, st.integers(0, 364 * 96))
def test_lists_without_an_overlap_never_hold_together(one, other, quarter):
    at = datetime(2027, 1, 1, tzinfo=UTC) + quarter * timedelta(minutes=15)
    if holds_at(one, at) and holds_at(other, at):
        assert price_lists.find_overlap([one, other], today=TODAY)


# --- Stored lists ---------------------------------------------------------------------------------


@pytest.mark.django_db
def test_rate_knows_whether_it_has_lists(django_assert_num_queries):
    stored = RateFactory(hourly=25)
    with django_assert_num_queries(0):
        assert list(stored.special_prices) == []
    evening = price_list(rate=stored)
    evening.save()
    assert list(Rate.objects.get(pk=stored.pk).special_prices) == [evening]
    PriceList.objects.filter(pk=evening.pk).delete()
    assert not Rate.objects.get(pk=stored.pk).has_special_prices


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hourly": None}, "Enter at least one price."),
        ({"hourly": Decimal(-1)}, "A price must not be negative."),
        ({"starts": time(9), "ends": time(9)}, "starts before it ends"),
        ({"starts": time(22), "ends": time(2)}, "starts before it ends"),
        (valid("2027-02-01", "2027-01-01"), "The first day must not be after the last."),
        ({"weekdays": "mon,sta"}, "sta is no weekday"),
        # It would leave a minute at another price.
        ({"ends": time(23, 59)}, "Enter 00:00 for midnight."),
        ({"ends": time(20, 0, 30)}, "Times are whole minutes."),
    ],
)
def test_list_that_cannot_hold_is_refused(fields, message):
    each = price_list(rate=RateFactory(hourly=25))
    for name, value in fields.items():
        setattr(each, name, value)
    with pytest.raises(ValidationError, match=message):
        each.full_clean()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_rate_knows_its_lists_although_two_are_written_at_once():
    stored = RateFactory(hourly=25)
    former = PriceListFactory(rate=stored, name="Former")
    added, may_end = threading.Event(), threading.Event()

    def add():
        with transaction.atomic():
            PriceListFactory(rate=stored, name="New", starts=time(6), ends=time(9))
            added.set()
            may_end.wait(5)

    def delete():
        added.wait(5)
        threading.Timer(0.5, may_end.set).start()
        former.delete()

    run_concurrently([add, delete])

    assert Rate.objects.get(pk=stored.pk).has_special_prices


@pytest.mark.django_db
def test_flat_rates_and_services_have_no_lists():
    flat = RateFactory(is_flat_rate=True, flat_rate=5)
    with pytest.raises(ValidationError, match="A flat rate has one price"):
        price_list(rate=flat).full_clean()
    service = ServiceFactory(rate=RateFactory(hourly=5))
    with pytest.raises(ValidationError, match="services have this rate"):
        price_list(rate=service.rate).full_clean()
    special = RateFactory(hourly=25, center=service.center)
    price_list(rate=special).save()
    special.refresh_from_db()
    special.is_flat_rate, special.flat_rate, service.rate = True, Decimal(5), special
    for row, message in ((special, "A flat rate has no special"), (service, "has special prices")):
        with pytest.raises(ValidationError, match=message):
            row.full_clean()
