"""Sends the same 10,000 requests to two revisions of the code, and compares the answers.

    python -m tests.contract.replay record FILE     with the first revision
    python -m tests.contract.replay compare FILE    with the second one: sends what FILE contains

Two runs of one revision get the same bytes: the clock stands still, and what is random (Tokens,
codes, ids, secrets) begins anew with each request. TEST_DB chooses the database, as for the tests;
what was recorded with SQLite can be compared with PostgreSQL.
"""

import gzip
import json
import logging
import os
import random
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from io import BytesIO
from typing import Any
from unittest.mock import patch

import django
import time_machine

ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "roombook.settings",
    "PYTHONHASHSEED": "0",  # The order of sets.
}
# Those of PostgreSQL are not rolled back.
KEEP_SEQUENCES = """
    CREATE TEMPORARY TABLE kept AS
    SELECT format('%I.%I', schemaname, sequencename)::regclass AS id, last_value FROM pg_sequences
"""
RESET_SEQUENCES = "SELECT setval(id, coalesce(last_value, 1), last_value IS NOT NULL) FROM kept"
SHOWN_DIFFERENCES = 20
SHOWN_LENGTH = 1500


def main(command: str, file: str) -> None:
    if os.environ.get("PYTHONHASHSEED") != "0":
        arguments = [sys.executable, "-m", "tests.contract.replay", command, file]
        os.execve(sys.executable, arguments, os.environ | ENVIRONMENT)
    from tests import pg_plugin  # noqa: F401  (it chooses the database, by TEST_DB)

    django.setup()
    logging.disable()
    from django.core.signals import request_finished, request_started
    from django.db import close_old_connections, transaction
    from django.test import override_settings
    from django.test.runner import DiscoverRunner

    runner = DiscoverRunner(verbosity=0, interactive=False)
    runner.setup_test_environment()
    runner.setup_databases()
    # They would close the connection that has the transaction, as Django's test client knows.
    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    block = transaction.atomic()
    block._from_testcase = True  # A gateway may be called inside it.
    with ExitStack() as stack:
        media = stack.enter_context(tempfile.TemporaryDirectory())
        hashers = ["django.contrib.auth.hashers.MD5PasswordHasher"]
        stack.enter_context(override_settings(PASSWORD_HASHERS=hashers, MEDIA_ROOT=media))
        stack.enter_context(block)
        replay = Replay(stack)
        if command == "record":
            replay.record(file)
        else:
            sys.exit(replay.compare(file))


class Replay:
    """A world, and the service that gets the requests."""

    def __init__(self, stack: ExitStack) -> None:
        # Models cannot be imported earlier.
        from roombook.handler import RoombookWSGIHandler
        from tests.contract.replayed_requests import build_world

        self.random = random.Random()
        for name in ("os.urandom", "random._urandom"):
            stack.enter_context(patch(name, lambda size: self.random.randbytes(size)))
        self.clock = stack.enter_context(time_machine.travel(0, tick=False))
        self.world = build_world(self.clock, self.random.seed)
        self.application = RoombookWSGIHandler()
        execute_on_postgresql(KEEP_SEQUENCES)

    def record(self, file: str) -> None:
        from tests.contract.replayed_requests import build_scenarios

        statuses: Counter[str] = Counter()
        with gzip.open(file, "wt") as lines:
            for scenario in build_scenarios(self.world):
                answers = self.send(scenario)
                lines.write(json.dumps({**scenario, "answers": answers}) + "\n")
                statuses.update(status for status, *_ in answers)
        report(f"{statuses.total()} requests", *statuses.items())

    def compare(self, file: str) -> int:
        """Print the first differences, and return how many there are."""
        total, differences = 0, Counter[str]()
        with gzip.open(file, "rt") as lines:
            for line in lines:
                scenario = json.loads(line)
                answers = self.send(scenario)
                total += len(answers)
                for request, *both in zip(
                    scenario["requests"], scenario["answers"], answers, strict=True
                ):
                    if both[0] != both[1]:
                        differences[scenario["kind"]] += 1
                        if differences.total() <= SHOWN_DIFFERENCES:
                            report(*(json.dumps(each)[:SHOWN_LENGTH] for each in (request, *both)))
        report(f"{total} requests, {differences.total()} answers differ", *differences.items())
        return differences.total()

    def send(self, scenario: dict[str, Any]) -> list[Any]:
        """Send the requests of a scenario one after the other, then undo what they changed."""
        from django.test import override_settings

        from tests.contract.replayed_requests import break_operation

        def send_all() -> list[Any]:
            answers = []
            for request in scenario["requests"]:
                self.random.seed(json.dumps(request))
                self.clock.move_to(request["time"])
                with break_operation(request["path"], scenario["fault"]):
                    answers.append(self.call(request))
            return answers

        execute_on_postgresql(RESET_SEQUENCES)
        with override_settings(**scenario["settings"]):
            answers: list[Any] = self.world.call_and_roll_back(send_all)
            return answers

    def call(self, request: dict[str, Any]) -> list[Any]:
        """Return the status, the headers and the body of the answer to a request."""
        body = request["body"].encode("latin-1")
        environ = {
            "REQUEST_METHOD": request["method"],
            "PATH_INFO": request["path"],
            "QUERY_STRING": request["query"],
            "SERVER_NAME": "testserver",
            "SERVER_PORT": "80",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.url_scheme": "http",
            "wsgi.input": BytesIO(body),
            **request["environ"],
        }
        started: list[Any] = []
        response = self.application(environ, lambda *start: started.append(start))
        content = b"".join(response)
        if hasattr(response, "close"):
            response.close()
        [(status, headers)] = started
        headers = dict(sorted(headers))
        if "Content-Encoding" in headers:
            # Django adds random bytes before it compresses.
            content = gzip.decompress(content)
            del headers["Content-Length"]
        return [status, headers, content.decode("latin-1")]


def execute_on_postgresql(statement: str) -> None:
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(statement)


def report(*lines: object) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
