"""The same password, address and code from another keyboard."""

# ruff: noqa: RUF001 (letters that look alike are what these tests are about)
import re

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from accounts.models import User, canonicalize_email
from accounts.passwords import make_password, verify_password
from reservations.models import Partner, PromoCode
from reservations.models.codes import normalize_code
from tests.factories_people import PASSWORD, AdministratorFactory, UserFactory, issue_token
from tests.factories_reservations import PromoCodeFactory, make_draft
from tests.http import post
from tests.imports import build_csv, count_rows
from tests.operations.account_codes import (
    GRACE,
    call,
    get_details,
    get_kinds,
    read_code,
    reset,
    sign_in,
)
from tests.world import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

COMPOSED, DECOMPOSED = "schöne Ａussicht é7", "scho\u0308ne\u00a0Aussicht e\u03017"


@pytest.fixture(autouse=True)
def _open_sign_up(settings):
    settings.SIGN_UP = "open"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        *((COMPOSED, DECOMPOSED, True), ("pass\u3000word", "pass word", True)),
        *(("pass\u1680word", "pass\u202fword", True), ("ﾊﾟｽﾜｰﾄﾞ", "パスワード", True)),
        *(("ﬁle", "file", True), ("비밀", "\u1107\u1175\u1106\u1175\u11af", True)),
        *(("Password", "password", False), ("e\u0301", "e", False), (" pass", "pass", False)),
    ],
)
def test_password_is_right_however_it_is_typed(settings, one, other, is_same):
    for typed, stored in ((one, other), (other, one)):
        assert verify_password(typed, make_password(stored)) == (is_same, False)


def test_every_way_to_set_a_password_allows_every_way_to_type_it(client):
    email, one, other = GRACE["EmailAddress"], COMPOSED, DECOMPOSED
    assert call(client, "create", **GRACE | {"Password": one}).status_code == 200
    call(client, "confirm-email", EmailAddress=email, Code=read_code(email))
    assert sign_in(client, email, other).status_code == 200
    grace = User.objects.get()

    def change(new, confirmed):
        body = {"Token": issue_token(grace), "CurrentPassword": other, "NewPassword": new}
        return post(client, "/api/change-password", body | {"ConfirmNewPassword": confirmed})

    assert "must differ" in get_details(change(one, one))
    assert change(f"{one}!", f"{other}!").status_code == 200
    assert sign_in(client, email, f"{other}!").status_code == 200
    call(client, "request-password-reset", EmailAddress=email)
    assert reset(client, email, read_code(email), one, ConfirmNewPassword=other).status_code == 200
    fields = {"NewEmailAddress": "new@example.com", "Password": other, "Token": issue_token(grace)}
    assert call(client, "change-email", **fields).status_code == 200


def test_pages_and_commands_set_and_check_passwords_alike(client, monkeypatch):
    one, other = COMPOSED, DECOMPOSED
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", one)
    fields = {"first_name": "Root", "last_name": "One", "email": "root@example.com"}
    call_command("createsuperuser", interactive=False, verbosity=0, **fields)
    fields = {"username": "root@example.com", "password": other}
    assert client.post(reverse("admin:login"), fields).status_code == 302
    ada, chosen = UserFactory(), {"usable_password": "true", "password1": one, "password2": one}
    url = reverse("admin:auth_user_password_change", args=[ada.pk])
    assert client.post(url, chosen).status_code == 302
    assert sign_in(Client(), ada.email, other).status_code == 200
    fields = {"old_password": other, "new_password1": f"{one}!", "new_password2": f"{one}!"}
    assert client.post(reverse("admin:password_change"), fields).status_code == 302
    assert User.objects.get(email="root@example.com").check_password(f"{other}!")


def test_common_password_in_full_width_is_refused(client):
    response = call(client, "create", **GRACE | {"Password": "ｐａｓｓｗｏｒｄ１２３"})
    assert "too common" in get_details(response)


UNICODE, ASCII = "ada@bücher.example", "ada@xn--bcher-kva.example"


