"""Two-step sign-in of staff: setting it up, signing in, turning it off, recovery codes (B18)."""

from collections import Counter
from urllib.parse import quote, urlencode

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.core.signing import Signer
from django.test import Client
from django.urls import reverse
from django_otp.plugins.otp_static.models import StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts import second_factor
from accounts.limits import SignInAttempts
from accounts.models import AttemptWindow, KnownNetwork, OutboxMessage, User
from roombook.backoffice.models import AuditEntry
from tests.backoffice.second_factor_helpers import (
    INDEX,
    LOGIN,
    RECOVERY_CODES,
    SET_UP,
    START,
    TURN_OFF,
    VERIFY,
    compute_code,
    get_code,
    get_new_code,
    read_key,
    read_recovery_codes,
    sign_in,
    turn_on,
)
from tests.concurrency import run_concurrently
from tests.factories_people import PASSWORD, AdministratorFactory, StaffFactory, UserFactory
from tests.http import post

pytestmark = pytest.mark.django_db

LIST = reverse("admin:accounts_user_changelist")
STAFF = reverse("admin:accounts_staffmember_changelist")


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(START, tick=False) as traveller:
        yield traveller


@pytest.fixture
def grace():
    return StaffFactory(email="grace@example.com")


@pytest.fixture
def with_factor(grace):
    device = TOTPDevice(user=grace)
    second_factor.turn_on(grace, device, now=START)
    return User.objects.get(pk=grace.pk)


def test_set_up_with_right_code_turns_second_factor_on(client, grace, clock):
    for is_confirmed in (False, False, True):
        TOTPDevice.objects.create(user=grace, confirmed=is_confirmed)
    sign_in(client, grace)
    other = client.__class__()
    sign_in(other, grace)
    code = {"code": get_new_code(client)}

    client.post(SET_UP, code)

    assert client.get(INDEX).status_code == 200, "this session goes on"
    assert other.get(INDEX).status_code == 302, "other sessions end"
    assert TOTPDevice.objects.get().confirmed, "the only device"
    grace.refresh_from_db()
    assert grace.second_factor_since == START
    assert OutboxMessage.objects.get().subject == "Your two-step sign-in was turned on"
    assert "second factor was turned on" in str(vars(AuditEntry.objects.latest("pk")))
    client.logout()
    sign_in(client, grace)
    assert "This code is not right." in client.post(VERIFY, code).text, "it was used"


def test_set_up_page_shows_a_new_key_each_time_and_accepts_only_the_last(client, grace, clock):
    sign_in(client, grace)
    old_key = read_key(client.get(SET_UP).text)
    new_key = read_key(client.get(SET_UP).text)

    assert old_key != new_key
    assert not TOTPDevice.objects.exists(), "no device is saved before a code confirmed it"
    refused = client.post(SET_UP, {"code": compute_code(old_key)}).text
    assert "This code is not right." in refused
    assert read_key(refused) == new_key, "a wrong code does not change the key"
    clock.shift(30)
    client.post(SET_UP, {"code": compute_code(new_key)})
    assert User.objects.get(pk=grace.pk).second_factor_since


def test_password_alone_opens_no_page(client, with_factor):
    response = sign_in(client, with_factor)

    assert response.status_code == 302
    for name in ("index", "accounts_user_changelist", "password_change", "autocomplete"):
        refused = client.get(reverse(f"admin:{name}"))
        assert refused.status_code == 302, name
        assert refused.url.startswith(LOGIN), name
    response = client.get(f"{LOGIN}?next={LIST}")
    assert response.url == f"{VERIFY}?next=%2Fadmin%2Faccounts%2Fuser%2F"
    for page in (SET_UP, TURN_OFF):
        assert client.get(page, follow=True).redirect_chain[-1][0] == VERIFY
    assert client.post(TURN_OFF, {"code": "x"}).url == VERIFY
    with_factor.refresh_from_db()
    assert with_factor.second_factor_since


@pytest.mark.parametrize(("next_url", "target"), [(LIST, LIST), ("https://evil.example/", INDEX)])
def test_right_code_completes_the_sign_in_once(client, with_factor, next_url, target):
    sign_in(client, with_factor)
    code = {"code": f" {get_code(with_factor)} "}

    assert client.post(f"{VERIFY}?next={next_url}", code).url == target

    assert client.get(INDEX).status_code == 200
    client.logout()
    sign_in(client, with_factor)
    assert "This code is not right." in client.post(VERIFY, code).text


def test_wrong_codes_count_as_failed_sign_ins(client, with_factor, clock):
    sign_in(client, with_factor)
    for _ in range(5):
        clock.shift(60)
        client.post(VERIFY, {"code": "000000"})
    clock.shift(60)

    response = client.post(VERIFY, {"code": get_code(with_factor)})

    assert "Too many attempts" in response.text
    credentials = {"EmailAddress": with_factor.email, "Password": PASSWORD}
    assert post(client, "/api/sign-in", credentials).status_code == 429


