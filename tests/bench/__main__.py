"""The benchmark: `make bench`, or `python -m tests.bench --help`."""

import argparse
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import django

os.environ |= {"ENV_FILE": os.devnull, "DEBUG": "true", "DATABASE_URL": "sqlite:///:memory:"}
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "roombook.settings")
django.setup()

from tests.bench import admin, servers  # noqa: E402 (they import models)
from tests.bench.cases import PATHS, World  # noqa: E402
from tests.bench.cluster import QUICK_SETTINGS, ROOT, SETTINGS, Cluster  # noqa: E402
from tests.bench.load import drive, encode_request, send  # noqa: E402
from tests.bench.measure import Bench, Series, Size  # noqa: E402
from tests.bench.servers import DatabaseCpu  # noqa: E402
from tests.pg_plugin import find_programs  # noqa: E402

SMALL_SIZE = 1000
RESERVATIONS_PER_CENTER = 10
CHAPTERS_OF_OPERATIONS = {"growth", "clients", "gthread"}
# The goals: how many times as many requests per second as roombook the prepared raw reference
# may answer.
GOALS = {
    **dict.fromkeys(("availability", "cost", "reservation"), 1.6),
    **dict.fromkeys(("free_times_of_rooms", "free_times_of_month"), 1.6),
    "search": 1.3,
    "create": 1.8,
    "checkout": 2.2,
}
# How often each kind of search is repeated, and for how long at most.
SEARCH_REPETITIONS, MAX_SEARCH_SECONDS = 20, 2.0
# Chapters that a quick run leaves out.
SLOW_CHAPTERS = {*CHAPTERS_OF_OPERATIONS, "searches", "admin"}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_arguments(arguments)
    # When it is terminated, it stops the servers that it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Terminated."))
    bin_folder = find_programs()
    if bin_folder is None:
        sys.exit("make bench needs the programs of PostgreSQL on this machine.")
    folder = options.folder or ROOT / ".bench"
    settings = QUICK_SETTINGS if options.quick else SETTINGS
    with Cluster(bin_folder, folder / "postgres", settings) as cluster:
        run(cluster, folder, options)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench",
        description="Measure roombook next to hand-written SQL on the same tables.",
    )
    parser.add_argument("--size", type=int, help="centers (100000); ten reservations each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each round")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--only",
        action="append",
        choices=[*PATHS, "searches", "admin", "conflicts", "growth", "clients", "gthread"],
        help="an operation or a chapter; can be repeated",
    )
    parser.add_argument(
        "--no-prepare",
        action="store_true",
        help="compare with the raw reference without prepared statements only",
    )
    parser.add_argument("--quick", action="store_true", help="1,000 centers, short rounds")
    parser.add_argument(
        "--folder", type=Path, help="where data are kept between runs (default: .bench)"
    )
    options = parser.parse_args(arguments)
    options.size = options.size or (SMALL_SIZE if options.quick else 100_000)
    if options.quick:
        options.rounds, options.seconds = 2, 0.2
    return options


class Run:
    """The state that all chapters of a run share."""

    def __init__(self, cluster: Cluster, folder: Path, options: argparse.Namespace) -> None:
        self.cluster = cluster
        self.folder = folder
        self.options = options
        self.size = Size(options.seconds, options.rounds)
        if options.quick:
            self.size = Size(options.seconds, options.rounds, compared=15, checkouts=40, slots=3)
        self.operations = [name for name in PATHS if self.wants(name)]

    def wants(self, name: str) -> bool:
        only = set(self.options.only or ())
        if not only:
            return not (self.options.quick and name in SLOW_CHAPTERS)
        # Chapters of operations include all operations unless some are named.
        has_all_operations = not only & set(PATHS) and bool(only & CHAPTERS_OF_OPERATIONS)
        return name in only or (has_all_operations and name in PATHS)

    @contextmanager
    def bench(self, centers: int) -> Iterator[Bench]:
        """Starts all servers on data of that size."""
        name = self.cluster.get_or_load_database(centers, centers * RESERVATIONS_PER_CENTER)
        with ExitStack() as stack:
            connection = self.cluster.connect(name)
            stack.callback(connection.close)
            world = World(connection)
            world.clear()
            url, workers = self.cluster.url(name), self.options.workers
            app = stack.enter_context(servers.start_roombook(url, self.folder, workers))
            raws = [
                stack.enter_context(servers.start_raw(url, self.folder, workers, prepare=prepare))
                for prepare in ((False,) if self.options.no_prepare else (True, False))
            ]
            yield Bench(app, raws, world, DatabaseCpu(self.cluster.postmaster), self.size)
            world.clear()


