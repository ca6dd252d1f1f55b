"""The guide as HTML pages at /docs/guide/."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import pytest

from roombook import guide
from tests.contract.schema import ALL_OPERATIONS
from tests.examples import read_examples

ROOT = Path(__file__).parent.parent
# The tests use no database: pages are readable while it is not reachable.
URLS = [f"/docs/guide/{name and f'{name}/'}" for name in guide.find_pages()]


class Page(HTMLParser):
    """The parts of a page that links need."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.links += filter(None, [values.get("href"), values.get("src")])
        self.ids += filter(None, [values.get("id")])


@pytest.mark.parametrize("url", URLS)
def test_links_of_page_lead_to_pages_and_headings_of_the_guide(client, url):
    page = Page(client.get(url).content.decode())

    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        target, _, anchor = urljoin(url, link).partition("#")
        if target.startswith("/static/"):
            continue
        response = client.get(target)
        assert response.status_code == 200, link
        assert not anchor or anchor in Page(response.content.decode()).ids, link


def test_page_has_title_language_policy_and_marks_itself(client):
    response = client.get("/docs/guide/errors/")
    html = response.content.decode()

    assert response["Content-Type"] == "text/html; charset=utf-8"
    assert "script-src 'self'; style-src 'self';" in response["Content-Security-Policy"]
    assert '<html lang="en">' in html
    assert "<title>Errors | roombook</title>" in html
    assert re.findall(r'href="([^"]+)" aria-current="page"', html) == ["/docs/guide/errors/"]
    assert "<script" not in html
    assert "style=" not in html


def test_link_to_a_file_outside_the_guide_becomes_text(client):
    assert "<a>settings.md</a>" in client.get("/docs/guide/behaviour/").content.decode()


def test_unchanged_page_is_304(client):
    first = client.get("/docs/guide/errors/")
    again = client.get("/docs/guide/errors/", headers={"If-None-Match": first["ETag"]})

    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "name",
    [
        "nothing",
        "README",
        "settings",
        "errors.md",
        "../settings",
        "%2e%2e/settings",
        "..%2fsettings",
    ],
)
def test_other_names_are_not_found(client, name):
    assert client.get(f"/docs/guide/{name}/").status_code == 404


def test_address_without_slash_leads_to_the_page(client):
    assert client.get("/docs/guide")["Location"] == "/docs/guide/"
    assert client.get("/docs/guide/errors")["Location"] == "/docs/guide/errors/"


def test_index_lists_every_page_once():
    listed = [link.href for link in guide.find_listed_pages()]

    assert sorted(listed) == sorted(set(URLS) - {"/docs/guide/"})


def test_every_operation_has_an_example():
    files = [*(ROOT / "docs/guide").glob("*.md")]
    commands = "".join(each.commands for file in files for each in read_examples(file.read_text()))

    called = set(re.findall(r"/api/[a-z/-]+", commands))
    assert {each.path for each in ALL_OPERATIONS} - called == set()


def test_image_contains_the_documentation():
    ignored = (ROOT / "deploy/Dockerfile.dockerignore").read_text().splitlines()

    assert "COPY docs docs\n" in (ROOT / "deploy/Dockerfile").read_text()
    assert [path for path in ignored if path.startswith("docs")] == ["docs/images"]
