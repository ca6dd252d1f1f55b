"""Rate limits, counted in the database for all workers together.

A window opens with the first counted attempt and lasts for the limit's period. Refused attempts are
not counted, so they do not extend the window. There are two ways to use a limit:

* Call `attempt` before and `forgive` after success if the attempt itself must be limited, such as
  sending a card to the gateway.
* Call `check` before and `attempt` after a failure if concurrent successes must not refuse each
  other, such as at sign-in. `attempt` raises TooManyRequests if concurrent requests have filled the
  window: the response is then the same as for a correct password that came too late.
"""

import ipaddress
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Case, F, Q, QuerySet, When
from django.utils.crypto import salted_hmac

from accounts.models import AttemptWindow, KnownNetwork, User, canonicalize_email
from roombook.db.compiled_queries import compiled_query, text_param
from roombook.errors import TooManyRequests


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Allows at most `maximum` counted attempts per key within `period`."""

    scope: str
    maximum: int
    period: timedelta

    def attempt(self, key: object, *, now: datetime) -> None:
        """Count an attempt, or raise TooManyRequests. Exact even with concurrent workers."""
        # Each step is one atomic statement. The loop repeats if another request was faster.
        while not self._increment(key, now):
            window = self._get_window(key)
            if window is None:
                if self._open_window(key, now):
                    return
            elif not self._is_open(window, now):
                raise self._build_error(window, now)

    def _increment(self, key: object, now: datetime) -> bool:
        """Count one more in the current window, or start a new window if it is over."""
        is_over = Q(since__lte=now - self.period)
        rows = AttemptWindow.objects.filter(
            is_over | Q(count__lt=self.maximum), scope=self.scope, key=str(key)
        )
        updated = rows.update(
            count=Case(When(is_over, then=1), default=F("count") + 1),
            since=Case(When(is_over, then=now), default=F("since")),
        )
        return bool(updated)

    def _open_window(self, key: object, now: datetime) -> bool:
        """Create the first window with one attempt; False if another request has created it."""
        try:
            with transaction.atomic():
                AttemptWindow.objects.create(scope=self.scope, key=str(key), count=1, since=now)
        except IntegrityError:
            return False
        return True

    def _get_window(self, key: object) -> AttemptWindow | None:
        return get_attempt_window.first(scope=self.scope, key=str(key))

    def forgive(self, key: object) -> None:
        """Subtract an attempt that was counted, because it succeeded."""
        rows = AttemptWindow.objects.filter(scope=self.scope, key=str(key), count__gt=0)
        rows.update(count=F("count") - 1)

    def check(self, key: object, *, now: datetime) -> None:
        """Raise TooManyRequests if the window is full; count nothing."""
        self.check_window(self._get_window(key), now=now)

    def check_window(self, window: AttemptWindow | None, *, now: datetime) -> None:
        if window and not self._is_open(window, now):
            raise self._build_error(window, now)

    def _is_open(self, window: AttemptWindow, now: datetime) -> bool:
        return window.count < self.maximum or window.since <= now - self.period

    def _build_error(self, window: AttemptWindow, now: datetime) -> TooManyRequests:
        seconds = math.ceil((window.since + self.period - now).total_seconds())
        # If the clock was set back, nobody is locked out for longer than the period.
        longest = math.ceil(self.period.total_seconds())
        return TooManyRequests(retry_after=min(max(seconds, 1), longest))


@compiled_query(keep_plan=True)
def get_attempt_window() -> QuerySet[AttemptWindow]:
    return AttemptWindow.objects.filter(scope=text_param("scope"), key=text_param("key"))


SIGN_IN_BY_EMAIL = RateLimit("sign-in", 5, timedelta(minutes=15))
SIGN_IN_BY_NETWORK = RateLimit("sign-in-network", 100, timedelta(minutes=15))
# From all networks together, but not for those from which the account signed in recently.
SIGN_IN_BY_ACCOUNT = RateLimit("sign-in-account", 50, timedelta(minutes=15))
SIGN_IN_SCOPES = [
    limit.scope for limit in (SIGN_IN_BY_EMAIL, SIGN_IN_BY_NETWORK, SIGN_IN_BY_ACCOUNT)
]
PROMO_CODE = RateLimit("promo-code", 20, timedelta(hours=1))
CARD_DECLINED = RateLimit("card-declined", 6, timedelta(hours=1))

# The longest period of all limits: older windows have no effect.
MAX_PERIOD = timedelta(hours=1)
KNOWN_NETWORK_LIFETIME = timedelta(days=90)
IPV6_PREFIX_LENGTH = 56


def hash_email(email: str) -> str:
    """Return a key for an e-mail address, which does not reveal the address."""
    return salted_hmac("accounts.limits", canonicalize_email(email), algorithm="sha256").hexdigest()


def get_network_key(address: str) -> str:
    """Return the key of a network address: for IPv6 its /56, which is one customer's network."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address[:60]
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((int(ip), IPV6_PREFIX_LENGTH), strict=False))
    return str(ip)


