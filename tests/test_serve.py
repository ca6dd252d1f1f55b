"""`make run`: one command from a fresh clone to a service."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from shlex import split

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from roombook.management.commands import serve
from tests.faults.processes import find_free_port


@pytest.mark.parametrize("text", ["abc", "0", "65536"])
def test_port_must_be_a_number(text):
    with pytest.raises(CommandError, match=f"PORT: '{text}' is not a port number"):
        serve.parse_free_port(text)


def test_port_in_use_is_an_error_with_a_suggestion():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(CommandError, match=f"Port {port} is in use; another one: make run"):
            serve.parse_free_port(str(port))

    assert serve.parse_free_port(str(port)) == port


@pytest.mark.django_db
def test_curl_command_of_the_welcome_signs_in(client):
    assert serve.DEMO_ACCOUNT not in serve.render_welcome("http://127.0.0.1:8123")
    get_user_model().objects.create_user(email=serve.DEMO_ACCOUNT, password="quiet-harbour-42")
    greeting = serve.render_welcome("http://127.0.0.1:8123")
    line = greeting[greeting.index("curl ") : greeting.index("Ctrl-C")].replace("\\\n", "")

    _, _, url, _, header, _, body = split(line)
    response = client.post(
        url.removeprefix("http://127.0.0.1:8123"),
        data=body,
        content_type=header.removeprefix("Content-Type: "),
    )

    assert response.status_code == 200
    assert json.loads(response.content)["Token"]


@pytest.mark.django_db
@pytest.mark.parametrize("debug", [True, False])
def test_serve_migrates_seeds_starts_jobs_and_executes_gunicorn(monkeypatch, settings, debug):
    settings.DEBUG = debug
    done = []
    monkeypatch.setattr(serve, "call_command", lambda name, **options: done.append((name, options)))
    monkeypatch.setattr(subprocess, "Popen", lambda words, **_: done.append(words[1:]))
    monkeypatch.setattr(os, "execv", lambda path, words: done.append((path, words)))
    monkeypatch.setattr(os, "environ", os.environ | {"PORT": str(find_free_port())})

    call_command("serve")

    demo = [("seed_demo", {"if_empty": True})] if debug else []
    jobs = ["manage.py", "run_jobs", f"--parent={os.getpid()}", "--verbosity=0"]
    assert done[:-1] == [("migrate", {"verbosity": 0}), *demo, jobs]
    program, words = done[-1]
    assert program == sys.executable
    assert words[1:5] == ["-m", "gunicorn", "--config", "deploy/gunicorn.conf.py"]
    assert (Path(settings.BASE_DIR) / words[4]).is_file()
    assert f"127.0.0.1:{os.environ['PORT']}/healthz" in os.environ["WELCOME"]
