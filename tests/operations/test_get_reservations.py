"""What customers see of their reservations: /api/account/reservation, /api/account/reservations
and /api/reservations/get-allowances
"""

import pytest

from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_people import AdministratorFactory, UserFactory, issue_token
from tests.factories_reservations import (
    DAY,
    NOW,
    START,
    AllowanceFactory,
    ReservationFactory,
    make_booking,
    make_draft,
    make_room,
)
from tests.http import post
from tests.operations.helpers import refused

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

LIST = "/api/account/reservations"


# --- One reservation ------------------------------------------------------------------------------


def test_any_status_is_shown_and_only_new_accepts_allowances(read, ada):
    AllowanceFactory(user=ada)
    for status in Status:
        shown = read(ReservationFactory(user=ada, status=status))
        assert shown["Status"] == status
        assert shown["CanApplyAllowances"] == (status == Status.NEW)
        assert [each["NumberOfHours"] for each in shown["UsableAllowances"]] == [0]


def test_allowance_without_hours_left_is_not_usable(read, ada):
    AllowanceFactory(user=ada, hours=3)
    shown = read(make_booking(ada))
    assert [each["NumberOfHours"] for each in shown["Allowances"]] == [3]
    assert shown["UsableAllowances"] == []


def test_inactive_room_is_still_shown(read, ada):
    reservation = make_draft(ada)
    reservation.room.is_active = False
    reservation.room.save()
    shown = read(reservation)
    assert shown["MeetingRoom"]["Name"] == "Boardroom"
    assert shown["Center"]["MeetingRooms"] == []


# --- The list -------------------------------------------------------------------------------------


@pytest.fixture
def ask(call):
    return lambda **fields: call(LIST, **fields)


@pytest.fixture
def ids(get):
    return lambda **fields: [each["Id"] for each in get(LIST, **fields)["Reservations"]]


def test_own_reservations_are_listed_by_start(client, get, read, ada):
    room = make_room()
    later, sooner = make_booking(ada, room, start=START + DAY), make_draft(ada, room)
    same_start = ReservationFactory(user=ada, start=START + DAY)
    make_draft()

    assert get(LIST) == {
        "Success": True,
        "Reservations": [read(each) for each in (sooner, later, same_start)],
    }
    # Staff have the access of a customer.
    token = issue_token(AdministratorFactory())
    assert post(client, LIST, {"Token": token}).json()["Reservations"] == []


def test_reservations_overlapping_the_span_are_listed(ids, ada):
    """A reservation from 16:00 to 19:00 UTC. Without an offset, times are UTC."""
    pk = ReservationFactory(user=ada).pk
    for fields, is_found in (
        ({"From": "2027-03-03T18:59:59Z"}, True),
        ({"From": "2027-03-03T19:00:00Z"}, False),
        ({"To": "2027-03-03T16:00:01Z"}, True),
        ({"To": "2027-03-03T16:00:00Z"}, False),
        ({"From": "2027-03-03T19:00:00"}, False),
        ({"From": "2027-03-03T18:59:59", "To": "2027-03-03T18:59:59"}, True),
        ({"To": "2027-03-04"}, True),
        ({"From": "2027-03-03T12:00:00-07:00"}, False),
    ):
        assert ids(**fields) == ([pk] if is_found else []), fields


def test_reservations_are_filtered_by_status(ids, ada):
    rows = {status: ReservationFactory(user=ada, status=status).pk for status in Status}
    for status, pk in rows.items():
        assert ids(Statuses=[status]) == [pk]
    assert ids(Statuses=["New", "Expired", "New"]) == [rows[Status.NEW], rows[Status.EXPIRED]]
    assert ids(Statuses=[]) == ids(Cursor="", PageSize=None) == list(rows.values())


# --- Pages ----------------------------------------------------------------------------------------


