"""deploy/install.sh on a Debian machine, in a copy of this machine's files that is thrown away.

The script runs as root in namespaces of its own: its changes go to an overlay in memory, its
processes end with it, and its network has only the loopback address.
"""

import os
import shutil
import subprocess

import pytest

from tests.faults.service import ROOT
from tests.faults.size import LONG

PROGRAMS = ["unshare", "nginx", "pg_createcluster", "runuser", "curl", "ip"]
SEARCH_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not LONG, reason="sets up a whole machine: make faults"),
    pytest.mark.skipif(os.getuid() != 0, reason="only root can set up a machine"),
    pytest.mark.skipif(
        not all(shutil.which(each, path=SEARCH_PATH) for each in PROGRAMS),
        reason="this machine lacks a program of install.sh",
    ),
]

# A tmpfs can be the upper layer of an overlay; a folder that is itself on an overlay cannot.
ENTER = """
set -eu
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
root=$1/root
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
for folder in run tmp; do mount -t tmpfs tmpfs "$root/$folder"; done
chmod 1777 "$root/tmp"
install -d -o postgres "$root/run/postgresql"
ip link set lo up
# As on a new machine: no cluster, and the default site of nginx.
rm -rf "$root"/etc/postgresql/*/* "$root"/var/lib/postgresql/*/* "$root/etc/roombook.env"
mkdir -p "$root/srv/roombook/app"
cd "$2"
tar --create --exclude=./.venv --exclude=./.git --exclude='./.*_cache' . |
    tar --extract --directory "$root/srv/roombook/app"
cp --archive --dereference .venv "$root/srv/roombook/app/.venv"
chown -R root:root "$root/srv/roombook/app"
touch "$root/srv/roombook/app/.venv/.stamp"
# The user of the service must be able to read the interpreter.
chmod o+x "$root/root"
exec chroot "$root" /bin/sh -eu -c "$3"
"""

WALK = """
cd /srv/roombook/app
export HOME=/root LANG=C.UTF-8
names="rooms.example.com sandbox"
echo "-- check before"
deploy/install.sh --check $names && exit 1
echo "-- install"
deploy/install.sh $names
echo "-- check after"
deploy/install.sh --check $names
echo "-- install again"
deploy/install.sh $names
echo "-- update"
before=$(cat /etc/roombook.env)
chown roombook:roombook /etc/roombook.env
chmod 600 /etc/roombook.env
echo "# Edited." | tee -a /etc/nginx/conf.d/roombook.conf /etc/postgresql/*/main/pg_hba.conf
rm /etc/systemd/system/roombook.service
find roombook/static -type f | head -1 | xargs touch
deploy/install.sh $names
[ "$(cat /etc/roombook.env)" = "$before" ]
deploy/install.sh --check $names
echo "-- start"
# What systemd would do with the units.
install -d -o roombook /run/roombook
unit=deploy/systemd/roombook.service
cd "$(sed -n 's/^WorkingDirectory=//p' $unit)"
runuser -u roombook -- env $(sed -n 's/^Environment=//p' $unit) \
    $(sed -n 's/^ExecStart=//p' $unit) >/tmp/service.log 2>&1 &
nginx
tries=0
until curl --silent --fail --insecure --resolve rooms.example.com:443:127.0.0.1 \
    https://rooms.example.com/healthz; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { cat /tmp/service.log; exit 1; }
    sleep 0.2
done
echo
echo "-- jobs"
for timer in deploy/systemd/*.timer; do
    job=${timer#*@}
    deploy/manage "${job%.timer}"
done
echo "-- restart of the database, reload of the service"
pg_ctlcluster "$(ls /etc/postgresql)" main restart
$(sed -n 's/^ExecReload=//p' $unit)
curl --silent --fail --insecure --resolve rooms.example.com:443:127.0.0.1 \
    https://rooms.example.com/healthz
echo
echo "-- end"
"""


def test_install_sets_up_a_machine_and_later_changes_only_what_is_missing(tmp_path):
    namespaces = ["--mount", "--pid", "--net", "--uts", "--fork", "--kill-child"]
    walked = subprocess.run(
        ["unshare", *namespaces, "sh", "-c", ENTER, "sh", tmp_path, ROOT, WALK],
        env={"PATH": SEARCH_PATH},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert walked.returncode == 0, f"{walked.stdout[-3000:]}\n{walked.stderr[-3000:]}"
    parts = dict(part.split("\n", 1) for part in walked.stdout.split("-- ")[1:])
    steps = [line for line in parts["check before"].splitlines() if line.startswith("missing: ")]
    done = [line for line in parts["install"].splitlines() if line.startswith("== ")]
    assert len(steps) >= 10
    assert len(done) >= 10
    assert "missing: " not in parts["check after"]
    assert "== " not in parts["install again"]
    updated = parts["update"].splitlines()
    assert sum(line.startswith("== ") for line in updated) == 3
    differing = {line.rpartition("/")[2] for line in updated if line.startswith("differs: ")}
    assert differing == {"roombook.conf", "pg_hba.conf"}
    assert '{"status": "ok"}' in parts["start"]
    assert '{"status": "ok"}' in parts["restart of the database, reload of the service"]
    assert "0 payments processed." in parts["jobs"]
