"""The devices that an account is signed in on, as staff see them."""

import datetime as dt
from dataclasses import dataclass

from accounts.models import ApiToken, User, idle_life

# Somebody with more is no person.
MOST_TOLD = 50


@dataclass(frozen=True, slots=True)
class Device:
    since: dt.datetime
    last_used: dt.datetime
    until: dt.datetime


def of(user: User, *, now: dt.datetime) -> list[Device]:
    """Those that were used last come first. When each was is known to the day."""
    tokens = ApiToken.objects.alive(now).filter(user=user).order_by("-expires_at", "-pk")
    return [
        Device(
            since=token.created_at,
            last_used=max(token.created_at, token.expires_at - idle_life()),
            until=token.expires_at,
        )
        for token in tokens[:MOST_TOLD]
    ]
