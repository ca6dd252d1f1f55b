"""When responses with status 503 become an error in the log."""

import multiprocessing
import os
import signal

import pytest

from roombook.outages import OutageMonitor


@pytest.fixture
def monitor():
    made = OutageMonitor()
    yield made
    made._file.close()


def count_reports(monitor, times):
    outages = [monitor.record_response(now) for now in times]
    return sum(outage.is_lasting and not outage.is_reported for outage in outages)


def test_failover_of_a_second_is_not_reported(monitor):
    assert count_reports(monitor, [100 + n / 99 for n in range(99)]) == 0


def test_few_responses_over_a_long_time_are_not_reported(monitor):
    assert count_reports(monitor, [100, 110, 120, 135, *range(200, 1000, 61)]) == 0


def test_lasting_outage_is_reported_once(monitor):
    assert count_reports(monitor, range(100, 500)) == 1


def test_outage_after_a_pause_is_reported_again(monitor):
    assert count_reports(monitor, [*range(100, 140), *range(210, 260)]) == 2


def start_worker(work):
    """Start a process that shares the monitor, as gunicorn forks its workers."""
    worker = multiprocessing.get_context("fork").Process(target=work, daemon=True)
    worker.start()
    return worker


def test_lasting_outage_is_reported_by_one_of_all_workers(monitor):
    reports = multiprocessing.get_context("fork").SimpleQueue()

    def work():
        # Workers may be far apart, but not by the pause that ends an outage.
        reports.put(count_reports(monitor, [100 + n / 6 for n in range(300)]))

    workers = [start_worker(work) for _ in range(4)]
    found = [reports.get() for _ in workers]
    for worker in workers:
        worker.join()

    assert sorted(found) == [0, 0, 0, 1]
    assert monitor.record_response(150).responses == 4 * 300 + 1


def test_worker_killed_while_it_counts_blocks_nobody(monitor):
    is_counting = multiprocessing.get_context("fork").Event()

    def work():
        with monitor._locked():
            is_counting.set()
            signal.pause()

    worker = start_worker(work)
    is_counting.wait(30)
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()

    assert monitor.record_response(100).responses == 1
