"""The download of everything that is stored about an account, by a link from an e-mail (B22.11)."""

from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from accounts.limits import EXPORT
from reservations import account_export
from roombook.middleware import mark_secret, secret_page


@mark_secret
@secret_page
@require_GET
def download_export(request: HttpRequest, secret: str) -> StreamingHttpResponse:
    """Return the document; 404 if the link is not valid, or not any more."""
    user = account_export.find_account(secret)
    if user is None:
        raise Http404
    EXPORT.attempt(user.pk, now=timezone.now())
    return StreamingHttpResponse(
        account_export.iterate_json(user),
        content_type="application/json",
        headers={"Content-Disposition": 'attachment; filename="account.json"'},
    )
