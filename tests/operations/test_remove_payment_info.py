"""POST /api/account/remove-payment-info"""

import pytest

from payments.gateways.sandbox_models import SandboxCard, SandboxFault
from payments.models import SavedCard
from tests.factories_people import SavedCardFactory, UserFactory, issue_token
from tests.http import jsonp, post, post_csv, table

pytestmark = pytest.mark.django_db

PATH = "/api/account/remove-payment-info"


def test_takes_the_card_off_and_deletes_it_at_the_gateway(client):
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


def test_succeeds_with_none_as_csv_and_as_jsonp(client):
    ada = UserFactory(email="ada@example.com")

    rows = table(post_csv(client, PATH + ".csv", {"Token": issue_token(ada)}))
    assert rows[1] == ["true", str(ada.pk), "Account", "Ada", "Lovelace", "ada@example.com"]
    wrapped = post(client, PATH + "?callback=go", {"Token": issue_token(ada)})
    assert jsonp(wrapped, "go")["Success"] is True


def test_a_gateway_that_does_not_answer_changes_nothing_for_the_account(client, caplog):
    card = SavedCardFactory()
    SandboxFault.objects.create(operation="forget", kind="timeout_before")

    assert post(client, PATH, {"Token": issue_token(card.user)}).status_code == 200
    assert not SavedCard.objects.exists()
    assert "could not be deleted" in caplog.text
