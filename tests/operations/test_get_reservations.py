"""What customers see of their reservations: /api/account/reservation, /api/account/reservations
and /api/reservations/get-allowances
"""

from decimal import Decimal

import pytest

from accounts.act import Act
from reservations.booking.drafts import apply_promo_code
from reservations.models import Reservation
from reservations.models.status import Status
from tests.factories_centers import ServiceFactory, ServiceTypeFactory
from tests.factories_people import AdministratorFactory, UserFactory, issue_token
from tests.factories_reservations import (
    DAY,
    NOW,
    START,
    AllowanceFactory,
    MonthlyAllowanceFactory,
    PromoCodeFactory,
    ReservationFactory,
    make_booking,
    make_draft,
    make_room,
)
from tests.http import post
from tests.operations.helpers import refused

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

LIST = "/api/account/reservations"
ALLOWANCES = "/api/reservations/get-allowances"


# --- One reservation ------------------------------------------------------------------------------


@pytest.fixture
def rich(ada):
    """A draft of five hours with coffee, two allowances (one in use), a promo code, a fee, tax."""
    room = make_room(capacity=8, provider="Glenarm Ltd")
    center = room.center
    center.tax_rate = Decimal(10)
    center.save()
    room.rate.setup_fee = Decimal(20)
    room.rate.save()
    catering = ServiceTypeFactory(name="Catering")
    coffee = ServiceFactory(
        center=center, name="Coffee", resource_type=catering, needs_quantity=True, position=1
    )
    ServiceFactory(
        center=center, name="Projector", resource_type=catering, needs_duration=True, position=2
    )
    MonthlyAllowanceFactory(user=ada, description="Plan", hours=2)
    AllowanceFactory(user=ada, description="Gift", hours=4, is_automatic=False)
    reservation = make_draft(
        ada,
        room,
        hours=5,
        services=[{"service_id": coffee.pk, "quantity": 3}],
        number_of_attendees=4,
        attendees=[{"name": "Grace", "email_address": "grace@example.com", "company_name": "Navy"}],
    )
    PromoCodeFactory(code="TEN")
    return apply_promo_code(Act(ada, NOW), reservation.pk, "ten")


def show(reservation):
    """The expected response for `rich`, without its center and room."""
    coffee, projector = reservation.room.center.services.order_by("position")
    plan, gift = reservation.user.allowances.order_by("pk")
    creator, grace = reservation.attendees.order_by("pk")
    brief = {
        "Id": reservation.pk,
        "Start": "2027-03-03T09:00:00-07:00",
        "End": "2027-03-03T14:00:00-07:00",
    }
    return {
        **brief,
        "Services": [
            {
                "ServiceId": coffee.pk,
                "ServiceName": "Coffee",
                "Selected": True,
                "NeedsDuration": False,
                "NeedsQuantity": True,
                "Quantity": 3,
            },
            {
                "ServiceId": projector.pk,
                "ServiceName": "Projector",
                "Selected": False,
                "NeedsDuration": True,
                "NeedsQuantity": False,
            },
        ],
        "Attendees": [
            {
                "Id": creator.pk,
                "Name": "Ada Lovelace",
                "EmailAddress": "ada@example.com",
                "IsCreator": True,
            },
            {
                "Id": grace.pk,
                "Name": "Grace",
                "EmailAddress": "grace@example.com",
                "CompanyName": "Navy",
                "IsCreator": False,
            },
        ],
        "TotalCost": 132.66,
        "LineItems": [
            {
                "Amount": "$115.00",
                "Description": "Boardroom, 5 hours: half day + 1 hour",
                "Total": 115,
                "Type": "Room",
                "Rate": "$90.00/half day + $25.00/hour",
            },
            {
                "Amount": "$20.00",
                "Description": "Boardroom, set-up",
                "Total": 20,
                "Type": "SetupFee",
            },
            {
                "Amount": "$45.00",
                "Description": "Coffee, 3 pieces",
                "Total": 45,
                "Type": "Service",
                "Rate": "$15.00 flat",
                "ServiceId": coffee.pk,
            },
            {
                "Amount": "-$46.00",
                "Description": "Plan, 2 hours",
                "Total": -46,
                "Type": "Allowance",
                "AllowanceId": plan.pk,
            },
            {
                "Amount": "-$13.40",
                "Description": "Promo code TEN, 10% off",
                "Total": -13.4,
                "Type": "Promotion",
            },
            {"Amount": "$12.06", "Description": "Tax, 10%", "Total": 12.06, "Type": "Tax"},
        ],
        "NumberOfAttendees": 4,
        "Allowances": [
            {
                "Reservation": {**brief, "Status": "New"},
                "Allowance": {"Description": "Plan", "Id": plan.pk},
                "NumberOfHours": 2,
                "DiscountApplied": 46,
                "InUse": True,
            }
        ],
        "CanApplyAllowances": True,
        "UsableAllowances": [
            {
                "Reservation": {**brief, "Status": "New"},
                "Allowance": {"Description": "Gift", "Id": gift.pk},
                "NumberOfHours": 4,
                "DiscountApplied": 92,
                "InUse": False,
            }
        ],
        "RoomCost": 115,
        "Promotion": "TEN",
        "Status": "New",
    }


