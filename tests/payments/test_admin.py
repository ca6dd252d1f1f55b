"""Money in the back office: to look at only."""

import pytest
from django.urls import reverse

from payments import actions
from payments.models import Payment
from tests.factories_people import AdministratorFactory, SavedCardFactory
from tests.payments.test_payments import NOW, ada, captured, reservation, start  # noqa: F401 (fixtures)  # noqa: F401 (fixtures)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _root(client):
    client.force_login(AdministratorFactory())


def test_a_saved_card_shows_brand_and_last_four_and_no_reference(client):
    card = SavedCardFactory()

    for page in (
        client.get(reverse("admin:payments_savedcard_changelist"), {"q": "4242"}),
        client.get(reverse("admin:payments_savedcard_change", args=[card.pk])),
    ):
        text = page.content.decode()
        assert page.status_code == 200
        assert "Visa" in text
        assert "4242" in text
        assert card.reference not in text


def test_payments_and_refunds_are_shown(client, captured):  # noqa: F811
    refund = actions.open_refund(captured, amount=captured.amount, reason="Rain", now=NOW)

    for page in (
        client.get(reverse("admin:payments_payment_changelist"), {"q": captured.card_last4}),
        client.get(reverse("admin:payments_payment_change", args=[captured.pk])),
        client.get(reverse("admin:payments_refund_changelist"), {"q": "rain"}),
        client.get(reverse("admin:payments_refund_change", args=[refund.pk])),
    ):
        assert page.status_code == 200
        assert "50.00" in page.content.decode()


def test_nobody_changes_them_by_hand(client, captured):  # noqa: F811
    card = SavedCardFactory()
    refund = actions.open_refund(captured, amount=captured.amount, reason="Rain", now=NOW)

    for model, row in (("payment", captured), ("refund", refund), ("savedcard", card)):
        assert client.get(reverse(f"admin:payments_{model}_add")).status_code == 403
        for page in ("change", "delete"):
            url = reverse(f"admin:payments_{model}_{page}", args=[row.pk])
            assert client.post(url, {"post": "yes", "state": "voided"}).status_code == 403
    assert Payment.objects.get().state == "captured"
