"""Points in the code where tests let a worker crash, wait or raise.

Tests control them with files, so that they affect every worker, even those that start later.
"""

import functools
import os
import signal
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

# Each point is right after a function returns: its module and its name.
SANDBOX = "payments.gateways.sandbox"
POINTS = {
    "in authorize": (SANDBOX, "evaluate_card"),
    "after authorize": (SANDBOX, "SandboxGateway.authorize"),
}

CRASH, PAUSE, EXPLODE = "crash", "pause", "explode"


def install(folder: Path) -> None:
    """Let every point look for its file in the folder."""
    for point, (module, path) in POINTS.items():
        owner: Any = import_module(module)
        *classes, name = path.split(".")
        for each in classes:
            owner = getattr(owner, each)
        setattr(owner, name, instrument(getattr(owner, name), point, folder))


def instrument(function: Callable[..., Any], point: str, folder: Path) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if consume(folder / EXPLODE, point) is not None:
            # Like a careless library, which puts its arguments into the message.
            raise RuntimeError(f"Broken: {describe_source(kwargs.get('source'))}")
        result = function(*args, **kwargs)
        if consume(folder / CRASH, point) is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        if seconds := consume(folder / f"{PAUSE} {point}", point):
            time.sleep(float(seconds))
        return result

    return wrapper


def describe_source(source: Any) -> str:
    return f"number {getattr(source, 'number', '')}, code {getattr(source, 'brand', '')}"


def consume(file: Path, point: str) -> str | None:
    """The content of the file for this point. Deletes the file, so that it works only once."""
    try:
        name, _, rest = file.read_text().partition("\n")
        if name != point:
            return None
        # Only one of several processes succeeds.
        file.unlink()
    except OSError:
        return None
    return rest


def write_switch(file: Path, text: str) -> None:
    """Write the file atomically, so that nobody reads half of it."""
    draft = file.with_name(f".{file.name}")
    draft.write_text(text)
    draft.rename(file)
