"""POST /api/account/reservations"""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_centers import ServiceFactory
from tests.factories_people import UserFactory, issue_token
from tests.factories_reservations import (
    NOW,
    START,
    AllowanceFactory,
    ReservationFactory,
    make_booking,
    make_draft,
    make_room,
)
from tests.http import jsonp, post, post_csv, table

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/account/reservations"
DAY = timedelta(days=1)


@pytest.fixture
def ask(client, token):
    return lambda **fields: post(client, PATH, {"Token": token, **fields})


@pytest.fixture
def ids(ask):
    def ids(**fields):
        response = ask(**fields)
        assert response.status_code == 200, response.content
        return [each["Id"] for each in response.json()["Reservations"]]

    return ids


def test_reservations_are_listed_by_start(client, ask, token, ada):
    room = make_room()
    later, sooner = make_booking(ada, room, start=START + DAY), make_draft(ada, room)
    same_start = ReservationFactory(user=ada, start=START + DAY)

    response = ask()

    assert response.status_code == 200
    shown = [
        post(client, "/api/account/reservation", {"Token": token, "Id": each.pk}).json()
        for each in (sooner, later, same_start)
    ]
    assert response.json() == {
        "Success": True,
        "Reservations": [each["Reservation"] for each in shown],
    }


def test_csv_has_one_row_per_reservation(client, token, ada):
    room = make_room()
    first, second = make_draft(ada, room), make_booking(ada, room, start=START + DAY)
    cancelled = make_draft(ada, room, start=START + 2 * DAY)
    cancelled.transition_to(Status.CANCELLED, by=None, now=NOW)
    body = {"Token": token, "Statuses.0": "Confirmed", "Statuses.1": "New"}

    header, *rows = table(post_csv(client, f"{PATH}.csv", body))

    cells = [dict(zip(header, row, strict=True)) for row in rows]
    assert [each["Reservations.Id"] for each in cells] == [str(first.pk), str(second.pk)]
    assert [each["Success"] for each in cells] == ["true", "true"]
    assert cells[0]["Reservations.Start"] == "2027-03-03T09:00:00-07:00"
    assert cells[1]["Reservations.Center.Name"] == "Glenarm"
    assert cells[1]["Reservations.LineItems.0.Amount"] == "$75.00"


def test_no_reservations_are_an_empty_list(client, token, ask):
    assert ask().json() == {"Success": True, "Reservations": []}
    wrapped = jsonp(post(client, f"{PATH}?callback=cb", {"Token": token}), "cb")
    assert wrapped == {"Success": True, "Reservations": []}
    assert table(post_csv(client, f"{PATH}.csv", {"Token": token})) == [["Success"], ["true"]]


def test_only_own_reservations_are_listed(ids, ada):
    mine = make_draft(ada)
    make_draft()
    assert ids() == [mine.pk]


def test_staff_user_has_the_access_of_a_customer(client):
    make_draft()
    token = issue_token(UserFactory(is_staff=True, is_superuser=True))
    assert post(client, PATH, {"Token": token}).json()["Reservations"] == []


def test_reservations_overlapping_the_span_are_listed(ids, ada):
    """A reservation from 16:00 to 19:00 UTC."""
    pk = ReservationFactory(user=ada).pk
    assert ids(From="2027-03-03T18:59:59Z") == [pk]
    assert ids(From="2027-03-03T19:00:00Z") == []
    assert ids(To="2027-03-03T16:00:01Z") == [pk]
    assert ids(To="2027-03-03T16:00:00Z") == []
    assert ids(From="2027-03-03T17:00:00Z", To="2027-03-03T18:00:00Z") == [pk]


def test_times_without_offset_are_utc_and_dates_are_midnight(ids, ada):
    pk = ReservationFactory(user=ada).pk
    assert ids(From="2027-03-03T18:59:59") == [pk]
    assert ids(From="2027-03-03T19:00:00") == []
    assert ids(From="2027-03-03T18:59:59", To="2027-03-03T18:59:59") == [pk]
    assert ids(From="2027-03-04") == []
    assert ids(To="2027-03-04") == [pk]
    assert ids(From="2027-03-03T12:00:00-07:00") == []


