"""`python -m tests.bench --help`: measure, compare, print."""

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

from tests.bench import admin, servers  # noqa: E402 (they read models)
from tests.bench.cases import PATHS, World  # noqa: E402
from tests.bench.cluster import QUICK, ROOT, SETTINGS, Cluster  # noqa: E402
from tests.bench.load import ask, drive, request  # noqa: E402
from tests.bench.measure import Bench, Series, Size  # noqa: E402
from tests.bench.servers import DatabaseCpu  # noqa: E402
from tests.pg_plugin import find_programs  # noqa: E402

SMALL = 1000
RESERVATIONS_A_CENTER = 10
ABOUT_OPERATIONS = {"growth", "clients", "gthread"}
# How much more than raw each may take, by requests a second.
GOALS = {
    **dict.fromkeys(("availability", "reservation", "cost"), 1.5),
    "search": 1.2,
    **dict.fromkeys(("create", "checkout"), 2),
}
# How often each kind of search is asked, and for how long at most.
SEARCHES, SEARCH_SECONDS = 20, 2.0
# Chapters that a quick run does without.
SLOW = {*ABOUT_OPERATIONS, "searches", "admin"}


def main(words: Sequence[str] | None = None) -> None:
    told = arguments(words)
    # Ended from outside, it ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Ended."))
    bin_folder = find_programs()
    if bin_folder is None:
        sys.exit("make bench needs PostgreSQL's programs on this machine.")
    folder = told.folder or ROOT / ".bench"
    settings = QUICK if told.quick else SETTINGS
    with Cluster(bin_folder, folder / "postgres", settings) as cluster:
        run(cluster, folder, told)


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench",
        description="Measure roombook beside hand-written SQL on the same tables.",
    )
    parser.add_argument("--size", type=int, help="centers (100000); ten reservations each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each stretch of load")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--only",
        action="append",
        choices=[*PATHS, "searches", "admin", "rivals", "growth", "clients", "gthread"],
        help="an operation, or a chapter; may be given again",
    )
    parser.add_argument("--quick", action="store_true", help="1,000 centers, short stretches")
    parser.add_argument("--folder", type=Path, help="where data stay between runs: .bench")
    told = parser.parse_args(words)
    told.size = told.size or (SMALL if told.quick else 100_000)
    if told.quick:
        told.rounds, told.seconds = 2, 0.5
    return told


class Run:
    """What all chapters of a run need."""

    def __init__(self, cluster: Cluster, folder: Path, told: argparse.Namespace) -> None:
        self.cluster = cluster
        self.folder = folder
        self.told = told
        self.size = Size(told.seconds, told.rounds)
        if told.quick:
            self.size = Size(told.seconds, told.rounds, compared=15, checkouts=40, slots=3)
        self.operations = [name for name in PATHS if self.wants(name)]

    def wants(self, name: str) -> bool:
        only = set(self.told.only or ())
        if not only:
            return not (self.told.quick and name in SLOW)
        # Chapters about operations, of which none is named, are about all of them.
        about_all = not only & set(PATHS) and bool(only & ABOUT_OPERATIONS)
        return name in only or (about_all and name in PATHS)

    @contextmanager
    def bench(self, centers: int) -> Iterator[Bench]:
        """Both servers on data of that size."""
        name = self.cluster.loaded(centers, centers * RESERVATIONS_A_CENTER)
        with ExitStack() as stack:
            connection = self.cluster.connect(name)
            stack.callback(connection.close)
            world = World(connection)
            world.clear()
            url, workers = self.cluster.url(name), self.told.workers
            app = stack.enter_context(servers.roombook(url, self.folder, workers))
            raw = stack.enter_context(servers.raw(url, self.folder, workers))
            yield Bench(app, raw, world, DatabaseCpu(self.cluster.postmaster), self.size)
            world.clear()


def run(cluster: Cluster, folder: Path, told: argparse.Namespace) -> None:
    run = Run(cluster, folder, told)
    say(machine(told))
    if run.wants("admin"):
        servers.collect_static(folder)
    small: dict[str, Series] = {}
    if run.wants("growth") and told.size > SMALL:
        with run.bench(SMALL) as bench:
            for name in run.operations:
                small[name] = bench.compare(name, (bench.app,))["roombook"]
    with run.bench(told.size) as bench:
        large = operations(run, bench)
        if small:
            growth(small, large)
        if run.wants("clients"):
            clients(run, bench)
        if run.wants("gthread"):
            gthread(run, bench)
        if run.wants("searches"):
            searches(bench)
        if run.wants("rivals"):
            rivals(bench)
        say(
            f"\nMemory of the largest worker: {bench.app.memory() / 1024:.0f} MB"
            f" (raw {bench.raw.memory() / 1024:.0f} MB)."
        )
        if run.wants("admin"):
            pages(bench)


def operations(run: Run, bench: Bench) -> dict[str, Series]:
    say(
        "\nEight clients. CPU is milliseconds a request; x raw: how much more than raw it takes,"
        " by requests a second and by processor time. Wanted: so much at most, and a p99 of at"
        " most three p50.\n"
    )
    say(
        "| operation | server | req/s | p50 ms | p99 ms | app CPU | PG CPU | KB | bad"
        " | x raw, req/s | x raw, CPU | wanted |"
    )
    say("|---|---|---|---|---|---|---|---|---|---|---|---|")
    found = {}
    for name in run.operations:
        bench.require_equal(name)
        series = bench.compare(name, (bench.app, bench.raw))
        ours, raw = series["roombook"], series["raw"]
        found[name] = ours
        row(name, "raw", raw, "", "", "")
        ratio = raw.rate / ours.rate
        row("", "roombook", ours, f"**{ratio:.2f}**", f"{ours.cpu / raw.cpu:.2f}", f"{GOALS[name]}")
    return found


