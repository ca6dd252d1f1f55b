"""How often something may be tried, counted in the database for all workers together.

A window opens with the first counted try and lasts its period; refused tries are not counted, so
they never make it longer. Two ways to use a limit, by what has to be bounded:

* `attempt` before and `forgive` after success, where the try itself is what must not happen too
  often (asking the gateway about a card).
* `check` before and `count` after a failure, where success must never be refused only because
  others succeed at the same moment (sign-in). `count` raises when rivals filled the window
  meanwhile: then the failure is not told apart from a success that came too late.
"""

import ipaddress
import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Case, F, Q, QuerySet, When
from django.utils.crypto import salted_hmac

from accounts.models import AttemptWindow, canonicalize_email
from roombook.db.compiled_queries import compiled_query, text_param
from roombook.errors import TooManyRequests


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `maximum` counted tries a key within `period`."""

    scope: str
    maximum: int
    period: timedelta

    def attempt(self, key: object, *, now: datetime) -> None:
        """Take one try, or raise TooManyRequests. Exact however many workers ask at once."""
        # Each step is one statement that decides alone. Repeated if another request was faster.
        while not self._take(key, now):
            window = self._window(key)
            if window is None:
                if self._open_window(key, now):
                    return
            elif not self._has_room(window, now):
                raise self._refusal(window, now)

    def _take(self, key: object, now: datetime) -> bool:
        """Count one more in the current window, or start it again if it is over."""
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

    def _window(self, key: object) -> AttemptWindow | None:
        return get_attempt_window.first(scope=self.scope, key=str(key))

    def forgive(self, key: object) -> None:
        """Give a taken try back: it was no failure."""
        rows = AttemptWindow.objects.filter(scope=self.scope, key=str(key), count__gt=0)
        rows.update(count=F("count") - 1)

    def check(self, key: object, *, now: datetime) -> None:
        """Raise TooManyRequests when the window is full; counts nothing."""
        window = self._window(key)
        if window and not self._has_room(window, now):
            raise self._refusal(window, now)

    def count(self, key: object, *, now: datetime) -> None:
        """Count one failure; raise TooManyRequests when others filled the window meanwhile."""
        self.attempt(key, now=now)

    def _has_room(self, window: AttemptWindow, now: datetime) -> bool:
        return window.count < self.maximum or window.since <= now - self.period

    def _refusal(self, window: AttemptWindow, now: datetime) -> TooManyRequests:
        seconds = math.ceil((window.since + self.period - now).total_seconds())
        # A clock that was set back must not lock anybody out for longer than the period.
        longest = math.ceil(self.period.total_seconds())
        return TooManyRequests(retry_after=min(max(seconds, 1), longest))


@compiled_query(keep_plan=True)
def get_attempt_window() -> QuerySet[AttemptWindow]:
    return AttemptWindow.objects.filter(scope=text_param("scope"), key=text_param("key"))


SIGN_IN_BY_EMAIL = RateLimit("sign-in", 5, timedelta(minutes=15))
SIGN_IN_BY_NETWORK = RateLimit("sign-in-network", 100, timedelta(minutes=15))
PROMO_CODE = RateLimit("promo-code", 20, timedelta(hours=1))
CARD_DECLINED = RateLimit("card-declined", 6, timedelta(hours=1))

# No window of any limit matters any more after this.
MAX_PERIOD = timedelta(hours=1)


def hash_email(email: str) -> str:
    """A key that stands for an e-mail address without telling it."""
    return salted_hmac("accounts.limits", canonicalize_email(email), algorithm="sha256").hexdigest()


def get_network_key(address: str) -> str:
    """A network address as it is counted: IPv6 by its /64, which is one customer's network."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address[:60]
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((int(ip), 64), strict=False))
    return str(ip)


def clear_failed_sign_ins(email: str) -> None:
    """Let an address be tried again at once, from everywhere."""
    AttemptWindow.objects.filter(
        scope=SIGN_IN_BY_EMAIL.scope, key__startswith=hash_email(email)
    ).delete()


def delete_expired_windows(*, now: datetime) -> int:
    """Delete windows that no limit looks at any more; says how many."""
    count, _ = AttemptWindow.objects.filter(since__lte=now - MAX_PERIOD).delete()
    return count
