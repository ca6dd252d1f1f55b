"""Counters and timings of this process for Prometheus; docs/metrics.md explains each.

deploy/gunicorn.conf.py sets PROMETHEUS_MULTIPROC_DIR if METRICS_BIND is set: the workers then write
their values to files in this folder. Otherwise the values stay in the memory of the process, and
nobody reads them. No label has a value that clients choose.
"""

from prometheus_client import Counter, Histogram

REQUEST_SECONDS = Histogram(
    "roombook_request_seconds",
    "Seconds from a request to its response.",
    ["operation", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
DATABASE_SECONDS = Counter(
    "roombook_database_seconds",
    "Seconds that requests waited for statements of the database.",
    ["operation"],
)
DATABASE_STATEMENTS = Counter(
    "roombook_database_statements", "Statements of requests.", ["operation"]
)
ERRORS = Counter(
    "roombook_errors", "Error responses of the API, by their code.", ["operation", "code"]
)
CHECKOUTS = Counter(
    "roombook_checkouts",
    "Checkouts, by the status of the reservation afterwards or the code of the error.",
    ["outcome"],
)
SIGN_IN_FAILURES = Counter(
    "roombook_sign_in_failures", "Wrong e-mail addresses or passwords: API and back office."
)
REPLICA_READS = Counter(
    "roombook_replica_reads",
    "Searches and reports that may read from the replica, by the database that they read from.",
    ["source"],
)