def test_response_has_the_whole_reservation_in_the_order_of_the_contract(read, get, rich):
    shown = read(rich)
    # The search shows the same center and room (see tests/test_every_operation.py).
    assert list(shown)[3:5] == ["Center", "MeetingRoom"]
    assert shown.pop("Center")["MeetingRooms"] == [shown.pop("MeetingRoom")]

    expected = show(rich)
    assert shown == expected
    assert list(shown) == list(expected)
    total = sum(Decimal(str(line["Total"])) for line in shown["LineItems"])
    assert total == Decimal(str(shown["TotalCost"]))
    assert get(ALLOWANCES, ReservationId=rich.pk) == {
        "Success": True,
        "Allowances": [*expected["Allowances"], *expected["UsableAllowances"]],
    }


@pytest.mark.parametrize("status", list(Status))
def test_any_status_is_shown_and_only_new_accepts_allowances(read, ada, status):
    AllowanceFactory(user=ada)
    shown = read(ReservationFactory(user=ada, status=status))
    assert shown["Status"] == status
    assert shown["CanApplyAllowances"] == (status == Status.NEW)
    assert [each["NumberOfHours"] for each in shown["UsableAllowances"]] == [0]


def test_allowance_without_hours_left_is_not_usable(read, ada):
    AllowanceFactory(user=ada, hours=3)
    shown = read(make_booking(ada))
    assert [each["NumberOfHours"] for each in shown["Allowances"]] == [3]
    assert shown["UsableAllowances"] == []
    assert shown["CanApplyAllowances"] is False


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
        ({"From": "2027-03-03T17:00:00Z", "To": "2027-03-03T18:00:00Z"}, True),
        ({"From": "2027-03-03T18:59:59"}, True),
        ({"From": "2027-03-03T19:00:00"}, False),
        ({"From": "2027-03-03T18:59:59", "To": "2027-03-03T18:59:59"}, True),
        ({"From": "2027-03-04"}, False),
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


def test_pages_of_any_size_list_every_reservation_once(ask, iterate_pages, make_rows):
    rows = make_rows(7)
    for size in (1, 2, 3, 7, 8, 100):
        pages = [rows[first : first + size] for first in range(0, 7, size)]
        assert list(iterate_pages(PageSize=size)) == pages
    # The size may change between pages.
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
        {"From": "2027-01-01T00:00:01Z"},
        {"From": None},
        {"To": "2028-01-01T00:00:01Z"},
        {"Statuses": ["Completed"]},
        {"Statuses": []},
        {"From": "2028-01-01T00:00:00Z", "To": "2028-01-01T00:00:00Z"},
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
