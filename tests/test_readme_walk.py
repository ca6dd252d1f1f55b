"""The bookings in README.md and docs/walkthrough.md, run as printed; the responses are compared."""

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.core.management import call_command

ROOT = Path(__file__).parent.parent
STEP = "--- step"
CURL = shutil.which("curl")

# Values that depend on the day and on the database.
OTHER = re.compile(
    r"\d{4}-\d\d-\d\d|[+-]\d\d:\d\d$|\w{3}, \w{3} \d+, \d{4}|(?<=\(reservation )\d+|[0-9a-f]{64}$"
)


def get_steps(page):
    """Return each block of commands with the response that is printed below it, if any."""
    walk = (ROOT / page).read_text().split("<!-- walk -->")[1].split("<!-- /walk -->")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", walk, re.M | re.S)
    found = []
    for kind, text in blocks:
        if kind == "sh":
            found.append([text, None, None])
        else:
            found[-1][1:] = [kind, text]
    return found


@pytest.mark.skipif(not CURL, reason="the walkthrough needs curl")
@pytest.mark.usefixtures("tiny_pictures")
def test_readme_and_then_walkthrough_run_as_printed_book_rooms(transactional_db, live_server):
    call_command("seed_demo", force=True, verbosity=0)

    run_as_printed("README.md", live_server, bookings=1)
    run_as_printed("docs/walkthrough.md", live_server, bookings=2)


def run_as_printed(page, live_server, *, bookings):
    commands = "".join(f"echo '{STEP}'\n{text}" for text, _, _ in get_steps(page))
    assert "http://127.0.0.1:8000" in commands
    script = commands.replace("http://127.0.0.1:8000", live_server.url)

    done = subprocess.run(
        ["bash", "-eu", "-c", script], capture_output=True, text=True, timeout=120, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    printed = done.stdout.split(f"{STEP}\n")[1:]
    confirmed = []
    for (command, kind, expected), answer in zip(get_steps(page), printed, strict=True):
        if kind == "json":
            documented = json.loads(re.sub(r",?\s*…(?:,(?=\s*[\"{]))?", elision, expected))
            assert contains(json.loads(answer), documented), (command, answer)
            confirmed.append(documented.get("Status"))
        elif kind == "csv":
            documented, got = (
                list(csv.DictReader(io.StringIO(text))) for text in (expected, answer)
            )
            assert contains(got, documented), (command, answer)
            confirmed.append(documented[0].get("Status"))
    assert confirmed.count("Confirmed") == bookings


def elision(match):
    """Return the replacement of `…`: a comma between two values, otherwise nothing."""
    before = match.string[: match.start()].rstrip()[-1]
    return "," if match[0].endswith(",") and before not in "{[" else ""


def contains(answer, documented):
    """Whether the response has all documented values; it may have more."""
    if isinstance(documented, dict):
        return all(
            name in answer and (name.endswith("Id") or contains(answer[name], value))
            for name, value in documented.items()
        )
    if isinstance(documented, list):
        rest = iter(answer)
        # The elements have this order; others may be in between.
        return all(any(contains(each, wanted) for each in rest) for wanted in documented)
    if isinstance(documented, str):
        return OTHER.sub("*", answer) == OTHER.sub("*", documented)
    return answer == documented
