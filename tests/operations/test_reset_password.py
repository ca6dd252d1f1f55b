"""POST /api/account/request-password-reset and /api/account/reset-password (B22.2, B22.4)"""

import re
from datetime import timedelta

import pytest
from django.contrib.auth import hashers
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts import email_codes
from accounts.models import EmailCode, KnownNetwork, OutboxMessage, User
from accounts.models.tokens import MAX_TRIES_ELSEWHERE
from accounts.profile import create_customer
from roombook.backoffice.models import AuditEntry
from tests.accounts.outbox_helpers import send
from tests.concurrency import run_concurrently
from tests.factories_people import (
    PASSWORD,
    AdministratorFactory,
    StaffFactory,
    UserFactory,
    issue_token,
)
from tests.http import post
from tests.operations.account_codes import (
    GRACE,
    NEW_PASSWORD,
    WRONG_CODE,
    call,
    get_details,
    get_kinds,
    read_code,
    reset,
    sign_in,
)
from tests.world import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]


@pytest.fixture(autouse=True)
def _open_sign_up(settings):
    settings.SIGN_UP = "open"


def request_reset(client, email, **fields):
    return call(client, "request-password-reset", EmailAddress=email, **fields)


def test_reset_sets_password_and_signs_out_all_devices(client, ada):
    tokens = [issue_token(ada), issue_token(ada)]
    KnownNetwork.record(ada.pk, "a thief's", now=NOW)

    response = request_reset(client, " ADA@Example.com ")
    assert (response.status_code, response.json()) == (200, {"Success": True})
    code = read_code(ada.email)
    response = reset(client, "Ada@example.COM", code.replace(" ", "-"))

    assert (response.status_code, response.json()) == (200, {"Success": True})
    for token in tokens:
        assert post(client, "/api/account/update-info", {"Token": token}).status_code == 401
    assert sign_in(client, ada.email, PASSWORD).status_code == 401
    assert sign_in(client, ada.email, NEW_PASSWORD).status_code == 200
    assert get_kinds(ada.email) == ["password reset", "password changed"]
    assert not ada.known_networks.filter(digest="a thief's").exists()
    assert AuditEntry.objects.filter(actor=ada, note__contains="reset with a code").exists()
    assert get_details(reset(client, ada.email, code)) == WRONG_CODE


@pytest.fixture
def code(client, ada):
    """A code that was sent to Ada."""
    request_reset(client, ada.email)
    return read_code(ada.email)


def test_code_is_for_its_purpose_and_address_only_and_not_used_up_by_a_weak_password(
    client, ada, code
):
    for response in (
        call(client, "confirm-email", EmailAddress=ada.email, Code=code),
        reset(client, UserFactory(email="bob@example.com").email, code),
        # Without the right code, the names of the account are not revealed.
        reset(client, ada.email, "1", "lovelace1"),
    ):
        assert get_details(response) == WRONG_CODE
    too_similar = "NewPassword: The password is too similar to the last name."
    for _ in range(6):
        assert get_details(reset(client, ada.email, code, "lovelace1")) == too_similar
    differing = reset(client, ada.email, code, ConfirmNewPassword="another-one-5")
    assert get_details(differing) == "ConfirmNewPassword: The two new passwords differ."
    assert reset(client, ada.email, code).status_code == 200


HOME, STRANGER = "198.51.100.1", "203.0.113.9"


@pytest.mark.parametrize(
    ("requests", "works"),
    [
        ([HOME] * 3, [True, True, True]),
        ([HOME] * 5, [False, False, True, True, True]),
        # A stranger ends own codes, and not that of the owner.
        ([HOME, *[STRANGER] * 4], [True, False, False, True, True]),
        ([*[STRANGER] * 3, HOME, STRANGER], [False, False, True, True, True]),
        ([HOME, STRANGER, "192.0.2.7", "192.0.2.8"], [False, True, True, True]),
    ],
)
def test_three_codes_are_open_for_one_address(client, ada, requests, works):
    codes = []
    for address in requests:
        assert request_reset(client, ada.email, address=address).status_code == 200
        codes.append(read_code(ada.email))

    rows = EmailCode.objects.open(NOW)

    assert [any(row.has_code(code) for row in rows) for code in codes] == works
    assert reset(client, ada.email, codes[-1], address=HOME).status_code == 200
    assert not rows.all().exists()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_parallel_requests_leave_three_codes_open():
    ada = UserFactory()

    run_concurrently([lambda: request_reset(Client(), ada.email) for _ in range(5)])

    assert EmailCode.objects.open(NOW).count() == 3


def set_password(ada):
    ada.set_password("chosen-by-staff-9")
    ada.save()


@pytest.mark.parametrize(
    "change",
    [
        set_password,
        lambda ada: User.objects.update(email="augusta@example.com"),
        lambda ada: User.objects.update(is_staff=True),
    ],
    ids=["another password", "another address", "staff"],
)
def test_code_ends_with_what_allowed_it(client, ada, code, change):
    change(ada)

    assert get_details(reset(client, ada.email, code)) == WRONG_CODE


def test_customer_whom_the_desk_added_takes_the_account_over_by_the_mailbox(client):
    email = create_customer(email="walk@example.com", first_name="Walk", last_name="In").email
    request_reset(client, email)

    assert reset(client, email, read_code(email)).status_code == 200


