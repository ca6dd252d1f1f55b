"""Tokens: which are accepted, and when they expire (B7.3)."""

import time
from datetime import timedelta

import pytest
from django.core.management import call_command

from accounts import limits
from accounts.models import ApiToken, AttemptWindow, KnownNetwork
from accounts.models.tokens import ApiTokenQuerySet, hash_token_secret
from tests.concurrency import run_concurrently
from tests.factories_people import PASSWORD, UserFactory, issue_token
from tests.factories_reservations import NOW
from tests.http import post

pytestmark = pytest.mark.django_db

PATH = "/api/account/update-info"
DAY = timedelta(days=1)


def is_signed_in(client, token):
    return post(client, PATH, {"Token": token}).status_code == 200


def test_token_starts_with_no_formula_character(ada):
    assert all(issue_token(ada)[0].isalnum() for _ in range(100))


def test_token_expires_thirty_days_after_its_last_use_and_after_180_days(client, ada, clock):
    used, unused = issue_token(ada), issue_token(ada)
    clock.move_to(NOW + 30 * DAY - timedelta(seconds=1))
    assert is_signed_in(client, used)
    clock.move_to(NOW + 30 * DAY)
    assert not is_signed_in(client, unused)
    for day in (58, 87, 116, 145, 174):
        clock.move_to(NOW + day * DAY)
        assert is_signed_in(client, used), day

    clock.move_to(NOW + 180 * DAY - timedelta(seconds=1))
    assert is_signed_in(client, used)
    clock.move_to(NOW + 180 * DAY)
    assert not is_signed_in(client, used)


def test_token_use_is_written_at_most_once_an_hour(client, ada, clock, django_assert_num_queries):
    token = issue_token(ada)
    clock.shift(timedelta(minutes=59, seconds=59))
    with django_assert_num_queries(2):  # the token with its account; the saved card
        assert is_signed_in(client, token)

    clock.shift(timedelta(seconds=1))
    with django_assert_num_queries(3):
        assert is_signed_in(client, token)
    with django_assert_num_queries(2):
        assert is_signed_in(client, token)
    assert ApiToken.objects.get().expires_at == NOW + 30 * DAY + timedelta(hours=1)


def test_sign_in_beyond_tokens_max_ends_the_token_unused_for_longest(client, ada, clock, settings):
    settings.TOKENS_MAX = 2
    old = issue_token(ada)
    for day in range(0, 176, 25):
        clock.move_to(NOW + day * DAY)
        assert is_signed_in(client, old)
    clock.move_to(NOW + 165 * DAY)
    # Expired ones do not count, nor do those of others.
    issue_token(ada, age=31 * DAY)
    unused, of_others = issue_token(ada), issue_token(UserFactory())
    clock.move_to(NOW + 176 * DAY)
    assert is_signed_in(client, old)

    issue_token(ada)

    # The one that is used expires first.
    assert is_signed_in(client, old)
    assert not is_signed_in(client, unused)
    assert is_signed_in(client, of_others)


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgres
def test_concurrent_sign_ins_leave_exactly_tokens_max(client, monkeypatch, settings):
    settings.TOKENS_MAX = 2
    ada = UserFactory()
    credentials = {"EmailAddress": ada.email, "Password": PASSWORD}
    unexpired = ApiTokenQuerySet.unexpired

    def select_slowly(rows, now):
        # Without the lock, every request would insert before any of them counts.
        time.sleep(0.4)
        return unexpired(rows, now)

    monkeypatch.setattr(ApiTokenQuerySet, "unexpired", select_slowly)
    statuses = run_concurrently([lambda: post(client, "/api/sign-in", credentials).status_code] * 5)

    assert statuses == [200] * 5
    assert ada.tokens.count() == 2


def test_erase_expired_deletes_expired_tokens_windows_and_networks(ada, clock):
    alive, _ = issue_token(ada), issue_token(ada, age=31 * DAY)
    for key, age in (("old", timedelta(hours=1)), ("new", timedelta(minutes=59))):
        limits.PROMO_CODE.attempt(key, now=NOW - age)
    for digest, days in (("old", 90), ("new", 89)):
        KnownNetwork.record(ada.pk, digest, now=NOW - days * DAY)

    call_command("erase_expired")

    assert ApiToken.objects.get().digest == hash_token_secret(alive)
    assert AttemptWindow.objects.get().key == ada.known_networks.get().digest == "new"
