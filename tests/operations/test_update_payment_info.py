"""POST /api/account/update-payment-info"""

from datetime import UTC, datetime

import pytest
import time_machine
from django.db import connection

from payments.gateways.sandbox_models import SandboxCard, SandboxFault
from payments.models import SavedCard
from tests.factories_people import SavedCardFactory, UserFactory, issue_token
from tests.http import jsonp, post, post_csv, table

pytestmark = pytest.mark.django_db

PATH = "/api/account/update-payment-info"
CARD = {
    "FirstName": "Ada",
    "LastName": "Lovelace",
    "CompanyName": "Engines Ltd",
    "CreditCardNumber": "4242 4242-4242 4242",
    "SecurityCode": "123",
    "ExpirationDate": "2031-02-10T00:00:00Z",
    "BillingAddress": {
        "Street1": "1 Main Street",
        "City": "Denver",
        "State": "CO",
        "PostalCode": "80202",
        "Country": "US",
        "Latitude": 39.7,
        # Sent back as they were shown: made, not stored.
        "HasStreet2": True,
        "CityStatePostalCode": "Nowhere",
    },
}


@pytest.fixture(autouse=True)
def _clock():
    with time_machine.travel(datetime(2027, 3, 15, 12, 0, tzinfo=UTC)):
        yield


@pytest.fixture
def ada():
    return UserFactory(email="ada@example.com")


@pytest.fixture
def save(client, ada):
    token = issue_token(ada)

    def call(**fields):
        return post(client, PATH, {"Token": token, "PaymentInfo": {**CARD, **fields}})

    return call


def test_update_payment_info_saves_card_and_returns_visible_part(save, ada):
    response = save()

    assert response.status_code == 200
    assert response.json() == {
        "Success": True,
        "UpdatedUserInfo": {
            "Id": ada.pk,
            "Type": "Account",
            "FirstName": "Ada",
            "LastName": "Lovelace",
            "EmailAddress": "ada@example.com",
            "SavedPaymentInfo": {
                "FirstName": "Ada",
                "LastName": "Lovelace",
                "CompanyName": "Engines Ltd",
                "Last4DigitsOfCreditCardNumber": "4242",
                "BillingAddress": {
                    "Street1": "1 Main Street",
                    "City": "Denver",
                    "State": "CO",
                    "PostalCode": "80202",
                    "Country": "US",
                    "Latitude": 39.7,
                    "HasStreet2": False,
                    "CityStatePostalCode": "Denver, CO 80202",
                },
                "ExpirationDate": "2031-02-28T00:00:00+00:00",
                "CardType": "Visa",
                "HasCVV": True,
            },
        },
    }


def test_update_payment_info_accepts_and_answers_csv(client, ada):
    row = {
        "Token": issue_token(ada),
        "PaymentInfo.FirstName": "Ada",
        "PaymentInfo.LastName": "Lovelace",
        "PaymentInfo.CreditCardNumber": "5555555555554444",
        "PaymentInfo.ExpirationDate": "2028-02-01T00:00:00Z",
        "PaymentInfo.BillingAddress.City": "Denver",
    }

    header, values = table(post_csv(client, PATH + ".csv", row))

    shown = dict(zip(header, values, strict=True))
    card = "UpdatedUserInfo.SavedPaymentInfo"
    assert shown[f"{card}.Last4DigitsOfCreditCardNumber"] == "4444"
    assert shown[f"{card}.CardType"] == "MasterCard"
    assert shown[f"{card}.ExpirationDate"] == "2028-02-29T00:00:00+00:00"
    assert shown[f"{card}.HasCVV"] == "false"
    assert shown[f"{card}.BillingAddress.CityStatePostalCode"] == "Denver"
    assert SavedCard.objects.get().reference == SandboxCard.objects.get().reference


