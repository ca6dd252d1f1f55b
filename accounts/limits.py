"""Rate limits, counted in the database for all workers together.

A window opens with the first counted attempt and lasts for the limit's period. Refused attempts are
not counted, so they do not extend the window. There are three ways to use a limit:

* Call `attempt` if every attempt counts, such as creating a draft.
* Call `check` before, and `attempt` after a failure or `check` after a success, if only failures
  count, such as at sign-in. Both raise TooManyRequests if concurrent requests have filled the
  window meanwhile: so parallel guesses get no more answers than others.
* Use a `FailureLimit` if only failures count and concurrent attempts must not even be made more
  often, such as sending a card to the gateway.
"""

import ipaddress
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import F, QuerySet
from django.utils.crypto import salted_hmac

from accounts.models import AttemptWindow, KnownNetwork, User, canonicalize_email
from roombook.db.compiled_queries import compiled_query, text_param
from roombook.errors import CardDeclined, TooManyRequests

# One statement, so that concurrent requests never exceed the limit. It locks the row of the window
# until the transaction ends.
COUNTED = "CASE WHEN stored.since <= %(over)s THEN 0 ELSE stored.count END"
ADD_TO_WINDOW = f"""
    INSERT INTO accounts_attemptwindow AS stored (scope, key, count, since)
    VALUES (%(scope)s, %(key)s, %(count)s, %(now)s)
    ON CONFLICT (scope, key) DO UPDATE SET
        count = excluded.count + {COUNTED},
        since = CASE WHEN stored.since <= %(over)s THEN excluded.since ELSE stored.since END
    WHERE {COUNTED} < %(maximum)s
    RETURNING id
"""
# More than any window counts.
UNLIMITED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Allows at most `maximum` counted attempts per key within `period`."""

    scope: str
    maximum: int
    period: timedelta

    def attempt(self, key: object, *, now: datetime) -> None:
        """Count an attempt, or raise TooManyRequests. Exact even with concurrent workers."""
        while not self._add(key, count=1, now=now):
            self.check(key, now=now)

    def lock(self, key: object, *, now: datetime) -> None:
        """Count nothing, but let other attempts wait until the transaction ends."""
        self._add(key, count=0, now=now)

    def _add(self, key: object, *, count: int, maximum: int | None = None, now: datetime) -> bool:
        """Add to the window, or to a new one if it is over. False if it is full."""
        since = AttemptWindow._meta.get_field("since")
        with connection.cursor() as cursor:
            cursor.execute(
                ADD_TO_WINDOW,
                {
                    "scope": self.scope,
                    "key": str(key),
                    "count": count,
                    "now": since.get_db_prep_value(now, connection),
                    "over": since.get_db_prep_value(now - self.period, connection),
                    "maximum": self.maximum if maximum is None else maximum,
                },
            )
            return cursor.fetchone() is not None

    def _get_window(self, key: object) -> AttemptWindow | None:
        return get_attempt_window.first(scope=self.scope, key=str(key))

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


@dataclass(frozen=True, slots=True)
class FailureLimit(RateLimit):
    """Allows at most `maximum` failures per key within `period`.

    An attempt counts from its beginning, and is given back if it has not failed. Otherwise more
    parallel attempts than the maximum could fail. So attempts beyond it are refused as long as the
    others are in progress, even if these will succeed.
    """

    @contextmanager
    def count_failure(
        self, key: object, error: type[Exception], *, now: datetime
    ) -> Iterator[None]:
        """Count the block as an attempt, which fails if it raises this error."""
        self.attempt(key, now=now)
        has_failed = False
        try:
            yield
        except error:
            has_failed = True
            raise
        finally:
            if not has_failed:
                self.give_back(key)

    def give_back(self, key: object) -> None:
        """Do not count an attempt any more.

        If its window is over, it is taken from the next one. Times are not compared, because the
        clocks of two machines differ: an attempt that is not given back would lock a customer out.
        """
        window = AttemptWindow.objects.filter(scope=self.scope, key=str(key), count__gt=0)
        window.update(count=F("count") - 1)

    def add_failure(self, key: object, *, now: datetime) -> None:
        """Count the failure of an attempt that was given back before, also beyond the maximum."""
        self._add(key, count=1, maximum=UNLIMITED, now=now)


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
# Requests that send a code by e-mail, whether or not there is an account.
CODE_BY_EMAIL = RateLimit("code-email", 5, timedelta(hours=1))
CODE_BY_NETWORK = RateLimit("code-network", 30, timedelta(hours=1))
# From all networks together, with the same exception.
CODE_BY_ACCOUNT = RateLimit("code-account", 10, timedelta(hours=1))
PROMO_CODE = RateLimit("promo-code", 20, timedelta(hours=1))
PARTNER_CODE = RateLimit("partner-code", 20, timedelta(hours=1))
EXPORT = RateLimit("export", 10, timedelta(hours=1))
# Requests for one payment link. Its page asks every ten seconds while the bank is waited for.
PAYMENT_LINK = RateLimit("payment-link", 600, timedelta(hours=1))
# Receipts as PDF, which take a tenth of a second each, and lists of their addresses.
RECEIPT = RateLimit("receipt", 120, timedelta(hours=1))
# Responses with a calendar; those without a change are cheap, and not counted.
CALENDAR_FEED = RateLimit("calendar-feed", 120, timedelta(hours=1))
CARD_DECLINED = FailureLimit("card-declined", 6, timedelta(hours=1))
# While anybody can create accounts, the limit of an account does not stop a thief who tests cards.
CARD_DECLINED_BY_NETWORK = RateLimit("card-declined-network", 30, timedelta(hours=1))

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


def get_payer_key(user_id: int, link: int | None = None) -> str:
    """Return the key of who enters cards: the account, or the holder of a draft's payment link.

    Who holds a link must not use up the limits of the customer (B26.7).
    """
    return f"link {link}" if link is not None else str(user_id)


def check_declined_cards(network_address: str, *, is_by_link: bool = False, now: datetime) -> None:
    """Raise TooManyRequests if too many cards from this network were declined (B16.6).

    Without an address, a member of staff pays.
    """
    if key := _get_declines_key(network_address, is_by_link=is_by_link):
        CARD_DECLINED_BY_NETWORK.check(key, now=now)


@contextmanager
def count_declined_cards(
    network_address: str, *, is_by_link: bool = False, now: datetime
) -> Iterator[None]:
    """Count it towards that limit if the block raises CardDeclined for a new attempt.

    If parallel requests have filled the window, TooManyRequests replaces that answer.
    """
    try:
        yield
    except CardDeclined as error:
        key = _get_declines_key(network_address, is_by_link=is_by_link)
        if key and error.is_new:
            CARD_DECLINED_BY_NETWORK.attempt(key, now=now)
        raise


def _get_declines_key(network_address: str, *, is_by_link: bool) -> str:
    """Return the key of a network; empty if only staff create accounts, and no link is paid."""
    if not network_address or (settings.SIGN_UP != "open" and not is_by_link):
        return ""
    key = get_network_key(network_address)
    return f"link {key}" if is_by_link else key


class SignInAttempts:
    """The rate limits that failed sign-ins and requests for codes count towards (B7.2, B22.2).

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

    def count_code(self, now: datetime) -> None:
        """Count a request that sends a code to the address; raise TooManyRequests (B22.2)."""
        CODE_BY_NETWORK.attempt(self.network_key, now=now)
        CODE_BY_EMAIL.attempt(self._email_key, now=now)
        # Otherwise strangers could keep the owner from resetting the password.
        with self._allow_known_network(now):
            CODE_BY_ACCOUNT.attempt(self.account_key, now=now)

    def is_from_known_network(self, now: datetime) -> bool:
        """Whether the account signed in from this network recently."""
        return KnownNetwork.objects.filter(
            user__email=self.email,
            digest=self.network_digest,
            last_sign_in_at__gt=now - KNOWN_NETWORK_LIFETIME,
        ).exists()

    def record_right_password(self, user: User, now: datetime) -> None:
        """Remember the network, unless the account has a second factor.

        Otherwise somebody who has only the password could choose networks to guess codes from.
        """
        if user.second_factor_since is None:
            self.record_success(user, now)

    def record_success(self, user: User, now: datetime) -> None:
        """Remember the network: the account has proved all that it can prove."""
        KnownNetwork.record(user.pk, self.network_digest, now=now)

    @property
    def _email_key(self) -> str:
        return f"{self.account_key} {self.network_key}"

    @property
    def network_digest(self) -> str:
        """A keyed hash of the network address, which can be stored."""
        return salted_hmac("accounts.network", self.network_key, algorithm="sha256").hexdigest()

    @contextmanager
    def _allow_known_network(self, now: datetime) -> Iterator[None]:
        try:
            yield
        except TooManyRequests:
            if not self.is_from_known_network(now):
                raise


def clear_failed_sign_ins(email: str) -> None:
    """Allow sign-ins and codes with this e-mail address again, from all networks."""
    AttemptWindow.objects.filter(
        scope__in=[
            each.scope
            for each in (SIGN_IN_BY_EMAIL, SIGN_IN_BY_ACCOUNT, CODE_BY_EMAIL, CODE_BY_ACCOUNT)
        ],
        key__startswith=hash_email(email),
    ).delete()
