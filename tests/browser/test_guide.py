"""The pages of the guide are accessible, and fit a phone, in the light and in the dark theme."""

import pytest

from roombook import guide
from tests.browser import accessibility, chromium


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_have_no_violations_and_fit_a_phone(browser, live_server, theme):
    # The longest pages take seconds, and colors are the same everywhere.
    names = guide.find_pages() if theme == "light" else ["", "errors"]
    # The scan adds a style to the page, which its policy does not allow.
    page = browser.new_page(viewport=chromium.PHONE, color_scheme=theme, bypass_csp=True)
    watch = chromium.Watch(page, live_server.url)
    found = {}

    for name in names:
        url = f"{live_server.url}/docs/guide/{name and f'{name}/'}"
        found[name] = accessibility.open_and_scan(page, url, [theme])
        width = page.evaluate("document.documentElement.scrollWidth")
        found[name] += [f"{width} pixels"] * (width > 390)

    page.close()
    assert {name: violations for name, violations in found.items() if violations} == {}
    assert watch.complaints == []
