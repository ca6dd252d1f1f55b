"""Counts the clicks that a task takes."""

from playwright.sync_api import Page


class Clicks:
    """Counts the clicks of a person in a page, on every page that it opens."""

    def __init__(self, page: Page) -> None:
        self.count = 0
        # A click on a label makes the browser click the field as well: the pointer counts once.
        page.expose_function("countClick", self._add)
        page.add_init_script("addEventListener('pointerdown', () => countClick(), true)")

    def _add(self) -> None:
        self.count += 1
