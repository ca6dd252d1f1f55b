"""POST /api/sign-in"""

import re
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.contrib.auth.hashers import MD5PasswordHasher, PBKDF2PasswordHasher, make_password

from accounts import sign_in as sign_in_module
from accounts.models import ApiToken, AttemptWindow
from tests.factories_people import (
    PASSWORD,
    AdministratorFactory,
    SavedCardFactory,
    StaffFactory,
    UserFactory,
)
from tests.http import jsonp, post, post_csv, table

pytestmark = pytest.mark.django_db

PATH = "/api/sign-in"
REFUSED = {
    "Success": False,
    "Error": {
        "Summary": "InvalidCredentials",
        "Message": "The e-mail address or the password is not right.",
    },
}
LOCKED = {
    "Success": False,
    "Error": {
        "Summary": "TooManyRequests",
        "Message": "Too many attempts. Please wait a little and try again.",
    },
}


@pytest.fixture
def ada():
    return UserFactory(
        email="ada@example.com", company_name="Engines Ltd", phone_number="+1 303 555 0100"
    )


def sign_in(client, email="ada@example.com", password=PASSWORD, **extra):
    return post(client, PATH, {"EmailAddress": email, "Password": password}, **extra)


def test_sign_in_returns_account_and_token(client, ada):
    SavedCardFactory(
        user=ada, exp_year=2031, exp_month=2, company_name="Engines Ltd", street2="Floor 3"
    )

    response = sign_in(client)

    body = response.json()
    assert list(body) == ["Success", "UserInfo", "Token"]
    token = body.pop("Token")
    assert response.status_code == 200
    assert re.fullmatch(r"[0-9a-f]{64}", token)
    assert body == {
        "Success": True,
        "UserInfo": {
            "Id": ada.pk,
            "Type": "Account",
            "FirstName": "Ada",
            "LastName": "Lovelace",
            "EmailAddress": "ada@example.com",
            "CompanyName": "Engines Ltd",
            "PhoneNumber": "+1 303 555 0100",
            "SavedPaymentInfo": {
                "FirstName": "Ada",
                "LastName": "Lovelace",
                "CompanyName": "Engines Ltd",
                "Last4DigitsOfCreditCardNumber": "4242",
                "BillingAddress": {
                    "Street1": "1 Main Street",
                    "Street2": "Floor 3",
                    "City": "Denver",
                    "State": "CO",
                    "PostalCode": "80202",
                    "Country": "US",
                    "HasStreet2": True,
                    "CityStatePostalCode": "Denver, CO 80202",
                },
                "ExpirationDate": "2031-02-28T00:00:00+00:00",
                "CardType": "Visa",
                "HasCVV": True,
            },
        },
    }


def test_sign_in_answers_csv(client, ada):
    response = post_csv(
        client, PATH + ".csv", {"EmailAddress": "ada@example.com", "Password": PASSWORD}
    )

    header, row = table(response)
    assert header == [
        "Success",
        "UserInfo.Id",
        "UserInfo.Type",
        "UserInfo.FirstName",
        "UserInfo.LastName",
        "UserInfo.EmailAddress",
        "UserInfo.CompanyName",
        "UserInfo.PhoneNumber",
        "Token",
    ]
    assert row[:-1] == [
        "true",
        str(ada.pk),
        "Account",
        "Ada",
        "Lovelace",
        "ada@example.com",
        "Engines Ltd",
        "'+1 303 555 0100",
    ]


def test_sign_in_answers_jsonp(client, ada):
    response = post(
        client, PATH + "?callback=app.go", {"EmailAddress": "ada@example.com", "Password": "wrong"}
    )

    assert response.status_code == 401
    assert jsonp(response, "app.go") == REFUSED


def test_sign_in_returns_type_of_account(client):
    StaffFactory(email="staff@example.com")
    AdministratorFactory(email="root@example.com")

    assert sign_in(client, "staff@example.com").json()["UserInfo"]["Type"] == "Staff"
    assert sign_in(client, "root@example.com").json()["UserInfo"]["Type"] == "Administrator"


def test_token_is_stored_as_digest_only(client, ada):
    token = sign_in(client).json()["Token"]

    assert post(client, "/api/account/update-info", {"Token": token}).status_code == 200
    kept = ApiToken.objects.get()
    assert token not in str(vars(kept))
    assert len(kept.digest) == 64


