"""The menu of the back office."""

import pytest
from django.urls import reverse

from roombook.backoffice.model_admin import ModelAdmin
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


def test_menu_of_accountant_has_only_pages_that_open(client, staff):
    client.force_login(staff("Accountant", CenterFactory()))
    links = read_menu(client)

    for title, link in links.items():
        assert client.get(link, follow=True).status_code == 200, title
    assert "Payments" in links
    everywhere_only = {"Audit log", "Unknown payments"}
    assert not everywhere_only & set(links)
    client.force_login(staff("Accountant"))
    assert everywhere_only <= set(read_menu(client))


def test_menu_of_desk_has_reservations_and_no_reports(client, staff):
    client.force_login(staff("Desk", CenterFactory()))

    links = read_menu(client)

    assert "Reservations" in links
    assert "Reports" not in links
    assert links["Reservations"] in client.get(reverse("admin:index")).text


def test_list_of_apps_is_built_only_for_the_page_that_displays_it(office, monkeypatch):
    page = reverse("admin:app_list", args=["centers"])
    [app] = office.get(page).context["app_list"]
    assert "Rates" in [each["name"] for each in app["models"]]
    assert office.get("/admin/nothing/").status_code == 404

    monkeypatch.setattr(ModelAdmin, "get_model_perms", lambda *_: 1 / 0)

    assert office.get(reverse("admin:centers_rate_changelist")).status_code == 200
    with pytest.raises(ZeroDivisionError):
        office.get(page)
