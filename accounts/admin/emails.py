"""The outbox in the back office: e-mails that are waiting, were sent, or failed."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts import customer_access
from accounts.admin.center_scope import AllCentersOnlyMixin, SharedTimeZoneMixin
from accounts.admin.date_range import DateRangeFilter
from accounts.models import OutboxMessage
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin


@admin.register(OutboxMessage)
class OutboxMessageAdmin(ReadOnlyMixin, AllCentersOnlyMixin, SharedTimeZoneMixin, ModelAdmin):
    list_display = (
        *("id", "state", "kind", "about", "to", "created_at", "sent_at", "attempts"),
        *("next_attempt_at", "last_error"),
    )
    list_filter = (("created_at", DateRangeFilter), "state", "kind")
    list_filter_submit = True
    # Some have a link or a code that is not shown.
    secret_fields = frozenset({"text", "html", "calendar"})
    search_fields = ("=about",)
    search_help_text = (
        "What an e-mail is about (reservation 12), or a customer's e-mail address or name."
    )
    ordering = ("-created_at", "-pk")
    actions = ("send_again",)
    fields = (
        *("state", "kind", "about", "user", "to", "created_at", "sent_at", "attempts"),
        *("next_attempt_at", "last_error", "subject", "shown_text", "calendar"),
    )

    def search(self, request: HttpRequest, rows: QuerySet, words: str) -> QuerySet:
        about = rows.filter(about=words)
        if about.exists():
            return about
        return rows.filter(customer_access.get_search_filter(request.user, words))

    @admin.display(description="text")
    def shown_text(self, message: OutboxMessage) -> str:
        if message.is_secret:
            return "Not shown, because it contains a link or a code that opens an account."
        return message.text

    def has_send_permission(self, request: HttpRequest) -> bool:
        """E-mails cannot be changed; the permission to change them allows sending them again."""
        return self._has_role_permission(request, "change")

    @admin.action(description="Send again", permissions=["send"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[OutboxMessage]) -> None:
        now = timezone.now()
        count = sum(message.send_again(now=now) for message in queryset.order_by("pk"))
        text = f"{count} e-mails will be sent within a minute."
        self.message_user(request, text, messages.SUCCESS)
        if secret := sum(message.is_secret for message in queryset):
            text = f"{secret} contain a code or a link, which is not kept: a new one is needed."
            self.message_user(request, text, messages.WARNING)
        if waiting := len(queryset) - count - secret:
            text = f"{waiting} are waiting to be sent anyway."
            self.message_user(request, text, messages.WARNING)
