"""The devices that an account is signed in on, for staff."""

import datetime as dt
from dataclasses import dataclass

from accounts.models import ApiToken, User
from accounts.models.api_token import get_token_idle_lifetime

MAX_DEVICES = 50


@dataclass(frozen=True, slots=True)
class SignedInDevice:
    signed_in_at: dt.datetime
    last_used_at: dt.datetime
    expires_at: dt.datetime


def list_devices(user: User, *, now: dt.datetime) -> list[SignedInDevice]:
    """Return the devices, the last used first. ``last_used_at`` is exact to the day only."""
    tokens = ApiToken.objects.unexpired(now).filter(user=user).order_by("-expires_at", "-pk")
    return [
        SignedInDevice(
            signed_in_at=token.created_at,
            last_used_at=max(token.created_at, token.expires_at - get_token_idle_lifetime()),
            expires_at=token.expires_at,
        )
        for token in tokens[:MAX_DEVICES]
    ]