def run(cluster: Cluster, folder: Path, options: argparse.Namespace) -> None:
    run = Run(cluster, folder, options)
    say(describe_machine(options))
    if run.wants("admin"):
        servers.collect_static(folder)
    small: dict[str, Series] = {}
    if run.wants("growth") and options.size > SMALL_SIZE:
        with run.bench(SMALL_SIZE) as bench:
            for name in run.operations:
                small[name] = bench.compare(name, (bench.app,))["roombook"]
    with run.bench(options.size) as bench:
        large = measure_operations(run, bench)
        if small:
            report_growth(small, large)
        if run.wants("clients"):
            measure_clients(run, bench)
        if run.wants("gthread"):
            measure_threads(run, bench)
        if run.wants("searches"):
            measure_searches(bench)
        if run.wants("conflicts"):
            measure_conflicts(bench)
        say(
            f"\nMemory of the largest worker: {bench.app.get_worker_kilobytes() / 1024:.0f} MB"
            f" (raw {bench.raws[0].get_worker_kilobytes() / 1024:.0f} MB)."
        )
        if run.wants("admin"):
            measure_pages(bench)


def measure_operations(run: Run, bench: Bench) -> dict[str, Series]:
    say(
        "\nEight clients. CPU: milliseconds per request. x raw: how many times as many requests per"
        " second the raw reference answers (in brackets: how many times as much processor time"
        " roombook uses), with prepared and with unprepared statements. Goal: the maximum of x raw"
        " prepared.\n"
    )
    say(
        "| operation | server | req/s | p50 ms | p99 ms | app CPU | PG CPU | KB | errors"
        " | x raw prepared | x raw unprepared | goal |"
    )
    say("|---|---|---|---|---|---|---|---|---|---|---|---|")
    found = {}
    for name in run.operations:
        bench.require_equal(name)
        series = bench.compare(name, (bench.app, *bench.raws))
        roombook = found[name] = series["roombook"]
        for raw in bench.raws:
            say_row(name, raw.name, series[raw.name], "", "", "")
        ratios = (
            format_ratio(roombook, series.get(raw)) for raw in ("raw-prepared", "raw-unprepared")
        )
        say_row(name, "roombook", roombook, *ratios, f"{GOALS[name]}")
    return found


def format_ratio(roombook: Series, raw: Series | None) -> str:
    if raw is None:
        return ""
    return f"**{raw.rate / roombook.rate:.2f}** ({roombook.cpu / raw.cpu:.2f})"


def say_row(name: str, server: str, series: Series, *more: str) -> None:
    if series.bad:
        say(f"Error: {series.bad[0].decode(errors='replace')}")
    cells = (
        *(name, server, f"{series.rate:.0f}", f"{series.percentile(0.5):.2f}"),
        *(f"{series.percentile(0.99):.2f}", f"{series.per_request(series.app_cpu) * 1000:.3f}"),
        *(f"{series.per_request(series.database_cpu) * 1000:.3f}",),
        *(f"{series.per_request(series.kilobytes):.1f}", str(len(series.bad)), *more),
    )
    say(f"| {' | '.join(cells)} |")


def report_growth(small: dict[str, Series], large: dict[str, Series]) -> None:
    say(f"\nFrom {SMALL_SIZE:,} centers to the size above.\n")
    say("| operation | req/s small | req/s large | slower, req/s | slower, CPU |")
    say("|---|---|---|---|---|")
    for name, before in small.items():
        after = large[name]
        say(
            f"| {name} | {before.rate:.0f} | {after.rate:.0f} |"
            f" {before.rate / after.rate:.2f} | {after.cpu / before.cpu:.2f} |"
        )


