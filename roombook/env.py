"""Reads settings from environment variables. A wrong value stops the start and is named."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")

TRUE_WORDS = {"1", "true", "yes", "on"}
FALSE_WORDS = {"0", "false", "no", "off"}
DATABASE_SCHEMES = {"postgres", "postgresql", "sqlite"}
# The schemes of EMAIL_URL with their usual ports.
DEFAULT_EMAIL_PORTS = {
    "smtp": 25,
    "smtp+tls": 587,
    "smtp+ssl": 465,
    "consolemail": None,
    "filemail": None,
}
EMAIL_SCHEMES = ", ".join(f"{scheme}://" for scheme in DEFAULT_EMAIL_PORTS)


# No app can have these schemes; some of them would run a script.
BROWSER_SCHEMES = {
    *("about", "blob", "chrome", "data", "file", "filesystem", "ftp", "http", "https"),
    *("intent", "javascript", "mailto", "resource", "sms", "tel", "vbscript", "view-source", "ws"),
    "wss",
}


class Required:
    """Instead of a default: the variable must be set."""


def read_text(name: str, default: str | type[Required] = "") -> str:
    return read_value(name, default, str)


def read_bool(name: str, *, default: bool) -> bool:
    """True or false. Other words are errors: `DEBUG=ture` is not taken for false."""

    def parse(raw: str) -> bool:
        if raw.lower() not in TRUE_WORDS | FALSE_WORDS:
            raise ValueError(f"{raw!r} is neither true nor false")
        return raw.lower() in TRUE_WORDS

    return read_value(name, default, parse)


def read_int(name: str, default: int, *, least: int = 0) -> int:
    """A whole number of at least `least`."""

    def parse(raw: str) -> int:
        # int() alone would accept "1_000" and the digits of other scripts.
        if not (raw.isascii() and raw.isdigit() and int(raw) >= least):
            raise ValueError(f"{raw!r} is not a whole number of at least {least}")
        return int(raw)

    return read_value(name, default, parse)


def read_choice(name: str, default: str, choices: Sequence[str]) -> str:
    """One of a few words."""

    def parse(raw: str) -> str:
        if raw not in choices:
            raise ValueError(f"{raw!r} is not one of: {', '.join(choices)}")
        return raw

    return read_value(name, default, parse)


def read_list(name: str) -> list[str]:
    """A list separated by commas, empty by default."""
    return read_value(name, [], lambda raw: [p.strip() for p in raw.split(",") if p.strip()])


def read_app_schemes(name: str) -> list[str]:
    """The schemes of apps' own URLs, such as "myapp", in lower case; none that a browser knows."""

    def parse(raw: str) -> list[str]:
        schemes = [part.strip().lower() for part in raw.split(",") if part.strip()]
        for scheme in schemes:
            if scheme in BROWSER_SCHEMES or not re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme):
                raise ValueError(f"{scheme!r} is not the scheme of an app, such as myapp")
        return schemes

    return read_value(name, [], parse)


def read_host_and_port(name: str) -> tuple[str, int] | None:
    """An address such as 127.0.0.1:9464 as its two parts; None if it is not set."""

    def parse(raw: str) -> tuple[str, int]:
        host, _, port = raw.rpartition(":")
        if not (host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ValueError(f"{raw!r} is not a host and a port, such as 127.0.0.1:9464")
        return host.strip("[]"), int(port)

    return read_value(name, None, parse)


def read_database_url(name: str, default: str) -> dict[str, Any]:
    """A database URL as an entry of Django's DATABASES; empty if it and the default are empty."""

    def parse(raw: str) -> dict[str, Any]:
        # No message repeats the URL, which contains a password.
        try:
            if urlsplit(raw).scheme not in DATABASE_SCHEMES:
                raise ValueError
            return environ.Env.db_url_config(raw)
        except (ValueError, TypeError, KeyError):
            raise ValueError("is not a postgres:// or sqlite:// address") from None

    return read_value(name, parse(default) if default else {}, parse)


def read_email_url(name: str, default: str) -> dict[str, object]:
    """The URL of a mail server as Django's EMAIL_ settings."""

    def parse(raw: str) -> dict[str, object]:
        # No message repeats the URL, which contains a password.
        try:
            url = urlsplit(raw)
            config = environ.Env.email_url_config(raw)
            if url.scheme not in DEFAULT_EMAIL_PORTS or url.query:
                raise ValueError
            if url.scheme.startswith("smtp") and not url.hostname:
                raise ValueError
        except (ValueError, TypeError, KeyError, ImproperlyConfigured):
            raise ValueError(
                f"does not begin with one of: {EMAIL_SCHEMES}, or is malformed"
            ) from None
        if url.scheme == "consolemail":
            config["EMAIL_BACKEND"] = "roombook.console_email.EmailBackend"
        return {
            "EMAIL_USE_TLS": False,
            "EMAIL_USE_SSL": False,
            **config,
            "EMAIL_PORT": config["EMAIL_PORT"] or DEFAULT_EMAIL_PORTS[url.scheme],
            "EMAIL_FILE_PATH": url.path or None,
        }

    return read_value(name, parse(default), parse)


def _split_web_address(raw: str) -> SplitResult | None:
    """Return the parts of an http address, or None. Its errors would repeat it with its secret."""
    try:
        url = urlsplit(raw)
        is_valid = url.scheme in {"http", "https"} and url.hostname and url.port != 0
    except ValueError:
        return None
    return url if is_valid else None


def read_sentry_dsn(name: str) -> str:
    """The address of a project of Sentry: https://key@host/number."""

    def parse(raw: str) -> str:
        url = _split_web_address(raw)
        if not (url and url.username and url.path.rpartition("/")[2].isdigit()):
            raise ValueError("is not an address such as https://key@sentry.example.com/1")
        return raw

    return read_value(name, "", parse)


def read_bucket_url(name: str) -> SplitResult | None:
    """The address of a bucket: https://key:secret@host/bucket?region=name; None if not set."""

    def parse(raw: str) -> SplitResult:
        url = _split_web_address(raw)
        if not (
            url
            and re.fullmatch(r"/[\w.-]+/?", url.path, re.ASCII)
            and re.fullmatch(r"(region=[\w-]+)?", url.query, re.ASCII)
        ):
            raise ValueError("is not an address such as https://key:secret@host/bucket?region=name")
        return url

    return read_value(name, None, parse)


def is_set(name: str) -> bool:
    """Whether the variable has a value, so that the default was not used."""
    return bool(get_raw_value(name))


def read_value(name: str, default: T | type[Required], parse: Callable[[str], T]) -> T:
    """Read and parse one variable. An empty value counts as not set.

    Raises ImproperlyConfigured, which names the variable.
    """
    raw = get_raw_value(name)
    if raw:
        try:
            return parse(raw)
        except ValueError as error:
            raise ImproperlyConfigured(f"{name}: {error}.") from None
    if isinstance(default, type):
        raise ImproperlyConfigured(f"{name} is not set, and it has no default.")
    return default


def get_raw_value(name: str) -> str:
    """The variable, or the content of the file that NAME_FILE points to (for secrets)."""
    try:
        # An editor may have begun the file with a byte order mark.
        return environ.FileAwareEnv.ENVIRON.get(name, "").removeprefix("\ufeff").strip()
    except (OSError, UnicodeDecodeError):
        raise ImproperlyConfigured(f"{name}_FILE: this file cannot be read.") from None
