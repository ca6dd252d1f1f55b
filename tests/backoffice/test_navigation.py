"""The menu of the back office."""

import pytest
from django.urls import reverse

from roombook.backoffice.navigation import build_navigation
from tests.factories_centers import CenterFactory

pytestmark = pytest.mark.django_db


def read_menu(client):
    """The title and URL of each link in the menu of the signed-in user."""
    request = client.get(reverse("admin:index")).wsgi_request
    return {
        item["title"]: item["link"]
        for group in build_navigation(request)
        for item in group["items"]
    }


@pytest.mark.parametrize("is_everywhere", [False, True])
def test_menu_of_accountant_has_only_pages_that_open(client, staff, is_everywhere):
    centers = () if is_everywhere else (CenterFactory(),)
    client.force_login(staff("Accountant", *centers))

    links = read_menu(client)

    for title, link in links.items():
        assert client.get(link, follow=True).status_code == 200, title
    for title in ("Audit log", "Unknown payments"):
        assert (title in links) is is_everywhere
    assert "Payments" in links


def test_menu_of_desk_has_reservations_and_no_reports(client, staff):
    client.force_login(staff("Desk", CenterFactory()))

    links = read_menu(client)

    assert "Reservations" in links
    assert "Reports" not in links
    assert links["Reservations"] in client.get(reverse("admin:index")).text
