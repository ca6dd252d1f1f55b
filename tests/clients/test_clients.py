"""Clients that public generators make from docs/openapi*.json (`make clients`).

A client in TypeScript and one in Python book a room at a running service. The others are generated,
and checked by the compiler of their language if this machine has it. All of this needs the package
registries.
"""

import datetime as dt
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from django.core.management import call_command
from django.urls import get_resolver

from reservations.models import Reservation
from roombook.api.views import choose_day
from tests.contract.schema import get_operations
from tests.locks import LONG_LOCK, install_lock, install_node_packages

DOCS = Path(__file__).parents[2] / "docs"
PROGRAMS = Path(__file__).parent / "programs"
LANGUAGES = ["csharp", "go", "java", "kotlin", "php", "swift6"]
# In Go, each field X has a method HasX, so that of Street2 is the name of another field.
OPTIONS = {"go": ["--name-mappings", "HasStreet2=WithStreet2"]}
# For each program, the command that checks a client in its folder.
CHECKS = {
    "go": ["go", "build", "-mod=mod", "./..."],
    "php": ["sh", "-c", "find . -name '*.php' -print0 | xargs -0 -n1 php -l"],
}

OPERATIONS = [view.__name__ for view in get_operations(get_resolver().url_patterns).values()]

pytestmark = pytest.mark.skipif(not os.environ.get("CLIENTS"), reason="clients: make clients")


def run(*words, folder, **environment):
    """Run a program, and return what it printed."""
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The folder of the programs of a virtual environment with the generators."""
    return install_lock(LONG_LOCK, tmp_path_factory.mktemp("python"))


@pytest.fixture
def service(transactional_db, tiny_pictures, live_server):
    call_command("seed_demo", force=True, small=True, verbosity=0)
    return live_server.url


DAY = choose_day(dt.date.today()).isoformat()  # noqa: DTZ011


def check_booking(printed):
    """Assert that a program has booked a room."""
    assert printed.strip().splitlines()[-1] == "Confirmed"
    assert Reservation.objects.latest("pk").status == "Confirmed"


def test_typescript_client_books_a_room(service, tmp_path):
    shutil.copytree(PROGRAMS, tmp_path, dirs_exist_ok=True)
    install_node_packages(tmp_path)
    openapi = str(DOCS / "openapi.json")
    run("npx", "openapi-typescript", openapi, "-o", "roombook.d.ts", folder=tmp_path)
    run("npx", "tsc", "-p", ".", folder=tmp_path)

    check_booking(run("npx", "tsx", "book.ts", service, DAY, folder=tmp_path))


def test_python_client_books_a_room(service, python, tmp_path):
    command = ["openapi-python-client", "generate", "--path", str(DOCS / "openapi.json")]
    words = [*command, "--output-path", "roombook_client", "--meta", "none"]
    path = f"{python}:{os.environ['PATH']}"
    run(str(python / words[0]), *words[1:], folder=tmp_path, PATH=path)

    program = str(PROGRAMS / "book.py")
    printed = run(
        str(python / "python"), program, service, DAY, folder=tmp_path, PYTHONPATH=str(tmp_path)
    )

    check_booking(printed)


@pytest.mark.skipif(not shutil.which("java"), reason="the generator needs Java")
@pytest.mark.parametrize("language", LANGUAGES)
def test_client_is_generated_with_every_operation(language, python, tmp_path):
    words = ["generate", "-i", str(DOCS / "openapi-3.0.json"), "-g", language, "-o", "client"]
    words += OPTIONS.get(language, [])
    run(str(python / "openapi-generator-cli"), *words, folder=tmp_path)

    files = (tmp_path / "client").rglob("*[Aa][Pp][Ii]*.*")
    text = "".join(path.read_text().lower() for path in files if path.is_file())
    assert [name for name in OPERATIONS if name.lower() not in text] == []
    if language not in CHECKS:
        return
    if not shutil.which(language):
        pytest.skip(f"The client was generated, but not compiled: {language} is not installed.")
    run(*CHECKS[language], folder=tmp_path / "client")
