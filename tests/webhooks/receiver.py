"""A receiver of webhooks: a real HTTP server on this machine that answers as the test sets."""

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    """What was received, in order; `answers` are (status, headers, body), then only 200."""

    url: str = ""
    requests: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    hangs: bool = False

    @property
    def ids(self):
        return [headers["webhook-id"] for headers, _ in self.requests]


@contextmanager
def receive(*answers, hangs=False, delay=0.0, tls=None, port=0):
    """Run a receiver, which answers after a delay in seconds.

    With `hangs`, it sends one byte of a header after the other, for ever.
    """
    receiver = Receiver(answers=list(answers), hangs=hangs)
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.requests.append((dict(self.headers), body))
            if receiver.hangs:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while not ended.is_set():
                    self.wfile.write(b"x")
                    time.sleep(0.05)
                return
            time.sleep(delay)
            status, headers, text = (
                receiver.answers.pop(0) if receiver.answers else (200, {}, b"ok")
            )
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args):
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request, client_address):
            """The other side has hung up, as it should."""

    server = Server(("127.0.0.1", port), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook?x=1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
