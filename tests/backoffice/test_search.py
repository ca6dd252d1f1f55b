"""The search in the head of every page (Ctrl+K)."""

import datetime as dt
import re

import pytest
from django.urls import reverse

from centers.models import Center
from tests.backoffice.many import many
from tests.backoffice.reading import list_rows
from tests.factories_people import UserFactory
from tests.factories_reservations import START, ReservationFactory, make_booking, make_room
from tests.reservations.receipts.helpers import issue, make_seller

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

SEARCH = "/admin/search/"


@pytest.fixture
def ada():
    return UserFactory(
        email="ada@example.com",
        first_name="Ada",
        last_name="Lovelace",
        company_name="Engines",
        phone_number="720-555-0111",
    )


@pytest.fixture
def booking(ada):
    room = make_room()
    Center.objects.filter(pk=room.center_id).update(name="Union Station")
    room.center.refresh_from_db()
    room.center.save()
    return make_booking(ada, room)


def find(client, term, **query):
    """The links and titles of the results."""
    page = client.get(SEARCH, {"s": term, "extended": 1, **query})
    assert page.status_code == 200
    return dict(re.findall(r'href="/admin/([^"]+)"\s+data-title="([^"]+)"', page.text))


def test_search_finds_reservation_customer_room_center_and_page(office, booking):
    reservation, room = f"reservations/reservation/{booking.pk}/change/", booking.room
    for term in (str(booking.pk), f"#{booking.pk}"):
        assert find(office, term)[reservation] == f"Reservation {booking.pk}, Ada Lovelace"
    for term in ("lovelace", "engines", "ada@example", "720-555"):
        found = find(office, term)
        assert found[f"accounts/user/{booking.user_id}/change/"] == "Ada Lovelace", term
        assert reservation in found or term == "720-555", term
    assert find(office, room.name)[f"centers/meetingroom/{room.pk}/change/"] == room.full_name
    assert find(office, "union stat")[f"centers/center/{room.center_id}/change/"] == "Union Station"
    assert find(office, "timel") == {"reservations/reservation/timeline/": "Timeline"}
    # What is new is found at once.
    new = ReservationFactory(user=booking.user)
    assert f"reservations/reservation/{new.pk}/change/" in find(office, "lovelace")


def test_search_is_limited_to_centers_of_the_user(client, staff, booking):
    room = booking.room
    elsewhere = make_room(name="Boardroom").center
    links = {
        str(booking.pk): f"reservations/reservation/{booking.pk}/change/",
        "lovelace": f"reservations/reservation/{booking.pk}/change/",
        room.name: f"centers/meetingroom/{room.pk}/change/",
        "union station": f"centers/center/{room.center_id}/change/",
    }
    customer = f"accounts/user/{booking.user_id}/change/"
    for role, finds_customer in (("Viewer", False), ("Manager", True)):
        client.force_login(staff(role, elsewhere))
        for term, link in links.items():
            assert not {link, customer} & find(client, term).keys(), (role, term)
        client.force_login(staff(role, room.center))
        for term, link in links.items():
            assert link in find(client, term), (role, term)
        assert (customer in find(client, "lovelace")) is finds_customer, role


def test_search_finds_nothing_without_a_role_and_is_for_staff_only(client, booking):
    client.force_login(UserFactory(is_staff=True))
    assert find(client, "lovelace") == find(client, str(booking.pk)) == {}
    client.force_login(booking.user)
    assert client.get(SEARCH, {"s": "ada"}).status_code == 302


def test_search_any_query_has_an_answer(office, booking):
    for query in (
        *({"s": "\x00"}, {"s": "a", "page": "x"}, {}, {"s": "9" * 40}, {"s": "x" * 5000}),
    ):
        assert office.get(SEARCH, query).status_code == 200
    assert "Nothing found." in office.get(SEARCH, {"s": "nothing like it"}).text


def test_search_results_are_bounded(office, booking):
    many(booking.room, booking.user, 50, start=START)

    found = find(office, "lovelace")
    assert len(found) == 9  # with the payment, the customer and the number of all reservations
    assert found["reservations/reservation/?q=lovelace"] == "6 of 51 reservations"


def test_search_shows_the_running_and_the_next_booking_first(office, booking, wait_until):
    wait_until(booking.start)
    yesterday, following = (
        ReservationFactory(user=booking.user, start=booking.start + dt.timedelta(days=days))
        for days in (-1, 1)
    )
    expected = [booking.pk, following.pk, yesterday.pk]
    found = find(office, "lovelace")
    listed = [int(link.split("/")[2]) for link in found if link.startswith("reservations/")]
    # The list and the page of the customer have the same order.
    rows = [row.pk for row in list_rows(office, "reservations.reservation", q="lovelace")]
    page = office.get(reverse("admin:accounts_user_change", args=[booking.user_id]))
    last = [row.pk for row in page.context["bookings"]["last"]]
    assert listed[:3] == rows == last == expected


def test_search_finds_payments_and_receipts(office, booking):
    payment = booking.payments.get()
    make_seller()
    [receipt] = issue(booking)

    found = find(office, payment.formatted_amount)
    title = f"Payment {payment.pk}, {payment.formatted_amount}"
    assert found[f"payments/payment/{payment.pk}/change/"] == title
    link = f"reservations/receipt/{receipt.pk}/change/"
    assert link in found.keys() & find(office, receipt.number).keys()
