"""Reads the file of settings: lines of NAME=value, however an editor saved them.

A line that shells, Docker and systemd would read in different ways is refused. Messages name the
file and the line, never what the line contains, which may be a secret.
"""

import os
import re
import unicodedata
from codecs import BOM_UTF8
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

NAME_PATTERN = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)")
# 'as it is', or "with \" inside"; a comment may follow.
QUOTED_PATTERN = re.compile(r"""(?:'([^']*)'|"((?:[^"\\]|\\.)*)")(?:\s+#.*)?""")
# "Rooms" <rooms@example.com>: these quotation marks belong to the sender's name.
SENDER_PATTERN = re.compile(r'"[^"]*"\s*<[^<>"]*>')
QUOTES = "\"'`´“”„‟‘’‚‛«»‹›＂＇"  # noqa: RUF001 (straight and typographic)
# Nobody sees these characters, or everybody takes them for a space.
INVISIBLE_CATEGORIES = {"Cc", "Cf", "Zl", "Zp", "Zs"}
# Plain spaces, and what emojis and the names of some languages need.
ALLOWED_INVISIBLE = {" ", "\t", "\u200c", "\u200d"}


def load(path: Path, *, must_exist: bool = False) -> None:
    """Load the variables of a file, as `read_values` reads them. Environment variables win."""
    for name, value in read_values(path, must_exist=must_exist).items():
        os.environ.setdefault(name, value)


def read_values(path: Path, *, must_exist: bool = False) -> dict[str, str]:
    """The variables of a file by their names; none if there is no file, unless it must exist.

    Raises ImproperlyConfigured, which names the file and the line.
    """
    try:
        content = path.read_bytes().removeprefix(BOM_UTF8)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not (must_exist or path.is_symlink()):
            return {}
        raise ImproperlyConfigured(
            f"{path}: this file of settings cannot be read ({error.strerror}). Create it, correct"
            " its permissions, or set ENV_FILE to another file."
        ) from None
    values: dict[str, str] = {}
    for number, line in enumerate(re.split(rb"\r\n|\r|\n", content), start=1):
        try:
            name, value = _parse_line(line)
            if values.get(name, value) not in {"", value}:
                raise ValueError("an earlier line gives another value. Delete one of the two.")
        except ValueError as error:
            raise ImproperlyConfigured(f"{path}, line {number}: {error}") from None
        values[name] = value
    values.pop("", None)
    return values


def _parse_line(encoded: bytes) -> tuple[str, str]:
    """Name and value of a line; both are empty if it is empty or a comment.

    Raises ValueError, which says what to do.
    """
    line = encoded.decode(errors="replace").strip()
    if b"\0" in encoded or "\N{REPLACEMENT CHARACTER}" in line:
        raise ValueError("the file is not encoded in UTF-8. Save it with this encoding.")
    if not line or line.startswith("#"):
        return "", ""
    before, separator, after = line.partition("=")
    before, value = before.strip(), after.strip()
    categories = map(unicodedata.category, {*before, *value} - ALLOWED_INVISIBLE)
    if not INVISIBLE_CATEGORIES.isdisjoint(categories):
        raise ValueError("it contains an invisible character or a special space. Type it again.")
    name = NAME_PATTERN.fullmatch(before)
    if not (name and separator) or value.startswith("="):
        raise ValueError("write NAME=value. A comment begins with #.")
    quoted = QUOTED_PATTERN.fullmatch(value)
    if quoted and quoted[1] is not None:
        return name[1], quoted[1]
    if re.search(r"\$[({]", value):
        raise ValueError(
            "write the value itself; programs and other variables are not called here. If it really"
            " contains $( or ${, put it between single quotation marks (')."
        )
    if quoted:
        return name[1], re.sub(r"\\([^rnt])", r"\1", quoted[2])
    if re.search(r"\s#", after):
        raise ValueError(
            "write the comment on a line of its own, or a value with # between quotation marks."
        )
    if value and {value[0], value[-1]} & {*QUOTES} and not SENDER_PATTERN.fullmatch(value):
        raise ValueError('put the whole value between two straight quotation marks ("), or none.')
    return name[1], value
