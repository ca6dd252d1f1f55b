"""Sends requests to addresses that staff have entered, and to public addresses only.

Nobody can reach a service of the internal network this way (server-side request forgery): a name is
resolved once for each request, every address that it has must be public, and the connection is
made to the address that was checked, while the certificate is that of the name. So a name that
resolves to another address later (DNS rebinding) gains nothing. Redirects are not followed, and
proxies of the environment are not used.
"""

import functools
import http.client
import ipaddress
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Timer
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError

MAX_URL_LENGTH = 500
PORTS = {443, 8443}
CONNECT_SECONDS = 5.0
# For the whole request: an endpoint that sends one byte after the other gets no more time.
REQUEST_SECONDS = 10.0
MAX_RESPONSE_BYTES = 1000
MAX_ADDRESSES = 4

# What the standard library counts as global, although it leads elsewhere: translation to IPv4
# (NAT64, 6to4, Teredo) could reach a private address, and relays and multicast reach many.
NOT_PUBLIC_NETWORKS = [
    ipaddress.ip_network(network)
    for network in (
        *("192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/4"),
        *("2001::/23", "2002::/16", "3fff::/20"),
    )
]
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")

# Names of local networks, and the short and hexadecimal notations of IPv4, are no public names.
PUBLIC_NAME = re.compile(
    r"(?!.*\.(localhost|local|internal|onion|home\.arpa)$)"
    r"([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]"
)
NOT_PUBLIC = "This address is not on the public internet."

Resolver = Callable[[str, int], list[str]]


class RequestFailed(Exception):
    """No response was received. The text says why, for staff."""


@dataclass(frozen=True, slots=True)
class HTTPResult:
    """A response: its status, the beginning of its body, and the header Retry-After."""

    status: int
    body: str
    retry_after: str


def is_public_address(address: str) -> bool:
    """Whether an IP address is reachable from the internet and belongs to one host."""
    ip = ipaddress.ip_address(address)
    if not ip.is_global or any(ip in network for network in NOT_PUBLIC_NETWORKS):
        return False
    # IPv6 has notations of IPv4 addresses outside the global unicast addresses.
    return ip.version == 4 or ip in GLOBAL_UNICAST


def resolve(host: str, port: int) -> list[str]:
    """Return all IP addresses of a name, in the order in which the system prefers them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def validate_public_url(url: str) -> None:
    """Refuse an address that is not one of a public HTTPS server, as far as its text tells.

    With DEBUG, http:// to the own machine is allowed too. Raises ValidationError.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValidationError("This is not a valid address.") from None
    if not re.fullmatch(r"[!-~]+", url) or parts.username is not None or parts.fragment:
        raise ValidationError(
            "The address must not contain spaces, a user name, # or letters other than ASCII."
        )
    if _is_own_machine(parts):
        return
    if parts.scheme != "https" or not parts.hostname:
        raise ValidationError("The address must begin with https://.")
    if port is not None and port not in PORTS:
        raise ValidationError("The port must be 443 or 8443.")
    try:
        is_public = is_public_address(parts.hostname)
    except ValueError:
        is_public = bool(PUBLIC_NAME.fullmatch(parts.hostname))
    if not is_public:
        raise ValidationError(NOT_PUBLIC)


def validate_public_server(url: str, *, resolver: Resolver = resolve) -> None:
    """Refuse what `validate_public_url` refuses, and a name with an address that is not public.

    A name that cannot be resolved passes: it may get its address later, and sending says so.
    """
    validate_public_url(url)
    parts = urlsplit(url)
    with suppress(OSError, UnicodeError):
        addresses = resolver(parts.hostname or "", parts.port or 443)
        if not _is_own_machine(parts) and not all(map(is_public_address, addresses)):
            raise ValidationError(NOT_PUBLIC)


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    resolver: Resolver = resolve,
    seconds: float = REQUEST_SECONDS,
    tls: ssl.SSLContext | None = None,
) -> HTTPResult:
    """Send a request to a public address and return the response, whatever its status.

    `tls` replaces the certificate authorities of the system.

    Raises RequestFailed if the address is refused, or if nothing answers in time.
    """
    try:
        validate_public_url(url)
    except ValidationError as error:
        raise RequestFailed(" ".join(error.messages)) from None
    parts = urlsplit(url)
    addresses = _resolve_public(parts, resolver)
    if parts.scheme == "https" and tls is None:
        tls = get_system_tls()
    connection = PinnedConnection(parts, addresses, tls if parts.scheme == "https" else None)
    deadline = Timer(seconds, connection.abort)
    deadline.daemon = True
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        deadline.start()
        connection.request("POST", target, body, {"Host": parts.netloc, **headers})
        response = connection.getresponse()
        text = response.read(MAX_RESPONSE_BYTES).decode("utf-8", "replace")
        if connection.is_aborted:  # The standard library takes headers that end early as complete.
            raise TimeoutError
        return HTTPResult(response.status, text, response.getheader("Retry-After", ""))
    except (http.client.HTTPException, OSError, ValueError) as error:
        if connection.is_aborted:
            raise RequestFailed(f"No complete answer within {seconds:g} seconds.") from error
        raise RequestFailed(f"{type(error).__name__}: {error}") from error
    finally:
        deadline.cancel()
        connection.close()


@functools.cache
def get_system_tls() -> ssl.SSLContext:
    """Return the certificate authorities of the system, which take milliseconds to read."""
    return ssl.create_default_context()


class PinnedConnection(http.client.HTTPConnection):
    """A connection to one of the addresses that were checked, with TLS for the name."""

    def __init__(
        self, parts: SplitResult, addresses: list[str], tls: ssl.SSLContext | None
    ) -> None:
        default_port = 443 if tls else 80
        super().__init__(parts.hostname or "", parts.port or default_port, REQUEST_SECONDS)
        self.addresses, self.tls = addresses, tls
        self.is_aborted = False
        self._socket: socket.socket | None = None

    def connect(self) -> None:
        plain = self._connect_to_first()
        # A second descriptor: TLS takes the first one away while it negotiates.
        self._socket = plain.dup()
        plain.settimeout(REQUEST_SECONDS)
        if self.is_aborted:
            raise TimeoutError
        self.sock = self.tls.wrap_socket(plain, server_hostname=self.host) if self.tls else plain

    def _connect_to_first(self) -> socket.socket:
        """Connect to the first address that answers."""
        *others, last = self.addresses[:MAX_ADDRESSES]
        for address in others:
            with suppress(OSError):
                return socket.create_connection((address, self.port), CONNECT_SECONDS)
        return socket.create_connection((last, self.port), CONNECT_SECONDS)

    def abort(self) -> None:
        """End the connection from another thread; what waits for it raises an error."""
        self.is_aborted = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        super().close()
        if self._socket is not None:
            self._socket.close()


def _is_own_machine(parts: SplitResult) -> bool:
    is_loopback = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    return bool(settings.DEBUG) and parts.scheme == "http" and is_loopback


def _resolve_public(parts: SplitResult, resolver: Resolver) -> list[str]:
    """Return the addresses of a name. One that is not public refuses the name."""
    host = parts.hostname or ""
    try:
        addresses = resolver(host, parts.port or 443)
    except (OSError, UnicodeError) as error:
        raise RequestFailed(f"The name {host} cannot be resolved.") from error
    if not addresses:
        raise RequestFailed(f"The name {host} has no address.")
    if not _is_own_machine(parts) and not all(map(is_public_address, addresses)):
        raise RequestFailed(f"{host} has an address that is not on the public internet.")
    return addresses
