"""The menu of the back office."""

import pytest
from django.urls import reverse

from tests.factories_centers import CenterFactory
from tests.factories_reservations import ReservationFactory

pytestmark = pytest.mark.django_db


def read_menu(client):
    """The title and URL of each link in the menu of the signed-in user."""
    return {item["title"]: str(item["link"]) for item in read_items(client, reverse("admin:index"))}


def read_items(client, page):
    groups = client.get(page).context["sidebar_navigation"]
    return [item for group in groups for item in group["items"] if item["has_permission"]]


def test_menu_has_only_pages_that_open(client, staff):
    client.force_login(staff("Accountant", CenterFactory()))
    links = read_menu(client)

    for title, link in links.items():
        assert client.get(link, follow=True).status_code == 200, title
    assert "Payments" in links
    everywhere_only = {"Audit log", "Unknown payments"}
    assert not everywhere_only & set(links)
    client.force_login(staff("Accountant"))
    assert everywhere_only <= set(read_menu(client))
    client.force_login(staff("Desk", CenterFactory()))
    links = read_menu(client)
    assert "Reports" not in links
    assert links["Reservations"] in client.get(reverse("admin:index")).text


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("index", "Dashboard"),
        ("reservations_reservation_changelist", "Reservations"),
        ("reservations_reservation_change", "Reservations"),
        ("reservations_reservation_add", "New reservation"),
        ("reservations_timeline", "Timeline"),
        ("reservations_report", "Reports"),
        ("reservations_in_closures", "Bookings to resolve"),
        ("centers_rate_add", "Rates"),
        ("payments_unknownpayment_changelist", "Unknown payments"),
    ],
)
def test_menu_marks_one_item_as_open_page(office, page, title):
    ids = {"reservations_reservation_change": lambda: ReservationFactory().pk}
    ids["reservations_report"] = lambda: "revenue"
    url = reverse(f"admin:{page}", args=[ids[page]()] if page in ids else [])
    assert [item["title"] for item in read_items(office, url) if item["active"]] == [title]
