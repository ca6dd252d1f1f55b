"""Runs axe-core (tests/browser/axe, from npm) on the pages of the back office."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import URLPattern, URLResolver, reverse
from playwright.sync_api import Locator, Page, expect

from reservations.desk.actions import ACTIONS
from reservations.models import Reservation
from reservations.reports.pages import REPORTS
from tests.faults.size import LONG

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text()
HTML = "text/html; charset=utf-8"

# Runs axe in each theme of the back office, and returns a line for each violation. If both show
# the same elements, only rules about colors can find something else in the dark theme.
SCAN = """async themes => {
  const COLOR_RULES = ["color-contrast", "link-in-text-block"];
  const found = [];
  let shown = [];
  for (const theme of themes) {
    document.documentElement.classList.toggle("dark", theme === "dark");
    const before = shown;
    shown = [...document.querySelectorAll("*")].filter(each => each.checkVisibility());
    const isSame = shown.length === before.length && shown.every((each, i) => each === before[i]);
    const {violations} = await axe.run(document, {
      resultTypes: ["violations"],
      ...(isSame && {runOnly: {type: "rule", values: COLOR_RULES}}),
    });
    for (const {id, impact, nodes} of violations) {
      for (const {target, failureSummary, html} of nodes) {
        const reason = failureSummary.split("\\n")[1] || "";
        found.push(`${theme} ${impact} ${id}: ${target.join(" ")}: ${reason.trim()} ${html}`);
      }
    }
  }
  return found;
}"""
# An element with its classes, without those that Django's admin gives to one app, model or field.
ELEMENT = re.compile(r'<(\w+)(?:[^>]*? class="([^"]*)")?')
OWN_CLASS = re.compile(
    r"(app|model|column|field|inline)-|(accounts|centers|payments|reservations)-"
)
# The fewest elements that no larger page has for which a page is scanned.
NEW_ELEMENTS = 1 if LONG else 8
BOTH_THEMES = ("light", "dark")
# Colors that are in transition would be measured halfway.
STILL = "*, *::before, *::after { transition: none !important; animation: none !important }"


def find_pages(page: Page) -> Iterator[tuple[str, str]]:
    """The URL and HTML of each page of the admin site that the signed-in user can open.

    The pages are found by the URL patterns; the short form takes one of each kind.
    """
    client, shown = Client(), set()
    for cookie in page.context.cookies():
        client.cookies[cookie["name"]] = cookie["value"]
    for url, kind in dict(build_urls()).items():
        if not LONG and kind in shown:
            continue
        response = client.get(url)
        # Others are redirects, files, data, or parts of a page.
        is_page = response.status_code == 200 and response.headers["Content-Type"] == HTML
        if is_page and "<html" in (html := b"".join(response).decode()):
            shown.add(kind)
            yield url, html


def find_elements(html: str) -> set[object]:
    """The distinct elements of a page: pages of one template that differ in texts have the same."""
    return {
        (tag, *sorted(each for each in classes.split() if not OWN_CLASS.match(each)))
        for tag, classes in ELEMENT.findall(html)
    }


def select_pages(pages: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The URLs of the pages that have elements which none of the larger pages has."""
    found = [(find_elements(html), url) for url, html in pages]
    seen: set[object] = set()
    for elements, url in sorted(found, key=lambda each: len(each[0]), reverse=True):
        if len(elements - seen) >= NEW_ELEMENTS:
            yield url
            seen |= elements


def open_and_scan(page: Page, url: str, themes: Sequence[str] = BOTH_THEMES) -> list[str]:
    page.goto(url)
    return scan(page.locator("body"), themes)


def scan(shown: Locator, themes: Sequence[str] = BOTH_THEMES) -> list[str]:
    """The violations of a page of the back office in both themes; elsewhere there is only one.

    The page is the one that shows this element. After a click, name one that the page before it
    does not show: the scan would not wait for the next page otherwise, and find the former one.
    """
    page = shown.page
    expect(shown).to_be_visible()
    page.wait_for_load_state()
    page.wait_for_function("!document.querySelector('[aria-busy]')")
    page.add_style_tag(content=STILL)
    page.evaluate(AXE)
    found: list[str] = page.evaluate(SCAN, list(themes))
    return found


def build_urls() -> Iterator[tuple[str, object]]:
    """The URLs of all pages of the back office, and others, by its URL patterns; with their kinds.

    A step of a reservation is of one kind, whichever the reservation.
    """
    booked_rooms = Reservation.objects.values("room")
    for pattern in _find_patterns(admin.site.urls[0]):
        if pattern.name is None:  # redirects, and the catch-all
            continue
        for arguments in _find_arguments(pattern):
            url = reverse(f"admin:{pattern.name}", kwargs=arguments)
            is_step = arguments.keys() == {"object_id", "name"}
            yield url, (pattern.name, arguments["name"]) if is_step else url
    week = f"{reverse('admin:reservations_room_week')}?room={booked_rooms[0]['room']}"
    yield week, week


def _find_patterns(patterns: list[URLPattern | URLResolver]) -> Iterator[URLPattern]:
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield pattern
        else:
            yield from _find_patterns(pattern.url_patterns)


def _find_arguments(pattern: URLPattern) -> Iterator[Mapping[str, object]]:
    """The arguments of the URL: for each model one row, for reservations one of each status."""
    names = set(pattern.pattern.converters or pattern.pattern.regex.groupindex)
    if not names:
        yield {}
    elif names == {"name"}:
        yield from ({"name": name} for name in REPORTS)
    elif names == {"extension"}:  # of an exported file
        yield {"extension": "csv"}
    elif names == {"object_id", "number"}:  # of a receipt, which is a PDF
        yield {"object_id": 1, "number": "x"}
    elif names == {"uidb64", "token"}:  # of an invitation
        yield {"uidb64": "x", "token": "x"}
    elif names == {"app_label"}:
        yield from ({"app_label": model._meta.app_label} for model in admin.site._registry)
    elif names == {"object_id", "name"}:
        for reservation in _find_rows(Reservation):
            for action in ACTIONS:
                yield {"object_id": reservation.pk, "name": action}
    elif names in ({"object_id"}, {"id"}):
        (name,) = names
        yield from ({name: row.pk} for row in _find_rows(_get_model(pattern)))
    else:
        assert names == {"content_type_id", "object_id"}, f"Give an example for {pattern}."


def _get_model(pattern: URLPattern) -> type[Model]:
    return next(
        model
        for model in admin.site._registry
        if str(pattern.name).startswith(
            (
                f"{model._meta.app_label}_{model._meta.model_name}_",
                f"auth_{model._meta.model_name}_",
            )
        )
    )


def _find_rows(model: type[Model]) -> list[Model]:
    rows = model._default_manager.order_by("-pk")
    if model is Reservation:
        by_status = {row.status: row for row in rows}
        return list(by_status.values())
    assert rows.exists(), f"The demo data have no {model._meta.verbose_name}."
    return list(rows[:1])
