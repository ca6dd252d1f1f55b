"""The customers' pages: found by index, with bookings, spend and devices (B18)."""

import datetime as dt
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts import customer_access, user_search
from accounts.models import User
from reservations.models.status import Status
from tests.backoffice.counting import queries_of
from tests.backoffice.many import many
from tests.factories_people import StaffFactory, UserFactory, issue_token
from tests.world import NOW

pytestmark = pytest.mark.django_db

LIST = reverse("admin:accounts_user_changelist")


@pytest.fixture
def world(world_copy):
    return world_copy


def page_of(user):
    return reverse("admin:accounts_user_change", args=[user.pk])


@pytest.fixture
def desk(client, staff, world):
    user = staff("Desk", world.center)
    client.force_login(user)
    return user


def listed(client, **asked):
    return {user.pk for user in client.get(LIST, asked).context["cl"].result_list}


@pytest.mark.parametrize(
    "words", ["ada@", "lovel", "ADA LOVE", "lovelace ada", "engines", "+1 555"]
)
def test_are_found_by_how_address_name_company_or_telephone_begin(client, desk, world, words):
    assert listed(client, q=words) == {world.ada.pk}


@pytest.mark.parametrize("words", ["example", "velace", "555", "%", "_", "' OR 1=1", "9" * 400])
def test_are_not_found_by_what_stands_inside(client, desk, world, words):
    assert listed(client, q=words) == set()


def test_somebody_elses_customer_is_found_by_the_whole_address_for_a_booking(desk, world):
    assert list(customer_access.find_bookable_customers(desk, "bob@example.com")) == [world.bob]
    assert list(customer_access.find_bookable_customers(desk, " BOB@example.com ")) == [world.bob]
    assert list(customer_access.find_bookable_customers(desk, "bob@example")) == []
    assert list(customer_access.find_bookable_customers(desk, "love")) == [world.ada]


def test_viewers_find_nobody(staff, world):
    viewer = staff("Viewer", world.center)

    assert list(customer_access.find_bookable_customers(viewer, "bob@example.com")) == []
    assert list(customer_access.find_bookable_customers(viewer, "ada")) == []


def test_the_crowd_elsewhere_does_not_hide_ones_own(desk, world):
    User.objects.bulk_create(
        User(email=f"love{n}@example.com", first_name="X", last_name="Lovelace")
        for n in range(user_search.MAX_LOADED_IDS + 10)
    )

    assert world.ada in customer_access.find_bookable_customers(desk, "love")


def test_the_page_tells_bookings_spend_and_devices(client, staff, world):
    client.force_login(staff("Manager"))
    start = NOW - dt.timedelta(days=30)
    many(world.room, world.ada, 30, start=start, status=Status.COMPLETED)
    many(world.room, world.ada, 3, start=start + dt.timedelta(days=1), status=Status.CANCELLED)
    issue_token(world.ada)

    response = client.get(page_of(world.ada))

    bookings = response.context["bookings"]
    page = response.content.decode()
    assert (bookings.count, bookings.billed) == (30, "$300.00")
    assert len(bookings.last) == 10
    assert bookings.all.endswith("?q=ada%40example.com")
    assert "Visa 4242" in page
    assert len(response.context["devices"]) == 2
    assert world.token not in page


def test_at_a_center_only_its_bookings_are_told(client, desk, world):
    many(world.other_center.rooms.get(), world.ada, 5, start=NOW - dt.timedelta(days=9))
    many(world.room, world.ada, 2, start=NOW - dt.timedelta(days=9))

    bookings = client.get(page_of(world.ada)).context["bookings"]

    assert (bookings.count, bookings.billed, bookings.is_partial) == (2, "$20.00", True)
    assert {row.reservation.room_id for row in bookings.last} == {world.room.pk}


