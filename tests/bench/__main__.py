"""The benchmark: `make bench`, or `python -m tests.bench --help`."""

import argparse
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import django

os.environ |= {"ENV_FILE": os.devnull, "DEBUG": "true", "DATABASE_URL": "sqlite:///:memory:"}
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "roombook.settings")
django.setup()

from tests.bench.cases import PATHS, World  # noqa: E402 (they import models)
from tests.bench.cluster import ROOT, Cluster  # noqa: E402
from tests.bench.measure import Bench, Series, Size  # noqa: E402
from tests.bench.servers import Server  # noqa: E402
from tests.pg_plugin import find_programs  # noqa: E402

RESERVATIONS_PER_CENTER = 10
MONTH_END = "month-end"
APPLICATIONS = {"roombook": "roombook.wsgi", "raw": "tests.bench.raw.wsgi"}
# How many times as many requests per second as roombook the raw reference may answer.
GOALS = {
    **dict.fromkeys(("availability", "cost", "reservation"), 1.6),
    "search": 1.3,
    "create": 1.8,
    "checkout": 2.2,
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_arguments(arguments)
    # When it is terminated, it stops the servers that it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Terminated."))
    programs = find_programs()
    if programs is None:
        sys.exit("make bench needs the programs of PostgreSQL on this machine.")
    say(describe_machine(options))
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(programs, options.folder.resolve() / "postgres"))
        name = cluster.get_or_load_database(options.size, options.size * RESERVATIONS_PER_CENTER)
        if not options.only or MONTH_END in options.only:
            cluster.run_python(name, "-m", "tests.bench.month_end")
        operations = [each for each in PATHS if not options.only or each in options.only]
        if not operations:
            return
        connection = cluster.connect(name)
        stack.callback(connection.close)
        world = World(connection)
        world.clear()
        stack.callback(world.clear)
        app, raw = (
            stack.enter_context(Server(each, application, cluster.url(name), options.folder))
            for each, application in APPLICATIONS.items()
        )
        bench = Bench(app, raw, world, cluster.postmaster, Size(options.seconds, options.rounds))
        measure_operations(bench, operations)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench",
        description="Measure roombook next to hand-written SQL on the same tables.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--size", type=int, default=100_000, help="centers, ten reservations each")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each server")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each round")
    parser.add_argument("--only", action="append", choices=[*PATHS, MONTH_END])
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".bench", help="where data are kept between runs"
    )
    return parser.parse_args(arguments)


def measure_operations(bench: Bench, names: Iterable[str]) -> None:
    say(
        "\nEight clients. CPU: milliseconds per request. x raw: how many times as many requests per"
        " second the raw reference answers (in brackets: how many times as much processor time"
        " roombook uses). Goal: the maximum of x raw.\n"
    )
    say(
        "| operation | server | req/s | p50 ms | p99 ms | app CPU | PG CPU | KB | errors"
        " | x raw | goal |"
    )
    say("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in names:
        bench.require_equal(name)
        series = bench.compare(name)
        app, raw = series["roombook"], series["raw"]
        say_row(name, "raw", raw, "", "")
        ratio = f"**{raw.rate / app.rate:.2f}** ({app.cpu / raw.cpu:.2f})"
        say_row(name, "roombook", app, ratio, f"{GOALS[name]}")


def say_row(name: str, server: str, series: Series, *more: str) -> None:
    if series.bad:
        say(f"Error: {series.bad[0].decode(errors='replace')}")
    cells = (
        *(name, server, f"{series.rate:.0f}", f"{series.percentile(0.5):.2f}"),
        *(f"{series.percentile(0.99):.2f}", f"{series.per_request(series.app_cpu) * 1000:.3f}"),
        f"{series.per_request(series.database_cpu) * 1000:.3f}",
        *(f"{series.per_request(series.kilobytes):.1f}", str(len(series.bad)), *more),
    )
    say(f"| {' | '.join(cells)} |")


def describe_machine(options: argparse.Namespace) -> str:
    with Path("/proc/cpuinfo").open() as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    return (
        f"{options.size:,} centers, {5 * options.size:,} rooms,"
        f" {RESERVATIONS_PER_CENTER * options.size:,} reservations;"
        f" {options.rounds} rounds of {options.seconds:g} s.\n"
        f"{os.cpu_count()} x {models[0] if models else '?'}, Python {platform.python_version()},"
        f" Django {django.__version__}, revision {revision or '?'}."
    )


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 (the report)


if __name__ == "__main__":
    main()
