"""The customers' pages: found by index, with bookings, spend and devices (B18)."""

import datetime as dt

import pytest
from django.urls import reverse

from accounts import customer_access, user_search
from accounts.models import User
from reservations.models.status import Status
from tests.backoffice.many import many
from tests.backoffice.reading import list_rows
from tests.factories_people import (
    AdministratorFactory,
    StaffFactory,
    UserFactory,
    issue_token,
)
from tests.factories_reservations import AllowanceFactory, post_sale
from tests.http import post
from tests.world import NOW

pytestmark = pytest.mark.django_db


def page_of(user):
    return reverse("admin:accounts_user_change", args=[user.pk])


@pytest.fixture
def desk(client, staff, world):
    user = staff("Desk", world.center)
    client.force_login(user)
    return user


def listed(client, **params):
    return {user.pk for user in list_rows(client, "accounts.user", **params)}


def test_customers_are_found_by_every_word_of_email_name_company_or_phone(client, desk, world):
    for words in ("ada@", "lovelace ada", "engines", "+1 555"):
        assert listed(client, q=words) == {world.ada.pk}, words
    for words in ("ada bob", "da", "0009", "%", "_", "' OR 1=1", "9" * 400, "+"):
        assert listed(client, q=words) == set(), words


@pytest.fixture
def zoe():
    return UserFactory(
        first_name="Zoë Marie",
        last_name="Ó Nualláin-Šimić",
        company_name="Łódź Straße 24",
        email="Zoe.X@Example.com",
        phone_number="+1 (720) 555-01.11",
    )


def test_account_is_found_by_digits_of_phone_every_word_folded_and_email_part(client, zoe):
    UserFactory()
    for words in (
        *("7205550111", "17205550111", "555 0111", "+1 720 555", "(720) 5550", "5-011-1"),
        *("zoe", "ZOË nuallain", "simic marie", "MARIE O", "lodz strasse", "zo nu", "x@ex"),
        *("zoe.x@example.com", "nualláin zoe.x@", "24", "zoe 0111"),
    ):
        assert user_search.find_users(words) == [zoe.pk], words
    for words in ("7205550112", "zoe grace", "oe", "111 555", "zoe +1 730", "zoe\x00", "", "%"):
        assert user_search.find_users(words) == [], words
    # Without addresses, by name only.
    assert user_search.find_users("nuallain zoe", by_address=False) == [zoe.pk]
    for words in ("0111", "zoe.x@exa", "zoe.x"):
        assert user_search.find_users(words, by_address=False) == []

    fields = {"NewLastName": "Byrne", "NewPhoneNumber": "303-555-0199"}
    post(client, "/api/account/update-info", {"Token": issue_token(zoe), **fields})
    assert user_search.find_users("byrne 5550199") == [zoe.pk]
    assert user_search.find_users("nuallain") == []


def test_search_of_more_accounts_than_are_loaded_finds_them_all(monkeypatch, zoe):
    monkeypatch.setattr(user_search, "MAX_LOADED_IDS", 2)
    ids = {zoe.pk, *(UserFactory(last_name="Nuallain").pk for _ in range(3))}

    found = user_search.find_users("nuallain")

    assert {user.pk for user in User.objects.filter(pk__in=found)} == ids


def test_many_matches_at_other_centers_do_not_hide_own_customers(desk, world):
    User.objects.bulk_create(
        User(email=f"love{n}@example.com", first_name="X", last_name="Lovelace")
        for n in range(user_search.MAX_LOADED_IDS + 10)
    )

    assert world.ada in customer_access.find_bookable_customers(desk, "love")


