"""Reads settings from environment variables. A wrong value stops the start and is named.

The parsers of URLs are those of django-environ. Its other ones accept too much: `DEBUG=ture` would
be taken for false. No message repeats a URL, which may contain a password.
"""

import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")

BOOLEANS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
# The schemes of EMAIL_URL with their usual ports.
DEFAULT_EMAIL_PORTS = {
    "smtp": 25,
    "smtp+tls": 587,
    "smtp+ssl": 465,
    "consolemail": None,
    "filemail": None,
}
EMAIL_SCHEMES = ", ".join(f"{scheme}://" for scheme in DEFAULT_EMAIL_PORTS)


LINE = re.compile(r"(#.*|(export )?(?P<name>\w+)=(?P<value>.*))?", re.ASCII)
# Quoted as a whole, "Name" <a@b>, or neither with a quotation mark at an end nor with a comment.
VALUE = re.compile(
    r"""'[^']*' | "(\\.|[^"\\])*" | \s*"[^"]*"\s*<[^<>\s]+@[^<>\s]+>
    | (?!\s*['"\u2018-\u201f]) (?!.*(\s\#|['"\u2018-\u201f]$)) .*""",
    re.VERBOSE,
)


def load_file(path: Path, *, must_exist: bool = False) -> None:
    """Load the variables of a file that the environment does not set, as django-environ does.

    Raises ImproperlyConfigured. The library would skip a line, or a file, that it cannot read, let
    the last of several lines win, and take a comment for a part of the value.
    """
    try:
        lines = [line.strip() for line in path.read_text("utf-8-sig").splitlines()]
    except FileNotFoundError:
        if must_exist or path.is_symlink():
            raise ImproperlyConfigured(f"{path}: there is no such file of settings.") from None
        return
    except (OSError, UnicodeDecodeError) as error:
        why = "is not encoded in UTF-8" if isinstance(error, ValueError) else "cannot be read"
        raise ImproperlyConfigured(f"{path}: this file of settings {why}.") from None
    names: set[str] = set()
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        if "\0" in line:
            raise ImproperlyConfigured(f"{where}: there is a NUL byte.")
        if not (match := LINE.fullmatch(line)):
            raise ImproperlyConfigured(f"{where}: write NAME=value, or # comment.")
        if not (name := match["name"]):
            continue
        if name in names:
            raise ImproperlyConfigured(f"{where}: {name} is set twice in this file.")
        if not VALUE.fullmatch(match["value"]):
            raise ImproperlyConfigured(
                f"{where}: {name}: put quotation marks around the whole value, and a comment on a"
                " line of its own."
            )
        names.add(name)
    environ.Env.read_env(io.StringIO("\n".join(lines)))


class Required:
    """Instead of a default: the variable must be set."""


def read_value(
    name: str, default: T | type[Required], parse: Callable[[str], T], problem: str = ""
) -> T:
    """Read and parse one variable. An empty value counts as not set.

    Raises ImproperlyConfigured, which names the variable and the problem, or what `parse` says.
    """
    raw = get_raw_value(name)
    if raw:
        try:
            return parse(raw)
        except (ValueError, TypeError, KeyError, ImproperlyConfigured) as error:
            raise ImproperlyConfigured(f"{name}: {problem or error}.") from None
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


def is_set(name: str) -> bool:
    """Whether the variable has a value, so that the default was not used."""
    return bool(get_raw_value(name))


def require(condition: object, problem: str = "") -> None:
    if not condition:
        raise ValueError(problem)


def read_text(name: str, default: str | type[Required] = "") -> str:
    return read_value(name, default, str)


def read_bool(name: str, *, default: bool) -> bool:
    def parse(raw: str) -> bool:
        require(raw.lower() in BOOLEANS, f"{raw!r} is neither true nor false")
        return BOOLEANS[raw.lower()]

    return read_value(name, default, parse)


def read_int(name: str, default: int, *, least: int = 0) -> int:
    def parse(raw: str) -> int:
        # int() alone would accept "1_000" and the digits of other scripts.
        is_valid = raw.isascii() and raw.isdigit() and int(raw) >= least
        require(is_valid, f"{raw!r} is not a whole number of at least {least}")
        return int(raw)

    return read_value(name, default, parse)


