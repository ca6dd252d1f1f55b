"""Signs a request in by the Token in its body.

Imported while rest_framework.views loads, so nothing of DRF's views may be imported here.
"""

from typing import Any

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts.models import ApiToken, User
from roombook.errors import NotSignedIn

# A Token is 64 characters; nothing longer is worth a look-up.
LONGEST_TOKEN = 128


class BodyToken(BaseAuthentication):
    """Missing, unreadable, unknown, expired, revoked, account disabled: one refusal for all."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken]:
        token = find(request.data)
        if token is None:
            raise NotSignedIn
        return token.user, token


def find(data: Any) -> ApiToken | None:
    """The living token that a request body carries, if it carries one."""
    secret = data.get("Token") if isinstance(data, dict) else None
    if not isinstance(secret, str) or not secret.isascii() or not 0 < len(secret) <= LONGEST_TOKEN:
        return None
    now = timezone.now()
    token = (
        ApiToken.objects.of_secret(secret)
        .alive(now)
        .filter(user__is_active=True)
        .select_related("user")
        .first()
    )
    if token:
        token.renew(now)
    return token
