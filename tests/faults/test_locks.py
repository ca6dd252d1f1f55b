"""Installations at a time when every locked package has a newer release.

An index in a folder offers the locked files, and a newer version of each package.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from tests.faults.machine import read_commands
from tests.faults.size import LONG
from tests.locks import (
    LOCKS,
    LONG_LOCK,
    ROOT,
    applies,
    find_unmet_anywhere,
    get_version,
    install_lock,
    read_installed,
    read_lock,
)

pytestmark = pytest.mark.skipif(not LONG, reason="installs all locks: make faults")

THIS_PIP = f"pip=={metadata.version('pip')}"
NEWER_RELEASE = 9999
TAG = f"{NEWER_RELEASE}-py3-none-any"


def download(folder: Path, *arguments: str) -> None:
    words = ["-m", "pip", "download", "--quiet", "--no-deps", f"--dest={folder}", *arguments]
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True)


def make_newer_wheel(name: str, version: Version, folder: Path) -> None:
    """Make an empty package whose version is higher than any real one."""
    file, epoch = name.replace("-", "_"), f"{version.epoch}!" if version.epoch else ""
    information = f"{file}-{epoch}{NEWER_RELEASE}.dist-info"
    with zipfile.ZipFile(folder / f"{file}-{epoch}{TAG}.whl", "w") as wheel:
        wheel.writestr(
            f"{information}/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {epoch}{NEWER_RELEASE}\n",
        )
        wheel.writestr(
            f"{information}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{information}/RECORD", "")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """The address of an index with the locked files and newer releases."""
    folder = tmp_path_factory.mktemp("index")
    files = folder / "files"
    for lock in LOCKS:
        download(files, "--require-hashes", "--requirement", lock)
    download(files, THIS_PIP)
    versions = {parse_wheel_filename(file.name)[:2] for file in files.iterdir()}
    for name, version in versions:
        make_newer_wheel(name, version, files)
    for file in sorted(files.iterdir()):
        page = folder / "simple" / parse_wheel_filename(file.name)[0] / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        with page.open("a") as links:
            links.write(f'<a href="../../files/{file.name}">{file.name}</a>\n')
    yield (folder / "simple").as_uri()
    shutil.rmtree(folder)


@pytest.fixture
def environment(index, tmp_path) -> dict[str, str]:
    """Variables with which pip reads that index, with an empty cache and no other configuration."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index,
        "PYTHON": sys.executable,
    }


@pytest.fixture
def run(environment, tmp_path) -> Callable[[str], str]:
    """Run a command where the locks and the Makefile are, and return what it printed."""
    for name in ["Makefile", *LOCKS]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def call(command: str) -> str:
        done = subprocess.run(
            ["sh", "-euc", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return call


def get_versions(lock: str) -> dict[str, str]:
    """The versions of the packages that a lock installs here."""
    return {
        canonicalize_name(each.name): get_version(each) for each in read_lock(lock) if applies(each)
    }


def get_installed_versions(folder: Path) -> dict[str, str]:
    return {name: each.version for name, each in read_installed(folder).items()}


def test_make_installs_the_locked_versions(run, tmp_path):
    run("make env")
    assert get_installed_versions(tmp_path / ".venv") == get_versions("requirements.txt")

    run("make dev")
    assert get_installed_versions(tmp_path / ".venv") == get_versions("requirements-dev.txt")


def test_make_without_the_venv_of_debian_installs_the_locked_versions(run, tmp_path):
    """Debian's Python without the package python3-venv cannot install pip into environments."""
    (tmp_path / "python").write_text(
        f'#!/bin/sh\n[ "$*" != "-m venv .venv" ] || exit 1\nexec {sys.executable} "$@"\n'
    )
    (tmp_path / "python").chmod(0o755)
    run("make env PYTHON=./python")

    assert run(".venv/bin/pip --version").split()[1] == metadata.version("pip")
    assert get_installed_versions(tmp_path / ".venv") == get_versions("requirements.txt")


def test_image_has_the_locked_versions(run, tmp_path):
    text = (ROOT / "deploy/Dockerfile").read_text().replace("\\\n", "")
    [install] = re.findall("^RUN (.*pip install.*)", text, re.M)
    run(f"$PYTHON -m venv .venv; {install.replace('/venv/', f'{tmp_path}/.venv/')}")
    versions = get_versions("requirements.txt")
    assert get_installed_versions(tmp_path / ".venv") == versions

    # The command of docs/metrics.md adds those of traces.
    [command] = [each for each in read_commands("docs/metrics.md") if "tracing.txt" in each]
    run(command)
    versions |= get_versions("deploy/tracing.txt")
    assert get_installed_versions(tmp_path / ".venv") == versions


# tests/test_locks.py follows the requirements of the locks that are installed in .venv.
@pytest.mark.parametrize("lock", ["deploy/tracing.txt", LONG_LOCK])
def test_installed_lock_meets_all_requirements(lock, environment, tmp_path, monkeypatch):
    for name in ["PIP_CONFIG_FILE", "PIP_INDEX_URL"]:
        monkeypatch.setenv(name, environment[name])
    install_lock(lock, tmp_path / "environment")
    installed = read_installed(tmp_path / "environment")

    assert get_installed_versions(tmp_path / "environment") == get_versions(lock)
    assert find_unmet_anywhere(lock, lambda name: installed[name].requires or []) == {}