def test_one_mailbox_has_one_account(client):
    ada, typed = UserFactory(email=ASCII), "Ada@bu\u0308\u00adcher。example"
    assert ada.email == UNICODE

    assert sign_in(client, typed, PASSWORD).status_code == 200
    assert call(client, "create", **GRACE | {"EmailAddress": typed}).status_code == 200
    # Its owner is told that there is an account.
    assert len(get_kinds(UNICODE)) == 1
    call(client, "request-password-reset", EmailAddress=typed)
    assert reset(client, typed, read_code(UNICODE)).status_code == 200
    bob = {"Token": issue_token(UserFactory()), "Password": PASSWORD}
    call(client, "change-email", NewEmailAddress=typed, **bob)
    assert not ada.email_codes.exists()

    client.force_login(AdministratorFactory())
    chosen = {"usable_password": "false", "first_name": "A", "last_name": "B", "email": typed}
    page = client.post(reverse("admin:accounts_user_add"), chosen)
    # The widget for addresses refuses invisible characters.
    assert re.search("already exists|valid email", str(page.context["adminform"].form.errors))
    row = {"account": typed, "description": "Hours", "hours": "3", "kind": "one-off"}
    assert count_rows("allowances", build_csv(row)) == {"new": 1}
    assert User.objects.get(email=typed) == User.objects.get_by_natural_key(typed) == ada


@pytest.mark.parametrize(
    ("address", "stored"),
    [
        *(
            (ASCII, UNICODE),
            ("Ada@XN--BCHER-KVA.Example", UNICODE),
            (f" {UNICODE.upper()} ", UNICODE),
        ),
        *(("ada@ｂücher。example", UNICODE), ("ada\u200b@bu\u0308cher\u2060.example", UNICODE)),
        # As Django sends e-mails, ß is ss; the other domain keeps its encoded form.
        *(("a@straße.example", "a@strasse.example"), ("a@xn--strae-oqa.x", "a@xn--strae-oqa.x")),
        *(("a@xn--r8jz45g.xn--zckzah", "a@例え.テスト"), ("A@Example.COM", "a@example.com")),
        *(("a@b..example", "a@b..example"), ("a@" + "ü" * 80, "a@" + "ü" * 80), ("", "")),
        *(("no address", "no address"), ("a\udce9@example.com", "a@example.com")),
    ],
)
def test_address_is_stored_in_one_spelling(address, stored):
    assert canonicalize_email(address) == canonicalize_email(stored) == stored


def test_code_is_found_from_any_keyboard(client):
    typed = " ｉ\u0307NDI\u200bRıM "
    draft = make_draft(UserFactory())
    PromoCodeFactory(code="İNDİRİM")
    body = {"Token": issue_token(draft.user), "ReservationId": draft.pk, "PromoCode": typed}

    shown = post(client, "/api/reservation/update-promo-code", body).json()["UpdatedReservation"]

    assert shown["Promotion"] == PromoCode.objects.get(code=typed).code == "INDIRIM"
    assert count_rows("promo-codes", build_csv({"code": typed, "percent": "5"})) == {"changed": 1}
    client.force_login(AdministratorFactory())
    page = client.post(reverse("admin:reservations_promocode_add"), {"code": typed, "percent": "9"})
    assert "already exists" in str(page.context["adminform"].form.errors["code"])
    assert Partner.objects.create(code=typed, name="P").code == "INDIRIM"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        *(("STRASSE", "straße", True), ("CAFÉ", "cafe\u0301", True), ("A-1", "a–1", True)),
        *(("İNDİRİM", "ındırım", True), ("İNDİRİM", "i\u0307ndi\u00adrim", True)),
        *(("INDIRIM", "ＩＮＤＩＲＩＭ\t", True), ("INDIRIM", "I\u0307NDI\u200bRIM", True)),
        *(("ΆΝΟΙΞΗΣ", "άνοιξης", True), ("CAFÉ", "CAFE", False), ("TEN", "T E N", False)),
    ],
)
def test_codes_are_the_same_but_for_case_width_and_punctuation(one, other, is_same):
    assert (normalize_code(one) == normalize_code(other)) is is_same
