"""PgBouncer with deploy/pgbouncer/pgbouncer.ini, in front of a database of the tests."""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.faults.processes import find_free_port, is_listening, wait_for

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
CONFIGURATION = Path(__file__).parent.parent.parent / "deploy/pgbouncer/pgbouncer.ini"


class PgBouncer:
    """A running pooler for one role."""

    def __init__(self, *, host: str, server_port: int, role: str, password: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="roombook-pgbouncer-", dir="/tmp"))
        self.port = find_free_port()
        users = self.folder / "users"
        users.write_text('"{}" "{}"\n'.format(role, password.replace('"', '""')))
        configuration = self.folder / "pgbouncer.ini"
        text = CONFIGURATION.read_text()
        for setting, value in {
            "roombook": f"host={host} port={server_port}",
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_file": users,
            "admin_users": role,
            "logfile": self.folder / "log",
            "pidfile": self.folder / "pid",
        }.items():
            text, count = re.subn(f"^{setting} = .*$", f"{setting} = {value}", text, flags=re.M)
            assert count == 1, setting
        # The databases of the tests have other names.
        configuration.write_text(text.replace("\nroombook = ", "\n* = "))
        self.account = None
        if os.getuid() == 0:
            # PgBouncer refuses to run as root. Its package runs it as this user.
            self.account = pwd.getpwnam("postgres").pw_uid
            for path in (self.folder, users, configuration):
                os.chown(path, self.account, -1)
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [str(PROGRAM), "--quiet", self.folder / "pgbouncer.ini"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self.account,
            start_new_session=True,
        )
        wait_for(lambda: self.process.poll() is None and is_listening(self.port), "PgBouncer")

    def restart(self, *, orderly: bool) -> None:
        """Restart as systemd does, or after a crash."""
        if orderly:
            self.process.terminate()
        else:
            self.process.kill()
        self.process.wait()
        (self.folder / "pid").unlink(missing_ok=True)
        self.start()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
