"""deploy/nginx/roombook.conf in a real nginx, in front of a server that echoes its requests."""

import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from django.urls import reverse

from accounts.limits import get_network_key
from roombook.secret_paths import SECRET_PATHS
from tests.certificates import create_certificate
from tests.faults.processes import find_free_port, is_listening, wait_for

CONFIGURATION = Path(__file__).parent.parent / "deploy/nginx/roombook.conf"
PROGRAM = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
NAME = "rooms.example.com"
MAIN = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    # What an nginx.conf may set for all its servers.
    gzip on;
    gzip_types *;
    gzip_proxied any;
    # Tests have one address only.
    set_real_ip_from 127.0.0.1;
    real_ip_header Test-Address;
    include {folder}/roombook.conf;
}}
"""

pytestmark = pytest.mark.skipif(
    PROGRAM is None or shutil.which("openssl") is None, reason="nginx and openssl are not installed"
)


class Echo(BaseHTTPRequestHandler):
    """Returns the path, the headers and the length of the body that it received.

    Headers that begin with `Answer-` determine the status and the header Retry-After.
    """

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = len(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        received = {"path": self.path, "headers": dict(self.headers), "length": length}
        body = json.dumps(received).encode()
        self.send_response(int(self.headers.get("Answer-Status", 200)))
        if seconds := self.headers.get("Answer-Retry-After"):
            self.send_header("Retry-After", seconds)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *args):
        pass


class Nginx:
    def __init__(self, folder, *upstream_ports):
        self.http_port, self.https_port = find_free_port(), find_free_port()
        self.folder = folder
        create_certificate(NAME, folder / "fullchain.pem", folder / "privkey.pem")
        text = CONFIGURATION.read_text()
        for configured, used in (
            ("listen 80", f"listen 127.0.0.1:{self.http_port}"),
            ("listen 443", f"listen 127.0.0.1:{self.https_port}"),
            # Only the bursts pass, however long the requests take.
            ("rate=50r/s", "rate=1r/m"),
            ("rate=5r/s", "rate=1r/m"),
            ("server web:8000;", " ".join(f"server 127.0.0.1:{port};" for port in upstream_ports)),
            ("/etc/nginx/tls", str(folder)),
            ("/srv/roombook", str(folder)),
        ):
            assert configured in text
            text = text.replace(configured, used)
        lines = [line for line in text.splitlines() if "listen [::]" not in line]
        (folder / "roombook.conf").write_text("\n".join(lines))
        (folder / "nginx.conf").write_text(MAIN.format(folder=folder))
        command = [PROGRAM, "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
        subprocess.run([*command, "-t"], check=True, capture_output=True)
        self.process = subprocess.Popen(command)
        wait_for(lambda: is_listening(self.https_port), "nginx")

    def stop(self):
        self.process.kill()
        self.process.wait()

    def request(self, path, *, body=b"", host=NAME, name=NAME, **headers):
        """Post over HTTPS. `name` is the name in the handshake, `host` the one in the request."""
        context = ssl.create_default_context(cafile=self.folder / "fullchain.pem")
        context.check_hostname = False
        with (
            socket.create_connection(("127.0.0.1", self.https_port), timeout=20) as plain,
            context.wrap_socket(plain, server_hostname=name) as secured,
            closing(http.client.HTTPConnection(NAME)) as connection,
        ):
            connection.sock = secured
            connection.request("POST", path, body, {"Host": host, **headers})
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def count_statuses(self, path, requests):
        """How often each status came in answer to requests that are sent at the same time."""
        with ThreadPoolExecutor(8) as pool:
            return Counter(pool.map(lambda _: self.request(path)[0], range(requests)))


@pytest.fixture(scope="module")
def upstream():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def nginx(tmp_path, upstream):
    running = Nginx(tmp_path, upstream)
    yield running
    running.stop()


def request_plain(nginx, host):
    connection = http.client.HTTPConnection("127.0.0.1", nginx.http_port, timeout=20)
    with closing(connection):
        connection.request("GET", "/admin/?a=b", headers={"Host": host})
        response = connection.getresponse()
        return response.status, response.headers["Location"]


def test_unknown_host_gets_no_answer_and_plain_http_is_redirected_to_the_configured_name(nginx):
    for host in ("evil.example", "127.0.0.1", "rooms.example.com.evil.example"):
        with pytest.raises(http.client.RemoteDisconnected):
            request_plain(nginx, host)
        # The name of the handshake, or only that of the request.
        with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
            nginx.request("/api/city-centers", name=host, host=host)
        with pytest.raises(http.client.RemoteDisconnected):
            nginx.request("/api/city-centers", host=host)
    for host in (NAME, f"{NAME}:8080"):
        assert request_plain(nginx, host) == (301, f"https://{NAME}/admin/?a=b")


def test_service_gets_the_address_of_the_client_and_not_a_claimed_one(nginx):
    claimed = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http"}
    status, _, body = nginx.request("/api/city-centers", body=b"{}", **claimed)

    assert status == 200
    headers = json.loads(body)["headers"]
    assert headers["X-Forwarded-For"] == "127.0.0.1"
    assert headers["X-Forwarded-Proto"] == "https"
    assert headers["Host"] == NAME
    # Readiness is not public.
    assert nginx.request("/readyz")[0] == 404


def test_body_is_limited_by_path(nginx):
    for path, limit in (
        ("/api/city-centers", 256 * 1024),
        ("/api/sign-in", 16 * 1024),
        ("/api/sign-in.csv", 16 * 1024),
        ("/webhooks/stripe", 256 * 1024),
        ("/admin/login/", 16 * 1024),
        (reverse("admin:accounts_second_factor"), 16 * 1024),
        ("/admin/centers/center/add/", 20 * 1024 * 1024),
    ):
        assert nginx.request(path, body=b"x" * limit)[0] == 200, path

        status, headers, body = nginx.request(path, body=b"x" * (limit + 1))

        assert status == 413, path
        if path.startswith("/api/"):
            assert headers["Content-Type"] == "application/json"
            assert json.loads(body)["Error"]["Summary"] == "RequestTooLarge"


def test_flood_of_sign_ins_is_refused(nginx):
    paths = ["/api/sign-in", "/api/change-password.json", "/api/account/reset-password"]
    paths.append("/admin/login/")
    paths += [reverse(f"admin:accounts_{page}") for page in ("second_factor", "recovery_codes")]

    # They share one limit.
    counts = [nginx.count_statuses(path, 10) for path in paths]
    assert sum(counts, Counter()) == {200: 21, 429: 39}
    # Others are not affected.
    assert nginx.count_statuses("/api/city-centers", 20) == {200: 20}
    status, headers, _ = nginx.request(paths[0])
    assert (status, headers.get_all("Retry-After")) == (429, ["5"])


def test_flood_of_api_requests_is_refused_in_the_envelope(nginx):
    assert nginx.count_statuses("/api/locations/search", 200) == {200: 101, 429: 99}
    # The control: pages have no such limit.
    assert nginx.count_statuses("/admin/", 200) == {200: 200}

    _, headers, body = nginx.request("/api/locations/search")
    assert headers.get_all("Retry-After") == ["5"]
    assert headers["Cache-Control"] == "no-store"
    assert json.loads(body)["Error"]["Summary"] == "TooManyRequests"


def test_flood_of_free_times_is_refused_and_leaves_other_requests(nginx):
    paths = ("free-times", "free-times.csv", "alternatives.json")
    counts = [nginx.count_statuses(f"/api/meeting-rooms/{path}", 20) for path in paths]
    assert sum(counts, Counter()) == {200: 21, 429: 39}
    assert nginx.count_statuses("/api/meeting-rooms/rates", 20) == {200: 20}


def test_limits_count_the_network_that_the_service_counts(nginx):
    """However its addresses are written: nginx leaves out the longest run of zeros."""

    def get_statuses(addresses):
        return Counter(nginx.request("/api/sign-in", **{"Test-Address": a})[0] for a in addresses)

    same = [f"2001:db8::{number:x}:2:3:4" for number in range(1, 25)]
    same += [f"2001:db8:0:{number:x}::" for number in range(1, 256, 60)]
    others = ["2001:db8:0:100::", "2001:db8:1::", "2001:db8:0:a00::", "203.0.113.1", "203.0.113.2"]

    assert get_statuses(same) == {200: 21, 429: len(same) - 21}
    assert get_statuses(others) == {200: len(others)}
    assert len(set(map(get_network_key, same))) == 1
    assert len(set(map(get_network_key, [same[0], *others]))) == 1 + len(others)


def test_unreachable_service_is_503_in_the_envelope(tmp_path):
    nginx = Nginx(tmp_path, find_free_port())
    try:
        status, headers, body = nginx.request("/api/city-centers")
    finally:
        nginx.stop()

    assert (status, headers.get_all("Retry-After")) == (503, ["2"])
    assert json.loads(body)["Error"]["Summary"] == "ServiceUnavailable"


def test_secret_path_is_not_logged_when_nginx_refuses_or_fails(tmp_path):
    nginx = Nginx(tmp_path, find_free_port())
    invitation = reverse("admin:accounts_invitation", args=["MQ", "the-secret"])
    paths = ["/calendar/the-secret.ics", invitation]
    paths += ["/sandbox/setups/the-secret", "/sandbox/payments/the-secret"]
    paths += ["/payments/return?payment_intent_client_secret=the-secret"]
    others = ["/pay/the-secret", "/receipt-file/the-secret.pdf"]
    assert all(any(begin in path for path in [*paths, *others]) for begin in SECRET_PATHS)
    try:
        counts = nginx.count_statuses(paths[0], 110)
        assert [nginx.request(path)[0] for path in paths[1:]] == [502] * 4
        # They share the limit of the first.
        assert {nginx.request(path)[0] for path in others} <= {429, 503}
        nginx.count_statuses("/api/a-public-path", 10)
    finally:
        nginx.stop()

    assert counts == {503: 101, 429: 9}
    log = (tmp_path / "error.log").read_text()
    assert "a-public-path" in log
    assert "the-secret" not in log


def test_nginx_leaves_compression_to_the_service(nginx):
    """It does not know which responses contain a secret."""
    headers = {"Accept-Encoding": "gzip", "X-Long": "x" * 2000}
    for path in ("/api/sign-in", "/api/city-centers", "/admin/"):
        _, received, body = nginx.request(path, **headers)

        assert "Content-Encoding" not in received, path
        assert json.loads(body)["headers"]["Accept-Encoding"] == "gzip"


def test_post_that_was_sent_is_not_sent_to_another_machine(tmp_path):
    """A machine that dies during a checkout may have charged the card."""
    received = []

    def receive(server):
        connection, _ = server.accept()
        received.append(connection.recv(10_000))
        connection.close()

    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    threads = [threading.Thread(target=receive, args=[each], daemon=True) for each in servers]
    for thread in threads:
        thread.start()
    nginx = Nginx(tmp_path, *(each.getsockname()[1] for each in servers))
    try:
        assert nginx.request("/api/reservations/checkout", body=b"{}")[0] == 503
        time.sleep(0.2)
        assert len(received) == 1
    finally:
        nginx.stop()
        for each in servers:
            each.close()
