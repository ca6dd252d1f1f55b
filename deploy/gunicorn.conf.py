"""How gunicorn serves roombook: gunicorn -c deploy/gunicorn.conf.py roombook.wsgi"""

import gc
import multiprocessing
import os
from pathlib import Path

# Where to listen: BIND as a whole, or only the PORT on this machine's own address.
bind = os.environ.get("BIND") or f"127.0.0.1:{os.environ.get('PORT') or 8000}"

# A checkout waits for the payment gateway, for GATEWAY_TIMEOUT seconds when that hangs: each worker
# has threads, so that a handful of hung checkouts does not keep everybody else waiting. Workers
# times threads: the requests that are at work at once, and the connections to PostgreSQL.
worker_class = "gthread"
workers = int(os.environ.get("WEB_CONCURRENCY") or min(2 * multiprocessing.cpu_count() + 1, 9))
threads = int(os.environ.get("WEB_THREADS") or 4)

# No worker takes a connection that it has no thread for: it would wait there while others are idle.
# For the same reason none is kept open between requests; the proxy before us is next door.
worker_connections = threads
keepalive = 0

# The application is loaded once, before the workers: a wrong setting stops the start with one
# message, and the workers share the memory.
preload_app = True

# A worker that shows no sign of life for so long is replaced. Single requests are bounded by
# GATEWAY_TIMEOUT and STATEMENT_TIMEOUT; a worker that stops lets them end.
timeout = 60
graceful_timeout = 30

# Workers are renewed now and then, not all at once.
max_requests = 20_000
max_requests_jitter = 2_000

# The heartbeat's file must not lie on a slow disk.
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None

# roombook logs its own line a request, without anything secret.
accesslog = None
errorlog = "-"
loglevel = os.environ.get("GUNICORN_LOG_LEVEL") or "info"

# No second door: signals are enough to reload and stop.
control_socket_disable = True


def when_ready(server):
    """Before the workers are made: spare them looking for garbage in what was loaded to stay.

    Not looked at, it also stays memory that they share. Then greet whoever typed `make run`.
    """
    gc.freeze()
    # A large answer makes thousands of objects, none of them garbage before it is sent.
    gc.set_threshold(10_000)
    if welcome := os.environ.get("WELCOME"):
        print(welcome, flush=True)
