"""Recovery codes: each completes a sign-in to the back office once, without the phone (B18)."""

from collections import Counter

import pytest
import time_machine
from django.test import Client
from django_otp.plugins.otp_static.models import StaticToken

from accounts import second_factor
from accounts.limits import SignInAttempts
from accounts.models import AttemptWindow
from roombook.backoffice.models import AuditEntry
from tests.backoffice.second_factor_helpers import (
    INDEX,
    RECOVERY_CODES,
    START,
    TURN_OFF,
    VERIFY,
    get_code,
    read_recovery_codes,
    sign_in,
    turn_on,
)
from tests.concurrency import run_concurrently
from tests.factories_people import StaffFactory


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(START, tick=False) as traveller:
        yield traveller


@pytest.fixture
def grace():
    return StaffFactory(email="grace@example.com")


@pytest.mark.django_db
def test_each_recovery_code_completes_one_sign_in(client, grace, clock):
    codes = turn_on(client, grace, clock)
    entered = [codes[0], codes[1].lower().replace("-", " ")]

    for code in entered:
        client = Client()
        sign_in(client, grace)
        assert client.get(INDEX).status_code == 302
        assert client.post(VERIFY, {"code": code}).url == INDEX
        assert client.get(INDEX).status_code == 200

    assert len(set(codes)) == 10
    assert second_factor.count_recovery_codes(grace) == 8
    entry = AuditEntry.objects.order_by("pk").last()
    assert (entry.note, entry.actor) == ("A recovery code was used. Unused codes: 8.", grace)
    assert "Unused recovery codes: 8." in client.get(TURN_OFF).content.decode()
    client = Client()
    sign_in(client, grace)
    used = client.post(VERIFY, {"code": codes[0]})
    assert "This code is not right." in used.content.decode()
    assert client.get(INDEX).status_code == 302


@pytest.mark.django_db
def test_recovery_codes_are_not_stored(client, grace, clock):
    codes = turn_on(client, grace, clock)

    stored = set(StaticToken.objects.values_list("token", flat=True))
    assert len(stored) == 10
    assert stored.isdisjoint({code.replace("-", "") for code in codes})
    # What the database has is no code.
    client = Client()
    sign_in(client, grace)
    assert client.post(VERIFY, {"code": stored.pop()}).status_code == 200
    assert AttemptWindow.objects.get(scope="sign-in").count == 1


@pytest.mark.django_db
def test_new_recovery_codes_need_a_code_and_end_the_old_ones(client, grace, clock):
    old = turn_on(client, grace, clock)

    refused = client.post(RECOVERY_CODES, {"code": "000000"}).content.decode()
    assert read_recovery_codes(refused) == []
    clock.shift(60)
    new = read_recovery_codes(
        client.post(RECOVERY_CODES, {"code": get_code(grace)}).content.decode()
    )

    assert (len(new), set(new) & set(old)) == (10, set())
    client = Client()
    sign_in(client, grace)
    assert client.get(RECOVERY_CODES).url == VERIFY, "the password alone is not enough"
    assert client.post(VERIFY, {"code": old[0]}).status_code == 200
    clock.shift(60)
    assert client.post(VERIFY, {"code": new[0]}).status_code == 302


@pytest.mark.django_db
def test_turning_the_second_factor_off_deletes_the_recovery_codes(client, grace, clock):
    codes = turn_on(client, grace, clock)

    assert client.post(TURN_OFF, {"code": codes[0]}).url == INDEX

    assert not StaticToken.objects.exists()
    grace.refresh_from_db()
    assert grace.second_factor_since is None


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_recovery_code_sent_in_parallel_is_accepted_once(grace):
    [code, *_] = second_factor.replace_recovery_codes(grace)

    def verify():
        attempts = SignInAttempts(grace.email, "203.0.113.9")
        return second_factor.verify_code(grace, code, attempts, new_device=None, now=START)

    assert Counter(run_concurrently([verify] * 4)) == {True: 1, False: 3}
