"""The accounts of customers and staff.

reservations/desk/customers.py registers this ModelAdmin, and adds what an account has booked.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from unfold.forms import AdminPasswordChangeForm

from accounts import customer_access, emails, limits, user_search
from accounts.admin import second_factor as second_factor_pages
from accounts.admin.center_scope import SharedRowsMixin, SharedTimeZoneMixin
from accounts.forms import UserAddForm, UserEditForm
from accounts.models import AccountErasure, ApiToken, CalendarAddress, User, UserType
from accounts.models.outbox_message import EMAIL_CHANGE_KIND
from roombook import images
from roombook.backoffice import audit_log
from roombook.backoffice.model_admin import (
    ModelAdmin,
    redirect_not_found,
)
from roombook.backoffice.typing_bases import ModelAdminBase

# The devices that an account's page lists.
MAX_DEVICES = 50


class UserSearchMixin(ModelAdminBase):
    """Searches accounts as accounts/user_search.py does."""

    search_fields = ("email",)

    def search(self, request: HttpRequest, rows: QuerySet, words: str) -> QuerySet:
        return user_search.filter_users(rows, words)


class UserAdmin(UserSearchMixin, SharedRowsMixin, SharedTimeZoneMixin, DjangoUserAdmin, ModelAdmin):
    """Accounts are deactivated, not deleted, because their bookings stay.

    Staff see the customers that they may view, with a role at some centers only the customers of
    these. Changing an account needs the permission at all centers, and only superusers change
    staff. Every view of an account is recorded.
    """

    form = UserEditForm
    add_form = UserAddForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("address", "name", "company_name", "is_active", "devices", "date_joined")
    list_filter = ("is_active",)
    search_help_text = "Name, company, e-mail address or phone number."
    sortable_by = ("address",)
    ordering = ("email",)
    readonly_fields = ("date_joined", "last_login", "card")
    actions = ("sign_out_all_devices", "clear_failed_sign_ins", "revoke_calendar_address")
    change_form_outer_after_template = "backoffice/customer.html"
    fieldsets = (
        (None, {"fields": ("email", "password", "is_active")}),
        (
            "Profile",
            {
                "fields": (
                    *(("first_name", "last_name"), ("company_name", "phone_number")),
                    "thumbnail",
                )
            },
        ),
        ("Account", {"fields": ("credit_limit", "card", ("last_login", "date_joined"))}),
    )
    add_fieldsets = (
        (
            None,
            {
                "classes": ("wide",),
                "fields": (
                    *("email", "first_name", "last_name"),
                    *("usable_password", "password1", "password2"),
                ),
            },
        ),
    )

    # --- The list

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        rows: QuerySet[User] = super().get_queryset(request)
        match = request.resolver_match
        if match and match.url_name == "accounts_user_changelist":
            # Administrators find staff in the head search, in filters and in choices too.
            rows = rows.filter(is_staff=False, is_superuser=False)
        return rows.filter(customer_access.get_account_filter(request.user))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        title = {"title": "Customers"}
        return super().changelist_view(request, title | (extra_context or {}))

    result_icon = "person"

    def get_result_title(self, row: User) -> str:
        return row.get_full_name() or row.email

    def get_result_description(self, row: User) -> str:
        kind = "Staff" if row.is_staff else "Customer"
        return ", ".join(filter(None, (kind, row.known_email, row.company_name)))

    def annotate_page(self, request: HttpRequest, rows: list[Any]) -> None:
        tokens = ApiToken.objects.unexpired(timezone.now()).filter(user__in=rows)
        counts = dict(tokens.values_list("user").annotate(Count("pk")).order_by())
        for user in rows:
            user.device_count = counts.get(user.pk, 0)

    @admin.display(description="e-mail address", ordering="email")
    def address(self, user: User) -> str:
        return user.known_email or "none"

    @admin.display(description="name")
    def name(self, user: User) -> str:
        return user.get_full_name()

    @admin.display(description="devices")
    def devices(self, user: Any) -> int:
        count: int = user.device_count
        return count

    @admin.display(description="saved card")
    def card(self, user: User) -> str:
        """Brand and last four digits; nothing else of a card is stored."""
        return str(user.saved_payment_info or "none")

    # --- The page of one account

    # Otherwise, saving would undo an erasure of the account that happens at the same time.
    is_locked_while_saved = True

    @method_decorator(transaction.atomic)
    def user_change_password(self, *args: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().user_change_password(*args, **kwargs)
        return response

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        fieldsets: Any = super().get_fieldsets(request, obj)
        if self.has_change_permission(request, obj):
            return fieldsets
        visible = [(title, dict(options)) for title, options in fieldsets]
        for _, options in visible:
            options["fields"] = [field for field in options["fields"] if field != "password"]
        return visible

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        user = self.get_object(request, unquote(object_id))
        context: dict[str, object] = {}
        if user is not None and self.has_view_permission(request, user):
            context = {
                "devices": user.tokens.unexpired(timezone.now())[:MAX_DEVICES],
                "can_sign_out": self.has_change_permission(request, user),
                **self.get_account_context(request, user),
            }
        response = super().change_view(
            request, object_id, form_url, context | (extra_context or {})
        )
        if user and context and request.method == "GET" and user != request.user:
            audit_log.record_views([user], by=request.user)
        return response

    def get_account_context(self, request: HttpRequest, user: User) -> dict[str, object]:
        """Return the context that other apps add to the page of an account."""
        return {}

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.sign_out_view)
        return [
            *second_factor_pages.get_urls(),
            path("<path:object_id>/sign-out/", view, name="accounts_user_sign_out"),
            *super().get_urls(),
        ]

    def sign_out_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Sign out all devices of an account, after a page that lists them."""
        user = self.get_object(request, unquote(object_id))
        if user is None:
            return redirect_not_found(request)
        if not self.has_change_permission(request, user):
            raise PermissionDenied
        if request.method == "POST":
            self._delete_rows(request, [user], ApiToken, "Devices signed out")
            return HttpResponseRedirect(reverse("admin:accounts_user_change", args=[user.pk]))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Sign out all devices of {user}",
            "customer": user,
            "devices": user.tokens.unexpired(timezone.now())[:MAX_DEVICES],
        }
        timezone.activate(self.get_time_zone(request))
        return TemplateResponse(request, "backoffice/sign_out.html", context)

    # --- Actions

    @admin.action(description="Sign out all devices", permissions=["change"])
    def sign_out_all_devices(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        self._delete_rows(request, queryset, ApiToken, "Devices signed out")

    @admin.action(description="Clear failed sign-ins", permissions=["change"])
    def clear_failed_sign_ins(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset:
            if self.has_change_permission(request, user):
                limits.clear_failed_sign_ins(user.email)
                self.log_change(request, user, "Failed sign-ins were cleared.")
        self.message_user(request, "They can sign in again at once.", messages.SUCCESS)

    @admin.action(description="Revoke calendar address", permissions=["change"])
    def revoke_calendar_address(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        self._delete_rows(request, queryset, CalendarAddress, "Calendar addresses revoked")

    def _delete_rows(
        self, request: HttpRequest, users: Iterable[User], model: type[Model], result: str
    ) -> None:
        """Delete the rows of accounts that the user may change, and note it in their history."""
        total = 0
        for user in users:
            if not self.has_change_permission(request, user):
                continue
            count, _ = model._default_manager.filter(user=user).delete()
            if count:
                self.log_change(request, user, f"{result}: {count}.")
            total += count
        self.message_user(request, f"{result}: {total}.", messages.SUCCESS)

    # --- Permissions

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj) and (
            obj is None or customer_access.can_view_customer(request.user, obj)
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Staff without the permission to change accounts add customers by booking for them."""
        return super().has_add_permission(request) and self._has_role_permission(request, "change")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # A user who can reset a password can sign in with it: only superusers may change staff.
        return super().has_change_permission(request, obj) and (
            obj is None
            or (
                (obj.type == UserType.ACCOUNT or request.user.is_superuser)
                # A page that was opened before the erasure would bring the data back.
                and not AccountErasure.objects.filter(user=obj).exists()
            )
        )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    # --- Saving

    def save_model(
        self, request: HttpRequest, obj: User, form: ModelForm, *args: Any, **kwargs: Any
    ) -> None:
        if "thumbnail" in form.changed_data:
            old = User.objects.filter(pk=obj.pk).first()
            images.process_upload(obj, "thumbnail")
            if old and old.thumbnail:
                images.delete_after_commit(old.thumbnail)
        super().save_model(request, obj, form, *args, **kwargs)
        if "email" in form.changed_data:
            # The reader of a former address cannot take the account back.
            obj.email_codes.all().delete()
            if former := form.initial.get("email"):
                emails.send(
                    "address_corrected",
                    user_id=obj.pk,
                    to=former,
                    kind=EMAIL_CHANGE_KIND,
                    now=timezone.now(),
                )

    def log_change(self, request: HttpRequest, obj: Model, message: object) -> Any:
        """Record that a password was set, without its hash."""
        if isinstance(message, list) and "password/" in request.path:
            message = "The password was changed."
        super().log_change(request, obj, message)