def test_update_payment_info_answers_jsonp(client, ada):
    body = {"Token": issue_token(ada), "PaymentInfo": CARD}

    wrapped = jsonp(post(client, PATH + "?callback=go", body), "go")
    assert wrapped["UpdatedUserInfo"]["SavedPaymentInfo"]["CardType"] == "Visa"


def test_card_number_and_security_code_are_stored_nowhere(save, caplog):
    caplog.set_level("DEBUG")
    response = save(SecurityCode="987")

    kept = [response.content.decode(), caplog.text]
    with connection.cursor() as cursor:
        for table_name in connection.introspection.table_names():
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table_name)}")
            kept += [str(row) for row in cursor.fetchall()]
    assert "4242424242424242" not in " ".join(kept).replace(" ", "").replace("-", "")
    for card in (SavedCard.objects.get(), SandboxCard.objects.get()):
        # Times, ids and random references may have any digits.
        described = {
            name: value
            for name, value in vars(card).items()
            if isinstance(value, str) and name not in {"reference", "customer"}
        }
        assert "987" not in str(described)


def test_new_card_replaces_old_card_and_deletes_it_at_the_gateway(save, ada):
    save()
    first = SavedCard.objects.get()

    shown = save(CreditCardNumber="378282246310005", SecurityCode="1234").json()

    assert shown["UpdatedUserInfo"]["SavedPaymentInfo"]["CardType"] == "AmericanExpress"
    second = SavedCard.objects.get()
    assert second.reference != first.reference
    assert SandboxCard.objects.get().reference == second.reference


def test_card_of_another_account_is_unchanged(save):
    SavedCardFactory()

    save()

    assert SavedCard.objects.count() == 2


def test_failure_to_delete_old_card_is_only_logged(save, caplog):
    save()
    SandboxFault.objects.create(operation="forget", kind="error")

    assert save(CreditCardNumber="5555555555554444").status_code == 200
    assert SavedCard.objects.get().last4 == "4444"
    assert "could not be deleted" in caplog.text


def test_declined_card_answers_402_and_old_card_stays(save):
    save()

    response = save(CreditCardNumber="4000000000000002")

    assert response.status_code == 402
    assert response.json() == {
        "Success": False,
        "Error": {
            "Summary": "CardDeclined",
            "Message": "The card was declined. You were not charged.",
        },
    }
    assert SavedCard.objects.get().last4 == "4242"


def test_seventh_attempt_after_six_declines_is_refused(save, ada):
    for _ in range(6):
        assert save(CreditCardNumber="4000000000009995").status_code == 402

    response = save()
    assert response.status_code == 429
    assert 0 < int(response["Retry-After"]) <= 3600
    assert not SavedCard.objects.exists()


def test_valid_and_mistyped_cards_are_not_counted(save):
    for _ in range(7):
        assert save().status_code == 200
        assert save(CreditCardNumber="4242424242424241").status_code == 400