@pytest.fixture
def make_rows(ada):
    """Return a function that creates completed reservations, two at each start, latest first."""

    def make_rows(count):
        room = make_room()
        rows = [
            ReservationFactory(user=ada, room=room, start=START + n // 2 * DAY, status="Completed")
            for n in range(count - 1, -1, -1)
        ]
        return [each.pk for each in sorted(rows, key=lambda each: (each.start, each.pk))]

    return make_rows


@pytest.fixture
def iterate_pages(ask):
    """Return a function that yields the ids of each page."""

    def iterate_pages(cursor=None, **fields):
        while True:
            body = ask(Cursor=cursor, **fields).json()
            assert list(body)[:2] == ["Success", "Reservations"], body
            yield [each["Id"] for each in body["Reservations"]]
            cursor = body.get("NextCursor")
            if cursor is None:
                return
            assert list(body)[2:] == ["NextCursor"]
            assert len(cursor) <= 255

    return iterate_pages


def test_page_has_100_reservations_by_default(iterate_pages, make_rows):
    rows = make_rows(101)
    assert list(iterate_pages()) == [rows[:100], rows[100:]]


def test_pages_of_any_size_list_every_reservation_once(ask, iterate_pages, make_rows):
    rows = make_rows(7)
    for size in (1, 3, 7, 8):
        pages = [rows[first : first + size] for first in range(0, 7, size)]
        assert list(iterate_pages(PageSize=size)) == pages
    # The size may change between pages.
    cursor = ask(PageSize=1).json()["NextCursor"]
    assert next(iterate_pages(PageSize=100, cursor=cursor)) == rows[1:]


def test_reservations_created_or_cancelled_between_pages_move_no_other(
    iterate_pages, make_rows, ada
):
    rows = make_rows(6)
    room = make_room()
    new, seen = [], []
    for page in iterate_pages(PageSize=2, Statuses=["Completed"]):
        seen += page
        # One before, one at and one after the end of the page; and what was listed is cancelled.
        last = Reservation.objects.get(pk=page[-1]).start
        if len(new) < 9:
            new += [
                ReservationFactory(user=ada, room=room, start=start, status=Status.COMPLETED).pk
                for start in (START - DAY, last, last + DAY)
            ]
        Reservation.objects.filter(pk__in=page).update(status=Status.CANCELLED, cancelled_at=START)

    assert [pk for pk in seen if pk in rows] == rows
    assert len(seen) == len({*seen})


def assert_cursor_is_refused(response):
    error = refused(response, 400, "InvalidRequest")
    assert error["Details"] == "Cursor: This cursor is not valid for this request."


def test_cursor_for_other_filters_is_refused(ask, make_rows):
    make_rows(3)
    filters = {
        "From": "2027-01-01T00:00:00Z",
        "To": "2028-01-01T00:00:00Z",
        "Statuses": ["Completed", "New"],
    }
    cursor = ask(PageSize=1, **filters).json()["NextCursor"]

    for other in (
        {"From": None},
        {"To": "2028-01-01T00:00:01Z"},
        {"Statuses": ["Completed"]},
    ):
        assert_cursor_is_refused(ask(Cursor=cursor, **filters | other))
    # The same filters in other words are the same.
    same = {"From": "2026-12-31T17:00:00-07:00", "Statuses": ["New", "Completed", "New"]}
    assert ask(Cursor=cursor, **filters | same).status_code == 200


def test_cursor_of_another_account_or_that_was_never_given_is_refused(client, ask, make_rows):
    make_rows(3)
    cursor = ask(PageSize=1).json()["NextCursor"]
    body = {"Token": issue_token(UserFactory()), "Cursor": cursor}
    assert_cursor_is_refused(post(client, LIST, body))
    for changed in (
        *("x", "::", "é" * 255, "WyIyMDI3Il0:abc", "-1"),
        *(cursor[1:], cursor[:-1], cursor.swapcase(), cursor.replace(":", "")),
    ):
        assert_cursor_is_refused(ask(Cursor=changed))
