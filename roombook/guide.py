"""The guide for developers of client apps: files of docs/ as HTML pages at /docs/guide/.

The Markdown files are pages on the code host as well, so their links name files. Here, a link to
a page of the guide becomes its URL, and a link to any other file becomes text.
"""

import posixpath
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import conditional_page, require_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin

DOCS = Path(settings.BASE_DIR) / "docs"
INDEX = "guide/README.md"
# Pages of docs/ to which the guide refers for what is exact.
REFERENCE = ("contract.md", "behaviour.md")

# HTML in a file is kept: the files are our own.
parser = MarkdownIt("commonmark").enable("table").use(anchors_plugin, max_level=3)


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a page or to a heading."""

    href: str
    text: str


@require_safe
@conditional_page
def show_page(request: HttpRequest, name: str = "") -> HttpResponse:
    """Show the page with this name, or the index. Other names are 404."""
    file = find_pages().get(name)
    if file is None:
        raise Http404
    return HttpResponse(render_page(file))


@cache
def find_pages() -> dict[str, str]:
    """Return the file of each page, below docs/, by the page's name in its URL."""
    files = sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / "guide").glob("*.md"))
    return {
        "" if file == INDEX else posixpath.splitext(posixpath.basename(file))[0]: file
        for file in (*files, *REFERENCE)
    }


@cache
def render_page(file: str) -> str:
    """Return a file as an HTML page. Each process renders it once."""
    tokens = parse(file)
    # The first three tokens are the title, which the template shows.
    content = parser.renderer.render(tokens[3:], parser.options, {})
    # A wide table scrolls, also with the keyboard. A header cell must not be empty.
    content = content.replace("<table>", '<div class="wide" tabindex="0"><table>')
    content = content.replace("</table>", "</table></div>").replace("<th></th>", "<td></td>")
    return render_to_string(
        "guide/page.html",
        {
            "title": get_text(tokens[1]),
            "content": content,
            "headings": find_headings(tokens),
            "pages": find_listed_pages(),
            "url": build_url(file),
        },
    )


def parse(file: str) -> list[Token]:
    """Return the tokens of a file, with links that lead to pages of the guide."""
    tokens = parser.parse((DOCS / file).read_text())
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                href = resolve_link(str(child.attrs["href"]), posixpath.dirname(file))
                child.attrs = {"href": href} if href else {}
    return tokens


def resolve_link(target: str, folder: str) -> str:
    """Return the URL for a link on a page in this folder of docs/, or "" if it has none here."""
    if target.startswith(("#", "https://", "http://")):
        return target
    path, hash_sign, anchor = target.partition("#")
    url = build_url(posixpath.normpath(posixpath.join(folder, path)))
    return url and url + hash_sign + anchor


def build_url(file: str) -> str:
    """Return the URL of the page with this file, or "" if it is not part of the guide."""
    for name, known in find_pages().items():
        if known == file:
            return reverse("guide", kwargs={"name": name} if name else None)
    return ""


def find_headings(tokens: list[Token]) -> list[Link]:
    """Return the headings of the second level, which the page's table of contents lists."""
    return [
        Link(f"#{token.attrs['id']}", get_text(tokens[index + 1]))
        for index, token in enumerate(tokens)
        if token.tag == "h2" and token.nesting == 1
    ]


@cache
def find_listed_pages() -> list[Link]:
    """Return the pages in the order in which the index links to them."""
    links: dict[str, Link] = {}
    for token in parse(INDEX):
        children = token.children or []
        for child, text in pairwise(children):
            href = str(child.attrs.get("href", ""))
            if href.startswith("/"):
                links.setdefault(href, Link(href, text.content))
    return list(links.values())


def get_text(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())
