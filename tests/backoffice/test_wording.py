"""Words that staff read on lists and pages of the back office."""

import pytest
from django.contrib import admin
from django.urls import reverse

from tests.backoffice.reading import words
from tests.factories_centers import FlatRateFactory, ServiceFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import make_room

pytestmark = pytest.mark.django_db


def test_lists_call_their_rows_by_name_and_say_if_they_are_empty(office):
    UserFactory(last_name="Hopper")
    url = reverse("admin:accounts_user_changelist")

    page = words(office.get(url, {"q": "hopper"}))
    assert "1 customer" in page
    assert "Users" not in page
    assert "No customers match" in words(office.get(url, {"q": "nobody"}))
    page = words(office.get(reverse("admin:reservations_partner_changelist")))
    assert "There are no partners here" in page
    assert "Show all" not in page


def test_invitation_and_import_pages_say_what_will_happen(office):
    invitation = words(office.get(reverse("admin:accounts_staffmember_add")))
    import_page = words(office.get(reverse("admin:centers_meetingroom_import")))

    assert "They get an e-mail with a link to choose a password." in invitation
    assert "This importer will import" not in import_page
    assert "The first row names the columns" in import_page


def test_flat_price_of_a_service_with_a_quantity_is_for_each_piece(office):
    rate = FlatRateFactory(center=make_room().center, flat_rate="4.50")
    for name, needs_quantity in (("Coffee", True), ("Projector", False)):
        ServiceFactory(center=rate.center, name=name, rate=rate, needs_quantity=needs_quantity)

    page = words(office.get(reverse("admin:centers_service_changelist")))

    assert "$4.50 each" in page
    assert "$4.50 flat" in page


def test_no_label_is_the_name_of_a_column():
    """Django derives "is active" from `is_active`; elsewhere the same column is "active"."""
    labels = {
        f"{model._meta.label}.{field.name}": str(field.verbose_name)
        for model, model_admin in admin.site._registry.items()
        for field in model._meta.fields
        if field.editable
    }

    assert labels["centers.Center.is_active"] == "active"
    assert [name for name, label in labels.items() if label.startswith(("is ", "has "))] == []
