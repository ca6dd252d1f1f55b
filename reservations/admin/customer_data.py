"""Pages of a customer that erase the account, or export what is stored about it (B22.12)."""

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from accounts import roles
from accounts.admin.users import UserAdmin
from accounts.erasure import is_erased
from accounts.models import User, UserType
from reservations import account_export
from reservations.booking import account_erasure
from roombook.errors import AccountInUse


class CustomerDataAdmin(UserAdmin):
    """Adds both pages. They need a permission of their own, at all centers."""

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("<path:object_id>/erase/", wrap(self.erase_view), name="accounts_user_erase"),
            path(
                "<path:object_id>/export/",
                wrap(require_POST(self.export_view)),
                name="accounts_user_export",
            ),
            *super().get_urls(),
        ]

    def erase_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Erase a customer, after a page that says what is erased and what stays."""
        user = self._get_customer(request, object_id)
        page = reverse("admin:accounts_user_change", args=[user.pk])
        if request.method == "POST":
            try:
                account_erasure.erase_account(
                    user.pk, by=roles.get_staff(request), now=timezone.now()
                )
            except AccountInUse as error:
                self.message_user(request, error.message, messages.ERROR)
            else:
                self.message_user(request, "The customer was erased.", messages.SUCCESS)
            return HttpResponseRedirect(page)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Erase {user}",
            "customer": user,
            "obstacle": account_erasure.find_obstacle(user),
        }
        return TemplateResponse(request, "backoffice/erase_customer.html", context)

    def export_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Download everything that is stored about a customer. The history records it."""
        user = self._get_customer(request, object_id)
        self.log_change(request, user, "Exported all data of the account.")
        headers = {"Content-Disposition": f'attachment; filename="customer-{user.pk}.json"'}
        return StreamingHttpResponse(
            account_export.iterate_json(user, for_staff=True),
            content_type="application/json",
            headers=headers,
        )

    def _get_customer(self, request: HttpRequest, object_id: str) -> User:
        """Return a customer that the user may erase and export, or raise PermissionDenied."""
        user = self.get_object(request, unquote(object_id))
        if user is None or not self.can_erase(request, user):
            raise PermissionDenied
        return user

    def can_erase(self, request: HttpRequest, user: User) -> bool:
        return (
            self.has_view_permission(request, user)
            and roles.has_permission_everywhere(request.user, roles.ERASE_USER)
            and user.type == UserType.ACCOUNT
            and not is_erased(user)
        )

    def get_account_context(self, request: HttpRequest, user: User) -> dict[str, object]:
        context = super().get_account_context(request, user)
        return {**context, "can_erase": self.can_erase(request, user)}
