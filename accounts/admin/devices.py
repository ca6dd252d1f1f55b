"""The devices that an account is signed in on, as staff see them."""

import datetime as dt
from dataclasses import dataclass

from accounts.models import ApiToken, User, get_token_idle_lifetime

# Somebody with more is no person.
MAX_DEVICES = 50


@dataclass(frozen=True, slots=True)
class SignedInDevice:
    since: dt.datetime
    last_used: dt.datetime
    until: dt.datetime


def list_devices(user: User, *, now: dt.datetime) -> list[SignedInDevice]:
    """Those that were used last come first. When each was is known to the day."""
    tokens = ApiToken.objects.alive(now).filter(user=user).order_by("-expires_at", "-pk")
    return [
        SignedInDevice(
            since=token.created_at,
            last_used=max(token.created_at, token.expires_at - get_token_idle_lifetime()),
            until=token.expires_at,
        )
        for token in tokens[:MAX_DEVICES]
    ]
