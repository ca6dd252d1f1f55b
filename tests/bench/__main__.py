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

from tests.bench import servers  # noqa: E402 (they import models)
from tests.bench.cases import PATHS, World  # noqa: E402
from tests.bench.cluster import QUICK_SETTINGS, ROOT, SETTINGS, Cluster  # noqa: E402
from tests.bench.measure import Bench, Series, Size  # noqa: E402
from tests.bench.servers import DatabaseCpu  # noqa: E402
from tests.pg_plugin import find_programs  # noqa: E402

SMALL_SIZE = 1000
RESERVATIONS_PER_CENTER = 10
# The goals: how many times as many requests per second as roombook the prepared raw reference
# may answer.
GOALS = {
    **dict.fromkeys(("availability", "cost", "reservation"), 1.6),
    **dict.fromkeys(("free_times_of_rooms", "free_times_of_month"), 1.6),
    "search": 1.3,
    "create": 1.8,
    "checkout": 2.2,
}


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
        choices=[*PATHS, "conflicts"],
        help="an operation, or many clients for one slot; can be repeated",
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
        return not self.options.only or name in self.options.only

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
    with run.bench(options.size) as bench:
        measure_operations(run, bench)
        if run.wants("conflicts"):
            measure_conflicts(bench)


def measure_operations(run: Run, bench: Bench) -> None:
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
    for name in run.operations:
        bench.require_equal(name)
        series = bench.compare(name, (bench.app, *bench.raws))
        roombook = series["roombook"]
        for raw in bench.raws:
            say_row(name, raw.name, series[raw.name], "", "", "")
        ratios = (
            format_ratio(roombook, series.get(raw)) for raw in ("raw-prepared", "raw-unprepared")
        )
        say_row(name, "roombook", roombook, *ratios, f"{GOALS[name]}")


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