def test_a_desk_reads_and_types_nothing(client, desk, world):
    page = client.get(page_of(world.ada))

    assert page.status_code == 200
    assert b'name="email"' not in page.content
    assert b"password" not in page.content.lower().replace(b"password_change", b"")
    assert client.post(page_of(world.ada), {"email": "x@example.com"}).status_code == 403


def test_devices_are_signed_out_after_a_question(client, staff, world):
    client.force_login(staff("Manager"))
    address = reverse("admin:accounts_user_sign_out", args=[world.ada.pk])
    kept = issue_token(world.bob)

    asked = client.get(address)
    assert world.ada.tokens.exists()
    done = client.post(address)

    assert "Sign out all devices" in asked.content.decode()
    assert done.url == page_of(world.ada)
    assert not world.ada.tokens.exists()
    assert kept
    assert world.bob.tokens.exists()
    history = client.get(reverse("admin:accounts_user_history", args=[world.ada.pk]))
    assert b"Signed out 1 devices." in history.content


def test_when_a_device_was_used_last_is_known_to_the_day(world):
    from accounts.admin import devices

    world.ada.tokens.all().delete()
    issue_token(world.ada, age=dt.timedelta(days=3))
    token = world.ada.tokens.get()
    assert devices.list_devices(world.ada, now=NOW)[0].last_used_at == token.created_at

    token.renew(NOW)

    device = devices.list_devices(world.ada, now=NOW)[0]
    assert (device.signed_in_at, device.last_used_at) == (token.created_at, NOW)


@pytest.mark.parametrize("where", ["some", "all"])
def test_the_list_takes_as_many_questions_for_2000_customers_as_for_20(client, staff, world, where):
    client.force_login(staff("Desk", *([world.center] if where == "some" else [])))

    def fill(count):
        last = User.objects.order_by("pk").last().pk
        users = User.objects.bulk_create(
            User(email=f"c{last}-{n}@example.com", first_name="Cy", last_name=f"Smith {n}")
            for n in range(count)
        )
        for n, user in enumerate(users):
            many(world.room, user, 1, start=NOW - dt.timedelta(days=900 + last, minutes=-n))
        for user in users[:60]:
            issue_token(user)

    fill(20)
    few = [queries_of(client, LIST), queries_of(client, f"{LIST}?q=smith")]
    fill(2000)

    assert queries_of(client, LIST) == few[0]
    # Where many are found, fewer ways are tried.
    assert queries_of(client, f"{LIST}?q=smith") <= few[1]


@pytest.mark.postgres
@pytest.mark.skipif(connection.vendor != "postgresql", reason="indexes of PostgreSQL")
def test_every_way_to_search_leads_through_an_index():
    User.objects.bulk_create(
        User(
            email=f"c{n}@example.com",
            first_name=f"Cy{n}",
            last_name=f"Smith{n}",
            company_name=f"Co{n}",
            phone_number=f"+1 {n}",
        )
        for n in range(20_000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE accounts_user")
    for words in ("c77@", "smith77", "cy7 smith7", "+1 77"):
        with CaptureQueriesContext(connection) as queries:
            user_search.matching_prefix(words)
        for query in queries:
            with connection.cursor() as cursor:
                cursor.execute("EXPLAIN " + query["sql"])
                plan = "\n".join(row[0] for row in cursor.fetchall())
            assert "Seq Scan" not in plan, (words, query["sql"], plan)


def test_spend_is_exact_money(client, staff, world):
    client.force_login(staff("Accountant"))
    rows = many(world.room, world.ada, 3, start=NOW - dt.timedelta(days=3))
    type(rows[0]).objects.filter(pk__in=[row.pk for row in rows]).update(
        total_cost=Decimal("33.33")
    )

    assert client.get(page_of(world.ada)).context["bookings"].billed == "$99.99"


def test_colleagues_are_no_customers(client, desk):
    colleague = StaffFactory()

    assert colleague.pk not in listed(client)
    assert client.get(page_of(colleague)).status_code == 302
    assert UserFactory().pk not in listed(client)
