"""The configuration of gunicorn: gunicorn -c deploy/gunicorn.conf.py roombook.wsgi"""

import gc
import multiprocessing
import os
import sys
from pathlib import Path


def read_int(name, default):
    """A variable as a whole number of at least 1. Anything else ends the process."""
    value = os.environ.get(name) or str(default)
    if not (value.isascii() and value.isdigit() and int(value) >= 1):
        sys.exit(f"Error: {name}: {value!r} is not a whole number of at least 1.")
    return int(value)


# Where to listen: the whole address, or only the PORT on the loopback address.
bind = os.environ.get("BIND") or f"127.0.0.1:{read_int('PORT', 8000)}"

# A checkout waits for the payment gateway, up to GATEWAY_TIMEOUT seconds. Each worker has several
# threads, so that a few hanging checkouts do not block everybody else. Workers times threads is the
# number of parallel requests, and of connections to PostgreSQL.
worker_class = "gthread"
workers = read_int("WEB_CONCURRENCY", min(2 * multiprocessing.cpu_count() + 1, 9))
threads = read_int("WEB_THREADS", 4)

# A worker accepts no connection without a free thread: the request would wait there while other
# workers are idle. Idle connections are closed for the same reason; the proxy is close by.
worker_connections = threads
keepalive = 0

# Load the application once, before forking the workers: a wrong setting stops the start with one
# message, and the workers share memory.
preload_app = True

# Replace a worker that shows no sign of life for so long. Requests are limited by GATEWAY_TIMEOUT
# and STATEMENT_TIMEOUT; a worker that stops waits for its requests.
timeout = 60
graceful_timeout = 30

# Renew the workers from time to time, not all at once.
max_requests = 20_000
max_requests_jitter = 2_000

# The heartbeat file must not be on a slow disk.
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None

# roombook writes its own log line per request, without secrets.
accesslog = None
errorlog = "-"
loglevel = os.environ.get("GUNICORN_LOG_LEVEL") or "info"

# Signals are enough to reload and stop.
control_socket_disable = True


def when_ready(server):
    """Tune the garbage collector before the workers are forked, and print the welcome text."""
    # Objects that were loaded stay for good: do not scan them, and keep their memory shared.
    gc.freeze()
    # A large response creates thousands of objects, none of them garbage before it is sent.
    gc.set_threshold(10_000)
    if welcome := os.environ.get("WELCOME"):
        print(welcome, flush=True)