def test_unreachable_gateway_answers_503_and_is_not_counted(save):
    SandboxFault.objects.create(operation="store", kind="timeout_before", times=7)
    for _ in range(7):
        response = save()
        assert response.status_code == 503
        assert int(response["Retry-After"]) > 0
    assert "Nothing was charged" in response.json()["Error"]["Message"]
    assert not SavedCard.objects.exists()

    assert save().status_code == 200


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"CreditCardNumber": ""}, "CreditCardNumber: A card number is needed."),
        ({"CreditCardNumber": None}, "CreditCardNumber: A card number is needed."),
        (
            {"CreditCardNumber": "4242424242424241"},
            "CreditCardNumber: This is not a valid card number.",
        ),
        ({"CreditCardNumber": "4242"}, "CreditCardNumber: This is not a valid card number."),
        (
            {"CreditCardNumber": "４２４２424242424242"},  # noqa: RUF001 (full-width digits)
            "CreditCardNumber: This is not a valid card number.",
        ),
        ({"CreditCardNumber": "4" * 41}, "CreditCardNumber: Must have at most 40 characters."),
        ({"CreditCardNumber": 4242424242424242}, "CreditCardNumber: Must be text."),
        (
            {"CreditCardNumber": "0000000000000000"},
            "CreditCardNumber: Cards of this kind are not accepted.",
        ),
        ({"SecurityCode": "12"}, "SecurityCode: The security code has 3 digits."),
        ({"SecurityCode": "1234"}, "SecurityCode: The security code has 3 digits."),
        ({"SecurityCode": "abc"}, "SecurityCode: The security code has 3 digits."),
        (
            {"CreditCardNumber": "378282246310005"},
            "SecurityCode: The security code has 4 digits.",
        ),
        ({"ExpirationDate": None}, "ExpirationDate: The date of expiry is needed."),
        ({"ExpirationDate": "2027-02-28T23:59:59Z"}, "ExpirationDate: This card has expired."),
        (
            {"ExpirationDate": "2078-01-01T00:00:00Z"},
            "ExpirationDate: No card is valid for so long.",
        ),
        (
            {"ExpirationDate": "2028-13-01T00:00:00Z"},
            "ExpirationDate: Must be a date and time that exists.",
        ),
        ({"FirstName": " "}, "FirstName: The cardholder's name is needed."),
        ({"LastName": None}, "LastName: The cardholder's name is needed."),
        (
            {"FirstName": "4242424242424242"},
            "FirstName: This looks like a card number, not a name.",
        ),
        (
            {"CompanyName": "4242-4242-4242-4242"},
            "CompanyName: This looks like a card number, not a name.",
        ),
        (
            {"BillingAddress": {"Street1": "4242 4242 4242 4242"}},
            "BillingAddress.Street1: This looks like a card number.",
        ),
        ({"BillingAddress": {"Latitude": 91}}, "BillingAddress.Latitude: Must be at most 90."),
        ({"BillingAddress": "Denver"}, "BillingAddress: Must be an object."),
    ],
)
def test_invalid_card_fields_are_named_without_echo(save, fields, details):
    response = save(**fields)

    assert response.status_code == 400
    assert response.json()["Error"]["Summary"] == "InvalidRequest"
    assert response.json()["Error"]["Details"] == f"PaymentInfo.{details}"
    assert "4242" not in response.content.decode()
    assert not SavedCard.objects.exists()


def test_all_invalid_fields_are_named_at_once(client, ada):
    response = post(client, PATH, {"Token": issue_token(ada), "PaymentInfo": {}})

    assert response.json()["Error"]["Details"].splitlines() == [
        "PaymentInfo.FirstName: The cardholder's name is needed.",
        "PaymentInfo.LastName: The cardholder's name is needed.",
        "PaymentInfo.CreditCardNumber: A card number is needed.",
        "PaymentInfo.ExpirationDate: The date of expiry is needed.",
    ]


def test_payment_info_is_required(client, ada):
    response = post(client, PATH, {"Token": issue_token(ada)})

    assert response.status_code == 400
    assert response.json()["Error"]["Details"] == "PaymentInfo: Required."


@pytest.mark.parametrize(
    "expiry",
    [
        "2027-03-01T00:00:00Z",  # the running month has not passed, whatever its day
        "2027-03-31T23:59:59Z",
        "2027-03-01",
        "2027-03-01T00:00:00",  # without an offset: UTC
        "2027-03-01T00:00:00+02:00",  # still February in UTC, but the client wrote March
        "2027-03-31T23:00:00-07:00",
    ],
)
def test_expiration_date_may_be_any_time_of_the_month(save, expiry):
    shown = save(ExpirationDate=expiry).json()["UpdatedUserInfo"]["SavedPaymentInfo"]

    assert shown["ExpirationDate"] == "2027-03-31T00:00:00+00:00"


def test_update_payment_info_requires_token(client):
    assert post(client, PATH, {"PaymentInfo": CARD}).status_code == 401