def test_wrong_codes_of_an_attacker_lock_nobody_out_of_a_known_network(client, grace, clock):
    [code, recovery_code, *_] = turn_on(client, grace, clock)
    client.logout()
    for number in range(12):
        # The throttle of the library doubles with each wrong code: half an hour at last.
        clock.shift(2**number)
        attacker = client.__class__(REMOTE_ADDR=f"198.51.100.{number}")
        sign_in(attacker, grace)
        attacker.post(VERIFY, {"code": "AAAA-AAAA-AAAA-AAAA" if number % 2 else "000000"})

    def enter(client, code):
        sign_in(client, grace)
        return client.post(VERIFY, {"code": code}).status_code

    assert enter(client.__class__(REMOTE_ADDR="198.51.100.99"), code) == 200
    for right in (get_code(grace), recovery_code):
        assert enter(client.__class__(), right) == 302


def test_network_is_known_only_after_the_code(client, with_factor, clock):
    # Neither of a session that has passed another factor.
    turn_on(client, StaffFactory(), clock)
    KnownNetwork.objects.all().delete()
    sign_in(client, with_factor)
    credentials = {"EmailAddress": with_factor.email, "Password": PASSWORD}
    assert post(client, "/api/sign-in", credentials).status_code == 200
    assert not KnownNetwork.objects.exists()

    client.post(VERIFY, {"code": get_code(with_factor)})

    assert KnownNetwork.objects.get().user == with_factor


def test_turning_on_forgets_networks_that_only_the_password_made_known(client, grace, clock):
    sign_in(client.__class__(REMOTE_ADDR="203.0.113.7"), grace)
    assert SignInAttempts(grace.email, "203.0.113.7").is_from_known_network(START)

    turn_on(client, grace, clock)

    assert not SignInAttempts(grace.email, "203.0.113.7").is_from_known_network(START)
    assert SignInAttempts(grace.email, "127.0.0.1").is_from_known_network(START)


def test_turn_off_needs_a_code_and_deletes_the_recovery_codes(client, with_factor, clock):
    second_factor.replace_recovery_codes(with_factor)
    other = StaffFactory()
    second_factor.turn_on(other, TOTPDevice(user=other), now=START)
    assert second_factor.count_recovery_codes(with_factor) == second_factor.RECOVERY_CODES
    sign_in(client, with_factor)
    client.post(VERIFY, {"code": get_code(with_factor)})
    clock.shift(30)

    assert "not right" in client.post(TURN_OFF, {"code": "000000"}).text
    clock.shift(30)
    response = client.post(TURN_OFF, {"code": get_code(with_factor)})

    assert response.url == INDEX
    assert client.get(INDEX).status_code == 200
    with_factor.refresh_from_db()
    assert with_factor.second_factor_since is None
    # Those of others stay.
    assert TOTPDevice.objects.get().user == other
    tokens = StaticToken.objects.all()
    assert {token.device.user for token in tokens} == {other}
    assert len(tokens) == second_factor.RECOVERY_CODES
    assert OutboxMessage.objects.order_by("pk").last().subject.endswith("was turned off")


def test_required_second_factor_opens_only_the_set_up_page(client, grace, clock, settings):
    settings.SECOND_FACTOR_REQUIRED = True
    sign_in(client, grace)

    assert client.get(LIST, follow=True).redirect_chain[-1][0] == SET_UP
    client.post(SET_UP, {"code": get_new_code(client)})
    assert client.get(INDEX).status_code == 200
    clock.shift(30)
    client.post(TURN_OFF, {"code": get_code(grace)})
    assert client.get(INDEX, follow=True).redirect_chain[-1][0] == SET_UP


def test_administrator_or_command_resets_the_second_factor_of_a_member_of_staff(
    client, with_factor, clock, capsys
):
    root = AdministratorFactory()
    client.force_login(root)

    client.post(STAFF, {"action": "reset_second_factor", "_selected_action": [with_factor.pk]})

    with_factor.refresh_from_db()
    assert with_factor.second_factor_since is None
    assert AuditEntry.objects.get(note="The second factor was turned off.").actor == root
    assert sign_in(client, with_factor).status_code == 302
    assert client.get(INDEX).status_code == 200
    second_factor.turn_on(with_factor, TOTPDevice(user=with_factor), now=START)
    for name in ("GRACE", "grace"):
        call_command("reset_second_factor", f"{name}@example.com")
    assert User.objects.get(pk=with_factor.pk).second_factor_since is None
    assert capsys.readouterr().out.splitlines() == [
        "Two-step sign-in is off. The owner gets an e-mail.",
        "Two-step sign-in was not on.",
    ]
    with pytest.raises(CommandError):
        call_command("reset_second_factor", "nobody@example.com")


