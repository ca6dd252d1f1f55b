"""The menu of the back office."""

import pytest
from django.urls import reverse

from tests.factories_centers import CenterFactory

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
