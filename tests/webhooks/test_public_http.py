"""Requests reach only public addresses, and only the one that was checked (B25.7)."""

import socket
import ssl
import time

import pytest
from django.core.exceptions import ValidationError

from roombook import public_http
from roombook.public_http import (
    RequestFailed,
    is_public_address,
    post,
    validate_public_server,
    validate_public_url,
)
from tests.certificates import create_certificate
from tests.webhooks.receiver import receive

HOST = "hooks.example.com"


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254"),
        *("172.16.0.1", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1"),
        *("203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::8.8.8.8", "64:ff9b::a00:1"),
        *("64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:a00:1::", "3fff::1"),
        *("5f00::1", "fc00::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "4000::1"),
    ],
)
def test_address_is_not_public(address):
    assert not is_public_address(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450::1"])
def test_address_is_public(address):
    assert is_public_address(address)


@pytest.mark.parametrize(
    "url",
    [
        *("http://hooks.example.com/", "https://hooks.example.com:22/", "ftp://example.com/"),
        *("https://", "https:///x", "https://user@example.com/", "https://:pw@example.com/"),
        *("https://example.com/#x", "https://example.com/ x", "https://exämple.com/", "example"),
        *("https://10.0.0.1/", "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[::1/"),
        *("https://169.254.169.254/latest", "https://example.com:99999/", "http://127.0.0.1/"),
        # Names of local networks, and other notations of IPv4 that the system's resolver reads.
        *("https://localhost/", "https://LOCALHOST/", "https://intranet/", "https://a.localhost/"),
        *("https://printer.local/", "https://db.internal/", "https://nas.home.arpa/"),
        *("https://127.1/", "https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/"),
        *("https://10.0x1/", "https://127.0.0.1./", "https://1.2.3.4.5/", "https://%31.0.0.1/"),
        *("https://example..com/", "https://.example.com/", f"https://{'a' * 64}.com/"),
        *("https://-a.com/", "https://example.com./"),
    ],
)
def test_url_is_refused_and_nothing_is_resolved(url):
    with pytest.raises(ValidationError):
        validate_public_url(url)
    with pytest.raises(RequestFailed):
        post(url, b"", {}, resolver=lambda *_: pytest.fail("resolved"))


@pytest.mark.parametrize(
    "host",
    ["a.co", "x_1.example.com", "hooks.xn--p1ai", "8.8.8.8", "[2606:4700::1111]", "A.Com:443"],
)
def test_public_url_is_accepted(host):
    validate_public_url(f"https://{host}/hook?a=b")


@pytest.mark.parametrize("addresses", [["10.0.0.1"], ["8.8.8.8", "::1"], ["169.254.169.254"]])
def test_form_refuses_a_name_that_sending_would_refuse(addresses):
    with pytest.raises(ValidationError, match="not on the public internet"):
        validate_public_server(f"https://{HOST}/", resolver=lambda *_: addresses)
    validate_public_server(f"https://{HOST}/", resolver=lambda *_: ["8.8.8.8"])
    # It is not known yet.
    validate_public_server("https://hooks.invalid/")


def test_own_machine_is_allowed_with_debug_only(settings):
    settings.DEBUG = True
    validate_public_url("http://127.0.0.1:8999/x")
    for url in ("http://127.0.0.2/", "https://127.0.0.1/", "http://10.0.0.1/"):
        with pytest.raises(ValidationError):
            validate_public_url(url)


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["93.184.215.14", "10.0.0.1"], ["::ffff:127.0.0.1"], []]
)
def test_name_with_an_address_that_is_not_public_is_not_connected_to(monkeypatch, addresses):
    """Also numbers such as https://2130706433/, which the system's resolver understands."""
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("connected"))
    with pytest.raises(RequestFailed, match=r"not on the public internet|has no address"):
        post(f"https://{HOST}/", b"", {}, resolver=lambda *_: addresses)
    with pytest.raises(RequestFailed, match="not on the public internet"):
        post("https://2130706433/", b"", {})
    with pytest.raises(RequestFailed, match="cannot be resolved"):
        post("https://hooks.invalid/", b"", {})


def test_name_that_changes_its_address_is_connected_where_it_was_checked(monkeypatch):
    """The stand-in for a name server answers with a public address first, then with ours."""
    answers = [["93.184.215.14"], ["127.0.0.1"]]
    connected = []

    def connect(address, timeout):
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", connect)
    for expected in ("ConnectionRefusedError", "not on the public internet"):
        with pytest.raises(RequestFailed, match=expected):
            post(f"https://{HOST}/", b"", {}, resolver=lambda *_: answers.pop(0))

    assert connected == [("93.184.215.14", 443)]
    assert answers == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    file, key = folder / "certificate.pem", folder / "key.pem"
    create_certificate(HOST, file, key)
    return file, key


def test_connection_to_the_checked_address_has_the_names_host_sni_and_certificate(
    monkeypatch, certificate
):
    names = []
    server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_tls.load_cert_chain(*certificate)
    server_tls.sni_callback = lambda _, name, __: names.append(name)
    tls = ssl.create_default_context(cafile=certificate[0])
    with receive(tls=server_tls) as receiver:
        port = int(receiver.url.split(":")[2].partition("/")[0])
        # The receiver runs on this machine, at any port.
        monkeypatch.setattr(public_http, "is_public_address", lambda _: True)
        monkeypatch.setattr(public_http, "PORTS", {port})

        def send(host, context):
            url = f"https://{host}:{port}/hook"
            return post(url, b"{}", {}, resolver=lambda *_: ["127.0.0.1"], tls=context)

        assert send(HOST, tls).status == 200
        for host, context in (("other.example.com", tls), (HOST, None)):
            with pytest.raises(RequestFailed, match="CERTIFICATE_VERIFY_FAILED"):
                send(host, context)

    [(headers, _)] = receiver.requests
    assert headers["Host"] == f"{HOST}:{port}"
    assert names == [HOST, "other.example.com", HOST]


def test_answer_that_never_ends_is_given_up_at_the_deadline(settings):
    settings.DEBUG = True
    began = time.monotonic()
    with receive(hangs=True) as receiver, pytest.raises(RequestFailed, match="No complete answer"):
        post(receiver.url, b"{}", {}, seconds=0.5)

    assert len(receiver.requests) == 1
    assert time.monotonic() - began < 20


def test_handshake_that_never_ends_is_given_up_at_the_deadline(monkeypatch):
    """A server that accepts the connection and says nothing."""
    monkeypatch.setattr(public_http, "REQUEST_SECONDS", 60)  # the time limit of a single step
    monkeypatch.setattr(public_http, "is_public_address", lambda _: True)
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(public_http, "PORTS", {port})
        url = f"https://{HOST}:{port}/"
        with pytest.raises(RequestFailed, match="No complete answer"):
            post(url, b"", {}, resolver=lambda *_: ["127.0.0.1"], seconds=0.5)

    assert time.monotonic() - began < 30
