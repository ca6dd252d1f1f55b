"""POST /api/account/complete-payment-setup (B21.2)"""

from datetime import timedelta
from uuid import uuid4

import pytest

from accounts.models import AttemptWindow
from payments import setups
from payments.gateways.sandbox_models import SandboxCard, SandboxFault
from payments.gateways.sandbox_setups import refuse_setup
from payments.models import PaymentSetup, SavedCard
from tests.factories_people import SavedCardFactory, UserFactory, issue_token
from tests.http import post
from tests.operations.payment_setups.helpers import CREATE, NOW

pytestmark = pytest.mark.django_db


def test_entered_card_replaces_the_saved_one(ada, create, enter, complete):
    former = SavedCardFactory(user=ada)
    setup = create()
    enter(setup, "5555555555554444")

    response = complete(setup)

    assert response.json() == {
        "Success": True,
        "SavedPaymentInfo": {
            "FirstName": "Ada",
            "LastName": "Lovelace",
            "Last4DigitsOfCreditCardNumber": "4444",
            "BillingAddress": {"HasStreet2": False},
            "ExpirationDate": "2031-01-31T00:00:00+00:00",
            "CardType": "MasterCard",
            "HasCVV": True,
        },
    }
    saved = SavedCard.objects.get()
    assert saved.saved_by_setup
    assert not SandboxCard.objects.filter(reference=former.reference).exists()
    # Repeating it changes nothing, also after another card was saved.
    assert complete(setup).content == response.content
    SavedCard.objects.all().delete()
    SavedCardFactory(user=ada, last4="0077")
    again = complete(setup).json()["SavedPaymentInfo"]
    assert again["Last4DigitsOfCreditCardNumber"] == "0077"
    SavedCard.objects.all().delete()
    assert complete(setup).json() == {"Success": True}


def test_setup_without_a_card_is_not_complete(create, complete):
    response = complete(create())

    assert response.status_code == 409
    assert response.json()["Error"]["Summary"] == "PaymentSetupNotComplete"


def test_setup_of_somebody_else_is_not_found(client, create, enter, complete):
    setup = create()
    enter(setup)
    thief = issue_token(UserFactory())

    for id_ in (setup["Id"], setup["ClientSecret"], str(uuid4()), "1", "x" * 100, "\u0663"):
        answers = [complete({"Id": id_}, as_token=thief)]
        assert [each.status_code for each in answers] == [404]

    assert not SavedCard.objects.exists()
    assert complete(setup).status_code == 200


def test_revoked_token_completes_nothing(client, token, create, enter, complete):
    setup = create()
    enter(setup)
    post(client, "/api/sign-out", {"Token": token})

    assert complete(setup).status_code == 401
    assert not SavedCard.objects.exists()


def test_refused_card_is_declined_until_another_is_entered(create, enter, complete):
    setup = create()
    enter(setup, "4000000000009995")

    for _ in range(2):
        declined = complete(setup)
        assert declined.status_code == 402
        assert "insufficient funds" in declined.json()["Error"]["Message"]

    # The same refusal counts once towards the limit of declined cards.
    assert AttemptWindow.objects.get(scope="card-declined").count == 1
    refuse_setup(setup["ClientSecret"])
    assert "not confirmed" in complete(setup).json()["Error"]["Message"]
    enter(setup)
    assert complete(setup).status_code == 200


def test_repeated_refusals_end_the_setup_and_refuse_new_ones(
    client, token, create, enter, complete
):
    waiting = create()
    for _ in range(6):
        setup = create()
        enter(setup, "4000000000000002")
        assert complete(setup).status_code == 402
    assert post(client, CREATE, {"Token": token}).status_code == 429

    enter(waiting, "4000000000000002")
    assert complete(waiting).status_code == 402
    # No further card can be tried with it.
    assert enter(waiting).state == "expired"


def test_expired_setup_is_ended_at_the_gateway(create, enter, complete, clock):
    setup = create()
    clock.move_to(NOW + timedelta(hours=1))

    response = complete(setup)

    assert response.status_code == 402
    assert response.json()["Error"]["Message"].startswith("The time to enter the card is over.")
    assert enter(setup).state == "expired"
    assert complete(setup).content == response.content


def test_card_that_was_entered_in_time_is_saved_late(create, enter, complete, clock):
    setup = create()
    enter(setup)
    clock.move_to(NOW + timedelta(hours=3))

    assert complete(setup).status_code == 200


@pytest.mark.parametrize("operation", ["find_setup", "cancel_setup"])
@pytest.mark.parametrize("kind", ["timeout_before", "timeout_after"])
def test_unreachable_gateway_is_503_and_repeating_saves_the_card(
    create, enter, complete, operation, kind
):
    setup = create()
    enter(setup)
    SandboxFault.objects.create(operation=operation, kind=kind, times=1)

    assert complete(setup).status_code == 503
    assert complete(setup).status_code == 200
    assert SavedCard.objects.get().reference == SandboxCard.objects.get().reference


def test_card_of_a_disabled_account_is_deleted(ada, create, enter):
    setup = create()
    enter(setup)
    ada.is_active = False
    ada.save()

    setups.resolve_setup(PaymentSetup.objects.get(), now=NOW)

    assert not SavedCard.objects.exists()
    assert not SandboxCard.objects.exists()
    assert PaymentSetup.objects.get().state == "failed"


def test_customer_without_a_name_and_card_number_as_name_are_replaced(ada):
    gateway_card = setups.GatewayCard(
        reference="card_1",
        brand=None,
        last4="4242",
        exp_year=2031,
        exp_month=1,
        name="4242 4242 4242 4242",
        billing_address={"street1": "5555555555554444", "city": "Denver"},
    )

    saved = setups.build_saved_card(ada, "sandbox", gateway_card, now=NOW)

    assert (saved.first_name, saved.last_name) == ("Ada", "Lovelace")
    assert (saved.street1, saved.city) == ("", "Denver")
