"""The pages where staff enter a code, and turn their second factor on and off."""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import mark_safe
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django_otp import login
from django_otp.plugins.otp_static import admin as static_admin  # noqa: F401  (it registers)
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp import admin as totp_admin  # noqa: F401  (it registers)
from django_otp.plugins.otp_totp.models import TOTPDevice
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts import roles, second_factor
from accounts.limits import SignInAttempts
from accounts.models import User
from roombook.backoffice.site import KEPT_FORM, BackofficeSite
from roombook.errors import TooManyRequests
from roombook.middleware import get_client_address, mark_secret

# The devices are changed on the pages below only.
admin.site.unregister([TOTPDevice, StaticDevice])

# The session keeps the secret of a device until a code confirms it.
NEW_KEY_SESSION_KEY = "second_factor_new_key"


class CodeForm(forms.Form):
    """A code of the user's authenticator app, or a recovery code."""

    code = forms.CharField(
        label="Six-digit code or recovery code",
        max_length=20,
        widget=UnfoldAdminTextInputWidget(
            attrs={"autocomplete": "one-time-code", "autofocus": True}
        ),
    )


class State(StrEnum):
    """A state of the user; its value is the name of the page to which other pages lead then."""

    OFF = "admin:accounts_second_factor_set_up"
    PENDING = "admin:accounts_second_factor"
    ON = "admin:accounts_second_factor_off"


