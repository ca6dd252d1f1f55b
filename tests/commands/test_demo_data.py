"""What `seed_demo` makes is whole, and the same on any day (B20)."""

import re

import pytest
import time_machine
from django.contrib.auth.models import Permission
from django.core.exceptions import ValidationError

from accounts.models import CenterRole, User
from centers.models import (
    Center,
    Closure,
    Landmark,
    MeetingRoom,
    Neighborhood,
    OpeningHours,
    Rate,
    ResourceType,
    Service,
)
from reservations.demo.data_files import read_csv
from reservations.models import Allowance, Reservation
from reservations.models.status import Status
from tests.conftest import use_tiny_pictures
from tests.faults.size import LONG
from tests.http import post

OUR_APPS = ("accounts", "backoffice", "centers", "payments", "reservations")
PASSWORD = "quiet-harbour-42"
STARTS = [
    "2028-02-29T23:30:00+00:00",  # a leap day, another day in half of the world
    "2026-12-23T06:00:00+00:00",  # just before holidays
    "2027-03-12T18:00:00+00:00",  # the clocks of North America change on Sunday
]


@pytest.fixture(scope="module", params=STARTS if LONG else STARTS[:1])
def demo(request, seed):
    with pytest.MonkeyPatch.context() as patch, time_machine.travel(request.param, tick=False):
        use_tiny_pictures(patch)
        return seed(small=True)


@pytest.fixture
def seeded(demo, db):
    with time_machine.travel(demo.now, tick=False):
        yield demo


def sign_in(client, email="demo@roombook.example"):
    response = post(client, "/api/sign-in", {"EmailAddress": email, "Password": PASSWORD})
    assert response.status_code == 200, response.content
    return response.json()


def test_output_lists_centers_reservations_and_accounts(seeded):
    lines = seeded.output.splitlines()

    assert lines[0] == "[1/21] Union Station, Denver: 5 rooms"
    assert re.fullmatch(r"\[12/12\] reservation \d+, Union Station", lines[-2])
    assert re.fullmatch(
        r"The demo is ready after \d+\.\d seconds: 21 centers, and the accounts"
        r" demo@roombook\.example, guest@roombook\.example, staff@roombook\.example,"
        r" manager@roombook\.example, desk@roombook\.example, viewer@roombook\.example,"
        r" leaving@roombook\.example \(password quiet-harbour-42\)\.",
        lines[-1],
    )


def wrong_with(row):
    try:
        row.full_clean()
    except ValidationError as wrong:
        return wrong.message_dict
    return {}


def test_every_row_passes_the_models_validation(seeded):
    models = (*(ResourceType, Rate, Service, OpeningHours, Closure, Landmark, Neighborhood),)
    rows = [row for model in models for row in model.objects.all()]

    assert {type(row) for row in rows} == set(models)
    assert [(row, wrong) for row in rows if (wrong := wrong_with(row))] == []


def test_search_finds_every_center_with_prices_and_pictures(seeded, client):
    token = sign_in(client)["Token"]

    found = post(client, "/api/locations/search", {"Token": token}).json()

    assert {center["Name"] for center in found["Centers"]} == {
        row["name"] for row in read_csv("centers.csv", now=seeded.now)
    }
    rooms = [room for center in found["Centers"] for room in center["MeetingRooms"]]
    assert len(rooms) == MeetingRoom.objects.count() == 67
    assert all(room["LowestRate"] for room in rooms)
    assert all(room["Picture"]["ThumbnailUrl"] for room in rooms)
    assert all(center["Image"]["FullUrl"] for center in found["Centers"])
    assert all(center["CenterHours"] and center["Landmarks"] for center in found["Centers"])
    assert "Cleaning" not in [each["Name"] for each in found["FilterOptions"]["Services"]]


def test_demo_account_signs_in_and_has_card_favorites_and_allowances(seeded, client):
    answer = sign_in(client)

    demo = User.objects.get(email="demo@roombook.example")
    assert answer["UserInfo"]["EmailAddress"] == demo.email
    assert answer["UserInfo"]["Type"] == "Account"
    assert str(demo.saved_card) == "Visa 4242"
    assert demo.saved_card.gateway == "sandbox"
    assert demo.favorites.count() == 3
    kinds = dict(demo.allowances.values_list("kind", "hours"))
    assert kinds == {Allowance.Kind.MONTHLY: 4, Allowance.Kind.ONE_OFF: 10}


def test_staff_have_all_permissions_and_each_role_has_an_account_at_one_center(seeded):
    staff = User.objects.get(email="staff@roombook.example")

    ours = Permission.objects.filter(content_type__app_label__in=OUR_APPS)
    assert not staff.is_superuser
    assert set(staff.user_permissions.all()) == set(ours)
    roles = CenterRole.objects.values_list("group__name", "user__email", "center__name")
    assert set(roles) == {
        (role, f"{role.lower()}@roombook.example", "Union Station")
        for role in ("Manager", "Desk", "Viewer")
    }


def test_ids_names_and_statuses_are_the_same_on_any_day(seeded):
    def numbered(name, *columns):
        rows = read_csv(f"{name}.csv", now=seeded.now)
        return [
            (str(pk), *(row[column] for column in columns)) for pk, row in enumerate(rows, start=1)
        ]

    def texts_of(model, *columns):
        return [tuple(map(str, row)) for row in model.objects.order_by("pk").values_list(*columns)]

    assert texts_of(Center, "pk", "name", "city") == numbered("centers", "name", "city")
    assert texts_of(MeetingRoom, "pk", "name", "capacity") == numbered("rooms", "name", "capacity")
    assert texts_of(Closure, "pk", "reason") == numbered("closures", "reason")
    assert [(user.pk, user.email.split("@")[0]) for user in User.objects.order_by("pk")] == [
        *((1, "demo"), (2, "guest"), (3, "staff")),
        *((4, "manager"), (5, "desk"), (6, "viewer"), (7, "leaving")),
    ]
    columns = ("pk", "user", "room__name", "status")
    assert list(Reservation.objects.order_by("pk").values_list(*columns)) == [
        (1, 1, "Boardroom", "Completed"),
        (2, 1, "Office 904", "Completed"),
        (3, 1, "Lakeview", "NoShow"),
        (4, 1, "Zilker", "Expired"),
        (5, 1, "Presidio", "Declined"),
        (6, 1, "Hawksmoor", "Cancelled"),
        (7, 2, "Bowery", "Confirmed"),
        (8, 2, "Juniper", "Confirmed"),
        (9, 1, "Maple", "Confirmed"),
        (10, 1, "Charles", "Confirmed"),
        (11, 1, "Rainier", "Pending"),
        (12, 1, "Juniper", "New"),
    ]
    assert Reservation.objects.get(status=Status.NEW).start > seeded.now
    assert not Closure.objects.filter(ends_at__lte=seeded.now).exists()
