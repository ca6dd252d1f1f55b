"""Planted defects: each breaks one rule of availability, prices, amendments or limits.

test_planted_defects.py lets the tests of these rules find them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, timedelta
from decimal import ROUND_DOWN, Decimal
from functools import partial
from math import ceil
from typing import Any, TypeAlias
from unittest.mock import patch

from accounts import limits
from accounts.limits import FailureLimit, RateLimit
from centers import hours, rates
from centers.span import Span
from reservations import availability
from reservations.availability import Availability, RoomCalendar
from reservations.booking import amendments
from reservations.booking.commands import Command
from reservations.models import LineItemType
from reservations.pricing import quote as pricing
from roombook.errors import TooManyRequests

QUARTER = timedelta(minutes=15)
ROWS, QUOTE = "opening_hours_and_conflicts", "calculate_quote"
# What has a function, its name, and what replaces it: a function that gets the original first.
Defect: TypeAlias = tuple[Any, str, Callable[..., Any]]


def change_rows(*, column: int) -> Callable[..., Any]:
    """The opening hours and conflicts of a room, with one column False."""

    def broken(original, **params):
        return [(*row[:column], False, *row[column + 1 :]) for row in original(**params)]

    return broken


def drop_reasons(code: str) -> Callable[..., Any]:
    return lambda original, room: [each for each in original(room) if each.code != code]


def drop_option(original, room, span, *, dropped, **options):
    return original(room, span, **{**options, dropped: None})


def ignore_the_last_quarter_hour(original, span, intervals, tz):
    end = max(span.end - QUARTER, span.start + QUARTER / 15)
    return original(Span(span.start, end), intervals, tz)


def change_rules(**steps: int) -> Callable[..., Any]:
    """A check of a span by other rules: each is larger by so much."""

    def broken(original, rules, *args, **options):
        changed = {name: getattr(rules, name) + step for name, step in steps.items()}
        return original(rules._replace(**changed), *args, **options)

    return broken


def open_closures_after_hours(original, room, span, **options):
    result = original(room, span, **options)
    if not room.center.is_after_hours_support_enabled:
        return result
    return replace(result, reasons=tuple(r for r in result.reasons if r.code != "closure"))


AVAILABILITY: dict[str, Defect] = {
    "turnaround is ignored": (availability, "get_conflict_bounds", lambda f, span, _: f(span, 0)),
    "closures are ignored": (availability, ROWS, change_rows(column=3)),
    "reservations are ignored": (availability, ROWS, change_rows(column=4)),
    "own drafts conflict": (availability, "evaluate", partial(drop_option, dropped="for_user")),
    "itself conflicts": (availability, "evaluate", partial(drop_option, dropped="excluding")),
    "support after hours opens closures": (availability, "evaluate", open_closures_after_hours),
    "support after hours is ignored": (
        *(RoomCalendar, "is_outside_opening_hours"),
        lambda _, self, span: not hours.is_open(span, self.opening_hours, self.room.center.zone),
    ),
    "closing time is late": (hours, "is_open", ignore_the_last_quarter_hour),
    "opening hours are in UTC": (hours, "is_open", lambda f, span, week, _: f(span, week, UTC)),
    "blocks are ignored": (availability, "check_state", drop_reasons("room-blocked")),
    "the past is free": (
        *(availability, "_check_window"),
        lambda f, rules, span, *args, earliest: f(
            rules, span, *args, earliest=min(earliest, span.start)
        ),
    ),
    "window is a day longer": (availability, "_check_window", change_rules(window_days=1)),
    "shortest is refused": (availability, "_check_shape", change_rules(minimum_minutes=1)),
    "longest is refused": (availability, "_check_shape", change_rules(maximum_minutes=-1)),
    "steps are wrong": (availability, "_check_shape", change_rules(slot_minutes=-10)),
}


def drop_combinations(tier: str) -> Callable[..., Any]:
    def broken(original, hours, rate):
        found = original(hours, rate)
        return [each for each in found if not getattr(each, tier)] or found

    return broken


def price_all_days_as_one(original, self, tz):
    yield self.start.astimezone(tz).date(), self


def swap_tax(original, *args, without, **options):
    """The quote with the tax of the quote without this option."""
    quote = original(*args, **options)
    other = original(*args, **{name: each for name, each in options.items() if name != without})
    lines = [line for line in quote.lines if line.type != LineItemType.TAX]
    lines += [line for line in other.lines if line.type == LineItemType.TAX]
    return replace(quote, lines=tuple(lines))


def cover_started_hour(original, price, offers):
    return original(replace(price, billable_hours=Decimal(ceil(price.billable_hours))), offers)


def promote_after_tax(original, *args, promo_code=None, **options):
    quote = original(*args, **options)
    if promo_code is None:
        return quote
    off = pricing.get_promo_discount(promo_code, quote.total)
    line = pricing.QuoteLine(LineItemType.PROMOTION, "", -off)
    return replace(quote, lines=(*quote.lines, line))


PRICES: dict[str, Defect] = {
    "quarter hours are rounded down": (
        *(rates, "get_billable_hours"),
        lambda _, duration, in_blocks: Decimal(duration // QUARTER) / 4,
    ),
    "blocks are ignored": (
        *(rates, "get_billable_hours"),
        lambda f, duration, in_blocks: f(duration, in_blocks=False),
    ),
    "day is never chosen": (rates, "list_combinations", drop_combinations("full_days")),
    "half day is never chosen": (rates, "list_combinations", drop_combinations("half_days")),
    "most expensive is chosen": (rates, "list_combinations", lambda f, *args: f(*args)[::-1]),
    "days are priced as one": (Span, "split_by_local_day", price_all_days_as_one),
    "days are in UTC": (Span, "split_by_local_day", lambda f, self, tz: f(self, UTC)),
    "prices are rounded down": (
        *(rates, "round_amount"),
        lambda _, amount: amount.quantize(Decimal("0.01"), ROUND_DOWN),
    ),
    "allowance counts twice": (
        *(pricing, "get_allowance_discount"),
        lambda f, cost, *args: min(2 * f(cost, *args), cost),
    ),
    "allowance covers a started hour": (pricing, "apply_allowances", cover_started_hour),
    "tax is before the promotion": (pricing, QUOTE, partial(swap_tax, without="promo_code")),
    "included hours are taxed": (pricing, QUOTE, partial(swap_tax, without="allowances")),
    "adjustments are not taxed": (pricing, QUOTE, partial(swap_tax, without="adjustments")),
    "promotion is after tax": (pricing, QUOTE, promote_after_tax),
    "set-up is free": (pricing, "_build_room_lines", lambda f, *args: [*f(*args)][:1]),
    "adjustment goes below zero": (pricing, "max", lambda _, amount, least: amount),
    "discount exceeds the sum": (
        *(pricing, "get_promo_discount"),
        lambda f, code, base: f(code, max(base, code.amount or 0)),
    ),
}


def preview_and_do(original, self, act, reservation_id, *args, **options):
    preview = original(self, act, reservation_id, *args, **options)
    self(act, reservation_id, *args, **options)
    return preview


def keep_version(original, amendment):
    original(amendment)
    amendment.reservation.version = amendment.former.version
    amendment.reservation.save(update_fields=["version"])


AMENDMENTS: dict[str, Defect] = {
    "a preview commits": (Command, "preview", preview_and_do),
    "an amendment is not recorded": (amendments, "_record", lambda *args, **options: None),
    "an evaluation is skipped": (amendments, "evaluate", lambda *args, **options: Availability()),
    "the version is not raised": (amendments, "_save_slot", keep_version),
    "the total is not required": (amendments, "require_expected", lambda *args, **options: None),
    "a reduction is not refunded": (
        *(amendments, "refund_reduction"),
        lambda *args, **options: (Decimal(0), ()),
    ),
    "what is not paid is amended": (amendments, "get_price_refusal", lambda *args, **options: ""),
}

COUNTS: dict[object, int] = {}


def count_per_process(original, self, key, *, count, maximum=None, now):
    COUNTS[key] = COUNTS.get(key, 0) + count
    if COUNTS[key] > self.maximum:
        raise TooManyRequests(retry_after=1)
    return True


def count_checks(original, self, key, *, now):
    original(self, key, now=now)
    self._add(key, count=1, now=now)


LIMITS: dict[str, Defect] = {
    "attempts are counted per process": (RateLimit, "_add", count_per_process),
    "all keys count together": (RateLimit, "_add", lambda f, self, _, **o: f(self, "all", **o)),
    "success counts as failure": (FailureLimit, "give_back", lambda *args, **o: None),
    "late failure is not counted": (FailureLimit, "add_failure", lambda *args, **o: None),
    "checks count": (RateLimit, "check", count_checks),
    "nothing is cleared": (limits, "clear_failed_sign_ins", lambda *args: None),
    "each IPv6 address counts alone": (limits, "get_network_key", lambda _, address: address),
}
# The statement that counts attempts, with a part replaced.
SQL = {
    "one attempt more": ("< %(maximum)s", "<= %(maximum)s"),
    "lockout never ends": ("stored.since <= %(over)s", "1 = 0"),
    "each attempt begins the window again": ("ELSE stored.since END", "ELSE %(now)s END"),
}


def replace_statement(old: str, new: str) -> tuple[object, str, str]:
    assert old in limits.ADD_TO_WINDOW
    return limits, "ADD_TO_WINDOW", limits.ADD_TO_WINDOW.replace(old, new)


GROUPS: dict[str, dict[str, Any]] = {
    "availability": AVAILABILITY,
    "prices": PRICES,
    "amendments": AMENDMENTS,
    "limits": LIMITS | {name: replace_statement(*parts) for name, parts in SQL.items()},
}


@contextmanager
def plant(owner: Any, name: str, broken: Any) -> Iterator[None]:
    """Plant a defect: a function that gets the original first, or another value."""
    original = getattr(owner, name, None)

    def call(*args: Any, **options: Any) -> Any:
        return broken(original, *args, **options)

    COUNTS.clear()
    with patch.object(owner, name, call if callable(broken) else broken):
        yield


@contextmanager
def end_endless_attempts() -> Iterator[None]:
    """An attempt that is neither counted nor refused is repeated."""
    calls: list[object] = []

    def add(original, *args, **options):
        calls.append(args)
        assert len(calls) < 500
        return original(*args, **options)

    with plant(RateLimit, "_add", add):
        yield
