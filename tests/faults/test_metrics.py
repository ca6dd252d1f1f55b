"""The port on which Prometheus reads metrics, with gunicorn as `manage.py serve` starts it."""

import re
import time

from tests.faults.processes import find_free_port
from tests.metrics.scraping import DEADLINE_SECONDS, scrape
from tests.metrics.test_docs import METRIC_NAMES

WORKERS = 3


def test_one_worker_serves_the_sums_of_all_and_another_takes_over(start):
    metrics_port = find_free_port()
    address = f"127.0.0.1:{metrics_port}"
    service = start(METRICS_BIND=address, WEB_CONCURRENCY=str(WORKERS))
    key = 'roombook_request_seconds_count{operation="healthz",status="200"}'
    sent = 1 + 40  # One request checked whether the service is up.
    assert all(service.is_up() for _ in range(sent - 1))

    samples = scrape(metrics_port)
    assert float(samples[key]) >= sent
    assert samples["roombook_database_up"] == "1.0"
    assert samples['roombook_job_interval_seconds{command="send_outbox"}'] == "60.0"
    documented = {name for name in METRIC_NAMES if name in " ".join(samples)}
    assert {re.split(r"_total|_bucket|_count|_sum|{", each)[0] for each in samples} <= documented

    for worker in service.workers():
        service.kill(worker)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(service.workers()) < WORKERS or not service.is_up():
        assert time.monotonic() < deadline
        time.sleep(0.05)

    # New workers continue the files of those that have ended.
    assert float(scrape(metrics_port)[key]) > float(samples[key])
    service.stop_gracefully()  # It deletes the files.
