"""POST /api/sign-in; its limits are in tests/accounts/test_limits.py"""

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher, PBKDF2PasswordHasher, make_password

from accounts import sign_in as sign_in_module
from accounts.models import ApiToken, AttemptWindow
from tests.factories_people import (
    PASSWORD,
    UserFactory,
)
from tests.http import post

pytestmark = pytest.mark.django_db

PATH = "/api/sign-in"
REFUSED = {
    "Success": False,
    "Error": {
        "Summary": "InvalidCredentials",
        "Message": "The e-mail address or the password is not right.",
    },
}


def sign_in(client, email="ada@example.com", password=PASSWORD, **extra):
    return post(client, PATH, {"EmailAddress": email, "Password": password}, **extra)


def test_tokens_networks_and_addresses_are_stored_as_digests_only(client, ada):
    for _ in range(2):
        token = sign_in(client, REMOTE_ADDR="203.0.113.7").json()["Token"]
        assert post(client, "/api/account/update-info", {"Token": token}).status_code == 200
        kept = ApiToken.objects.latest("pk")
        assert token not in str(vars(kept))
        assert len(kept.digest) == 64

    network = ada.known_networks.get()
    assert "203.0.113" not in str(vars(network))
    assert len(network.digest) == 64
    sign_in(client, password="wrong")
    assert AttemptWindow.objects.count() == 3
    assert not AttemptWindow.objects.filter(key__contains="ada").exists()


def test_address_is_read_in_any_case_and_the_password_as_it_is(client, ada):
    ada.set_password("  quiet harbour  ")
    ada.save()
    for email in ("ADA@Example.COM", " ada@example.com "):
        # Successful sign-ins are not counted.
        for _ in range(4):
            assert sign_in(client, email, "  quiet harbour  ").status_code == 200
        assert sign_in(client, email, "quiet harbour").status_code == 401


@pytest.fixture
def hashes(monkeypatch):
    """The passwords that are hashed."""
    encode = MD5PasswordHasher.encode
    hashed = []
    monkeypatch.setattr(
        MD5PasswordHasher,
        "encode",
        lambda self, password, *args: hashed.append(password) or encode(self, password, *args),
    )
    return hashed


def test_every_refusal_is_the_same_and_hashes_a_password_once(client, ada, hashes):
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
        hashes.clear()
        response = sign_in(client, email, password)
        assert len(hashes) == 1
        assert response.status_code == 401
        assert response["WWW-Authenticate"]
        assert response.json() == REFUSED


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