def read_choice(name: str, default: str, choices: Sequence[str]) -> str:
    def parse(raw: str) -> str:
        require(raw in choices, f"{raw!r} is not one of: {', '.join(choices)}")
        return raw

    return read_value(name, default, parse)


def read_list(name: str) -> list[str]:
    """A list separated by commas, empty by default."""
    return read_value(name, [], lambda raw: [p.strip() for p in raw.split(",") if p.strip()])


def read_app_schemes(name: str) -> list[str]:
    """The schemes of apps' own URLs, such as "myapp", in lower case."""
    schemes = [each.lower() for each in read_list(name)]
    for each in schemes:
        if not re.fullmatch(r"[a-z][a-z0-9+.-]*", each):
            raise ImproperlyConfigured(
                f"{name}: {each!r} is not the scheme of an app, such as myapp."
            )
    return schemes


def read_host_and_port(name: str) -> tuple[str, int] | None:
    """An address such as 127.0.0.1:9464 as its two parts; None if it is not set."""

    def parse(raw: str) -> tuple[str, int]:
        host, _, port = raw.rpartition(":")
        is_valid = host and port.isascii() and port.isdigit() and 0 < int(port) < 65536
        require(is_valid, f"{raw!r} is not a host and a port, such as 127.0.0.1:9464")
        return host.strip("[]"), int(port)

    return read_value(name, None, parse)


def read_database_url(name: str, default: str) -> dict[str, Any]:
    """A database URL as an entry of Django's DATABASES; empty if it and the default are empty."""

    def parse(raw: str) -> dict[str, Any]:
        require(urlsplit(raw).scheme in {"postgres", "postgresql", "sqlite"})
        return environ.Env.db_url_config(raw)

    problem = "is not a postgres:// or sqlite:// address"
    return read_value(name, parse(default) if default else {}, parse, problem)


def read_email_url(name: str, default: str) -> dict[str, object]:
    """The URL of a mail server as Django's EMAIL_ settings."""

    def parse(raw: str) -> dict[str, object]:
        url = urlsplit(raw)
        require(url.scheme in DEFAULT_EMAIL_PORTS and not url.query)
        require(url.hostname or not url.scheme.startswith("smtp"))
        config = environ.Env.email_url_config(raw)
        if url.scheme == "consolemail":
            config["EMAIL_BACKEND"] = "roombook.console_email.EmailBackend"
        return {
            "EMAIL_USE_TLS": False,
            "EMAIL_USE_SSL": False,
            **config,
            "EMAIL_PORT": config["EMAIL_PORT"] or DEFAULT_EMAIL_PORTS[url.scheme],
            "EMAIL_FILE_PATH": url.path or None,
        }

    problem = f"does not begin with one of: {EMAIL_SCHEMES}, or is malformed"
    return read_value(name, parse(default), parse, problem)


def _split_web_address(raw: str) -> SplitResult:
    url = urlsplit(raw)
    require(url.scheme in {"http", "https"} and url.hostname and url.port != 0)
    return url


def read_sentry_dsn(name: str) -> str:
    """The address of a project of Sentry: https://key@host/number."""

    def parse(raw: str) -> str:
        url = _split_web_address(raw)
        require(url.username and url.path.rpartition("/")[2].isdigit())
        return raw

    return read_value(name, "", parse, "is not an address such as https://key@sentry.example.com/1")


def read_bucket_url(name: str) -> SplitResult | None:
    """The address of a bucket: https://key:secret@host/bucket?region=name; None if not set."""

    def parse(raw: str) -> SplitResult:
        url = _split_web_address(raw)
        require(re.fullmatch(r"/[\w.-]+/?", url.path, re.ASCII))
        require(re.fullmatch(r"(region=[\w-]+)?", url.query, re.ASCII))
        return url

    problem = "is not an address such as https://key:secret@host/bucket?region=name"
    return read_value(name, None, parse, problem)
