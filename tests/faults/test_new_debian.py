"""deploy/README.md on a new Debian from its mirror: packages, clone and environment included.

It needs the network, and minutes for what it loads. tests/faults/test_install.py tests the rest of
the commands on a copy of this machine.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults import machine as machines
from tests.faults.machine import APP, Machine, read_commands
from tests.faults.processes import wait_for
from tests.faults.service import ROOT
from tests.faults.size import LONG

PROGRAMS = ["debootstrap", "slirp4netns", "git"]
pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not LONG, reason="installs a new Debian: make faults"),
    pytest.mark.skipif(not machines.is_possible(), reason="this machine cannot boot another one"),
    pytest.mark.skipif(
        not all(shutil.which(each, path=machines.SEARCH_PATH) for each in PROGRAMS),
        reason=f"this machine lacks one of: {', '.join(PROGRAMS)}",
    ),
]

README = "deploy/README.md"
REPOSITORY = "/root/roombook.git"
NAMES = "rooms.example.com sandbox"
# For what install.sh loads: an idle machine needs two minutes.
LOAD_SECONDS = 3600
# How this machine reaches the mirrors: further certificates, the configuration of pip, names.
CERTIFICATES = "/usr/local/share/ca-certificates"
CONFIGURATION = ["/etc/pip.conf", "/etc/resolv.conf"]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Iterator[Path]:
    """The files of a new Debian, of the release of this machine, with git and the repository."""
    folder = tmp_path_factory.mktemp("debian") / "files"
    release = Path("/etc/os-release").read_text()
    [suite] = [
        line.partition("=")[2]
        for line in release.splitlines()
        if line.startswith("VERSION_CODENAME=")
    ]
    run("debootstrap", "--include=git,ca-certificates", suite, str(folder))
    repository = f"{folder}{REPOSITORY}"
    run("git", "init", "--bare", "--initial-branch=main", repository)
    run("git", "-C", repository, "fetch", str(ROOT), "HEAD:main")
    shutil.copytree(CERTIFICATES, f"{folder}{CERTIFICATES}", dirs_exist_ok=True)
    for name in filter(os.path.exists, CONFIGURATION):
        shutil.copy(name, f"{folder}{name}")
    run("chroot", str(folder), "update-ca-certificates")
    yield folder
    shutil.rmtree(folder)


def run(*command: str) -> None:
    done = subprocess.run(
        command, env={"PATH": machines.SEARCH_PATH}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.fixture
def machine(files) -> Iterator[Machine]:
    with ExitStack() as stack:
        started = Machine("rooms", files=files)
        stack.callback(started.remove)
        # Connections from the machine are made by this process; nothing reaches the machine.
        network = subprocess.Popen(
            ["slirp4netns", "--configure", "--disable-host-loopback", str(started.pid), "tap0"],
            env={"PATH": machines.SEARCH_PATH},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(network.wait)
        stack.callback(network.kill)
        yield started


def test_new_debian_serves_after_the_commands_of_the_readme(machine):
    commands = read_commands(README)
    first = next(n for n, each in enumerate(commands) if "git clone" in each)
    clone, enter, install = commands[first : first + 3]
    assert enter == f"cd {APP}"
    wait_for(
        lambda: not machine.run("apt-get update", statuses={0, 100}, folder="/").returncode,
        "Debian's mirror",
    )
    machine.run(clone.replace("<URL of the repository>", f"file://{REPOSITORY}"), folder="/root")
    installed = machine.run(install.replace(" stripe", " sandbox"), seconds=LOAD_SECONDS)

    assert installed.stdout.count("== ") >= 12
    assert "Debian packages" in installed.stdout
    assert "Python environment" in installed.stdout
    machine.run(f"deploy/install.sh --check {NAMES}")
    ask = "curl --fail --insecure --resolve rooms.example.com:443:127.0.0.1"
    assert machine.run(f"{ask} https://rooms.example.com/healthz").stdout == '{"status": "ok"}'
    runs = "journalctl -u roombook-jobs | grep jobs.send_outbox"
    wait_for(lambda: machine.run(runs, statuses={0, 1}).stdout != "", "a scheduled command")
    # A new version, as docs/upgrade.md says: nothing is new here.
    [pull] = [each for each in read_commands("docs/upgrade.md") if "git pull" in each]
    machine.run(pull)
