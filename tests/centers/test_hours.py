from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centers import hours
from centers.span import Span

DENVER = ZoneInfo("America/Denver")


@dataclass
class Hours:
    weekday: int
    opens: time
    closes: time


def week(*days, opens="08:30", closes="17:00"):
    return [Hours(day, time.fromisoformat(opens), time.fromisoformat(closes)) for day in days]


WORKDAYS = week(*range(5))


def local(text):
    return datetime.fromisoformat(text).replace(tzinfo=DENVER)


def span(start, end):
    return Span(local(start), local(end))


# --- Local times -------------------------------------------------------------------


@pytest.mark.parametrize("fold", [0, 1])
def test_localize_ambiguous_time_is_the_first(fold):
    at = hours.localize(datetime(2027, 11, 7, 1, 30, fold=fold), DENVER)  # noqa: DTZ001
    assert at.isoformat() == "2027-11-07T01:30:00-06:00"


@given(st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)))  # noqa: DTZ001
def test_localize_keeps_every_existing_local_time(at):
    try:
        placed = hours.localize(at, DENVER)
    except hours.NonexistentLocalTime:
        return
    assert placed.replace(tzinfo=None) == at
    assert placed.astimezone(UTC).astimezone(DENVER) == placed


# --- Open or not ----------------------------------------------------------------------------------


ALWAYS = week(*range(7), opens="00:00", closes="00:00")
LUNCH_BREAK = week(0, closes="12:00") + week(0, opens="13:00")
NIGHTS = week(4, 5, opens="22:00", closes="02:00")  # Friday and Saturday
MIDNIGHT = week(0, closes="00:00") + week(1, opens="00:00")
A_MINUTE_LESS = week(0, closes="23:59") + week(1, opens="00:00")


@pytest.mark.parametrize(
    ("opening", "start", "end", "is_open"),
    [
        (ALWAYS, "2027-03-01 00:00", "2027-03-02 00:00", True),
        (ALWAYS, "2027-03-01 23:00", "2027-03-02 01:00", True),
        (ALWAYS, "2027-03-07 23:00", "2027-03-08 01:00", True),  # from Sunday to Monday
        (ALWAYS, "2027-03-13 22:00", "2027-03-15 03:00", True),  # three days, one of 23 hours
        (ALWAYS[:2], "2027-03-02 23:00", "2027-03-03 00:15", False),  # Wednesday is closed
        (MIDNIGHT, "2027-03-01 09:00", "2027-03-02 17:00", True),
        (A_MINUTE_LESS, "2027-03-01 23:00", "2027-03-02 01:00", False),
        (NIGHTS, "2027-03-05 22:00", "2027-03-06 02:00", True),
        (NIGHTS, "2027-03-06 00:30", "2027-03-06 01:30", True),  # only the part of the next day
        (NIGHTS, "2027-03-05 00:30", "2027-03-05 01:30", False),  # Thursday was closed
        (NIGHTS, "2027-03-05 21:45", "2027-03-06 01:00", False),
        (NIGHTS, "2027-03-06 01:00", "2027-03-06 02:15", False),
        (NIGHTS, "2027-03-06 01:00", "2027-03-06 23:00", False),  # closed in between
        (week(6, opens="20:00", closes="04:00"), "2027-03-07 23:00", "2027-03-08 04:00", True),
        (LUNCH_BREAK, "2027-03-01 13:30", "2027-03-01 15:00", True),
        (ALWAYS + WORKDAYS, "2027-03-01 16:00", "2027-03-01 20:00", True),
        (NIGHTS + week(5, closes="22:00"), "2027-03-06 21:00", "2027-03-06 23:00", True),
        (week(0, 1, opens="09:00", closes="08:45"), "2027-03-01 20:00", "2027-03-02 08:45", True),
        (week(0, 1, opens="09:00", closes="08:45"), "2027-03-01 20:00", "2027-03-02 09:00", False),
        # The clock goes forward from 2 to 3, and back from 2 to 1.
        (week(5, opens="22:00", closes="02:00"), "2027-03-13 22:00", "2027-03-14 03:00", True),
        (week(5, opens="22:00", closes="02:30"), "2027-03-13 22:00", "2027-03-14 03:00", True),
        (week(5, opens="22:00", closes="02:30"), "2027-03-13 22:00", "2027-03-14 03:15", False),
        (week(6, opens="02:30", closes="05:00"), "2027-03-14 03:00", "2027-03-14 05:00", True),
        (week(5, opens="22:00", closes="01:30"), "2027-11-06 22:00", "2027-11-07 02:00", False),
    ],
)
def test_is_open_over_midnight_if_the_hours_are_continuous(opening, start, end, is_open):
    assert hours.is_open(span(start, end), opening, DENVER) is is_open
    parts = list(hours.get_open_spans_within(span(start, end), opening, DENVER))
    assert (parts == [span(start, end)]) is is_open


TIMES = st.sampled_from([time(0), time(2, 10), time(8, 30), time(17), time(22)])