def test_second_factor_of_staff_survives_a_reset_and_sessions_end(client):
    staff = AdministratorFactory(second_factor_since=NOW, second_factor_changed_at=NOW)
    TOTPDevice.objects.create(user=staff, confirmed=True)
    KnownNetwork.record(staff.pk, "proved by a code", now=NOW)
    client.force_login(staff)
    request_reset(Client(), staff.email)

    assert reset(Client(), staff.email, read_code(staff.email)).status_code == 200

    staff.refresh_from_db()
    assert staff.second_factor_since == NOW
    assert TOTPDevice.objects.filter(user=staff).exists()
    assert [each.digest for each in staff.known_networks.all()] == ["proved by a code"]
    response = client.get(reverse("admin:index"))
    assert response.status_code == 302
    assert response.url.startswith(reverse("admin:login"))


def test_staff_without_second_factor_and_disabled_accounts_get_no_code(client):
    staff, disabled = StaffFactory(), UserFactory(is_active=False)
    for user in (staff, disabled):
        request_reset(client, user.email)
        call(client, "create", **{**GRACE, "EmailAddress": user.email})
        assert get_details(reset(client, user.email, "1234 5678")) == WRONG_CODE

    assert not EmailCode.objects.exclude(digest="").exists()
    assert get_kinds(staff.email) == ["password reset"] * 2
    # Only who tries to sign up learns that the account is disabled, by e-mail.
    assert get_kinds(disabled.email) == ["password reset"]
    texts = "".join(OutboxMessage.objects.values_list("text", flat=True))
    assert "Ask an administrator for a new one." in texts
    assert "The account is disabled." in texts
    assert not re.search(r"\d{4} \d{4}", OutboxMessage.objects.filter(to=staff.email)[0].text)


def test_code_is_sent_to_the_stored_address_and_nothing_to_an_unknown_one(client):
    """The Kelvin sign in lower case is an ASCII k: the code must not go to another domain."""
    kim = UserFactory(email="kim@example.com")
    for typed in ("KIM@EXAMPLE.COM", "\u212aim@example.com", "stranger@example.com"):
        assert request_reset(client, typed).json() == {"Success": True}
    send(NOW + timedelta(seconds=1))

    assert [message.to for message in mail.outbox] == [[kim.email]] * 2
    assert not OutboxMessage.objects.exclude(to=kim.email).exists()


# --- Nobody learns who has an account -------------------------------------------------------------


@pytest.fixture
def measure(client, monkeypatch):
    """Return statements, hashed passwords and the response of a request."""
    hashed = []
    for module in (email_codes, hashers):
        monkeypatch.setattr(
            module, "make_password", lambda text: hashed.append(text) or f"md5$x${text}"
        )

    def measure(operation, **fields):
        hashed.clear()
        with CaptureQueriesContext(connection) as captured:
            response = call(client, operation, **fields)
        statements = [
            (each["sql"].split()[0], *re.findall(r'(?:FROM|INTO|UPDATE) "?(\w+)', each["sql"]))
            for each in captured
        ]
        return statements, len(hashed), response.status_code, response.content

    return measure


@pytest.mark.parametrize(
    "operation", ["create", "request-password-reset", "reset-password", "confirm-email"]
)
def test_known_and_unknown_addresses_cause_the_same_work(measure, operation):
    fields = {
        "create": {name: text for name, text in GRACE.items() if name != "EmailAddress"},
        "request-password-reset": {},
        "confirm-email": {"Code": "1234 5678"},
        "reset-password": {
            "Code": "1234 5678",
            "NewPassword": NEW_PASSWORD,
            "ConfirmNewPassword": NEW_PASSWORD,
        },
    }[operation]
    addresses = [
        "unknown@example.com",
        UserFactory().email,
        UserFactory(is_active=False).email,
        StaffFactory().email,
        create_customer(email="desk@example.com", first_name="De", last_name="Sk").email,
    ]
    # A code was requested for each.
    for number, address in enumerate(addresses):
        measure("request-password-reset", EmailAddress=address, address=f"198.51.100.{number}")

    unknown, *others = [
        measure(operation, EmailAddress=address, **fields, address=f"192.0.2.{number}")
        for number, address in enumerate(addresses)
    ]

    assert others == [unknown] * len(others)
    assert unknown[1] == (operation == "create")
    assert len(unknown[0]) >= 5


def test_texts_of_emails_with_codes_are_not_shown_to_staff(client, code):
    client.force_login(AdministratorFactory())
    message = OutboxMessage.objects.get()
    assert message.is_secret

    page = client.get(reverse("admin:accounts_outboxmessage_change", args=[message.pk]))

    assert page.status_code == 200
    assert code not in page.content.decode()


# --- Concurrency ----------------------------------------------------------------------------------


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
def test_parallel_wrong_codes_get_five_tries(client, monkeypatch, is_guarded):
    """The tries of a code are counted exactly, from however many networks."""
    ada = UserFactory(email="ada@example.com")
    request_reset(client, ada.email)
    EmailCode.objects.update(tries_elsewhere=MAX_TRIES_ELSEWHERE - 5)
    compared = []
    has_code = EmailCode.has_code
    monkeypatch.setattr(
        EmailCode, "has_code", lambda self, code: compared.append(code) or has_code(self, code)
    )
    if not is_guarded:
        queryset = type(EmailCode.objects.all())
        monkeypatch.setattr(queryset, "select_for_update", lambda self: self)
        monkeypatch.setattr(email_codes, "in_transaction", None)

    def guess(number):
        return reset(Client(), ada.email, "0000 0000", address=f"198.51.100.{number}").status_code

    statuses = run_concurrently(lambda number=number: guess(number) for number in range(16))

    assert statuses == [400] * 16
    assert (len(compared) == 5) == is_guarded
