"""Forgotten passwords of staff: a code by e-mail sets a new one, as in the API (B22)."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse_lazy
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.generic import FormView
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from accounts import email_codes
from roombook.errors import InvalidRequest, TooManyRequests
from roombook.middleware import get_client_address

# The session remembers the address from the first page to the second.
EMAIL_SESSION_KEY = "forgotten_password_email"


class EmailForm(forms.Form):
    email_address = forms.CharField(
        label="E-mail address",
        max_length=255,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "username", "autofocus": True}),
    )


class PasswordByCodeForm(forms.Form):
    code = forms.CharField(
        label="Code from the e-mail",
        max_length=20,
        widget=UnfoldAdminTextInputWidget(
            attrs={"autocomplete": "one-time-code", "autofocus": True}
        ),
    )
    new_password = forms.CharField(
        strip=False,
        max_length=255,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
    )
    confirm_new_password = forms.CharField(
        label="New password again",
        strip=False,
        max_length=255,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
    )


@method_decorator([never_cache, sensitive_post_parameters()], name="dispatch")
class ForgottenPasswordView(FormView):
    """A form whose data one function of the domain takes; its errors are those of the form."""

    template_name = "backoffice/forgotten_password.html"
    title = "Forgotten your password?"
    text = ""
    button = ""

    def apply(self, fields: dict[str, str]) -> None:
        """Raises InvalidRequest or TooManyRequests."""
        raise NotImplementedError

    def form_valid(self, form: Any) -> HttpResponse:
        try:
            self.apply(form.cleaned_data)
        except InvalidRequest as error:
            for name, message in error.fields.items():
                form.add_error(name if name in form.fields else None, message)
        except TooManyRequests as error:
            form.add_error(None, error.message)
        return self.form_invalid(form) if form.errors else super().form_valid(form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        page = {"title": self.title, "text": self.text, "button": self.button}
        site = admin.site.each_context(self.request)
        return {**site, **super().get_context_data(**kwargs), **page}


class RequestCodeView(ForgottenPasswordView):
    form_class = EmailForm
    success_url = reverse_lazy("admin:accounts_new_password")
    text = "We send you an e-mail with a code, with which you choose a new password."
    button = "Send the code"

    def apply(self, fields: dict[str, str]) -> None:
        email_codes.request_password_reset(
            email=fields["email_address"],
            network_address=get_client_address(self.request),
            now=timezone.now(),
        )
        self.request.session[EMAIL_SESSION_KEY] = fields["email_address"]


class NewPasswordView(ForgottenPasswordView):
    form_class = PasswordByCodeForm
    success_url = reverse_lazy("admin:login")
    title = "Choose a new password"
    text = "If the address has an account, the e-mail arrives in a minute."
    button = "Save password"

    def dispatch(self, *args: Any, **kwargs: Any) -> Any:
        if EMAIL_SESSION_KEY not in self.request.session:
            return redirect("admin:admin_password_reset")
        return super().dispatch(*args, **kwargs)

    def apply(self, fields: dict[str, str]) -> None:
        email_codes.reset_password(
            email=self.request.session[EMAIL_SESSION_KEY],
            **fields,
            network_address=get_client_address(self.request),
            now=timezone.now(),
        )
        del self.request.session[EMAIL_SESSION_KEY]
        messages.success(self.request, "Your password is set. Sign in with it.")


def get_urls() -> list[URLPattern]:
    return [
        # The theme links a page with this name on its sign-in page.
        path("forgotten-password/", RequestCodeView.as_view(), name="admin_password_reset"),
        path("new-password/", NewPasswordView.as_view(), name="accounts_new_password"),
    ]
