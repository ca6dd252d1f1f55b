"""Answers the scrapes of Prometheus on a port of its own."""

import errno
import logging
import threading
import time
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


def serve_metrics(address: tuple[str, int], collectors: Iterable[Collector]) -> None:
    """Serve the metrics of all workers from a thread of this worker, as soon as the port is free.

    All workers call this, and one of them gets the port. When it ends, another one takes over
    within a second, and so does the new version during a reload.
    """
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    for collector in collectors:
        registry.register(collector)
    arguments = (address, registry)
    threading.Thread(target=_serve_when_free, args=arguments, daemon=True, name="metrics").start()


def _serve_when_free(address: tuple[str, int], registry: CollectorRegistry) -> None:
    host, port = address
    while True:
        try:
            start_http_server(port, host, registry=registry)
            return
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                logger.error("METRICS_BIND: %s:%s cannot be used: %s", host, port, error)
                return
        time.sleep(RETRY_SECONDS)
