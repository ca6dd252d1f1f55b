"""The deployed service as real processes: gunicorn with deploy/gunicorn.conf.py on a free port."""

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.faults.database import Database
from tests.faults.processes import children_of, find_free_port
from tests.faults.size import WORKERS
from tests.gateway_faults import add_fault

ROOT = Path(__file__).parent.parent.parent
# The program, as in the unit of systemd: SIGUSR2 starts it again.
GUNICORN = Path(sys.executable).with_name("gunicorn")
SECRET_KEY = "faults-sK7vQ2xW9mB4nL6pR8tY1uE3iO5aD0fG-hJzXcVbNqMwZ_kTrPs"
START_SECONDS = 120.0


class Service:
    """A running service. Its processes are killed by their ids only."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        *options: str,
        root: Path = ROOT,
        program: Sequence[Path] = (GUNICORN,),
        application: str = "tests.faults.wsgi",
        **environment: str,
    ) -> None:
        self.database = database
        self.folder = folder
        (folder / "mails").mkdir(parents=True)
        self.log = folder / "log"
        self.port = find_free_port()
        self.environment = {
            "PATH": os.environ["PATH"],
            "ENV_FILE": os.devnull,
            "DEBUG": "false",
            "SECRET_KEY": SECRET_KEY,
            "ALLOWED_HOSTS": "127.0.0.1",
            "SECURE_SSL_REDIRECT": "false",
            "PAYMENT_GATEWAY": "sandbox",
            "CREATES_PER_HOUR": "0",
            "DATABASE_URL": database.url,
            "EMAIL_URL": f"filemail://{folder}/mails",
            "DEFAULT_FROM_EMAIL": "Rooms <rooms@example.com>",
            "MEDIA_ROOT": str(folder / "media"),
            "BIND": f"127.0.0.1:{self.port}",
            "WEB_CONCURRENCY": str(WORKERS),
            "GATEWAY_FAULTS": str(folder / "gateway-faults"),
            **environment,
        }
        config = ("-c", "deploy/gunicorn.conf.py", *options)
        with self.log.open("ab") as log:
            self.master = subprocess.Popen(
                [*program, *config, application],
                cwd=root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C ends the tests first; they end the service.
            )
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.is_up():
            if self.master.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"The service did not start: {self.log.read_text()[-4000:]}")
            time.sleep(0.05)

    def is_up(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def workers(self) -> list[int]:
        """The ids of the worker processes, the children of the master."""
        return children_of(self.master.pid)

    def kill(self, worker: int) -> None:
        """Kill a worker, as the kernel does when memory runs out."""
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)

    def stop(self) -> None:
        """Kill all processes: a graceful stop would hide what a sudden end leaves behind."""
        workers = self.workers()
        if self.master.poll() is None:
            # The master first, so that it starts no new workers. Workers without master end.
            self.master.kill()
            self.master.wait()
        for worker in workers:
            self.kill(worker)

    def stop_gracefully(self) -> None:
        """Stop as systemd does, so that no files are left behind."""
        self.master.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.master.wait(timeout=START_SECONDS)
        self.stop()

    def add_gateway_fault(
        self, operation: str, kind: str, *, seconds: float = 0, times: int | None = 1
    ) -> Callable[[], None]:
        """Let the next calls of the gateway's operation fail; return what undoes it."""
        folder = Path(self.environment["GATEWAY_FAULTS"])
        return add_fault(operation, kind, seconds=seconds, times=times, folder=folder)
