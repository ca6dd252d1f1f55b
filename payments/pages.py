"""Pages for customers: those of the sandbox gateway, and the one at the end of another gateway's.

The sandbox's pages play what a real gateway shows on its own host. Their addresses have a secret.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from uuid import UUID

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from payments.cards import Card, CardFields, parse_card
from payments.gateways.sandbox import (
    DECLINE_MESSAGES,
    NOT_A_TEST_CARD,
    OPEN_STATES,
    confirm_payment,
    confirm_setup,
    get_outcome,
    refuse_payment,
    refuse_setup,
)
from payments.gateways.sandbox_models import SandboxPayment, SandboxSetup
from payments.models import PaymentSetup
from roombook.errors import InvalidRequest
from roombook.middleware import mark_secret, secret_page
from roombook.money import format_amount


@secret_page
@require_safe
def show_return_page(request: HttpRequest, setup: UUID | None = None) -> HttpResponse:
    """Lead back to the app of a payment setup, or say that the customer can go back to it.

    Gateways lead to pages only, and not to the scheme of an app. Stripe adds the client secret of a
    payment to the address, which no other site gets.
    """
    found = PaymentSetup.objects.filter(key=setup).first() if setup else None
    url = found.return_url if found else ""
    return render(request, "payments/return.html", {"return_url": url})


def sandbox_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponseBase]:
    """Decorates a page of the sandbox: 404 with another gateway."""

    # Anyone who knows the secret address may do everything here, so a token against forgery adds
    # nothing; without it, no cookie is needed.
    @wraps(view)
    @csrf_exempt
    @mark_secret
    @secret_page
    @sensitive_post_parameters()
    @require_http_methods(["GET", "HEAD", "POST"])
    def wrapper(request: HttpRequest, secret: str) -> HttpResponse:
        if settings.PAYMENT_GATEWAY != "sandbox":
            raise Http404
        return view(request, secret)

    return wrapper


class UnfilledInput(forms.TextInput):
    """An input that never shows what was sent: nobody shall find a card number in a page."""

    def format_value(self, value: object) -> None:
        return None


class TestCardForm(forms.Form):
    """A test card. Its errors never repeat what was entered."""

    number = forms.CharField(
        label="Card number",
        max_length=40,
        widget=UnfilledInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
    )
    expiry = forms.CharField(
        label="Expires (month and year)",
        max_length=10,
        widget=UnfilledInput(attrs={"placeholder": "12/35", "autocomplete": "off"}),
    )
    code = forms.CharField(
        label="Security code",
        max_length=10,
        widget=UnfilledInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
    )
    # Under which name each error of a card is shown.
    FIELDS = {
        "payment_info.credit_card_number": "number",
        "payment_info.expiration_date": "expiry",
        "payment_info.security_code": "code",
    }

    def __init__(self, data: object = None, *, now: datetime) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        self.now = now

    def clean_expiry(self) -> datetime:
        match = re.fullmatch(
            r"(0?[1-9]|1[0-2]) ?[/-] ?(?:20)?(\d\d)", self.cleaned_data["expiry"], re.ASCII
        )
        if not match:
            raise ValidationError("Enter a month and a year, such as 12/35.")
        return datetime(2000 + int(match[2]), int(match[1]), 1, tzinfo=UTC)

    def clean(self) -> None:
        if not self.errors:
            self.card = self._parse_card()

    def _parse_card(self) -> Card | None:
        fields: CardFields = {
            # A gateway asks for the holder in its own way; the sandbox does not need one.
            "first_name": "Test",
            "last_name": "Card",
            "credit_card_number": self.cleaned_data["number"],
            "expiration_date": self.cleaned_data["expiry"],
            "security_code": self.cleaned_data["code"],
        }
        try:
            card = parse_card(fields, now=self.now)
        except InvalidRequest as error:
            for name, reason in error.fields.items():
                self.add_error(self.FIELDS[name], reason)
            return None
        if get_outcome(card.number) == NOT_A_TEST_CARD:
            self.add_error("number", DECLINE_MESSAGES[NOT_A_TEST_CARD])
        return card


@sandbox_page
def show_sandbox_setup(request: HttpRequest, secret: str) -> HttpResponse:
    """Let the customer enter a test card, and confirm or refuse it as at the bank."""
    setup = SandboxSetup.objects.filter(secret=secret).first()
    if setup is None:
        raise Http404
    now = timezone.now()
    if setup.state not in OPEN_STATES or setup.expires_at <= now:
        return render(request, "payments/sandbox_setup_ended.html", {"setup": setup})
    action = request.POST.get("action")
    form = TestCardForm(request.POST if action == "confirm" else None, now=now)
    if action == "refuse":
        refuse_setup(secret)
    elif not form.is_valid() or form.card is None:
        return render(request, "payments/sandbox_setup.html", {"setup": setup, "form": form})
    else:
        confirm_setup(secret, form.card)
    return HttpResponseRedirect(request.path)


PAYMENT_HEADINGS = {
    "authorized": "Thank you",
    "captured": "Thank you",
    "declined": "The payment was not confirmed",
}


@sandbox_page
def show_sandbox_payment(request: HttpRequest, secret: str) -> HttpResponse:
    """Play the bank, which asks the customer to confirm a payment (B21.3)."""
    payment = SandboxPayment.objects.filter(secret=secret).first()
    if payment is None:
        raise Http404
    if payment.state != "action_required":
        heading = PAYMENT_HEADINGS.get(payment.state, "Too late")
        return render(request, "payments/sandbox_payment_ended.html", {"heading": heading})
    act = {"confirm": confirm_payment, "refuse": refuse_payment}.get(request.POST.get("action", ""))
    is_unanswered = act is not None and act(secret).state == "action_required"
    if act is not None and not is_unanswered:
        return HttpResponseRedirect(request.path)
    context = {
        "payment": payment,
        "amount": format_amount(payment.amount, payment.currency),
        "is_unanswered": is_unanswered,
    }
    return render(request, "payments/sandbox_payment.html", context)
