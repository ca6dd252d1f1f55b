"""One command from a fresh clone to a running service: `make run` calls it."""

import os
import socket
import subprocess
import sys

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from roombook import env

HOST = "127.0.0.1"
DEMO_ACCOUNT = "demo@roombook.example"

WELCOME = """
  roombook is ready

    API      {url}/api/           13 operations and some more, listed in README.md
    Guide    docs/guide/          for developers of client apps
    Admin    {url}/admin/
    Health   {url}/healthz
"""

DEMO = """
  Demo accounts, all with the password quiet-harbour-42

    demo@roombook.example      a customer with a saved card, an allowance and reservations
    guest@roombook.example     another customer
    staff@roombook.example     staff: may use the admin; manager@, desk@ and viewer@ at one center

  Try it (signs in and answers with a token):

    curl -s {url}/api/sign-in -H 'Content-Type: application/json' \\
      -d '{{"EmailAddress": "demo@roombook.example", "Password": "quiet-harbour-42"}}'
"""


class Command(BaseCommand):
    help = (
        "Migrate the database, load the demo data if it is empty and DEBUG is on, then serve on"
        " 127.0.0.1 (PORT, 8000 by default) with gunicorn, next to run_jobs, until Ctrl-C."
    )

    def handle(self, **_: object) -> None:
        port = parse_free_port(os.environ.get("PORT") or "8000")
        for name in ("WEB_CONCURRENCY", "WEB_THREADS"):
            # gunicorn itself would report a wrong value with a traceback.
            env.read_int(name, 1, least=1)
        call_command("migrate", verbosity=0)
        if settings.DEBUG:
            call_command("seed_demo", if_empty=True)
        os.environ["PORT"] = str(port)
        os.environ["WELCOME"] = render_welcome(f"http://{HOST}:{port}")
        self.stdout.flush()
        # Without what they print: only their e-mails, and errors.
        jobs = ["manage.py", "run_jobs", f"--parent={os.getpid()}", "--verbosity=0"]
        subprocess.Popen([sys.executable, *jobs], cwd=settings.BASE_DIR, stdin=subprocess.DEVNULL)
        # gunicorn replaces this process, so that Ctrl-C reaches the server itself.
        os.execv(
            sys.executable,
            [
                *(sys.executable, "-m", "gunicorn", "--config", "deploy/gunicorn.conf.py"),
                # Only the welcome text, and then one line per request.
                *("--log-level", "warning"),
                *("--chdir", str(settings.BASE_DIR), "roombook.wsgi"),
            ],
        )


def parse_free_port(text: str) -> int:
    """The port number. Raises CommandError if it is invalid, privileged or in use."""
    if not (text.isdigit() and 0 < int(text) < 65536):
        raise CommandError(f"PORT: {text!r} is not a port number.")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, int(text)))
        except PermissionError:
            raise CommandError(f"Port {text} needs root's rights: try PORT=8000.") from None
        except OSError:
            raise CommandError(
                f"Port {text} is in use; another one: make run PORT={int(text) % 65535 + 1}"
            ) from None
    return int(text)


def render_welcome(url: str) -> str:
    """How to try the service that runs at `url`."""
    text = WELCOME
    if get_user_model().objects.filter(email=DEMO_ACCOUNT).exists():
        text += DEMO
    return text.format(url=url) + "\n  Ctrl-C stops it.\n"