def test_reservations_are_filtered_by_status(ids, ada):
    rows = {status: ReservationFactory(user=ada, status=status).pk for status in Status}
    for status, pk in rows.items():
        assert ids(Statuses=[status]) == [pk]
    assert ids(Statuses=["New", "Expired", "New"]) == [rows[Status.NEW], rows[Status.EXPIRED]]
    assert ids(Statuses=[]) == ids() == list(rows.values())


# --- Pages ---------------------------------------------------------------------------------------


@pytest.fixture
def make_rows(ada):
    """Return a function that creates completed reservations, two at each start, latest first."""

    def make_rows(count):
        room = make_room()
        starts = sorted((START + n // 2 * DAY for n in range(count)), reverse=True)
        rows = [
            ReservationFactory(user=ada, room=room, start=start, status=Status.COMPLETED)
            for start in starts
        ]
        return [each.pk for each in sorted(rows, key=lambda each: (each.start, each.pk))]

    return make_rows


@pytest.fixture
def iterate_pages(ask):
    """Return a function that yields the ids of each page."""

    def iterate_pages(**fields):
        cursor = None
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


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 100])
def test_pages_list_every_reservation_once(iterate_pages, make_rows, size):
    rows = make_rows(7)
    pages = [rows[first : first + size] for first in range(0, 7, size)]
    assert list(iterate_pages(PageSize=size)) == pages


def test_page_size_may_change_between_pages(ask, make_rows):
    rows = make_rows(5)
    first = ask(PageSize=1).json()
    rest = ask(PageSize=100, Cursor=first["NextCursor"]).json()
    assert [each["Id"] for each in rest["Reservations"]] == rows[1:]
    assert "NextCursor" not in rest


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
        Reservation.objects.filter(pk__in=page).update(status=Status.CANCELLED)

    assert [pk for pk in seen if pk in rows] == rows
    assert len(seen) == len({*seen})


def test_pages_in_csv_and_jsonp_have_the_same_reservations_and_cursor(client, token, make_rows):
    rows = make_rows(3)
    header, first, second = table(
        post_csv(client, f"{PATH}.csv", {"Token": token, "PageSize": "2"})
    )
    assert header[-1] == "NextCursor"
    assert (first[-1] == "", second[-1]) == (False, "")
    cells = dict(zip(header, first, strict=True))
    assert cells["Reservations.Id"] == str(rows[0])

    body = {"Token": token, "PageSize": "2", "Cursor": first[-1]}
    header, only = table(post_csv(client, f"{PATH}.csv", body))
    assert dict(zip(header, only, strict=True))["Reservations.Id"] == str(rows[2])
    assert "NextCursor" not in header
    wrapped = jsonp(post(client, f"{PATH}?callback=cb", {"Token": token, "PageSize": 2}), "cb")
    assert wrapped["NextCursor"] == first[-1]


CURSOR_REFUSED = {
    "Success": False,
    "Error": {
        "Summary": "InvalidRequest",
        "Message": "The request is not valid.",
        "Details": "Cursor: This cursor is not valid for this request.",
    },
}


@pytest.mark.parametrize(
    "other",
    [
        {"From": "2027-01-01T00:00:01Z"},
        {"From": None},
        {"To": "2028-01-01T00:00:01Z"},
        {"Statuses": ["Completed"]},
        {"Statuses": []},
        {"From": "2028-01-01T00:00:00Z", "To": "2028-01-01T00:00:00Z"},
    ],
)
def test_cursor_for_other_filters_is_refused(ask, make_rows, other):
    make_rows(3)
    filters = {
        "From": "2027-01-01T00:00:00Z",
        "To": "2028-01-01T00:00:00Z",
        "Statuses": ["Completed", "New"],
    }
    cursor = ask(PageSize=1, **filters).json()["NextCursor"]

    response = ask(Cursor=cursor, **filters | other)
    assert (response.status_code, response.json()) == (400, CURSOR_REFUSED)
    # The same filters in other words are the same.
    same = {"From": "2026-12-31T17:00:00-07:00", "Statuses": ["New", "Completed", "New"]}
    assert ask(Cursor=cursor, **filters | same).status_code == 200