@pytest.mark.parametrize("email", ["ADA@Example.COM", " ada@example.com "])
def test_email_case_and_surrounding_space_are_ignored(client, ada, email):
    assert sign_in(client, email).status_code == 200


def test_account_can_be_signed_in_on_many_devices(client, ada):
    tokens = {sign_in(client).json()["Token"] for _ in range(3)}

    assert len(tokens) == 3
    for token in tokens:
        assert post(client, "/api/account/update-info", {"Token": token}).status_code == 200


def test_unknown_email_wrong_password_and_disabled_account_get_the_same_answer(client, ada):
    UserFactory(email="off@example.com", is_active=False)
    nobody = UserFactory(email="no-password@example.com")
    nobody.set_unusable_password()
    nobody.save()

    for email, password in [
        ("nobody@example.com", PASSWORD),
        ("not an address", PASSWORD),
        ("ada@example.com", "wrong"),
        ("ada@example.com", PASSWORD.upper()),
        ("off@example.com", PASSWORD),
        ("no-password@example.com", PASSWORD),
    ]:
        response = sign_in(client, email, password)
        assert response.status_code == 401
        assert response["WWW-Authenticate"]
        assert response.json() == REFUSED


def test_every_refusal_hashes_a_password_once(client, ada, hashing):
    UserFactory(email="off@example.com", is_active=False)
    work = []
    for email, password in [
        ("nobody@example.com", "wrong"),
        ("ada@example.com", "wrong"),
        ("off@example.com", PASSWORD),
    ]:
        with hashing() as hashes:
            sign_in(client, email, password)
        work.append(hashes.count)
    assert work == [1, 1, 1]


@pytest.fixture
def hashing(monkeypatch):
    """Counts how often a password is hashed."""

    class Hashes:
        count = 0

    @contextmanager
    def counting():
        hashes = Hashes()
        encode = MD5PasswordHasher.encode

        def counted(self, *args, **kwargs):
            hashes.count += 1
            return encode(self, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(MD5PasswordHasher, "encode", counted)
            yield hashes

    return counting


@pytest.mark.parametrize(
    ("body", "details"),
    [
        ({}, "EmailAddress: Required.\nPassword: Required."),
        ({"EmailAddress": "ada@example.com", "Password": ""}, "Password: Must not be empty."),
        ({"EmailAddress": " ", "Password": "x"}, "EmailAddress: Must not be empty."),
        ({"EmailAddress": 12, "Password": "x"}, "EmailAddress: Must be text."),
        (
            {"EmailAddress": "ada@example.com", "Password": "x" * 129},
            "Password: Must have at most 128 characters.",
        ),
    ],
)
def test_invalid_fields_are_named(client, ada, body, details):
    response = post(client, PATH, body)

    assert response.status_code == 400
    assert response.json()["Error"]["Details"] == details


def test_password_is_not_trimmed(client, ada):
    ada.set_password("  quiet harbour  ")
    ada.save()

    assert sign_in(client, password="  quiet harbour  ").status_code == 200
    assert sign_in(client, password="quiet harbour").status_code == 401


def test_outdated_hash_is_upgraded_and_signs_out_nobody(client, ada, settings):
    first = sign_in(client).json()["Token"]
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher",
        "django.contrib.auth.hashers.PBKDF2PasswordHasher",
    ]
    ada.password = PBKDF2PasswordHasher().encode(PASSWORD, "salt", 1)
    ada.save(update_fields=["password"])

    assert sign_in(client).status_code == 200
    ada.refresh_from_db()
    assert ada.password.startswith("md5$")
    assert post(client, "/api/account/update-info", {"Token": first}).status_code == 200


def test_password_changed_during_sign_in_is_refused(client, ada, monkeypatch):
    def changed_meanwhile(password, encoded):
        ada.password = make_password("another one")
        ada.save(update_fields=["password"])
        return True, False

    monkeypatch.setattr(sign_in_module, "verify_password", changed_meanwhile)

    assert sign_in(client).json() == REFUSED
    assert not ApiToken.objects.exists()


# --- Limits --------------------------------------------------------------------------------------


