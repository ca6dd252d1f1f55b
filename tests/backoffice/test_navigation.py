"""The menu of the back office."""

import pytest
from django.urls import reverse, reverse_lazy

from roombook.backoffice.model_admin import ModelAdmin
from tests.factories_centers import CenterFactory
from tests.factories_reservations import ReservationFactory

pytestmark = pytest.mark.django_db


def read_menu(client):
    """The title and URL of each link in the menu of the signed-in user."""
    return {item["title"]: str(item["link"]) for item in read_items(client, reverse("admin:index"))}


def read_items(client, page):
    groups = client.get(page).context["sidebar_navigation"]
    return [item for group in groups for item in group["items"] if item["has_permission"]]


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


@pytest.mark.parametrize(
    ("page", "title"),
    [
        (reverse_lazy("admin:index"), "Dashboard"),
        (reverse_lazy("admin:reservations_reservation_changelist"), "Reservations"),
        (reverse_lazy("admin:reservations_reservation_add"), "New reservation"),
        (reverse_lazy("admin:reservations_timeline"), "Timeline"),
        (reverse_lazy("admin:reservations_report", args=["revenue"]), "Reports"),
        (reverse_lazy("admin:reservations_in_closures"), "Bookings to resolve"),
        (reverse_lazy("admin:centers_rate_add"), "Rates"),
        (reverse_lazy("admin:payments_unknownpayment_changelist"), "Unknown payments"),
    ],
)
def test_menu_marks_one_item_as_open_page(office, page, title):
    assert [item["title"] for item in read_items(office, page) if item["active"]] == [title]


def test_page_of_reservation_is_marked_as_reservations_in_menu(office):
    reservation = ReservationFactory()
    page = reverse("admin:reservations_reservation_change", args=[reservation.pk])

    assert [item["title"] for item in read_items(office, page) if item["active"]] == [
        "Reservations"
    ]


def test_list_of_apps_is_built_only_for_the_page_that_displays_it(office, monkeypatch):
    page = reverse("admin:app_list", args=["centers"])
    [app] = office.get(page).context["app_list"]
    assert "Rates" in [each["name"] for each in app["models"]]
    assert office.get("/admin/nothing/").status_code == 404

    monkeypatch.setattr(ModelAdmin, "get_model_perms", lambda *_: 1 / 0)

    assert office.get(reverse("admin:centers_rate_changelist")).status_code == 200
    with pytest.raises(ZeroDivisionError):
        office.get(page)