@method_decorator([never_cache, mark_secret, sensitive_post_parameters()], name="dispatch")
class SecondFactorView(View):
    """Asks for a code, and does with a right one what the page is for."""

    title = ""
    button = ""
    # The state of a user who may open the page.
    state = State.ON

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> Any:
        user = request.user
        if not isinstance(user, User) or not (user.is_active and user.is_staff):
            return redirect_to_login(self.get_next_url(), reverse("admin:login"))
        self.user = roles.get_staff(request)
        state = self.get_state()
        if state is self.state:
            return super().dispatch(request, *args, **kwargs)
        if (state, self.state) == (State.ON, State.PENDING):
            return self.redirect_to_next()
        return HttpResponseRedirect(reverse(state))

    def get_state(self) -> State:
        if self.user.second_factor_since is None:
            return State.OFF
        is_pending = self.user.is_second_factor_pending(self.request.session)
        return State.PENDING if is_pending else State.ON

    @cached_property
    def new_device(self) -> TOTPDevice | None:
        """The device that the user is setting up, or None."""
        return None

    def apply(self) -> HttpResponse:
        """Do what the page is for, and return the response; the code was right."""
        raise NotImplementedError

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.render(CodeForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        if "code" not in request.POST:  # A form that is kept until the code is entered.
            return self.render(CodeForm())
        form, now = CodeForm(request.POST), timezone.now()
        if not form.is_valid():
            return self.render(form)
        code = "".join(form.cleaned_data["code"].split())
        attempts = SignInAttempts(self.user.email, get_client_address(request))
        try:
            if not second_factor.verify_code(
                self.user, code, attempts, new_device=self.new_device, now=now
            ):
                form.add_error(
                    "code", "This code is not right. Enter the one that the app shows now."
                )
        except TooManyRequests as error:
            form.add_error("code", error.message)
        if form.errors:
            return self.render(form)
        response = self.apply()
        attempts.record_success(self.user, timezone.now())
        return response

    def get_next_url(self) -> str:
        url = self.request.GET.get("next", "")
        is_safe = url_has_allowed_host_and_scheme(
            url, {self.request.get_host()}, require_https=self.request.is_secure()
        )
        return url if is_safe else reverse("admin:index")

    def redirect_to_next(self) -> HttpResponse:
        site = cast("BackofficeSite", admin.site)
        return site.continue_to(self.request, self.get_next_url())

    def render(self, form: CodeForm) -> HttpResponse:
        context = {
            "form": form,
            "button": self.button,
            "is_pending": self.state is State.PENDING,
            KEPT_FORM: self.request.POST.get(KEPT_FORM, ""),
        }
        return self.render_template("second_factor.html", {**context, **self.get_context()})

    def render_recovery_codes(self, codes: list[str]) -> HttpResponse:
        """Show new recovery codes. It is the only time: the database has their hashes."""
        context = {"codes": codes, "next_url": self.get_next_url()}
        return self.render_template("recovery_codes.html", context)

    def render_template(self, name: str, context: Mapping[str, object]) -> HttpResponse:
        context = {**admin.site.each_context(self.request), "title": self.title, **context}
        return TemplateResponse(self.request, f"backoffice/{name}", context)

    def get_context(self) -> dict[str, object]:
        return {"unused_recovery_codes": second_factor.count_recovery_codes(self.user)}


class VerifyView(SecondFactorView):
    """The second step of signing in."""

    title = "Enter the code of your authenticator app"
    button = "Sign in"
    state = State.PENDING

    def get_context(self) -> dict[str, object]:
        return {}

    def apply(self) -> HttpResponse:
        self.request.session.cycle_key()
        login(self.request, TOTPDevice.objects.get(user=self.user, confirmed=True))
        return self.redirect_to_next()


class SetUpView(SecondFactorView):
    """Turns the second factor on."""

    title = "Set up two-step sign-in"
    button = "Turn on"
    state = State.OFF

    def get(self, request: HttpRequest) -> HttpResponse:
        # Each set-up has a new secret: one that somebody saw earlier must not become valid.
        request.session.pop(NEW_KEY_SESSION_KEY, None)
        return super().get(request)

    @cached_property
    def new_device(self) -> TOTPDevice:
        # The library creates a random key.
        key = self.request.session.setdefault(NEW_KEY_SESSION_KEY, TOTPDevice().key)
        return TOTPDevice(user=self.user, key=key)

    def render(self, form: CodeForm) -> HttpResponse:
        form.fields["code"].label = "Six-digit code"
        form.fields["code"].widget.attrs["inputmode"] = "numeric"
        return super().render(form)

    def get_context(self) -> dict[str, object]:
        qr_code = mark_safe(second_factor.render_qr_code(self.new_device))
        return {"qr_code": qr_code, "key": second_factor.format_key(self.new_device)}

    def apply(self) -> HttpResponse:
        codes = second_factor.turn_on(self.user, self.new_device, now=timezone.now())
        del self.request.session[NEW_KEY_SESSION_KEY]
        update_session_auth_hash(self.request, self.user)
        login(self.request, self.new_device)
        messages.success(self.request, "Two-step sign-in is on. Other browsers were signed out.")
        return self.render_recovery_codes(codes)


class RecoveryCodesView(SecondFactorView):
    """Replaces the recovery codes."""

    title = "Get new recovery codes"
    button = "Get new codes"

    def apply(self) -> HttpResponse:
        return self.render_recovery_codes(second_factor.replace_recovery_codes(self.user))


class TurnOffView(SecondFactorView):
    """Turns the second factor off."""

    title = "Turn off two-step sign-in"
    button = "Turn off"

    def get_context(self) -> dict[str, object]:
        return {**super().get_context(), "is_danger": True}

    def apply(self) -> HttpResponse:
        second_factor.turn_off(self.user, by=self.user, now=timezone.now())
        update_session_auth_hash(self.request, self.user)
        messages.success(self.request, "Two-step sign-in is off.")
        return self.redirect_to_next()


def get_urls() -> list[URLPattern]:
    return [
        path("second-factor/", VerifyView.as_view(), name="accounts_second_factor"),
        path("second-factor/set-up/", SetUpView.as_view(), name="accounts_second_factor_set_up"),
        path(
            "second-factor/recovery-codes/",
            RecoveryCodesView.as_view(),
            name="accounts_recovery_codes",
        ),
        path("second-factor/off/", TurnOffView.as_view(), name="accounts_second_factor_off"),
    ]
