"""Reads the examples of a Markdown page, runs them, and compares what they print with the page.

A block of `sh` holds commands. A block of another language after it is what they print; commands
without one print nothing. In what they print, `…` stands for what is left out or differs from time
to time. JSON may be wrapped.
"""

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

ANY = "…"
# `setup`: other pages begin with these commands. `server`: they run until the reader stops them.
ROLES = {"", "setup", "server"}
PRINTED_LANGUAGES = {"json", "csv", "js", "text"}
SECONDS = 200
END = "\x1e"
JSON_TOKEN = re.compile(rf'"(?:[^"\\]|\\.)*"|{ANY}|[-+.\w]+|\S')


@dataclass
class Example:
    commands: str
    role: str
    language: str = ""
    printed: str = ""

    def is_printed_by(self, text: str) -> bool:
        """Whether the page shows what the commands printed."""
        if self.language != "json":
            return matches_text(text.replace("\r\n", "\n"), self.printed)
        try:
            return matches(json.loads(text), read_json(self.printed))
        except json.JSONDecodeError:
            return False


def read_examples(text: str) -> list[Example]:
    """Return the examples of a page in order. Raises AssertionError if a block would not be run."""
    examples: list[Example] = []
    for token in MarkdownIt("commonmark").parse(text):
        assert token.type not in {"code_block", "html_block"}, f"Not run: {token.content}"
        if token.type != "fence":
            continue
        language, _, role = token.info.partition(" ")
        if language == "sh":
            assert role in ROLES, role
            examples.append(Example(token.content, role))
        else:
            assert language in PRINTED_LANGUAGES, token.info
            assert examples, f"No commands print this: {token.content}"
            assert not examples[-1].printed, f"No commands print this: {token.content}"
            examples[-1].language, examples[-1].printed = language, token.content
    return examples


def read_json(text: str) -> Any:
    """Parse JSON with `…`, which becomes a text, or a member with this name and value."""
    parts, containers, before = [], [], ""
    for token in JSON_TOKEN.findall(text):
        part = token
        if token in "{[":
            containers.append(token)
        elif token in "}]":
            containers.pop()
        elif token == ANY:
            is_member = before != ":" and containers and containers[-1] == "{"
            part = f'"{ANY}": "{ANY}"' if is_member else f'"{ANY}"'
        parts.append(part)
        before = token
    return json.loads(" ".join(parts))


def matches(value: Any, shown: Any) -> bool:
    """Whether a value of a response is what the page shows."""
    if shown == ANY:
        return True
    if isinstance(shown, dict) and isinstance(value, dict):
        wanted = {name: each for name, each in shown.items() if name != ANY}
        has_names = wanted.keys() <= value.keys() if ANY in shown else wanted.keys() == value.keys()
        return has_names and all(matches(value[name], wanted[name]) for name in wanted)
    if isinstance(shown, list) and isinstance(value, list):
        return _matches_list(value, shown)
    if isinstance(shown, str) and isinstance(value, str):
        return matches_text(value, shown)
    return type(value) is type(shown) and bool(value == shown)


def _matches_list(values: list[Any], shown: list[Any]) -> bool:
    if not shown:
        return not values
    first, *rest = shown
    if first == ANY:
        return any(_matches_list(values[skipped:], rest) for skipped in range(len(values) + 1))
    return bool(values) and matches(values[0], first) and _matches_list(values[1:], rest)


def matches_text(text: str, shown: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in shown.strip().split(ANY))
    return bool(re.fullmatch(pattern, text.strip(), re.DOTALL))


class Terminal:
    """A shell that runs the commands of a page one example after the other."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.servers: list[subprocess.Popen[bytes]] = []
        self.shell = subprocess.Popen(
            ["bash", "-eu"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.watchdog = threading.Timer(SECONDS, self._end, [self.shell])
        self.watchdog.start()

    def run(self, commands: str) -> str:
        """Run commands and return what they print, with errors. A failure ends the shell."""
        assert self.shell.stdin
        assert self.shell.stdout
        with suppress(BrokenPipeError):
            self.shell.stdin.write(f"{commands}\nprintf '{END}'\n".encode())
            self.shell.stdin.flush()
        printed = bytearray()
        while (byte := self.shell.stdout.read(1)) and byte != END.encode():
            printed += byte
        return printed.decode()

    def serve(self, commands: str, until: str, log: Path) -> str:
        """Start a server and return what it has printed when that is as shown, or all of it."""
        with log.open("wb") as output:
            server = subprocess.Popen(
                ["bash", "-eu", "-c", commands],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.servers.append(server)
        deadline = time.monotonic() + SECONDS
        while server.poll() is None and time.monotonic() < deadline:
            if matches_text(log.read_text(), until):
                break
            time.sleep(0.1)
        return log.read_text()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *error: object) -> None:
        self.watchdog.cancel()
        for process in (self.shell, *self.servers):
            # Closes its pipes, also if commands are left in them, and waits.
            with suppress(BrokenPipeError), process:
                self._end(process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