def test_customer_page_shows_bookings_spend_and_devices(client, staff, world):
    client.force_login(staff("Manager"))
    start = NOW - dt.timedelta(days=30)
    for row in many(world.room, world.ada, 3, start=start, status=Status.COMPLETED):
        post_sale(row, now=NOW)
    many(world.room, world.ada, 9, start=start + dt.timedelta(days=1), status=Status.CANCELLED)
    many(world.room, world.ada, 2, start=start + dt.timedelta(days=2), status=Status.NO_SHOW)
    issue_token(world.ada)

    response = client.get(page_of(world.ada))

    bookings = response.context["bookings"]
    # With the one of the world.
    assert (bookings["count"], bookings["billed"], bookings["missed"]) == (4, "$105.00", 2)
    assert len(bookings["last"]) == 10
    assert len(response.context["devices"]) == 2
    assert world.token not in response.text


def test_customer_page_shows_only_bookings_of_own_centers(client, desk, world):
    for room in (world.other_center.rooms.get(), world.room):
        [row] = many(room, world.ada, 1, start=NOW - dt.timedelta(days=9))
        post_sale(row, now=NOW)

    bookings = client.get(page_of(world.ada)).context["bookings"]

    # With the one of the world.
    assert (bookings["count"], bookings["billed"], bookings["is_partial"]) == (2, "$85.00", True)
    assert {row.room_id for row in bookings["last"]} == {world.room.pk}


def test_sign_out_page_asks_for_confirmation(client, staff, world):
    client.force_login(staff("Manager"))
    address = reverse("admin:accounts_user_sign_out", args=[world.ada.pk])
    issue_token(world.bob)

    assert "Sign out all devices" in client.get(address).text
    assert world.ada.tokens.exists()
    assert client.post(address).url == page_of(world.ada)
    assert not world.ada.tokens.exists()
    assert world.bob.tokens.exists()
    history = client.get(reverse("admin:accounts_user_history", args=[world.ada.pk]))
    assert "Devices signed out: 1." in history.text


@pytest.mark.parametrize(("role", "where"), [("Desk", "some"), ("Manager", "all")])
def test_staff_account_with_a_booking_is_found_by_administrators_only(
    client, staff, world, role, where
):
    member = staff(role, *([world.center] if where == "some" else []))
    client.force_login(member)
    colleague = StaffFactory(email="colleague@example.com", last_name="Lovelace")
    many(world.room, colleague, 1, start=NOW - dt.timedelta(days=9))

    assert listed(client) <= {world.ada.pk, world.bob.pk}
    assert colleague.pk not in listed(client, q="lovelace")
    assert listed(client, q="colleague@example.com") == set()
    assert client.get(page_of(colleague)).status_code == 302
    for words in ("love", "colleague@example.com"):
        assert colleague not in customer_access.find_bookable_customers(member, words)
    for key in (str(colleague.pk), colleague.email):
        assert customer_access.find_bookable_account(member, key) is None
    root = AdministratorFactory()
    assert customer_access.find_bookable_account(root, colleague.email) == colleague
    assert colleague in customer_access.find_bookable_customers(root, "lovelace")
    own = AllowanceFactory(user=colleague)
    if role == "Manager":  # The desk has no such list.
        assert own not in list_rows(client, own._meta.label)
    client.force_login(root)
    assert own in list_rows(client, own._meta.label)
    assert client.get(page_of(colleague)).status_code == 200


def test_draft_does_not_make_a_customer_known_to_its_center(client, desk, world):
    grace = UserFactory(email="grace@example.com", last_name="Hopper")
    for number, status in enumerate((Status.NEW, Status.CANCELLED, Status.EXPIRED)):
        start = NOW + dt.timedelta(days=3 + number)
        many(world.room, grace, 1, start=start, status=status, booked_at=None)

    assert grace.pk not in listed(client)
    assert listed(client, q="hopper") == set()
    assert client.get(page_of(grace)).status_code == 302
    assert customer_access.find_bookable_account(desk, str(grace.pk)) is None

    many(world.room, grace, 1, start=NOW - dt.timedelta(days=9), status=Status.CANCELLED)

    assert listed(client, q="hopper") == {grace.pk}
    assert client.get(page_of(grace)).status_code == 200