def test_cursor_of_another_account_is_refused(client, ask, make_rows):
    make_rows(3)
    cursor = ask(PageSize=1).json()["NextCursor"]
    body = {"Token": issue_token(UserFactory()), "Cursor": cursor}
    response = post(client, PATH, body)
    assert (response.status_code, response.json()) == (400, CURSOR_REFUSED)


@pytest.mark.parametrize("cursor", ["x", "::", "é" * 255, "WyIyMDI3Il0:abc", "-1"])
def test_cursor_that_was_never_given_is_refused(ask, cursor):
    response = ask(Cursor=cursor)
    assert (response.status_code, response.json()) == (400, CURSOR_REFUSED)


def test_cursor_that_was_changed_is_refused(ask, make_rows):
    make_rows(3)
    cursor = ask(PageSize=1).json()["NextCursor"]
    for changed in (cursor[1:], cursor[:-1], cursor.swapcase(), cursor.replace(":", "")):
        assert ask(Cursor=changed).json() == CURSOR_REFUSED


def test_empty_cursor_is_the_first_page(ids, make_rows):
    rows = make_rows(2)
    assert ids(Cursor="", PageSize=None) == rows


# --- Errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"From": "soon"}, "From: Must be a date and time such as 2027-03-01T09:00:00Z."),
        ({"To": 5}, "To: Must be a date and time such as 2027-03-01T09:00:00Z."),
        (
            {"From": "2027-03-03T00:00:01Z", "To": "2027-03-03T00:00:00Z"},
            "To: To must not be before From.",
        ),
        ({"Statuses": "New"}, "Statuses: Must be a list."),
        ({"PageSize": 0}, "PageSize: Must be at least 1."),
        ({"PageSize": 101}, "PageSize: Must be at most 100."),
        ({"Cursor": "x" * 256}, "Cursor: Must have at most 255 characters."),
        (
            {"Statuses": ["New", "new"]},
            "Statuses.1: Must be one of New, Processing, Pending, Confirmed, Declined, Cancelled,"
            " Expired, Completed, NoShow.",
        ),
    ],
)
def test_invalid_request_names_the_wrong_fields(ask, fields, details):
    response = ask(**fields)
    assert response.status_code == 400
    assert response.json()["Error"]["Summary"] == "InvalidRequest"
    assert response.json()["Error"]["Details"] == details


def test_query_count_is_independent_of_reservations(ids, ask, ada, django_assert_num_queries):
    AllowanceFactory(user=ada, hours=30)

    def one_more(day):
        room = make_room()
        service = ServiceFactory(center=room.center)
        return make_booking(
            ada,
            room,
            start=START + day * DAY,
            hours=1,
            service_options=[{"service_id": service.pk}],
            attendees=[{"name": "Grace"}],
        )

    one_more(0)
    with CaptureQueriesContext(connection) as one:
        assert len(ids()) == 1
    count = len(one)
    for day in range(1, 10):  # each in a separate center
        one_more(day)
    for day in range(10, 20):
        ReservationFactory(user=ada, start=START + day * DAY)
    with django_assert_num_queries(count):
        assert len(ids()) == 20
    cursor = ask(PageSize=5).json()["NextCursor"]
    with django_assert_num_queries(count):
        assert len(ids(PageSize=10, Cursor=cursor)) == 10


def test_request_without_token_is_refused(client):
    assert post(client, PATH).status_code == 401
