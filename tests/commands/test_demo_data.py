"""What `seed_demo` makes is whole (B20)."""

import re

import pytest
from django.contrib.auth.models import Permission
from django.core.exceptions import ValidationError
from django.utils import timezone

from accounts.models import CenterRole, User
from centers.models import (
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
from reservations.models import Allowance
from tests.http import post

OUR_APPS = ("accounts", "backoffice", "centers", "payments", "reservations")
PASSWORD = "quiet-harbour-42"


def sign_in(client, email="demo@roombook.example"):
    response = post(client, "/api/sign-in", {"EmailAddress": email, "Password": PASSWORD})
    assert response.status_code == 200, response.content
    return response.json()


@pytest.fixture
def seeded(demo, db):
    return demo


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
        row["name"] for row in read_csv("centers.csv", now=timezone.now())
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