@given(
    st.integers(0, 60 * 24 * 366),
    st.integers(15, 60 * 36),
    st.lists(st.builds(Hours, st.integers(0, 6), TIMES, TIMES), min_size=4),
)
def test_is_open_equals_a_check_of_each_minute(first, length, opening):
    start = datetime(2027, 1, 1, 7, tzinfo=UTC) + timedelta(minutes=first)
    span = Span(start, start + timedelta(minutes=length))

    def is_open_at(local):
        day, at = local.weekday(), local.time()
        return any(
            (each.weekday == day and each.opens <= at and (at < each.closes or over_midnight))
            or (over_midnight and (each.weekday + 1) % 7 == day and at < each.closes)
            for each in opening
            for over_midnight in [each.closes <= each.opens]
        )

    minutes = ((start + timedelta(minutes=m)).astimezone(DENVER) for m in range(length))
    assert hours.is_open(span, opening, DENVER) is all(map(is_open_at, minutes))


# --- In few words -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opening", "value", "display"),
    [
        (WORKDAYS, "Mo-Fr 08:30-17:00", "Mon-Fri 8:30 AM - 5:00 PM"),
        (week(5), "Sa 08:30-17:00", "Sat 8:30 AM - 5:00 PM"),
        (week(*range(7), closes="00:00"), "Mo-Su 08:30-24:00", "Mon-Sun 8:30 AM - midnight"),
        (
            week(*range(7), opens="00:00", closes="00:00"),
            "Mo-Su 00:00-24:00",
            "Mon-Sun open 24 hours",
        ),
        (
            LUNCH_BREAK,
            "Mo 08:30-12:00,13:00-17:00",
            "Mon 8:30 AM - 12:00 PM, 1:00 PM - 5:00 PM",
        ),
        (NIGHTS, "Fr-Sa 22:00-02:00", "Fri-Sat 10:00 PM - 2:00 AM"),
    ],
)
def test_summary_joins_days_with_equal_hours(opening, value, display):
    assert hours.summarize_week(opening) == [(value, display)]


def test_summary_has_one_entry_per_run_of_equal_days():
    opening = WORKDAYS[:2] + WORKDAYS[3:] + week(5, 6, opens="10:00", closes="14:00")
    assert [value for value, _ in hours.summarize_week(opening)] == [
        "Mo-Tu 08:30-17:00",
        "Th-Fr 08:30-17:00",
        "Sa-Su 10:00-14:00",
    ]
    assert hours.format_week(opening) == (
        "Mon-Tue 08:30 - 17:00; Thu-Fri 08:30 - 17:00; Sat-Sun 10:00 - 14:00"
    )
    lunch_break = [*week(0, opens="08:00", closes="12:00"), *week(0, opens="13:00", closes="00:00")]
    assert hours.format_week(lunch_break) == "Mon 08:00 - 12:00, 13:00 - 24:00"


def test_summary_follows_the_locale(settings):
    settings.LOCALE = "de_DE"
    assert hours.summarize_week(WORKDAYS)[0][1] == "Mo.-Fr. 08:30 - 17:00"


# --- Time slots ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "slot_minutes", "start"),
    [
        ("2027-03-01 09:00", 15, "2027-03-01 09:00"),
        ("2027-03-01 09:01", 15, "2027-03-01 09:15"),
        ("2027-03-01 09:01", 60, "2027-03-01 10:00"),
        ("2027-03-01 23:50", 45, "2027-03-02 00:00"),
        # On the day of a clock change, slots still count by the wall clock.
        ("2027-03-14 03:20", 60, "2027-03-14 04:00"),
        ("2027-03-14 01:20:20", 120, "2027-03-14 04:00"),
    ],
)
def test_round_up_to_slot_counts_from_local_midnight(at, slot_minutes, start):
    assert hours.round_up_to_slot(local(at), DENVER, slot_minutes) == local(start)
    assert hours.is_on_slot(local(at), DENVER, slot_minutes) is (at == start)


@pytest.mark.parametrize(
    ("intervals", "days"),
    [
        ([], []),
        ([(0, 8, 12), (0, 12, 17)], []),
        ([(0, 12, 17), (0, 8, 13)], [0]),
        ([(0, 8, 0), (0, 22, 23)], [0]),
        ([(0, 0, 0), (0, 22, 23)], [0]),
        ([(0, 22, 2), (1, 2, 9)], []),
        ([(0, 22, 2), (1, 1, 9)], [0, 1]),
        ([(0, 0, 0), (1, 0, 0)], []),
        ([(6, 22, 2), (0, 2, 9)], []),
        ([(6, 22, 2), (0, 1, 9), (3, 8, 9)], [0, 6]),
        ([(6, 22, 2)], []),
    ],
)
def test_overlapping_days_are_found_also_over_midnight(intervals, days):
    opening = [Hours(day, time(opens), time(closes)) for day, opens, closes in intervals]
    assert hours.find_overlapping_days(opening) == days
