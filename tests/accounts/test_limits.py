"""Rate limits, counted for all workers together."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from accounts import limits
from accounts.limits import FailureLimit, RateLimit
from accounts.models import AttemptWindow
from roombook.errors import TooManyRequests
from tests.concurrency import run_concurrently
from tests.factories_people import UserFactory
from tests.http import post

NOW = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
THREE = RateLimit("test", 3, 15 * MINUTE)
THREE_FAILURES = FailureLimit("failures", 3, 15 * MINUTE)


def get_count():
    return sum(AttemptWindow.objects.values_list("count", flat=True))


@pytest.mark.django_db
def test_attempt_beyond_the_maximum_is_refused_until_the_window_ends():
    for minute in range(3):
        THREE.attempt("ada", now=NOW + minute * MINUTE)

    # Refused attempts do not extend the window.
    for minute in range(3, 15):
        with pytest.raises(TooManyRequests) as refused:
            THREE.attempt("ada", now=NOW + minute * MINUTE)
        assert refused.value.retry_after == (15 - minute) * 60
        with pytest.raises(TooManyRequests):
            THREE.check("ada", now=NOW + minute * MINUTE)
    with pytest.raises(TooManyRequests) as refused:
        THREE.check("ada", now=NOW + 15 * MINUTE - timedelta(milliseconds=1))
    assert refused.value.retry_after == 1
    for _ in range(5):  # A check counts nothing.
        THREE.check("ada", now=NOW + 15 * MINUTE)
    THREE.attempt("ada", now=NOW + 15 * MINUTE)
    assert get_count() == 1


@pytest.mark.django_db
def test_keys_and_scopes_are_counted_separately():
    for _ in range(3):
        THREE.attempt(1, now=NOW)

    THREE.attempt(2, now=NOW)
    RateLimit("other", 1, MINUTE).attempt(1, now=NOW)
    with pytest.raises(TooManyRequests):
        THREE.attempt("1", now=NOW)


@pytest.mark.django_db
def test_only_failures_of_their_kind_count():
    # Also on a machine whose clock is behind.
    for seconds in range(10):
        at = NOW - timedelta(seconds=seconds)
        with THREE_FAILURES.count_failure("ada", KeyError, now=at):
            pass
    with pytest.raises(ValueError), THREE_FAILURES.count_failure("ada", KeyError, now=NOW):
        raise ValueError
    assert get_count() == 0

    for _ in range(3):
        with pytest.raises(KeyError), THREE_FAILURES.count_failure("ada", KeyError, now=NOW):
            raise KeyError
    with (
        pytest.raises(TooManyRequests) as refused,
        THREE_FAILURES.count_failure("ada", KeyError, now=NOW),
    ):
        raise AssertionError
    assert refused.value.retry_after == 15 * 60


@pytest.mark.django_db
def test_attempts_in_progress_count_until_they_are_given_back():
    for _ in range(3):
        THREE_FAILURES.attempt("ada", now=NOW)

    with pytest.raises(TooManyRequests):
        THREE_FAILURES.attempt("ada", now=NOW + MINUTE)
    THREE_FAILURES.give_back("ada")
    THREE_FAILURES.attempt("ada", now=NOW + MINUTE)
    assert get_count() == 3
    for _ in range(4):  # Nothing beyond zero.
        THREE_FAILURES.give_back("ada")
    assert get_count() == 0


@pytest.mark.django_db
def test_late_failure_counts_beyond_the_maximum():
    for _ in range(4):
        THREE_FAILURES.add_failure("ada", now=NOW)

    assert get_count() == 4
    with pytest.raises(TooManyRequests):
        THREE_FAILURES.attempt("ada", now=NOW)


@pytest.mark.django_db
def test_clock_set_back_does_not_extend_the_lockout():
    for _ in range(3):
        THREE.attempt("ada", now=NOW + timedelta(days=300))
    with pytest.raises(TooManyRequests) as refused:
        THREE.attempt("ada", now=NOW)
    assert refused.value.retry_after == 15 * 60


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1::/56"),
        ("2001:db8:1:ff::ffff", "2001:db8:1::/56"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("", ""),
        ("unix:", "unix:"),
    ],
)
def test_ipv6_addresses_of_one_network_share_a_key(address, key):
    assert limits.get_network_key(address) == key


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgres
class TestConcurrentAttempts:
    """Threads with their own connections, like workers."""

    def test_exactly_the_maximum_succeeds(self):
        # Again when the window is over: exactly one request starts the new one.
        for now in (NOW, NOW + 20 * MINUTE):

            def attempt(now=now):
                THREE.attempt("ada", now=now)
                return "counted"

            answers = Counter(run_concurrently([attempt] * 16, losers=(TooManyRequests,)))
            assert answers == {"counted": 3, "TooManyRequests": 13}

    def test_exactly_five_wrong_passwords_get_401(self, client):
        UserFactory(email="ada@example.com")
        body = {"EmailAddress": "ada@example.com", "Password": "wrong"}

        statuses = run_concurrently([lambda: post(client, "/api/sign-in", body).status_code] * 16)

        assert Counter(statuses) == {401: 5, 429: 11}
        assert sorted(AttemptWindow.objects.values_list("scope", "count")) == [
            ("sign-in", 5),
            ("sign-in-account", 5),
            ("sign-in-network", 5),
        ]


@pytest.mark.django_db
def test_clear_failed_sign_ins_removes_all_windows_of_the_email(client):
    user = UserFactory(email="ada@example.com")
    body = {"EmailAddress": "ada@example.com", "Password": "wrong"}
    for _ in range(6):
        post(client, "/api/sign-in", body)

    limits.clear_failed_sign_ins(user.email)

    assert not AttemptWindow.objects.exclude(scope="sign-in-network").exists()
    assert post(client, "/api/sign-in", body).status_code == 401
