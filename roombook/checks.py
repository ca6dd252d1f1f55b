"""What must not be wrong when the service starts, each with its id."""

import re
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

from babel import Locale, UnknownLocaleError
from babel.numbers import list_currencies
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004 (Django's name)
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

MIN_SECRET_KEY_LENGTH = 50
MIN_DISTINCT_CHARACTERS = 5
# A request may wait for an authorization, and then for what became of it.
GATEWAY_CALLS_IN_A_LEASE = 2


@register("roombook")
def check_secret_key(**_: Any) -> list[CheckMessage]:
    """Sessions cannot be forged on a real server."""
    key = settings.SECRET_KEY
    good = len(key) >= MIN_SECRET_KEY_LENGTH and len(set(key)) >= MIN_DISTINCT_CHARACTERS
    if settings.DEBUG or (good and "insecure" not in key):
        return []
    return [
        Error(
            f"SECRET_KEY is shorter than {MIN_SECRET_KEY_LENGTH} characters or easily guessed.",
            hint="python3 -c 'import secrets; print(secrets.token_urlsafe(50))' makes one.",
            id="roombook.E001",
        )
    ]


@register("roombook")
def check_gateway_is_chosen(**_: Any) -> list[CheckMessage]:
    """Nobody opens for business on a gateway that charges nobody, without meaning to."""
    if settings.DEBUG or settings.PAYMENT_GATEWAY_IS_CHOSEN:
        return []
    return [
        Error(
            f"No payment gateway was chosen: {settings.PAYMENT_GATEWAY!r} would charge nobody.",
            hint="Set PAYMENT_GATEWAY; PAYMENT_GATEWAY=sandbox if that is what you mean.",
            id="roombook.E002",
        )
    ]


@register("roombook")
def check_currency_and_locale(**_: Any) -> list[CheckMessage]:
    """Prices can be written."""
    problems: list[CheckMessage] = []
    if settings.CURRENCY not in list_currencies():
        problems.append(
            Error(
                f"CURRENCY: {settings.CURRENCY!r} is no currency.",
                hint="An ISO 4217 code in capitals, such as USD or EUR.",
                id="roombook.E003",
            )
        )
    try:
        Locale.parse(settings.LOCALE)
    except (UnknownLocaleError, ValueError):
        problems.append(
            Error(
                f"LOCALE: {settings.LOCALE!r} is no locale.",
                hint="Language and country, such as en_US or de_DE.",
                id="roombook.E004",
            )
        )
    return problems


@register("roombook")
def check_minimum_app_version(**_: Any) -> list[CheckMessage]:
    """The oldest app that may call is known."""
    if re.fullmatch(r"(\d+(\.\d+)*)?", settings.MINIMUM_APP_VERSION, re.ASCII):
        return []
    return [
        Error(
            f"MINIMUM_APP_VERSION: {settings.MINIMUM_APP_VERSION!r} cannot be read.",
            hint="Numbers with dots between them, such as 2.4.1.",
            id="roombook.E005",
        )
    ]


@register("roombook")
def check_hosts_and_urls(**_: Any) -> list[CheckMessage]:
    """Clients reach the service, and no caller decides what the addresses in answers look like."""
    problems: list[CheckMessage] = []
    if not settings.DEBUG and not settings.ALLOWED_HOSTS:
        problems.append(
            Error(
                "ALLOWED_HOSTS is empty: every request would be refused.",
                hint="The names under which clients reach the service, commas between them.",
                id="roombook.E006",
            )
        )
    if "*" in settings.ALLOWED_HOSTS and not settings.PUBLIC_URL:
        problems.append(
            Error(
                "ALLOWED_HOSTS=* lets any caller choose the host in pictures' addresses.",
                hint="Name the hosts, or set PUBLIC_URL.",
                id="roombook.E007",
            )
        )
    url = urlsplit(settings.PUBLIC_URL)
    if settings.PUBLIC_URL and not (
        url.scheme in {"http", "https"} and url.hostname and not (url.query or url.fragment)
    ):
        problems.append(
            Error(
                f"PUBLIC_URL: {settings.PUBLIC_URL!r} is no web address.",
                hint="Such as https://rooms.example.com",
                id="roombook.E008",
            )
        )
    return problems


@register("roombook")
def check_durations(**_: Any) -> list[CheckMessage]:
    """Settings that only make sense together do."""
    problems: list[CheckMessage] = []
    if settings.PAYMENT_LEASE_SECONDS <= GATEWAY_CALLS_IN_A_LEASE * settings.GATEWAY_TIMEOUT:
        problems.append(
            Error(
                "PAYMENT_LEASE_SECONDS is not above twice GATEWAY_TIMEOUT: a second request could"
                " settle a payment while the first still waits for the gateway.",
                id="roombook.E009",
            )
        )
    if settings.TOKEN_IDLE_DAYS > settings.TOKEN_MAX_DAYS:
        problems.append(
            Error(
                "TOKEN_IDLE_DAYS is above TOKEN_MAX_DAYS.",
                hint="A token cannot rest for longer than it lives.",
                id="roombook.E010",
            )
        )
    return problems


@register("roombook")
def check_email_addresses(**_: Any) -> list[CheckMessage]:
    """Mails can be sent and answered."""
    problems: list[CheckMessage] = []
    sender = parseaddr(settings.DEFAULT_FROM_EMAIL)[1]
    for name, address in (
        ("DEFAULT_FROM_EMAIL", sender),
        *([("SUPPORT_EMAIL", settings.SUPPORT_EMAIL)] if settings.SUPPORT_EMAIL else []),
    ):
        try:
            validate_email(address)
        except ValidationError:
            problems.append(
                Error(
                    f"{name}: {getattr(settings, name)!r} is no mail address.",
                    hint="Such as rooms@example.com; before the sender's may stand a name.",
                    id="roombook.E011",
                )
            )
    if not settings.DEBUG and sender.endswith("@localhost"):
        problems.append(
            Warning(
                f"Mails would come from {sender}, which most mail servers refuse.",
                hint="Set DEFAULT_FROM_EMAIL, such as: Rooms <rooms@example.com>",
                id="roombook.W001",
            )
        )
    return problems


TEST_KEY_PATTERN = r"(sk|rk)_test_\w+"
LIVE_KEY_PATTERN = r"(sk|rk)_live_\w+"
# Visa gives money back that was reserved on a kept card after 4 days and 18 hours, the earliest.
AUTHORIZATION_VALID_HOURS = 114


@register("roombook")
def check_stripe_keys(**_: Any) -> list[CheckMessage]:
    """Where Stripe takes the money, its keys are there and of the right kind."""
    if settings.PAYMENT_GATEWAY != "stripe":
        return []
    problems: list[CheckMessage] = []
    key, test_key = settings.STRIPE_SECRET_KEY, settings.STRIPE_TEST_SECRET_KEY
    is_live = re.fullmatch(LIVE_KEY_PATTERN, key, re.ASCII)
    # No message repeats a key: they end up in logs.
    if not is_live and not re.fullmatch(TEST_KEY_PATTERN, key, re.ASCII):
        problems.append(
            Error(
                "STRIPE_SECRET_KEY is missing, or no secret key.",
                hint="It begins with sk_live_ or sk_test_: Stripe's dashboard, Developers.",
                id="roombook.E012",
            )
        )
    if (test_key or is_live) and not re.fullmatch(TEST_KEY_PATTERN, test_key, re.ASCII):
        problems.append(
            Error(
                "STRIPE_TEST_SECRET_KEY is missing, or no test key: TestMode could judge no card.",
                hint="The same account's key that begins with sk_test_.",
                id="roombook.E013",
            )
        )
    if not re.fullmatch(r"whsec_\S+", settings.STRIPE_WEBHOOK_SECRET):
        problems.append(
            Error(
                "STRIPE_WEBHOOK_SECRET is missing, or none: nobody would learn of disputes and of"
                " refunds made in Stripe's dashboard.",
                hint="It begins with whsec_: make a webhook for <PUBLIC_URL>/webhooks/stripe.",
                id="roombook.E014",
            )
        )
    if settings.STRIPE_API_BASE and is_live:
        problems.append(
            Error(
                "STRIPE_API_BASE is set, and STRIPE_SECRET_KEY is a live key: cards would be sent"
                " to somebody who is not Stripe.",
                id="roombook.E015",
            )
        )
    if settings.PENDING_HOURS >= AUTHORIZATION_VALID_HOURS:
        problems.append(
            Warning(
                f"PENDING_HOURS is above {AUTHORIZATION_VALID_HOURS - 1}:"
                " money that was reserved may be back with the customer before a center agrees.",
                id="roombook.W002",
            )
        )
    return problems