def row(name: str, server: str, series: Series, *more: str) -> None:
    if series.bad:
        say(f"Not 200: {series.bad[0].decode(errors='replace')}")
    cells = (
        *(name, server, f"{series.rate:.0f}", f"{series.percentile(0.5):.2f}"),
        *(f"{series.percentile(0.99):.2f}", f"{series.each(series.app_cpu) * 1000:.3f}"),
        *(f"{series.each(series.database_cpu) * 1000:.3f}",),
        *(f"{series.each(series.kilobytes):.1f}", str(len(series.bad)), *more),
    )
    say(f"| {' | '.join(cells)} |")


def growth(small: dict[str, Series], large: dict[str, Series]) -> None:
    say(f"\nFrom {SMALL:,} centers to the size above.\n")
    say("| operation | req/s small | req/s large | slower, req/s | slower, CPU |")
    say("|---|---|---|---|---|")
    for name, before in small.items():
        after = large[name]
        say(
            f"| {name} | {before.rate:.0f} | {after.rate:.0f} |"
            f" {before.rate / after.rate:.2f} | {after.cpu / before.cpu:.2f} |"
        )


def clients(run: Run, bench: Bench) -> None:
    say("\nClients at a time.\n")
    say("| operation | clients | req/s | p50 ms | p99 ms | bad |\n|---|---|---|---|---|---|")
    for name in run.operations:
        for count in (1, 8, 32):
            series = Series()
            for _ in range(max(1, run.size.rounds // 2)):
                bench.stretch(bench.app, name, count, series)
            say(
                f"| {name} | {count} | {series.rate:.0f} | {series.percentile(0.5):.2f} |"
                f" {series.percentile(0.99):.2f} | {len(series.bad)} |"
            )


def gthread(run: Run, bench: Bench) -> None:
    say("\nTwo sync workers, and two with four threads each (deploy/ has threads).\n")
    say(
        "| operation | server | req/s | p50 ms | p99 ms | app CPU | PG CPU | KB | bad"
        " | x sync, req/s | x sync, CPU |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    url = bench.app.environment["DATABASE_URL"]
    with servers.roombook(url, run.folder, run.told.workers, threads=4) as threaded:
        for name in run.operations:
            series = bench.compare(name, (bench.app, threaded))
            sync, other = series["roombook"], series[threaded.name]
            row(name, "sync", sync, "", "")
            row(
                "", "gthread", other, f"{sync.rate / other.rate:.2f}", f"{other.cpu / sync.cpu:.2f}"
            )


def searches(bench: Bench) -> None:
    say("\nSearches of all kinds, by one client. PG: milliseconds of the database's processor.\n")
    say("| search | centers | p50 ms | slowest ms | PG CPU |\n|---|---|---|---|---|")
    path, _ = PATHS["search"]
    for name, body in bench.world.searches():
        sent = request(path, body)
        status, answer = ask(bench.app.port, sent)
        before = bench.database.cpu()
        outcome = drive(bench.app.port, iter([sent] * SEARCHES), 1, seconds=SEARCH_SECONDS)
        series = Series()
        series.add(outcome, 0, bench.database.cpu() - before)
        say(
            f"| {name} | {len(answer['Centers']) if status == 200 else status} |"
            f" {series.percentile(0.5):.1f} | {series.percentile(1):.1f} |"
            f" {series.each(series.database_cpu) * 1000:.1f} |"
        )


def rivals(bench: Bench) -> None:
    say("\nSixteen clients for one slot.\n")
    say("| server | slots | got by one | by none or several | slowest ms | deadlocks |")
    say("|---|---|---|---|---|---|")
    for server in (bench.app, bench.raw):
        won, slowest, deadlocks = bench.rivals(server)
        ones = won.count(1)
        say(
            f"| {server.name} | {len(won)} | {ones} | {len(won) - ones} | {slowest:.0f} |"
            f" {deadlocks} |"
        )


def pages(bench: Bench) -> None:
    say("\nPages of the back office, milliseconds, by who opens them.\n")
    say("| page | of | status | first | then |\n|---|---|---|---|---|")
    for page in admin.pages(bench.app, bench.world):
        say(f"| `{page.path}` | {page.who} | {page.status} | {page.first:.0f} | {page.then:.0f} |")


def machine(told: argparse.Namespace) -> str:
    with Path("/proc/cpuinfo").open() as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    return (
        f"{told.size:,} centers, {5 * told.size:,} rooms,"
        f" {RESERVATIONS_A_CENTER * told.size:,} reservations; {told.workers} sync workers;"
        f" {told.rounds} rounds of {told.seconds:g} s.\n"
        f"{os.cpu_count()} x {models[0] if models else '?'}, Python {platform.python_version()},"
        f" Django {django.__version__}, revision {revision or '?'}."
    )


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 (the report)


if __name__ == "__main__":
    main()