class SignInAttempts:
    """The rate limits that failed sign-ins count towards (B7.2).

    They are the same whether or not there is an account with this e-mail address.
    """

    def __init__(self, email: str, network_address: str) -> None:
        self.network_key = get_network_key(network_address)
        self.account_key = hash_email(email)
        self.email = canonicalize_email(email)

    def check(self, now: datetime) -> None:
        """Raise TooManyRequests if a limit is reached; one query reads all windows."""
        keys = [self._email_key, self.network_key, self.account_key]
        windows = {
            each.scope: each
            for each in AttemptWindow.objects.filter(scope__in=SIGN_IN_SCOPES, key__in=keys)
        }
        SIGN_IN_BY_EMAIL.check_window(windows.get(SIGN_IN_BY_EMAIL.scope), now=now)
        SIGN_IN_BY_NETWORK.check_window(windows.get(SIGN_IN_BY_NETWORK.scope), now=now)
        with self._allow_known_network(now):
            SIGN_IN_BY_ACCOUNT.check_window(windows.get(SIGN_IN_BY_ACCOUNT.scope), now=now)

    def count(self, now: datetime) -> None:
        """Count a failure; raise TooManyRequests if other requests have filled a window."""
        SIGN_IN_BY_EMAIL.attempt(self._email_key, now=now)
        SIGN_IN_BY_NETWORK.attempt(self.network_key, now=now)
        with self._allow_known_network(now):
            SIGN_IN_BY_ACCOUNT.attempt(self.account_key, now=now)

    def record_success(self, user: User, now: datetime) -> None:
        KnownNetwork.record(user.pk, self._network_digest, now=now)

    @property
    def _email_key(self) -> str:
        return f"{self.account_key} {self.network_key}"

    @property
    def _network_digest(self) -> str:
        return salted_hmac("accounts.network", self.network_key, algorithm="sha256").hexdigest()

    @contextmanager
    def _allow_known_network(self, now: datetime) -> Iterator[None]:
        """Ignore TooManyRequests if the account signed in from this network recently."""
        try:
            yield
        except TooManyRequests:
            is_known = KnownNetwork.objects.filter(
                user__email=self.email,
                digest=self._network_digest,
                last_sign_in_at__gt=now - KNOWN_NETWORK_LIFETIME,
            ).exists()
            if not is_known:
                raise


def clear_failed_sign_ins(email: str) -> None:
    """Allow sign-ins with this e-mail address again, from all networks."""
    AttemptWindow.objects.filter(
        scope__in=[SIGN_IN_BY_EMAIL.scope, SIGN_IN_BY_ACCOUNT.scope],
        key__startswith=hash_email(email),
    ).delete()


def delete_expired_windows(*, now: datetime) -> int:
    """Delete windows and networks that have no effect any more; return the number of windows."""
    KnownNetwork.objects.filter(last_sign_in_at__lte=now - KNOWN_NETWORK_LIFETIME).delete()
    count, _ = AttemptWindow.objects.filter(since__lte=now - MAX_PERIOD).delete()
    return count
