"""Words that staff read on lists and pages of the back office."""

import pytest
from django.contrib import admin
from django.urls import reverse

from tests.backoffice.reading import words
from tests.factories_centers import FlatRateFactory, ServiceFactory
from tests.factories_reservations import make_room

pytestmark = pytest.mark.django_db


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
