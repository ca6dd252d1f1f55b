"""POST /api/account/remove-payment-info"""

import pytest

from payments.gateways.sandbox_models import SandboxCard, SandboxFault
from payments.models import SavedCard
from tests.factories_people import SavedCardFactory, UserFactory, issue_token
from tests.http import jsonp, post, post_csv, table

pytestmark = pytest.mark.django_db

PATH = "/api/account/remove-payment-info"


def test_remove_payment_info_deletes_card_here_and_at_the_gateway(client):
    ada = UserFactory(email="ada@example.com")
    SavedCardFactory(user=ada)
    others = SavedCardFactory()

    response = post(client, PATH, {"Token": issue_token(ada)})

    assert response.status_code == 200
    assert response.json() == {
        "Success": True,
        "UpdatedUserInfo": {
            "Id": ada.pk,
            "Type": "Account",
            "FirstName": "Ada",
            "LastName": "Lovelace",
            "EmailAddress": "ada@example.com",
        },
    }
    assert SavedCard.objects.get() == others
    assert SandboxCard.objects.get().reference == others.reference


def test_remove_payment_info_without_card_succeeds_as_csv_and_jsonp(client):
    ada = UserFactory(email="ada@example.com")

    rows = table(post_csv(client, PATH + ".csv", {"Token": issue_token(ada)}))
    assert rows[1] == ["true", str(ada.pk), "Account", "Ada", "Lovelace", "ada@example.com"]
    wrapped = post(client, PATH + "?callback=go", {"Token": issue_token(ada)})
    assert jsonp(wrapped, "go")["Success"] is True


def test_remove_payment_info_succeeds_if_gateway_is_unreachable(client, caplog):
    card = SavedCardFactory()
    SandboxFault.objects.create(operation="forget", kind="timeout_before")

    assert post(client, PATH, {"Token": issue_token(card.user)}).status_code == 200
    assert not SavedCard.objects.exists()
    assert "could not be deleted" in caplog.text
