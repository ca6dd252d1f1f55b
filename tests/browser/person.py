"""Uses pages as a person does, by mouse or by keyboard alone, and counts the clicks."""

from playwright.sync_api import Locator, Page, expect

from tests.browser.ways import DESKTOP, Way

MAX_TABS = 200
HAS_FOCUS = "element => element === document.activeElement"
HAS_FOCUS_STYLE = """element => {
  const style = getComputedStyle(element);
  return style.outlineStyle !== "none" || style.boxShadow !== "none";
}"""
# A click on a label makes the browser click the field as well: the pointer counts once.
COUNT = "addEventListener('pointerdown', () => countClick(), true)"


class Person:
    """Somebody who does a task on a page, and on every page that it opens.

    `clicks` counts the clicks or, by keyboard, the keys that do what a click does.
    """

    def __init__(self, page: Page, way: Way = DESKTOP) -> None:
        self.page = page
        self.has_mouse = way.hand == "mouse"
        self.clicks = 0
        page.expose_function("countClick", self._add)
        page.add_init_script(COUNT)
        page.evaluate(COUNT)

    def _add(self) -> None:
        self.clicks += 1

    def click(self, target: Locator, *, key: str = "Enter") -> None:
        """Click the target, or press a key on it: Space for a checkbox."""
        if self.has_mouse:
            wait_for_scripts(target)
            target.click()
        else:
            go_to(self.page, target)
            self._add()
            self.page.keyboard.press(key)

    def fill(self, target: Locator, text: str) -> None:
        if self.has_mouse:
            wait_for_scripts(target)
            target.fill(text)
        else:
            go_to(self.page, target)
            self.page.keyboard.press("Control+a")
            self.page.keyboard.type(text)

    def fill_fields(self, **values: str) -> None:
        """Fill fields of a form by their names."""
        for name, value in values.items():
            self.fill(self.page.locator(f"[name={name}]"), value)

    def take_payment_for_draft(self, *, reference: str) -> None:
        """Save the draft that is entered, and take its payment at the desk."""
        page = self.page
        self.click(page.get_by_role("button", name="Save draft and hold room"))
        self.click(page.get_by_role("link", name="Take payment"))
        self.fill(page.get_by_label("Reference"), reference)
        preview = page.locator("#preview")
        expect(preview).to_contain_text("Confirmed")
        self.click(preview.get_by_role("button", name="Take payment"))


def wait_for_scripts(target: Locator) -> None:
    """Wait until the page of the target is loaded.

    Before, its scripts do not notice what is done to it, and move the focus later.
    """
    expect(target.first).to_be_attached()
    target.page.wait_for_load_state()


def go_to(page: Page, target: Locator, *, key: str = "Tab") -> None:
    """Press the key until the target has the focus, which must be visible."""
    wait_for_scripts(target)
    for _ in range(MAX_TABS):
        if target.first.evaluate(HAS_FOCUS):
            assert target.first.evaluate(HAS_FOCUS_STYLE), f"{target} shows no focus"
            expect(target.first).to_be_in_viewport()
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} does not lead to {target}.")


def press(page: Page, target: Locator) -> None:
    go_to(page, target)
    page.keyboard.press("Enter")


def go_to_slot(page: Page, name: str, slot: Locator) -> None:
    """Go to a free slot of a room on the timeline, with the arrow keys."""
    row = page.locator(f".timeline-row[aria-label='{name}']:focus-within")
    go_to(page, page.locator(".timeline a[tabindex='0']"))
    page.keyboard.press("Home")
    for _ in range(page.locator(".timeline-row").count()):
        page.keyboard.press("ArrowUp")
    for _ in range(MAX_TABS):
        if slot.first.evaluate(HAS_FOCUS):
            return
        page.keyboard.press("ArrowRight" if row.count() else "ArrowDown")
    raise AssertionError(f"The arrow keys do not lead to {slot}.")