def measure_clients(run: Run, bench: Bench) -> None:
    say("\nConcurrent clients.\n")
    say("| operation | clients | req/s | p50 ms | p99 ms | errors |\n|---|---|---|---|---|---|")
    for name in run.operations:
        for count in (1, 8, 32):
            series = Series()
            for _ in range(max(1, run.size.rounds // 2)):
                bench.run_round(bench.app, name, count, series)
            say(
                f"| {name} | {count} | {series.rate:.0f} | {series.percentile(0.5):.2f} |"
                f" {series.percentile(0.99):.2f} | {len(series.bad)} |"
            )


def measure_threads(run: Run, bench: Bench) -> None:
    say("\nTwo sync workers, and two workers with four threads each, as in deploy/.\n")
    say(
        "| operation | server | req/s | p50 ms | p99 ms | app CPU | PG CPU | KB | errors"
        " | x sync, req/s | x sync, CPU |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    url = bench.app.environment["DATABASE_URL"]
    with servers.start_roombook(url, run.folder, run.options.workers, threads=4) as threaded:
        for name in run.operations:
            series = bench.compare(name, (bench.app, threaded))
            sync, other = series["roombook"], series[threaded.name]
            say_row(name, "sync", sync, "", "")
            say_row(
                name,
                "gthread",
                other,
                f"{sync.rate / other.rate:.2f}",
                f"{other.cpu / sync.cpu:.2f}",
            )


def measure_searches(bench: Bench) -> None:
    say("\nAll kinds of searches, by one client. PG CPU: processor milliseconds of the database.\n")
    say("| search | centers | p50 ms | slowest ms | PG CPU |\n|---|---|---|---|---|")
    path, _ = PATHS["search"]
    for name, body in bench.world.searches():
        request = encode_request(path, body)
        status, fields = send(bench.app.port, request)
        before = bench.database.get_cpu_seconds()
        outcome = drive(
            bench.app.port, iter([request] * SEARCH_REPETITIONS), 1, seconds=MAX_SEARCH_SECONDS
        )
        series = Series()
        series.add(outcome, 0, bench.database.get_cpu_seconds() - before)
        say(
            f"| {name} | {len(fields['Centers']) if status == 200 else status} |"
            f" {series.percentile(0.5):.1f} | {series.percentile(1):.1f} |"
            f" {series.per_request(series.database_cpu) * 1000:.1f} |"
        )


def measure_conflicts(bench: Bench) -> None:
    say("\nSixteen clients for one slot.\n")
    say("| server | slots | got by one client | by none or several | slowest ms | deadlocks |")
    say("|---|---|---|---|---|---|")
    for server in (bench.app, bench.raws[0]):
        winners, slowest, deadlocks = bench.compete(server)
        by_one = winners.count(1)
        say(
            f"| {server.name} | {len(winners)} | {by_one} | {len(winners) - by_one} |"
            f" {slowest:.0f} | {deadlocks} |"
        )


def measure_pages(bench: Bench) -> None:
    say("\nPages of the back office, in milliseconds, for an administrator and for a Manager.\n")
    say("| page | staff of | status | first | later |\n|---|---|---|---|---|")
    for page in admin.measure_pages(bench.app, bench.world):
        say(
            f"| `{page.path}` | {page.staff} | {page.status} |"
            f" {page.first:.0f} | {page.later:.0f} |"
        )


def describe_machine(options: argparse.Namespace) -> str:
    with Path("/proc/cpuinfo").open() as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    return (
        f"{options.size:,} centers, {5 * options.size:,} rooms,"
        f" {RESERVATIONS_PER_CENTER * options.size:,} reservations; {options.workers} sync workers;"
        f" {options.rounds} rounds of {options.seconds:g} s.\n"
        f"{os.cpu_count()} x {models[0] if models else '?'}, Python {platform.python_version()},"
        f" Django {django.__version__}, revision {revision or '?'}."
    )


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 (the report)


if __name__ == "__main__":
    main()
