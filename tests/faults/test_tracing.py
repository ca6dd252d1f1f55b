"""The service with OpenTelemetry's launcher, as docs/metrics.md describes it.

The libraries are installed into an environment of their own, which also has the packages of ours.
"""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.faults.client import CustomerClient, send
from tests.faults.processes import wait_for
from tests.faults.service import GUNICORN, ROOT, Service
from tests.faults.size import LONG
from tests.faults.world import CARD, World
from tests.locks import install_lock

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not LONG, reason="installs the libraries: make faults"),
]

CALENDAR_SECRET = "0123456789abcdef" * 4
PASSWORD = "wrong-password-of-a-customer"
READ_TRACES = """
import json, sys
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
for file in sys.argv[1:]:
    request = ExportTraceServiceRequest.FromString(open(file, "rb").read())
    print(json.dumps(MessageToDict(request)))
"""


def get_documented_exclusions() -> str:
    [excluded] = re.findall(
        r"OTEL_PYTHON_DJANGO_EXCLUDED_URLS=(\S+)", (ROOT / "docs/metrics.md").read_text()
    )
    return str(excluded)


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """The folder of the launcher's program, of Python and of gunicorn."""
    folder = tmp_path_factory.mktemp("tracing")
    programs = install_lock("deploy/tracing.txt", folder)
    [packages] = folder.glob("lib/python*/site-packages")
    [ours] = (each for each in sys.path if each.endswith("site-packages"))
    (packages / "ours.pth").write_text(ours)
    gunicorn = programs / "gunicorn"
    gunicorn.write_text(re.sub("^#!.*", f"#!{programs}/python", GUNICORN.read_text()))
    gunicorn.chmod(0o755)
    return programs


@pytest.fixture
def receiver(tmp_path) -> Iterator[ThreadingHTTPServer]:
    """Stores each body that is sent to it as a file in `tmp_path`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                number = len(list(tmp_path.glob("*.traces")))
                (tmp_path / f"{number}.traces").write_bytes(body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    lock = threading.Lock()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def read_spans(programs: Path, folder: Path) -> list[dict]:
    files = sorted(folder.glob("*.traces"))
    read = subprocess.run(
        [programs / "python", "-c", READ_TRACES, *files], capture_output=True, text=True, check=True
    )
    resources = [
        each for line in read.stdout.splitlines() for each in json.loads(line)["resourceSpans"]
    ]
    scopes = [scope for each in resources for scope in each["scopeSpans"]]
    return [span for scope in scopes for span in scope["spans"]]


def test_each_request_and_statement_is_a_span_without_data_of_customers(
    store, programs, receiver, tmp_path
):
    service = Service(
        store.new(),
        tmp_path / "service",
        program=(programs / "opentelemetry-instrument", programs / "gunicorn"),
        DJANGO_SETTINGS_MODULE="roombook.settings",
        OTEL_SERVICE_NAME="roombook",
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{receiver.server_port}",
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        OTEL_METRICS_EXPORTER="none",
        OTEL_LOGS_EXPORTER="none",
        OTEL_PYTHON_DJANGO_EXCLUDED_URLS=get_documented_exclusions(),
        OTEL_BSP_SCHEDULE_DELAY="100",
    )
    try:
        with service.database.open():
            world = World(service)
            room, start = world.room(), world.start()
            customer = world.customer()
            session = world.staff_session()
        client: CustomerClient = customer.client
        span = {"StartDate": start.isoformat(), "EndDate": start.replace(hour=23).isoformat()}
        draft = client.post("reservations/create", MeetingRoomId=room.pk, **span)
        pk = draft.body["Reservation"]["Id"]
        assert client.checkout(pk, CARD).code == "Confirmed"
        sign_in = json.dumps({"EmailAddress": customer.user.email, "Password": PASSWORD})
        headers = {"Content-Type": "application/json"}
        assert send(service.port, "/api/sign-in", sign_in, headers).status == 401
        send(service.port, f"/calendar/{CALENDAR_SECRET}.ics", "", {})
        send(service.port, "/admin/?secret=in-the-address", "", {"Cookie": f"sessionid={session}"})

        def requests() -> list[dict]:
            return [each for each in read_spans(programs, tmp_path) if is_request(each)]

        wait_for(lambda: len(requests()) >= 3, "a span of each request")
    finally:
        service.stop()

    spans = read_spans(programs, tmp_path)
    names = [each["name"] for each in spans if is_request(each)]
    assert sorted(re.search(r"api/[a-z/-]+", name)[0] for name in names) == [
        "api/reservations/checkout",
        "api/reservations/create",
        "api/sign-in",
    ]
    of_requests = {each["traceId"] for each in spans if is_request(each)}
    statements = [each for each in spans if each["kind"] == "SPAN_KIND_CLIENT"]
    assert len([each for each in statements if each["traceId"] in of_requests]) > 30
    assert any("reservations_reservation" in json.dumps(each) for each in statements)
    text = json.dumps(spans)
    secrets = [CARD["CreditCardNumber"], PASSWORD, client.token, customer.user.email]
    assert [
        each for each in [*secrets, "Lovelace", "in-the-address", CALENDAR_SECRET] if each in text
    ] == []


def is_request(span: dict) -> bool:
    return span["kind"] == "SPAN_KIND_SERVER"
