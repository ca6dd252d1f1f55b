"""Signs a request in by the Token in its body.

Imported while rest_framework.views loads, so nothing of DRF's views may be imported here.
"""

from typing import TYPE_CHECKING, Any

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts.models import ApiToken, User, digest_of
from roombook.db.compiled_queries import moment, prepared, text
from roombook.errors import NotSignedIn

if TYPE_CHECKING:
    from django.db.models import QuerySet

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
    found = living_token(digest=digest_of(secret), now=now)
    if not found:
        return None
    found[0].renew(now)
    return found[0]


@prepared
def living_token() -> "QuerySet[ApiToken]":
    """The token and its account, in the one question that every signed-in request asks."""
    return (
        ApiToken.objects.filter(digest=text("digest"), user__is_active=True)
        .alive(moment("now"))
        .select_related("user")
    )
