"""PgBouncer with deploy/pgbouncer/pgbouncer.ini, in front of a database of the tests."""

import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
START_SECONDS = 20.0
CONFIGURATION = Path(__file__).parent.parent.parent / "deploy/pgbouncer/pgbouncer.ini"


class PgBouncer:
    """A running pooler for one role."""

    def __init__(self, *, host: str, server_port: int, role: str, password: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="roombook-pgbouncer-", dir="/tmp"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
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
        self._wait()

    def restart(self, *, orderly: bool) -> None:
        """Restart as systemd does, or after a crash."""
        if orderly:
            self.process.terminate()
        else:
            self.process.kill()
        self.process.wait()
        (self.folder / "pid").unlink(missing_ok=True)
        self.start()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise RuntimeError("PgBouncer did not start.") from None
                time.sleep(0.05)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
