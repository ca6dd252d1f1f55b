"""Webhooks of integrators: their addresses and credentials, and the log of deliveries (B25)."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts.admin.center_scope import CenterOrAllMixin
from reservations.integrations.events import create_test_event
from reservations.integrations.sending import render_payload
from reservations.models import WebhookDelivery, WebhookEndpoint
from reservations.models.webhooks import EventType
from roombook.backoffice import audit_log
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin, redirect_not_found
from roombook.middleware import mark_secret
from roombook.public_http import validate_public_server


class WebhookAdminMixin(CenterOrAllMixin):
    """What the pages of webhooks and of their deliveries share."""

    secret_fields = frozenset({"secret", "old_secret", "access_key_hash"})


class WebhookForm(forms.ModelForm):
    """A webhook; its events are checkboxes."""

    event_types = forms.MultipleChoiceField(
        label="Events",
        choices=EventType.choices,
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
        help_text="Select none to get all events.",
    )

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        # Not if it stays: otherwise a webhook whose name has moved could not be switched off.
        if "url" in self.changed_data:
            validate_public_server(url)
        return url


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(WebhookAdminMixin, ModelAdmin):
    form = WebhookForm
    list_display = ("description", "url", "center", "is_active", "last_success_at")
    list_filter = ("is_active",)
    list_select_related = ("center",)
    search_fields = ("description", "url")
    search_help_text = "Description or address."
    ordering = ("description", "pk")
    autocomplete_fields = ("center",)
    actions = ("send_test_event",)
    change_form_outer_after_template = "admin/reservations/webhook_links.html"
    fields = ("description", "url", "center", "event_types", "is_active")
    readonly_fields = ("disabled_reason", "last_success_at")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show what happened so far on the page of a webhook that exists."""
        return (*self.fields, *self.readonly_fields) if obj else self.fields

    def save_model(
        self,
        request: HttpRequest,
        obj: Any,
        form: ModelForm,
        change: bool,  # noqa: FBT001 (Django's signature)
    ) -> None:
        if not change:
            obj.created_at = timezone.now()
        elif obj.is_active and "is_active" in form.changed_data:
            obj.activated_at = timezone.now()
            form.changed_data.append("activated_at")
        if obj.is_active:
            obj.disabled_reason = ""
            form.changed_data.append("disabled_reason")
        super().save_model(request, obj, form, change)
        if "is_active" in form.changed_data:
            obj.deliveries.fail_waiting()

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Deliveries, which nobody deletes singly, go with their webhook."""
        rows, counts, missing, protected = super().get_deleted_objects(objs, request)
        return rows, counts, missing - {WebhookDelivery._meta.verbose_name}, protected

    @admin.action(description="Send a test event", permissions=["change"])
    def send_test_event(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        endpoints = list(queryset.filter(is_active=True).order_by("pk"))
        for endpoint in endpoints:
            create_test_event(endpoint, now=timezone.now())
        count = len(endpoints)
        events = "1 test event" if count == 1 else f"{count} test events"
        text = f"{events} will be sent within a minute."
        self.message_user(request, text, messages.SUCCESS)

    # --- The secret and the access key

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.credentials_view)
        name = "reservations_webhookendpoint_credentials"
        return [path("<path:object_id>/credentials/", view, name=name), *super().get_urls()]

    @mark_secret
    def credentials_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the secret, or replace the secret or the access key, when a button is pressed."""
        endpoint = self.get_object(request, unquote(object_id))
        if endpoint is None:
            return redirect_not_found(request)
        if not self.has_change_permission(request, endpoint):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Credentials of {endpoint}",
            "endpoint": endpoint,
        }
        if request.method == "POST":
            context |= self._handle_button(request, endpoint)
        template = "admin/reservations/webhook_credentials.html"
        return TemplateResponse(request, template, context)

    def _handle_button(self, request: HttpRequest, endpoint: WebhookEndpoint) -> dict[str, str]:
        button = request.POST.get("button")
        if button == "access_key":
            return {"access_key": endpoint.issue_access_key()}
        if button == "rotate":
            endpoint.rotate_secret(now=timezone.now())
        elif button == "show":
            audit_log.record_views([endpoint], by=request.user)
        else:
            return {}
        return {"secret": endpoint.secret}


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyMixin, WebhookAdminMixin, ModelAdmin):
    """The log of deliveries, read-only; the permission to change them allows sending again."""

    center_path = "endpoint__center"
    list_display = (
        *("id", "endpoint", "event_type", "reservation", "state", "attempts", "created_at"),
        *("next_attempt_at", "sent_at", "status_code", "response"),
    )
    list_filter = ("state",)
    list_select_related = ("endpoint", "event")
    search_fields = ("endpoint__description",)
    search_help_text = "Description of the webhook."
    ordering = ("-pk",)
    sortable_by = ()
    actions = ("send_again",)
    # What `has_send_permission` needs, for the rows of an action.
    action_permissions = {"send": "reservations.change_webhookdelivery"}
    fields = (*list_display, "retry_until", "payload")
    readonly_fields = ("event_type", "reservation", "payload")

    @admin.display(description="event")
    def event_type(self, delivery: WebhookDelivery) -> str:
        return delivery.event.type

    @admin.display(description="reservation")
    def reservation(self, delivery: WebhookDelivery) -> str:
        return str(delivery.event.data.get("ReservationId", ""))

    @admin.display(description="payload")
    def payload(self, delivery: WebhookDelivery) -> str:
        return render_payload(delivery.event).decode()

    def has_send_permission(self, request: HttpRequest) -> bool:
        return self._has_role_permission(request, "change")

    @admin.action(description="Send again", permissions=["send"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[WebhookDelivery]) -> None:
        now = timezone.now()
        active = queryset.filter(endpoint__is_active=True).order_by("pk")
        count = sum(delivery.send_again(now=now) for delivery in active)
        events = "1 event" if count == 1 else f"{count} events"
        text = f"{events} will be sent again within a minute."
        self.message_user(request, text, messages.SUCCESS)
