"""POST /api/account/update-payment-info and /api/account/remove-payment-info"""

import pytest

from payments.gateways.sandbox_models import SandboxCard
from payments.models import SavedCard
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import CARD, DECLINED_NUMBER, VALID_NUMBER
from tests.gateway_faults import add_fault
from tests.operations.helpers import refused

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

PATH = "/api/account/update-payment-info"


@pytest.fixture
def save(call):
    def save(number=VALID_NUMBER, **fields):
        return call(PATH, PaymentInfo={**CARD, "CreditCardNumber": number, **fields})

    return save


def test_new_card_replaces_old_card_and_deletes_it_at_the_gateway(save, caplog):
    others = SavedCardFactory()
    save()
    first = SavedCard.objects.exclude(pk=others.pk).get()

    shown = save("378282246310005", SecurityCode=None).json()["UpdatedUserInfo"]["SavedPaymentInfo"]

    assert (shown["CardType"], shown["HasCVV"]) == ("AmericanExpress", False)
    second = SavedCard.objects.exclude(pk=others.pk).get()
    assert second.reference != first.reference
    stored = {each.reference for each in SandboxCard.objects.all()}
    assert stored == {others.reference, second.reference}
    # A failure to delete the old card is only logged, and a declined one changes nothing.
    add_fault(operation="forget", kind="error")
    assert save("5555555555554444").status_code == 200
    assert "could not be deleted" in caplog.text
    error = refused(save(DECLINED_NUMBER), 402, "CardDeclined")
    assert error["Message"] == "The card was declined. You were not charged."
    assert SavedCard.objects.exclude(pk=others.pk).get().last4 == "4444"


def test_valid_and_mistyped_cards_and_an_unreachable_gateway_are_not_counted(save):
    add_fault(operation="store", kind="timeout_before", times=7)
    for _ in range(7):
        response = save()
        assert "Nothing was charged" in refused(response, 503, "ServiceUnavailable")["Message"]
        assert int(response["Retry-After"]) > 0
    assert not SavedCard.objects.exists()
    for _ in range(7):
        assert save().status_code == 200
        assert save("4242424242424241").status_code == 400


@pytest.mark.parametrize("is_reachable", [True, False])
def test_remove_payment_info_deletes_card_here_and_at_the_gateway(get, ada, is_reachable, caplog):
    SavedCardFactory(user=ada)
    others = SavedCardFactory()
    if not is_reachable:
        add_fault(operation="forget", kind="timeout_before")

    shown = get("/api/account/remove-payment-info")["UpdatedUserInfo"]

    assert (shown["Id"], "SavedPaymentInfo" in shown) == (ada.pk, False)
    assert SavedCard.objects.get() == others
    if is_reachable:
        assert SandboxCard.objects.get().reference == others.reference
    assert ("could not be deleted" in caplog.text) is not is_reachable
