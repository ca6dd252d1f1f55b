"""The configuration of gunicorn: gunicorn -c deploy/gunicorn.conf.py roombook.wsgi

Its settings are environment variables, or lines in the file that ENV_FILE names, like all others.
"""

import gc
import multiprocessing
import os
import shutil
import sys
import tempfile
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from gunicorn.systemd import sd_notify

APP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(APP))

from roombook import env  # noqa: E402 (gunicorn's own program is not in the folder of the app)


def read_int(name, default):
    """A variable as a whole number of at least 1. Anything else ends the process."""
    value = os.environ.get(name) or str(default)
    if not (value.isascii() and value.isdigit() and int(value) >= 1):
        sys.exit(f"Error: {name}: {value!r} is not a whole number of at least 1.")
    return int(value)


# A process that replaces this one (deploy/reload.sh) reads the file again.
given = os.environ.get("ENV_FILE")
try:
    env.load_file(APP / (given or ".env"), must_exist=bool(given))
except ImproperlyConfigured as error:
    sys.exit(f"Error: {error}")

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
# message, and the workers share memory. Therefore SIGHUP loads no new code: deploy/reload.sh does.
preload_app = True

# The file with the id of the master process, for deploy/reload.sh.
pidfile = os.environ.get("PIDFILE") or None

# Replace a worker that shows no sign of life for so long. Requests are limited by GATEWAY_TIMEOUT
# and STATEMENT_TIMEOUT; a worker that stops waits for its requests.
timeout = 60
graceful_timeout = 30

# The heartbeat file must not be on a slow disk.
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None

# Workers write their metrics to files in this folder, and one of them serves the sums.
metrics_folder = None
if os.environ.get("METRICS_BIND"):
    metrics_folder = tempfile.mkdtemp(prefix="roombook-metrics-", dir=worker_tmp_dir)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics_folder

# roombook writes its own log line per request, without secrets.
accesslog = None
errorlog = "-"
logger_class = "roombook.gunicorn_logger.MaskingLogger"
loglevel = "info"

# Signals are enough to stop, and to start a new master.
control_socket_disable = True


def when_ready(server):
    """Prepare the workers, which are forked next, and say that the service is ready."""
    # Objects that were loaded stay for good: do not scan them, and keep their memory shared.
    gc.freeze()
    # A large response creates thousands of objects, none of them garbage before it is sent.
    gc.set_threshold(10_000)
    # After a reload, systemd must watch the new master instead of the one that is about to end.
    sd_notify(f"MAINPID={server.pid}", server.log)
    if welcome := os.environ.get("WELCOME"):
        print(welcome, flush=True)


def post_worker_init(worker):
    if metrics_folder:
        from reservations import gauges

        gauges.serve()


def child_exit(server, worker):
    if metrics_folder:
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(worker.pid)


def on_exit(server):
    if metrics_folder:
        shutil.rmtree(metrics_folder, ignore_errors=True)