def test_sixth_attempt_is_refused_even_with_correct_password(client, ada):
    start = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
    with time_machine.travel(start, tick=False) as clock:
        for _ in range(5):
            assert sign_in(client, password="wrong").status_code == 401
            clock.shift(timedelta(minutes=1))

        response = sign_in(client)
        assert response.status_code == 429
        assert response.json() == LOCKED
        assert response["Retry-After"] == "600"

        # Refused tries do not make the window longer.
        clock.move_to(start + timedelta(minutes=14, seconds=59))
        assert sign_in(client).status_code == 429
        clock.move_to(start + timedelta(minutes=15))
        assert sign_in(client).status_code == 200


def test_attempts_for_unknown_emails_are_counted(client):
    statuses = [sign_in(client, "nobody@example.com").status_code for _ in range(6)]

    assert statuses == [401] * 5 + [429]


def test_other_email_or_network_is_counted_separately(client, ada):
    UserFactory(email="grace@example.com")
    for _ in range(5):
        sign_in(client, password="wrong")

    assert sign_in(client, "grace@example.com").status_code == 200
    assert sign_in(client, REMOTE_ADDR="198.51.100.7").status_code == 200
    assert sign_in(client).status_code == 429


def test_successful_sign_ins_are_not_counted(client, ada):
    assert {sign_in(client).status_code for _ in range(8)} == {200}


def test_hundred_failures_from_one_network_are_refused(client, ada):
    for number in range(100):
        assert sign_in(client, f"nobody{number}@example.com").status_code == 401

    assert sign_in(client).status_code == 429
    assert sign_in(client, REMOTE_ADDR="198.51.100.7").status_code == 200


def fail_from_ten_networks(client, email):
    """Five failures from each of ten networks: no other limit is reached."""
    for number in range(10):
        for _ in range(5):
            response = sign_in(client, email, "wrong", REMOTE_ADDR=f"2001:db8:{number}::1")
            assert response.status_code == 401


@pytest.mark.parametrize("email", ["ada@example.com", "nobody@example.com"])
def test_fifty_failures_over_networks_refuse_new_networks_whether_or_not_account_exists(
    client, ada, email
):
    start = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
    with time_machine.travel(start, tick=False) as clock:
        fail_from_ten_networks(client, email)
        clock.shift(timedelta(minutes=5))

        response = sign_in(client, email, REMOTE_ADDR="203.0.113.7")
        assert response.status_code == 429
        assert response.json() == LOCKED
        assert response["Retry-After"] == "600"

        assert sign_in(client, "grace@example.com", REMOTE_ADDR="203.0.113.7").status_code == 401
        clock.move_to(start + timedelta(minutes=15))
        assert sign_in(client, email, REMOTE_ADDR="203.0.113.7").status_code == (
            200 if email == "ada@example.com" else 401
        )


def test_fifty_failures_elsewhere_do_not_refuse_a_network_known_for_90_days(client, ada):
    known = {"REMOTE_ADDR": "2001:db8:aa:100::1"}
    start = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
    with time_machine.travel(start, tick=False) as clock:
        assert sign_in(client, **known).status_code == 200

        clock.move_to(start + timedelta(days=90) - timedelta(seconds=1))
        fail_from_ten_networks(client, "ada@example.com")
        # Another address of the same /56.
        neighbor = {"REMOTE_ADDR": "2001:db8:aa:1ff::2"}
        assert sign_in(client, password="wrong", **neighbor).status_code == 401
        assert sign_in(client, REMOTE_ADDR="2001:db8:aa:200::1").status_code == 429

        clock.shift(timedelta(seconds=1))
        assert sign_in(client, **known).status_code == 429


def test_network_known_for_one_account_is_new_for_another(client, ada):
    UserFactory(email="grace@example.com")
    assert sign_in(client, "grace@example.com").status_code == 200
    fail_from_ten_networks(client, "ada@example.com")

    assert sign_in(client).status_code == 429


def test_known_network_is_stored_as_digest_only(client, ada):
    for _ in range(2):
        sign_in(client, REMOTE_ADDR="203.0.113.7")

    network = ada.known_networks.get()
    assert "203.0.113" not in str(vars(network))
    assert len(network.digest) == 64


def test_attempt_windows_contain_no_email(client, ada):
    sign_in(client, password="wrong")

    assert AttemptWindow.objects.count() == 3
    assert not AttemptWindow.objects.filter(key__contains="ada").exists()
