"""The operations on the account as a whole, and the download of its data (B22.7, B22.11)."""

from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from accounts import account_export, sign_in
from accounts.limits import EXPORT
from accounts.models import User
from accounts.serializers import PasswordField
from reservations.booking import account_erasure
from roombook.api.fields import ObjectField, TextField
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer, RenderContext
from roombook.errors import AccountInUse, TooManyRequests
from roombook.middleware import get_client_address, mark_secret, secret_page

SENT_BY_EMAIL = (
    "Your data is too large for the app. We have sent you an e-mail with a link to download it."
)


class ExportAccount(Operation):
    """Return everything that is stored about the account, as one object.

    If it is large, Message says that it comes by e-mail, with a link that is valid for a day.
    """

    errors = (TooManyRequests,)

    class Output(ContractSerializer):
        Export = ObjectField(help_text="The account, and lists of all that belongs to it.")
        Message = TextField(help_text="Instead of Export: where to find it.")

    def perform(self, user: User) -> dict[str, object]:
        now = timezone.now()
        EXPORT.attempt(user.pk, now=now)
        export = account_export.build_export(user)
        if export is not None:
            return {"export": export}
        account_export.send_link(user, self._build_url, now=now)
        return {"message": SENT_BY_EMAIL}

    def _build_url(self, secret: str) -> str:
        return RenderContext(self.request).build_url(reverse("account-export", args=[secret]))


@mark_secret
@secret_page
@require_GET
def download_export(request: HttpRequest, secret: str) -> StreamingHttpResponse:
    """Return the document to which an e-mail leads; 404 if the link is not valid any more."""
    user = account_export.find_account(secret)
    if user is None:
        raise Http404
    EXPORT.attempt(user.pk, now=timezone.now())
    return StreamingHttpResponse(
        account_export.iterate_json(user),
        content_type="application/json",
        headers={"Content-Disposition": 'attachment; filename="account.json"'},
    )


class DeleteAccount(Operation):
    """Erase the account: names, addresses, card, picture, e-mails and all devices.

    Drafts are cancelled. It is refused while a booking lies ahead, or while money is in doubt or
    owed. Earlier bookings stay under a pseudonym, for bookkeeping. This cannot be undone.
    """

    errors = (AccountInUse, TooManyRequests)
    example = {"Password": "quiet-harbour-42"}

    class Input(ContractSerializer):
        Password = PasswordField("The current password. A wrong one counts as a failed sign-in.")

    def perform(self, user: User, *, password: str) -> None:
        now = timezone.now()
        sign_in.require_password(
            user,
            password,
            field="password",
            network_address=get_client_address(self.request),
            now=now,
        )
        account_erasure.erase_account(user.pk, by=user, verified=user, now=now)
