"""The ways in which staff do a task: the size of the window, the theme, by mouse or by keyboard.

`FAULTS=long python -m pytest tests/browser/tasks` does each task in all of them, which takes about
an hour. Otherwise each task names the ways that are enough to notice most faults.
"""

from typing import Literal, NamedTuple

import pytest

from tests.browser import chromium
from tests.faults.size import LONG

SIZES = {
    "desktop": chromium.DESKTOP,
    "laptop": chromium.LAPTOP,
    "tablet": chromium.TABLET,
    "phone": chromium.PHONE,
}

# The theme's `xl` and `lg`.
MENU_WIDTH, ACTIONS_WIDTH = 1280, 1024


class Way(NamedTuple):
    size: str = "desktop"
    theme: Literal["light", "dark"] = "light"
    hand: Literal["mouse", "keyboard"] = "mouse"

    @property
    def viewport(self) -> dict[str, int]:
        return SIZES[self.size]

    @property
    def has_folded_menu(self) -> bool:
        """Whether the window is so narrow that a button opens the menu."""
        return self.viewport["width"] < MENU_WIDTH

    @property
    def has_folded_actions(self) -> bool:
        """Whether it is so narrow that a button opens the actions of a list."""
        return self.viewport["width"] < ACTIONS_WIDTH


DESKTOP, PHONE = Way(), Way("phone")
ALL = [
    Way(size, theme, hand)
    for size in SIZES
    for theme in ("light", "dark")
    for hand in ("mouse", "keyboard")
]


def in_ways(*short: Way, without: tuple[str, ...] = ()) -> pytest.MarkDecorator:
    """Run a test in these ways, in the long form in all, except those with one of these values."""
    ways = [way for way in ALL if not set(without) & set(way)] if LONG else short
    return pytest.mark.parametrize("way", ways, ids="-".join)
