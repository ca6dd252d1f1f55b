"""Authenticates a request by the Token in its body.

rest_framework.views imports this module, so it must not import DRF's views.
"""

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts.models import ApiToken, User
from accounts.models.tokens import hash_token_secret
from roombook.db.compiled_queries import compiled_query, datetime_param, text_param
from roombook.errors import NotSignedIn

# A token has 64 characters; longer ones are not looked up.
MAX_TOKEN_LENGTH = 128


class BodyTokenAuthentication(BaseAuthentication):
    """Refuses missing, malformed, unknown, expired and revoked tokens alike."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken]:
        token = find_token(request.data)
        if token is None:
            raise NotSignedIn
        return token.user, token


def find_token(data: object) -> ApiToken | None:
    """Return the valid token of a request body, if there is one."""
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
def get_unexpired_token() -> QuerySet[ApiToken]:
    """Return the token and its account, with one query."""
    return (
        ApiToken.objects.filter(digest=text_param("digest"), user__is_active=True)
        .unexpired(datetime_param("now"))
        .select_related("user")
    )
