"""Signs a request in by the Token in its body.

Imported while rest_framework.views loads, so nothing of DRF's views may be imported here.
"""

from typing import TYPE_CHECKING, Any

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts.models import ApiToken, User
from accounts.models.api_token import hash_token_secret
from roombook.db.compiled_queries import compiled_query, datetime_param, text_param
from roombook.errors import NotSignedIn

if TYPE_CHECKING:
    from django.db.models import QuerySet

# A Token is 64 characters; nothing longer is worth a look-up.
MAX_TOKEN_LENGTH = 128


class BodyTokenAuthentication(BaseAuthentication):
    """Missing, unreadable, unknown, expired, revoked, account disabled: one refusal for all."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken]:
        token = find_token(request.data)
        if token is None:
            raise NotSignedIn
        return token.user, token


def find_token(data: Any) -> ApiToken | None:
    """The living token that a request body carries, if it carries one."""
    secret = data.get("Token") if isinstance(data, dict) else None
    if (
        not isinstance(secret, str)
        or not secret.isascii()
        or not 0 < len(secret) <= MAX_TOKEN_LENGTH
    ):
        return None
    now = timezone.now()
    found = get_unexpired_token(digest=hash_token_secret(secret), now=now)
    if not found:
        return None
    found[0].renew(now)
    return found[0]


@compiled_query(keep_plan=True)
def get_unexpired_token() -> "QuerySet[ApiToken]":
    """The token and its account, in the one question that every signed-in request asks."""
    return (
        ApiToken.objects.filter(digest=text_param("digest"), user__is_active=True)
        .unexpired(datetime_param("now"))
        .select_related("user")
    )