def test_changes_of_the_second_factor_do_not_revive_old_sessions(client, grace, clock):
    """Neither turning it off after it was turned on, nor turning it on again."""
    sign_in(client, grace)
    other, third = client.__class__(), client.__class__()
    turn_on(other, grace, clock)
    other.post(TURN_OFF, {"code": get_code(grace)})
    assert [client.get(INDEX).status_code, other.get(INDEX).status_code] == [302, 200]

    clock.shift(60)
    turn_on(third, grace, clock)

    sessions = (client, other, third)
    assert [each.get(INDEX).status_code for each in sessions] == [302, 302, 200]


def test_customer_and_nobody_are_sent_to_the_sign_in_page(client):
    customer = client.__class__()
    customer.force_login(UserFactory())
    for page in (VERIFY, SET_UP, TURN_OFF):
        assert client.get(page).url.startswith(LOGIN), page
        assert customer.get(page).url.startswith(LOGIN), page
    assert not TOTPDevice.objects.exists()


def test_each_recovery_code_completes_one_sign_in(client, grace, clock):
    codes = turn_on(client, grace, clock)
    for code in (codes[0], codes[1].lower().replace("-", " ")):
        client = Client()
        sign_in(client, grace)
        assert client.post(VERIFY, {"code": code}).url == INDEX
        assert client.get(INDEX).status_code == 200

    assert second_factor.count_recovery_codes(grace) == 8
    assert AuditEntry.objects.latest("pk").note == "A recovery code was used. Unused codes: 8."
    client = Client()
    sign_in(client, grace)
    assert "This code is not right." in client.post(VERIFY, {"code": codes[0]}).text
    assert client.get(INDEX).status_code == 302


def test_recovery_codes_are_not_stored(client, grace, clock):
    codes = turn_on(client, grace, clock)

    stored = set(StaticToken.objects.values_list("token", flat=True))
    assert stored.isdisjoint({code.replace("-", "") for code in codes})
    # What the database has is no code.
    client = Client()
    sign_in(client, grace)
    assert client.post(VERIFY, {"code": stored.pop()}).status_code == 200
    assert AttemptWindow.objects.get(scope="sign-in").count == 1


def test_new_recovery_codes_need_a_code_and_end_the_old_ones(client, grace, clock):
    old = turn_on(client, grace, clock)

    refused = client.post(RECOVERY_CODES, {"code": "000000"}).text
    assert read_recovery_codes(refused) == []
    clock.shift(60)
    new = read_recovery_codes(client.post(RECOVERY_CODES, {"code": get_code(grace)}).text)

    assert (len(new), set(new) & set(old)) == (10, set())
    client = Client()
    sign_in(client, grace)
    assert client.get(RECOVERY_CODES).url == VERIFY, "the password alone is not enough"
    assert client.post(VERIFY, {"code": old[0]}).status_code == 200
    clock.shift(60)
    assert client.post(VERIFY, {"code": new[0]}).status_code == 302


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_recovery_code_sent_in_parallel_is_accepted_once(grace):
    [code, *_] = second_factor.replace_recovery_codes(grace)

    def verify():
        attempts = SignInAttempts(grace.email, "203.0.113.9")
        return second_factor.verify_code(grace, code, attempts, new_device=None, now=START)

    assert Counter(run_concurrently([verify] * 4)) == {True: 1, False: 3}


def test_form_of_a_lapsed_session_is_kept_until_the_code_is_entered(client, with_factor):
    url = reverse("admin:accounts_user_changelist")
    sent = {"q": ["a", "b"], "password1": "secret", "csrfmiddlewaretoken": "x"}
    author = Signer(salt="last_staff").sign(str(with_factor.pk))
    client.cookies["last_staff"] = author
    page = client.post(url, sent)
    kept = {"kept_form": urlencode({"q": ["a", "b"], "last_staff": author}, doseq=True)}
    assert page.context["kept_form"] == kept["kept_form"]
    assert page.context["app_path"] == f"{LOGIN}?next={quote(url, safe='')}"

    right = {"username": "grace@example.com", "password": PASSWORD, **kept}
    page = client.post(page.context["app_path"], right)
    assert page.context["fields"] == [*kept.items()]
    page = client.post(page.context["target"], kept)
    assert page.context["kept_form"] == kept["kept_form"]
    code = {"code": get_code(with_factor)}
    page = client.post(page.wsgi_request.get_full_path(), code | kept)
    assert (page.context["target"], page.context["fields"]) == (url, [("q", "a"), ("q", "b")])
