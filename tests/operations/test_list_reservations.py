"""POST /api/account/reservations"""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reservations.models.status import Status
from tests.factories_centers import ServiceFactory
from tests.factories_people import UserFactory, issue_token
from tests.factories_reservations import (
    HOUR,
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
def ada():
    return UserFactory()


@pytest.fixture
def token(ada):
    return issue_token(ada)


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


def test_at_most_100_reservations_are_listed(ids, ada):
    room = make_room()
    rows = [
        ReservationFactory(user=ada, room=room, start=START + n * 4 * HOUR, status=Status.COMPLETED)
        for n in range(101)
    ]
    assert ids() == [each.pk for each in rows[:100]]


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


def test_query_count_is_independent_of_reservations(ids, ada, django_assert_num_queries):
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
    for day in range(1, 10):  # each in a separate center
        one_more(day)
    for day in range(10, 20):
        ReservationFactory(user=ada, start=START + day * DAY)
    with django_assert_num_queries(len(one)):
        assert len(ids()) == 20


def test_request_without_token_is_refused(client):
    assert post(client, PATH).status_code == 401
