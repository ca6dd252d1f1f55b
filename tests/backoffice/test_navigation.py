"""The menu of the back office."""

import pytest
from django.urls import reverse

from roombook.backoffice.navigation import build_navigation
from tests.factories_centers import CenterFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("is_everywhere", [False, True])
def test_menu_of_accountant_has_only_pages_that_open(client, staff, is_everywhere):
    centers = () if is_everywhere else (CenterFactory(),)
    client.force_login(staff("Accountant", *centers))
    request = client.get(reverse("admin:index")).wsgi_request

    links = {
        item["title"]: item["link"]
        for group in build_navigation(request)
        for item in group["items"]
    }

    for title, link in links.items():
        assert client.get(link, follow=True).status_code == 200, title
    for title in ("Audit log", "Unknown payments"):
        assert (title in links) is is_everywhere
    assert "Payments" in links
