"""The benchmark: `make bench`, or `python -m tests.bench --help`."""

import argparse
import os
import platform
import re
import signal
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import django

os.environ |= {"ENV_FILE": os.devnull, "DEBUG": "true", "DATABASE_URL": "sqlite:///:memory:"}
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "roombook.settings")
django.setup()

from tests.bench.cases import PATHS, World  # noqa: E402 (they import models)
from tests.bench.measure import Bench, Series  # noqa: E402
from tests.bench.servers import ROOT, Cluster, Server  # noqa: E402
from tests.pg_plugin import find_programs  # noqa: E402

say = partial(print, flush=True)
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
HEAD = """
Eight clients. CPU: milliseconds per request. x raw: how many times as many requests per second the
raw reference answers (in brackets: how many times as much processor time roombook uses).
Goal: the maximum of x raw.

| operation | server | req/s | p50 ms | p99 ms | app CPU | PG CPU | KB | errors | x raw | goal |
|---|---|---|---|---|---|---|---|---|---|---|"""


def main() -> None:
    options = parse_arguments()
    # It stops the servers then, too.
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
        say(HEAD)
        bench = Bench(app, raw, world, cluster.postmaster, options.seconds, options.rounds)
        measure_operations(bench, operations)


def parse_arguments() -> argparse.Namespace:
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
    return parser.parse_args()


def measure_operations(bench: Bench, names: Iterable[str]) -> None:
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
    p50, p99 = (f"{series.percentile(percent):.2f}" for percent in (50, 99))
    app, database = (
        f"{series.per_request(seconds) * 1000:.3f}"
        for seconds in (series.app_cpu, series.database_cpu)
    )
    size, errors = f"{series.per_request(series.kilobytes):.1f}", f"{len(series.bad)}"
    cells = (name, server, f"{series.rate:.0f}", p50, p99, app, database, size, errors, *more)
    say(f"| {' | '.join(cells)} |")


def describe_machine(options: argparse.Namespace) -> str:
    model, *more = re.findall("model name.*: (.*)", Path("/proc/cpuinfo").read_text()) or ["?"]
    return (
        f"{options.size:,} centers, {RESERVATIONS_PER_CENTER * options.size:,} reservations;"
        f" {options.rounds} rounds of {options.seconds:g} s; {1 + len(more)} x {model},"
        f" Python {platform.python_version()}, Django {django.__version__}."
    )


if __name__ == "__main__":
    main()
