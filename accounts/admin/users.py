"""The page of an account. reservations/admin/customers.py registers it, with their bookings."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from unfold.forms import AdminPasswordChangeForm

from accounts import actions, customer_access, limits
from accounts.admin import devices
from accounts.admin.center_scope import SharedRowsMixin
from accounts.admin.role_admin import CenterRoleInline
from accounts.forms import UserAddForm, UserEditForm
from accounts.models import ApiToken, User
from roombook import images
from roombook.backoffice import audit_log
from roombook.backoffice.model_admin import ModelAdmin, PageAnnotationsMixin, SaveChangedFieldsMixin

# What only an administrator may hand out: who could tick these could do anything.
PRIVILEGE_FIELDS = ("is_staff", "is_superuser", "groups", "user_permissions")


class UserAdmin(
    SharedRowsMixin, PageAnnotationsMixin, SaveChangedFieldsMixin, DjangoUserAdmin, ModelAdmin
):
    """Customers and staff. Accounts are switched off, not deleted: bookings stay theirs.

    Seen by who may see customers, at some centers those of these; changed by who may change them
    everywhere. Staff are changed by administrators only. Every look at one is written down.
    """

    form = UserEditForm
    add_form = UserAddForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("email", "name", "company_name", "kind", "is_active", "devices", "date_joined")
    list_filter = ("is_active", "is_staff")
    # Not empty, so that the search box is there; what it finds is for get_search_results to say.
    search_fields = ("email",)
    search_help_text = "How an e-mail address, a name, a company or a telephone number begins."
    sortable_by = ("email",)
    ordering = ("email",)
    readonly_fields = ("date_joined", "last_login", "card")
    actions = ("sign_out_all_devices", "let_sign_in_again")
    inlines = (CenterRoleInline,)
    change_form_outer_after_template = "office/customer.html"
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
        ("Account", {"fields": ("card", ("last_login", "date_joined"))}),
        ("Back office", {"fields": PRIVILEGE_FIELDS, "classes": ("collapse",)}),
    )
    add_fieldsets = (
        (
            None,
            {
                "classes": ("wide",),
                "fields": (
                    "email",
                    "first_name",
                    "last_name",
                    "usable_password",
                    "password1",
                    "password2",
                ),
            },
        ),
    )

    # Who is seen, and found

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        rows: QuerySet[User] = super().get_queryset(request)
        return rows.filter(customer_access.get_customer_filter(request.user))

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        if not search_term.strip():
            return queryset, False
        found = customer_access.search_customers(queryset, search_term, staff=request.user)
        return found, False

    def annotate_page(self, request: HttpRequest, rows: list[Any]) -> None:
        alive = ApiToken.objects.alive(timezone.now()).filter(user__in=rows)
        counts = dict(alive.values_list("user").annotate(Count("pk")).order_by())
        for user in rows:
            user.device_count = counts.get(user.pk, 0)

    @admin.display(description="name")
    def name(self, user: User) -> str:
        return user.get_full_name()

    @admin.display(description="type")
    def kind(self, user: User) -> str:
        return user.type

    @admin.display(description="devices")
    def devices(self, user: Any) -> int:
        return user.device_count

    @admin.display(description="saved card")
    def card(self, user: User) -> str:
        """Brand and last four digits, which is all that is kept of a card."""
        return str(user.saved_payment_info or "none")

    # The page of one

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        sets: Any = super().get_fieldsets(request, obj)
        if request.user.is_superuser:
            return sets
        # Of others' powers nobody else need know, nor of how a password is kept.
        hidden = {"password"} if not self.has_change_permission(request, obj) else set()
        seen = [(title, dict(options)) for title, options in sets if title != "Back office"]
        for _, options in seen:
            options["fields"] = [each for each in options["fields"] if each not in hidden]
        return seen

    def get_inlines(self, request: HttpRequest, obj: User | None) -> Any:
        """Roles at centers, of staff; of customers once an administrator has made them staff."""
        return self.inlines if obj and obj.is_staff else ()

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        now = timezone.now()
        user = self.get_object(request, unquote(object_id))
        context: dict[str, Any] = {}
        if user is not None and self.has_view_permission(request, user):
            context = {
                "devices": devices.list_devices(user, now=now),
                "may_sign_out": self.has_change_permission(request, user),
                **self.about(request, user),
            }
        response = super().change_view(
            request, object_id, form_url, context | (extra_context or {})
        )
        if user and context and request.method == "GET" and user != request.user:
            audit_log.record_view(user, by=request.user)
        return response

    def about(self, request: HttpRequest, user: User) -> dict[str, Any]:
        """What others know of the account, for its page."""
        return {}

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.sign_out_view)
        return [
            path("<path:object_id>/sign-out/", view, name="accounts_user_sign_out"),
            *super().get_urls(),
        ]

    def sign_out_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Sign all devices of an account out, once it was said which these are."""
        user = self.get_object(request, unquote(object_id))
        if user is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        if not self.has_change_permission(request, user):
            raise PermissionDenied
        if request.method == "POST":
            self._sign_out(request, [user])
            return HttpResponseRedirect(reverse("admin:accounts_user_change", args=[user.pk]))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Sign out all devices of {user}",
            "customer": user,
            "devices": devices.list_devices(user, now=timezone.now()),
        }
        return TemplateResponse(request, "office/sign_out.html", context)

    # Actions

    @admin.action(description="Sign out all devices", permissions=["change"])
    def sign_out_all_devices(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        self._sign_out(
            request, [user for user in queryset if self.has_change_permission(request, user)]
        )

    def _sign_out(self, request: HttpRequest, users: list[User]) -> None:
        total = 0
        for user in users:
            if count := actions.sign_out_everywhere(user):
                self.log_change(request, user, f"Signed out {count} devices.")
                total += count
        self.message_user(request, f"Signed out {total} devices.", messages.SUCCESS)

    @admin.action(description="Forget failed sign-ins", permissions=["change"])
    def let_sign_in_again(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset:
            if self.has_change_permission(request, user):
                limits.clear_failed_sign_ins(user.email)
                self.log_change(request, user, "Failed sign-ins were forgotten.")
        self.message_user(request, "They can try again at once.", messages.SUCCESS)

    # Permissions

    def has_view_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        may = super().has_view_permission(request, obj)
        return may and (obj is None or customer_access.can_view_customer(request.user, obj))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Who may not change accounts makes one for a customer by booking for them."""
        return super().has_add_permission(request) and self._has_role_permission(request, "change")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        # Who may reset another's password is that other: only an administrator may touch staff.
        may = super().has_change_permission(request, obj)
        return may and (request.user.is_superuser or obj is None or obj.type == "Account")

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False

    # Saving

    def save_model(
        self,
        request: HttpRequest,
        obj: User,
        form: ModelForm,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        if "thumbnail" in form.changed_data:
            old = User.objects.filter(pk=obj.pk).first()
            images.process_upload(obj, "thumbnail")
            if old and old.thumbnail:
                images.delete_after_commit(old.thumbnail)
        super().save_model(request, obj, form, change)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """A password that was set is told, and nothing of it."""
        if isinstance(message, list) and "password/" in request.path:
            message = "The password was set anew."
        super().log_change(request, obj, message)
