"""Accounts in the back office."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.db.models import Count, Q, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils import timezone
from unfold.forms import AdminPasswordChangeForm

from accounts import actions, limits
from accounts.forms import UserAddForm, UserForm
from accounts.models import User
from accounts.outbox import OutboxMessage
from roombook import images
from roombook.admin import ModelAdmin, ReadOnly, SavesWhatChanged

# What only an administrator may hand out: who could tick these could do anything.
POWERS = ("is_staff", "is_superuser", "groups", "user_permissions")


@admin.register(User)
class UserAdmin(SavesWhatChanged, DjangoUserAdmin, ModelAdmin):  # type: ignore[misc]
    """Customers and staff. Accounts are switched off, not deleted: bookings stay theirs."""

    form = UserForm
    add_form = UserAddForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("email", "name", "company_name", "kind", "is_active", "devices", "date_joined")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    search_fields = ("email", "first_name", "last_name", "company_name", "phone_number")
    ordering = ("email",)
    date_hierarchy = "date_joined"
    readonly_fields = ("date_joined", "last_login", "devices", "card")
    actions = ("sign_out_all_devices", "let_sign_in_again")
    fieldsets = (
        (None, {"fields": ("email", "password", "is_active")}),
        (
            "Profile",
            {"fields": ("first_name", "last_name", "company_name", "phone_number", "thumbnail")},
        ),
        ("Card and devices", {"fields": ("card", "devices", "last_login", "date_joined")}),
        ("Back office", {"fields": POWERS, "classes": ("collapse",)}),
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

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        alive = Count("tokens", filter=Q(tokens__expires_at__gt=timezone.now()))
        return super().get_queryset(request).annotate(device_count=alive)

    @admin.display(description="name", ordering="last_name")
    def name(self, user: User) -> str:
        return user.get_full_name()

    @admin.display(description="type")
    def kind(self, user: User) -> str:
        return user.type

    @admin.display(description="signed-in devices", ordering="device_count")
    def devices(self, user: User) -> int:
        return getattr(user, "device_count", 0)

    @admin.display(description="saved card")
    def card(self, user: User) -> str:
        """Brand and last four digits, which is all that is kept of a card."""
        return str(user.saved_payment_info or "none")

    @admin.action(description="Sign out all devices", permissions=["change"])
    def sign_out_all_devices(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        users = [user for user in queryset if self.has_change_permission(request, user)]
        count = sum(actions.sign_out_everywhere(user) for user in users)
        self.message_user(request, f"Signed out {count} devices.", messages.SUCCESS)

    @admin.action(description="Forget failed sign-ins", permissions=["change"])
    def let_sign_in_again(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset:
            limits.forgive_sign_ins(user.email)
        self.message_user(request, "They can try again at once.", messages.SUCCESS)

    # Permissions

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if request.user.is_superuser else (*fields, *POWERS)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        # Who may reset another's password is that other: only an equal may.
        may = super().has_change_permission(request, obj)
        return may and (obj is None or not obj.is_superuser or request.user.is_superuser)

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
            images.prepare(obj, "thumbnail")
            if old and old.thumbnail:
                images.delete_after_commit(old.thumbnail)
        super().save_model(request, obj, form, change)


@admin.register(OutboxMessage)
class OutboxMessageAdmin(ReadOnly, ModelAdmin):
    """Mails: waiting, sent, and given up until a person has looked."""

    list_display = (
        *("id", "state", "kind", "about", "to", "created_at", "sent_at", "attempts"),
        *("next_attempt_at", "last_error"),
    )
    list_filter = ("state", "kind", "created_at")
    search_fields = ("=about", "to", "subject")
    date_hierarchy = "created_at"
    ordering = ("-created_at", "-pk")
    show_full_result_count = False
    actions = ("send_again",)
    fields = (
        *("state", "kind", "about", "user", "to", "created_at", "sent_at", "attempts"),
        *("next_attempt_at", "last_error", "subject", "text", "calendar"),
    )

    def has_send_permission(self, request: HttpRequest) -> bool:
        """Nobody changes a mail; who may change them may send them."""
        return request.user.has_perm("accounts.change_outboxmessage")

    @admin.action(description="Send again", permissions=["send"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[OutboxMessage]) -> None:
        now = timezone.now()
        count = sum(message.send_again(now=now) for message in queryset.order_by("pk"))
        self.message_user(request, f"{count} mails will be sent in a minute.", messages.SUCCESS)
        if waiting := len(queryset) - count:
            text = f"{waiting} are waiting to be sent anyway."
            self.message_user(request, text, messages.WARNING)
