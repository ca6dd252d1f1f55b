"""Rate limits, counted for all workers together."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from accounts import limits
from accounts.limits import FailureLimit, RateLimit, SignInAttempts
from accounts.models import AttemptWindow
from roombook.errors import TooManyRequests
from tests.concurrency import run_concurrently
from tests.factories_people import UserFactory
from tests.http import post

NOW = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
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


# --- Sign-ins and codes by e-mail (B7.2, B22.2) ---------------------------------------------------


class Attempts:
    """Sign-ins that fail, or requests for codes."""

    def __init__(self, kind):
        self.kind = kind

    def make(self, email, network, at=NOW):
        getattr(SignInAttempts(email, network), self.kind)(at)

    def is_refused(self, email, network, at=NOW):
        attempts = SignInAttempts(email, network)
        try:
            # A request for a code is counted at once, and a sign-in only when it has failed.
            attempts.check(at) if self.kind == "count" else attempts.count_code(at)
        except TooManyRequests:
            return True
        return False

    def fill_window(self, *others, last):
        """Make attempts of which the last one is allowed, and the next one is not."""
        for email, network in others:
            self.make(email, network)
        assert not self.is_refused(*last)
        if self.kind == "count":
            self.make(*last)


# The maximum for an address and a network, for a network, for an address, and the minutes.
LIMITS = {"count": (5, 100, 50, 15), "count_code": (5, 30, 10, 60)}
ADA, BOB = "ada@example.com", "bob@example.com"
HOME, AWAY, NEW = "2001:db8:aa:100::1", "203.0.113.7", "192.0.2.1"


@pytest.fixture(params=LIMITS)
def attempts(request, db):
    return Attempts(request.param)


def test_sign_ins_and_codes_are_limited_for_a_network_alone_and_with_an_address(attempts):
    of_both, of_network, _, minutes = LIMITS[attempts.kind]
    attempts.fill_window(*[(ADA, AWAY)] * (of_both - 1), last=(ADA, AWAY))

    end = NOW + minutes * MINUTE
    for at in (NOW, end - SECOND):
        assert attempts.is_refused("ADA@example.com", AWAY, at)
    assert not attempts.is_refused(ADA, HOME)
    assert not attempts.is_refused(ADA, AWAY, end)
    strangers = [(f"{number}@example.com", NEW) for number in range(of_network)]
    attempts.fill_window(*strangers[1:], last=strangers[0])
    assert attempts.is_refused(BOB, NEW, end - SECOND)
    assert not attempts.is_refused(BOB, NEW, end)
    assert not attempts.is_refused(BOB, AWAY)


@pytest.mark.parametrize("has_account", [True, False])
def test_attempts_from_all_networks_are_limited_but_for_those_known_for_90_days(
    attempts, has_account
):
    _, _, of_account, minutes = LIMITS[attempts.kind]
    email = ADA if has_account else "nobody@example.com"
    ada, bob = UserFactory(email=ADA), UserFactory(email=BOB)
    since = NOW - timedelta(days=90) + SECOND
    SignInAttempts(ADA, HOME).record_right_password(ada, since)
    SignInAttempts(BOB, AWAY).record_right_password(bob, NOW)
    networks = [(email, f"198.51.100.{number}") for number in range(of_account)]
    attempts.fill_window(*networks[1:], last=networks[0])

    # Another address of the same /56 is known; a network of another account is not.
    assert attempts.is_refused(email, "2001:db8:aa:1ff::2") is not has_account
    for network in ("2001:db8:aa:200::1", AWAY):
        assert attempts.is_refused(email, network)
    assert not attempts.is_refused(BOB, AWAY)
    assert attempts.is_refused(email, HOME, NOW + SECOND)
    assert attempts.is_refused(email, NEW, NOW + minutes * MINUTE - SECOND)
    assert not attempts.is_refused(email, NEW, NOW + minutes * MINUTE)


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
