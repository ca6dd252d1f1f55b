"""System checks of the settings, each with its id. Errors stop the start, warnings are shown."""

import re
from collections.abc import Callable, Iterator
from email.utils import parseaddr
from urllib.parse import urlsplit

from babel import Locale, UnknownLocaleError
from babel.numbers import list_currencies
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004 (Django's name)
from django.core.exceptions import ValidationError
from django.core.files.storage import FileSystemStorage
from django.core.validators import validate_email
from django.utils.module_loading import import_string

MIN_SECRET_KEY_LENGTH = 50
MIN_DISTINCT_CHARACTERS = 5
# A request may wait for the authorization and then for its outcome.
GATEWAY_CALLS_IN_A_LEASE = 2
TEST_KEY_PATTERN = r"(sk|rk)_test_\w+"
LIVE_KEY_PATTERN = r"(sk|rk)_live_\w+"
# No host, a folder of a socket, or the loopback interface.
LOCAL_HOST_PATTERN = r"$|/|localhost$|127\.|::1$"


def check(find: Callable[[], Iterator[CheckMessage]]) -> Callable[..., list[CheckMessage]]:
    """Register a check, which yields what is wrong."""
    return register("roombook")(lambda **_: list(find()))


@check
def check_secret_key() -> Iterator[CheckMessage]:
    """Nobody can forge sessions on a real server."""
    key = settings.SECRET_KEY
    is_long = len(key) >= MIN_SECRET_KEY_LENGTH and len(set(key)) >= MIN_DISTINCT_CHARACTERS
    if settings.DEBUG or (is_long and "insecure" not in key):
        return
    yield Error(
        f"SECRET_KEY is shorter than {MIN_SECRET_KEY_LENGTH} characters or easy to guess.",
        hint="python3 -c 'import secrets; print(secrets.token_urlsafe(50))' creates one.",
        id="roombook.E001",
    )


@check
def check_gateway_is_chosen() -> Iterator[CheckMessage]:
    """No server uses the sandbox, which charges nobody, by accident."""
    if settings.DEBUG or settings.PAYMENT_GATEWAY_IS_CHOSEN:
        return
    yield Error(
        "PAYMENT_GATEWAY is not set:"
        f" the default, {settings.PAYMENT_GATEWAY!r}, would charge nobody.",
        hint="Set it to stripe, or to sandbox if nobody is to be charged.",
        id="roombook.E002",
    )


@check
def check_currency_and_locale() -> Iterator[CheckMessage]:
    """Prices can be formatted."""
    if settings.CURRENCY not in list_currencies():
        yield Error(
            f"CURRENCY: {settings.CURRENCY!r} is not a currency.",
            hint="Use an ISO 4217 code in capitals, such as USD or EUR.",
            id="roombook.E003",
        )
    try:
        Locale.parse(settings.LOCALE)
    except (UnknownLocaleError, ValueError):
        yield Error(
            f"LOCALE: {settings.LOCALE!r} is not a locale.",
            hint="Use a language and a country, such as en_US or de_DE.",
            id="roombook.E004",
        )


@check
def check_database_hosts() -> Iterator[CheckMessage]:
    """Of several database servers, the service writes to the primary."""
    database = settings.DATABASES["default"]
    # The driver's own values. Without one, it takes the first server that answers.
    attributes = database.get("OPTIONS", {}).get("target_session_attrs")
    if "," not in str(database.get("HOST", "")) or attributes in {"read-write", "primary"}:
        return
    yield Error(
        "DATABASE_URL lists several hosts without target_session_attrs=read-write: the first"
        " one that answers may be a standby, which refuses every change.",
        hint="Add ?target_session_attrs=read-write. About fencing, see docs/many-machines.md.",
        id="roombook.E016",
    )


@check
def check_debug() -> Iterator[CheckMessage]:
    """No server shows error pages with its code and settings."""
    is_server = (
        settings.TRUSTED_PROXIES
        or settings.MACHINES > 1
        or re.fullmatch(LIVE_KEY_PATTERN, settings.STRIPE_SECRET_KEY, re.ASCII)
    )
    if not (settings.DEBUG and is_server):
        return
    yield Error(
        "DEBUG is on together with TRUSTED_PROXIES, MACHINES or a live STRIPE_SECRET_KEY:"
        " error pages would show the code and the settings of a server to everybody.",
        hint="Remove DEBUG.",
        id="roombook.E017",
    )


@check
def check_proxy() -> Iterator[CheckMessage]:
    """A service that is reached by HTTPS trusts the proxy that decrypts it: it speaks only HTTP."""
    is_behind_tls = settings.SECURE_SSL_REDIRECT or settings.PUBLIC_URL.startswith("https:")
    if settings.DEBUG or settings.TRUSTED_PROXIES or not is_behind_tls:
        return
    yield Error(
        "TRUSTED_PROXIES is 0, but clients use HTTPS: all of them would share the limits of one"
        " network address, the proxy's, and pages would redirect to https without end.",
        hint="Set it to the number of your proxies, such as 1 for nginx on this machine.",
        id="roombook.E022",
    )


@check
def check_machines_share_everything() -> Iterator[CheckMessage]:
    """Several machines have one database, and show the same pictures."""
    if settings.MACHINES == 1:
        return
    database = settings.DATABASES["default"]
    hosts = str(database.get("HOST", "")).split(",")
    is_local = any(re.match(LOCAL_HOST_PATTERN, host) for host in hosts)
    # A pooler may run on each machine.
    if "postgresql" not in database["ENGINE"] or (is_local and not settings.PGBOUNCER):
        yield Error(
            "DATABASE_URL is a file or a server on one machine, but MACHINES is more than 1.",
            hint="Use a PostgreSQL server that all machines reach by the same name, or set"
            " PGBOUNCER=true if each machine has a pooler.",
            id="roombook.E018",
        )
    backend = import_string(settings.STORAGES["default"]["BACKEND"])
    if issubclass(backend, FileSystemStorage) and not settings.MEDIA_IS_SHARED:
        yield Error(
            "Pictures are stored on one machine (MEDIA_ROOT), but MACHINES is more than 1.",
            hint="Put MEDIA_ROOT on a file system of all machines and set MEDIA_IS_SHARED=true,"
            " or set MEDIA_BUCKET_URL.",
            id="roombook.E019",
        )


@check
def check_minimum_app_version() -> Iterator[CheckMessage]:
    """The version of an app can be compared with the oldest one that is supported."""
    if re.fullmatch(r"(\d+(\.\d+)*)?", settings.MINIMUM_APP_VERSION, re.ASCII):
        return
    yield Error(
        f"MINIMUM_APP_VERSION: {settings.MINIMUM_APP_VERSION!r} is not a version.",
        hint="Use numbers with dots between them, such as 2.4.1.",
        id="roombook.E005",
    )


@check
def check_hosts_and_urls() -> Iterator[CheckMessage]:
    """Clients can reach the service, and no client chooses the URLs that others receive."""
    if not settings.DEBUG and not settings.ALLOWED_HOSTS:
        yield Error(
            "ALLOWED_HOSTS is empty: every request would be refused.",
            hint="List the host names of the service, separated by commas.",
            id="roombook.E006",
        )
    if "*" in settings.ALLOWED_HOSTS and not settings.PUBLIC_URL:
        yield Error(
            "ALLOWED_HOSTS=* lets every client choose the host in the URLs of pictures.",
            hint="List the host names, or set PUBLIC_URL.",
            id="roombook.E007",
        )
    url = urlsplit(settings.PUBLIC_URL)
    if settings.PUBLIC_URL and not (
        url.scheme in {"http", "https"} and url.hostname and not (url.query or url.fragment)
    ):
        yield Error(
            f"PUBLIC_URL: {settings.PUBLIC_URL!r} is not a URL.",
            hint="Use a URL such as https://rooms.example.com",
            id="roombook.E008",
        )


@check
def check_durations() -> Iterator[CheckMessage]:
    """Durations that depend on each other fit together."""
    if settings.PAYMENT_LEASE_SECONDS <= GATEWAY_CALLS_IN_A_LEASE * settings.GATEWAY_TIMEOUT:
        yield Error(
            "PAYMENT_LEASE_SECONDS is not more than twice GATEWAY_TIMEOUT: a second request"
            " could resolve a payment while the first one still waits for the gateway.",
            id="roombook.E009",
        )


@check
def check_email_addresses() -> Iterator[CheckMessage]:
    """E-mails can be sent and answered."""
    sender = parseaddr(settings.DEFAULT_FROM_EMAIL)[1]
    for name, address in (
        ("DEFAULT_FROM_EMAIL", sender),
        *([("SUPPORT_EMAIL", settings.SUPPORT_EMAIL)] if settings.SUPPORT_EMAIL else []),
    ):
        try:
            validate_email(address)
        except ValidationError:
            yield Error(
                f"{name}: {getattr(settings, name)!r} is not an e-mail address.",
                hint="Use rooms@example.com, or as the sender Rooms <rooms@example.com>.",
                id="roombook.E011",
            )
    if not settings.DEBUG and sender.endswith("@localhost"):
        yield Warning(
            f"DEFAULT_FROM_EMAIL: most mail servers refuse e-mails from {sender}.",
            hint="Set it to an address of yours, such as Rooms <rooms@example.com>.",
            id="roombook.W001",
        )


# The shortest validity of an authorization: with Visa, 4 days and 18 hours for a stored card.
AUTHORIZATION_VALID_HOURS = 114


@check
def check_stripe_keys() -> Iterator[CheckMessage]:
    """With Stripe as the gateway, its keys are set and of the right kind."""
    if settings.PAYMENT_GATEWAY != "stripe":
        return
    key, test_key = settings.STRIPE_SECRET_KEY, settings.STRIPE_TEST_SECRET_KEY
    is_live = re.fullmatch(LIVE_KEY_PATTERN, key, re.ASCII)
    is_test = re.fullmatch(TEST_KEY_PATTERN, key, re.ASCII)
    # No message repeats a key: messages end up in logs.
    if not is_live and not is_test:
        yield Error(
            "STRIPE_SECRET_KEY is missing or not a secret key.",
            hint="It begins with sk_live_ or sk_test_: Stripe's dashboard, Developers.",
            id="roombook.E012",
        )
    if (test_key or is_live) and not re.fullmatch(TEST_KEY_PATTERN, test_key, re.ASCII):
        yield Error(
            "STRIPE_TEST_SECRET_KEY is missing or not a test key: TestMode needs it.",
            hint="Use the key of the same account that begins with sk_test_.",
            id="roombook.E013",
        )
    # With another secret key, which is reported above, either mode is possible.
    mode = "live" if is_live else "test" if is_test else "(live|test)"
    if not re.fullmatch(rf"pk_{mode}_\w+", settings.STRIPE_PUBLISHABLE_KEY, re.ASCII):
        yield Error(
            "STRIPE_PUBLISHABLE_KEY is missing or not the publishable key of the same mode as"
            " STRIPE_SECRET_KEY: apps could not let customers enter a card.",
            hint="It begins with pk_live_ or pk_test_: Stripe's dashboard, Developers.",
            id="roombook.E024",
        )
    if not re.fullmatch(r"whsec_\S+", settings.STRIPE_WEBHOOK_SECRET):
        yield Error(
            "STRIPE_WEBHOOK_SECRET is missing or not a signing secret: disputes, and refunds"
            " made in Stripe's dashboard, would go unnoticed.",
            hint="It begins with whsec_: create a webhook for <PUBLIC_URL>/webhooks/stripe.",
            id="roombook.E014",
        )
    if settings.STRIPE_API_BASE and is_live:
        yield Error(
            "STRIPE_API_BASE is set together with a live STRIPE_SECRET_KEY: cards would be"
            " sent to a server that is not Stripe's.",
            id="roombook.E015",
        )
    if settings.PENDING_HOURS >= AUTHORIZATION_VALID_HOURS:
        yield Error(
            f"PENDING_HOURS is more than {AUTHORIZATION_VALID_HOURS - 1}: authorizations may"
            " expire before the center approves the booking.",
            id="roombook.E025",
        )
