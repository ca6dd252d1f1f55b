"""Debian machines with systemd: copies of this machine's files, or of a new Debian's.

Each machine has namespaces and a control group of its own. Its changes go to an overlay in memory,
its processes end with it, and its network reaches only other machines of the test.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.faults.processes import children_of, wait_for
from tests.faults.service import ROOT

PROGRAMS = ["unshare", "nsenter", "nginx", "pg_createcluster", "runuser", "curl", "ip"]
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Debian's own, of the version of the environment.
PYTHON = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
SYSTEMD = Path("/lib/systemd/systemd")
APP = "/srv/roombook/app"
COMMAND_SECONDS = 600

# Arguments: the folder, the repository, the environment of Python, the name of the machine, the
# lines of /etc/hosts, and the folder of the files that it begins with.
# A tmpfs can be the upper layer of an overlay; a folder that is itself on an overlay cannot.
BOOT = """
set -eu
mount -t tmpfs tmpfs "$1"
for folder in upper work root venv-upper venv-work; do mkdir "$1/$folder"; done
mount -t overlay overlay -o "lowerdir=$6,upperdir=$1/upper,workdir=$1/work" "$1/root"
root=$1/root
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for folder in run tmp; do mount -t tmpfs tmpfs "$root/$folder"; done
hostname "$4"
echo "$4" >"$root/etc/hostname"
printf '127.0.0.1 localhost\\n%s\\n' "$5" >"$root/etc/hosts"
tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
ip link set lo up
"""
COPY_THIS_MACHINE = """
# As on a new machine: no cluster, no data, and no service but those that Debian enables.
rm -rf "$root"/etc/postgresql/*/* "$root"/var/lib/postgresql/*/* "$root"/var/lib/etcd/* \
    "$root/etc/roombook.env" "$root/etc/default/etcd" "$root"/var/log/journal \
    "$root"/var/lib/systemd/timers
find "$root/etc/systemd/system/multi-user.target.wants" -mindepth 1 ! -name postgresql.service \
    ! -name nginx.service -delete
app=$root/srv/roombook/app
mkdir -p "$app/.venv"
cd "$2"
tar --create --exclude=./.venv --exclude=./.git --exclude='./.*_cache' --exclude=./.bench . |
    tar --extract --directory "$app"
mount -t overlay overlay \
    -o "lowerdir=$3,upperdir=$1/venv-upper,workdir=$1/venv-work" "$app/.venv"
# The same packages, with Debian's own interpreter.
ln -sf "$(readlink -f /usr/bin/python3)" "$app/.venv/bin/python"
sed -i 's|^home = .*|home = /usr/bin|' "$app/.venv/pyvenv.cfg"
sed -i '1s|^#!.*|#!/srv/roombook/app/.venv/bin/python|' "$app/.venv/bin/gunicorn"
chown -R root:root "$app"
touch "$app/.venv/.stamp"
"""
START_SYSTEMD = """
exec chroot "$root" /usr/bin/env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --show-status=false --log-target=journal
"""


def find_control_groups() -> Path | None:
    """The folder of the second version's hierarchy, in which a machine needs a group of its own."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, folder, kind, options = line.split()[:4]
        if kind == "cgroup2" and "rw" in options.split(","):
            return Path(folder)
    return None


def is_possible() -> bool:
    return (
        os.getuid() == 0
        and SYSTEMD.exists()
        and PYTHON.exists()
        and find_control_groups() is not None
        and all(shutil.which(each, path=SEARCH_PATH) for each in PROGRAMS)
    )


class Network:
    """A network of machines, whose names all of them know."""

    def __init__(self, *names: str) -> None:
        self.addresses = {name: f"10.77.0.{n}" for n, name in enumerate(names, start=11)}
        self._holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        own = Path("/proc/self/ns/net").readlink()
        wait_for(lambda: Path(f"/proc/{self._holder.pid}/ns/net").readlink() != own, "a network")
        self._run("ip link add name hub type bridge && ip link set hub up")

    def _run(self, script: str) -> None:
        enter = ["nsenter", "--target", str(self._holder.pid), "--net"]
        subprocess.run([*enter, "sh", "-euc", script], check=True)

    def connect(self, machine: "Machine") -> None:
        name = machine.name
        self._run(
            f"ip link add name {name} type veth peer name eth0 netns {machine.pid};"
            f" ip link set {name} master hub up"
        )
        machine.run(f"ip address add {self.addresses[name]}/24 dev eth0 && ip link set eth0 up")

    @property
    def hosts(self) -> str:
        return "\n".join(f"{address} {name}" for name, address in self.addresses.items())

    def remove(self) -> None:
        self._holder.kill()
        self._holder.wait()


class Machine:
    """A machine whose systemd runs.

    It begins with the files of this machine, with the repository in /srv/roombook/app; or with
    those in `files` and nothing else.
    """

    def __init__(
        self, name: str, network: Network | None = None, files: Path | None = None
    ) -> None:
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix=f"roombook-{name}-", dir="/tmp"))
        groups = find_control_groups()
        assert groups is not None
        self.group = groups / f"roombook-{name}-{uuid.uuid4().hex[:8]}"
        self.group.mkdir()
        namespaces = ["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"]
        script = BOOT + ("" if files else COPY_THIS_MACHINE) + START_SYSTEMD
        environment = str((ROOT / ".venv").resolve())
        hosts = network.hosts if network else ""
        arguments = [str(self.folder), str(ROOT), environment, name, hosts, str(files or "/")]
        self._process = subprocess.Popen(
            [
                *("sh", "-c", f'echo $$ >{self.group}/cgroup.procs && exec "$@"', "sh"),
                *("unshare", *namespaces, "--fork", "--kill-child"),
                *("sh", "-c", script, "sh", *arguments),
            ],
            env={"PATH": SEARCH_PATH},
            stdin=subprocess.DEVNULL,
        )
        try:
            wait_for(self._has_booted, f"systemd on {name}")
            if network:
                network.connect(self)
            wait_for(self._has_started, f"all services of {name}")
        except BaseException:
            self.remove()
            raise

    def _has_booted(self) -> bool:
        assert self._process.poll() is None, f"{self.name} ended"
        with suppress(OSError, IndexError):
            self.pid = children_of(self._process.pid)[0]
            return Path(f"/proc/{self.pid}/comm").read_text() == "systemd\n"
        return False

    def _has_started(self) -> bool:
        command = "systemctl is-system-running"
        state = self.run(command, statuses={0, 1}, folder="/").stdout.strip()
        return state in {"running", "degraded"}

    def run(
        self,
        script: str,
        *,
        statuses: Collection[int] = (0,),
        folder: str = APP,
        seconds: float = COMMAND_SECONDS,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a script as root in the folder. It must end with such a status."""
        directory = f"--wd={self.root}{folder}"
        enter = ["nsenter", "--target", str(self.pid), "--all", "--root", directory]
        done = subprocess.run(
            [*enter, "bash", "-c", script],
            env={"PATH": SEARCH_PATH, "HOME": "/root", "LANG": "C.UTF-8", "PAGER": "cat"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
        assert done.returncode in statuses, (
            f"{self.name}: {script}\nstatus {done.returncode}\n{done.stdout[-3000:]}\n"
            f"{done.stderr[-3000:]}"
        )
        return done

    @property
    def root(self) -> Path:
        """The files of the machine, as this machine sees them."""
        return Path(f"/proc/{self.pid}/root")

    def remove(self) -> None:
        """End all processes of the machine at once. Its files vanish with it."""
        for child in children_of(self._process.pid):
            os.kill(child, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        for group, _, _ in os.walk(self.group, topdown=False):
            wait_for(partial(remove_group, group), f"an empty {group}")
        with suppress(FileNotFoundError):
            self.folder.rmdir()


def remove_group(path: str) -> bool:
    """A control group can be removed once all its processes have ended."""
    with suppress(OSError):
        Path(path).rmdir()
    return not Path(path).exists()


# Lines that are indented as code, and commands within a sentence.
COMMANDS = re.compile(
    r"^ {4}(?: {3})?(\S.*)$"
    r"|`((?:systemctl|journalctl|pg_ctlcluster|deploy/manage|deploy/install\.sh) [^`]+)`",
    re.M,
)


def read_commands(page: str) -> list[str]:
    """The commands of a page of the documentation, in its order."""
    text = re.sub(r"\\\n +", "", (ROOT / page).read_text())
    return [block or inline for block, inline in COMMANDS.findall(text)]
