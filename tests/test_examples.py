"""The examples of the guide and of README.md, run as printed; what they print is compared."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.examples import Example, Terminal, read_examples
from tests.faults.processes import find_free_port

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs/guide"
# It starts the service; all other pages continue in its terminal.
FIRST = GUIDE / "first-booking.md"
OTHERS = sorted(page.name for page in GUIDE.glob("*.md") if page != FIRST)

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "curl", "git", "make"))),
    reason="the examples need bash, curl, git and make",
)


class Guide:
    """The service of the guide: a clone of this working copy, started by the first page."""

    def __init__(self, folder: Path) -> None:
        self.ports = {number: str(find_free_port()) for number in ("8000", "8001")}
        self.folder = folder
        self.environment = {
            # The programs of a version manager would take a tenth of a second to start Python.
            "PATH": f"{sys.base_prefix}/bin:{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PORT": self.ports["8000"],
            "REPOSITORY": make_repository(folder),
            "WEB_CONCURRENCY": "1",
        }
        examples = self.read(FIRST)
        start = next(i for i, each in enumerate(examples) if each.role == "server") + 1
        self.start, self.rest = examples[:start], examples[start:]

    def read(self, page: Path) -> list[Example]:
        text = page.read_text()
        for documented, port in self.ports.items():
            text = text.replace(documented, port)
        return read_examples(text)

    def open_terminal(self) -> Terminal:
        return Terminal(self.folder, self.environment)

    def set_up(self, terminal: Terminal) -> None:
        """Let new terminals begin with the variables and functions that all pages use."""
        examples = [each for each in self.rest if each.role == "setup"]
        self.run(terminal, examples)
        names = re.findall(r"^([A-Z]+)=", "".join(each.commands for each in examples), re.M)
        # Bash runs this file first.
        self.environment["BASH_ENV"] = str(self.folder.with_name("setup.sh"))
        terminal.run(f"{{ declare -f; declare -p {' '.join(names)}; }} > ../setup.sh")

    def run(self, terminal: Terminal, examples: list[Example]) -> None:
        for example in examples:
            if example.role == "server":
                log = self.folder.with_name(f"server-{len(terminal.servers)}.log")
                printed = terminal.serve(example.commands, example.printed, log)
            else:
                printed = terminal.run(example.commands)
            assert example.is_printed_by(printed), f"{example.commands}\nprinted:\n{printed}"


def make_repository(folder: Path) -> str:
    """Make a repository of this working copy with its changes, and return its address."""
    repository = folder / "repository"
    git = ["git", f"--git-dir={repository}", f"--work-tree={ROOT}"]
    git += ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Copy"]):
        subprocess.run([*git, *command], check=True)
    return str(repository)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    found = Guide(tmp_path_factory.mktemp("guide"))
    clone, server = found.start
    with found.open_terminal() as terminal:
        found.run(terminal, [clone])
        found.folder /= "roombook"
        terminal.folder = found.folder
        # The environment of this checkout, which is up to date, instead of a new one.
        (found.folder / ".venv").symlink_to(ROOT / ".venv")
        os.utime(found.folder / "requirements.txt", (0, 0))
        found.run(terminal, [server])
        found.set_up(terminal)
        yield found


def test_first_booking_run_as_printed_prints_what_the_page_shows(service):
    with service.open_terminal() as terminal:
        service.run(terminal, service.rest)


@pytest.mark.parametrize("name", OTHERS)
def test_page_run_as_printed_prints_what_it_shows(name, service):
    examples = service.read(GUIDE / name)
    with service.open_terminal() as terminal:
        service.run(terminal, examples)


@pytest.mark.usefixtures("tiny_pictures", "transactional_db")
def test_booking_of_the_readme_prints_what_it_shows(live_server, tmp_path):
    # The service of the guide has the working days too, and they leave these rooms free.
    call_command("seed_demo", force=True, small=True, verbosity=0)
    walk = (ROOT / "README.md").read_text().split("<!-- walk -->")[1].split("## The back office")[0]
    walk = re.sub(r"<!-- .* -->\n", "", walk)
    assert "http://127.0.0.1:8000" in walk
    examples = read_examples(walk.replace("http://127.0.0.1:8000", live_server.url))
    assert len(examples) == 7
    with Terminal(tmp_path, {"PATH": os.environ["PATH"]}) as terminal:
        for example in examples:
            printed = terminal.run(example.commands)
            assert example.is_printed_by(printed), f"{example.commands}\nprinted:\n{printed}"
