"""The documentation matches the code: operations, types, errors, settings, commands."""

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from roombook.api.errors import HTTP_STATUSES
from roombook.secret_paths import SECRET_PATHS
from tests.contract.schema import ALL_OPERATIONS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
ERRORS = (ROOT / "docs/guide/errors.md").read_text()
SETTINGS = (ROOT / "docs/settings.md").read_text()
COMMANDS = (ROOT / "docs/commands.md").read_text()
BEHAVIOUR = (ROOT / "docs/behaviour.md").read_text()
OUR_APPS = {"accounts", "centers", "payments", "reservations", "roombook"}
DOCS = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
PAGES = [
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "deploy/README.md"),
    *(f"docs/{name}" for name in DOCS),
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs/guide").glob("*.md"))),
]


def section(page, heading):
    """Return the text under a heading of the second level."""
    return re.split(rf"^## {heading}\n", page, flags=re.M)[1].split("\n## ")[0]


def rows(text):
    """Return the rows of all tables; each row is a list of its cells."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if set("".join(row)) - set("-")]


def names_in(text):
    return set(re.findall(r"`([^`]+)`", text))


# --- README -------------------------------------------------------------------------------------


def test_readme_lists_exactly_the_operations():
    listed = re.findall(r"^\| `(/api/[^`]+)` \|", section(README, "Operations"), re.M)

    assert listed == [each.path for each in ALL_OPERATIONS]


@pytest.mark.parametrize(
    "text", [ERRORS, section(BEHAVIOUR, "B3 Errors")], ids=["errors", "behaviour"]
)
def test_every_error_is_listed_with_its_status(text):
    documented = {}
    for http, cell, *_ in rows(text):
        codes = re.findall(r"`([A-Z][A-Za-z]+)`", cell)
        statuses = [int(status) for status in re.findall(r"\d{3}", http)]
        if len(statuses) == len(codes):
            documented |= dict(zip(codes, statuses, strict=True))
        elif statuses:
            documented |= {code: statuses[0] for code in codes if code in HTTP_STATUSES}

    assert documented == HTTP_STATUSES


def test_settings_page_lists_every_setting_with_its_default():
    listed = {
        names_in(name).pop(): default for name, default, _ in rows(SETTINGS) if name.startswith("`")
    }
    example = (ROOT / "deploy/env.example").read_text()
    # test_settings.py checks that these are the settings and their defaults.
    names = re.findall(r"^#?([A-Z_]+)=", example, re.M)
    defaults = dict(re.findall(r"^#([A-Z_]+)=(.*)$", example, re.M))

    assert set(listed) == {*names, "DEBUG"}
    for name, default in defaults.items():
        shown = listed[name]
        assert shown == "empty" if default == "" else shown.startswith(f"`{default}`"), name


def test_every_command_is_listed():
    ours = {name for name, app in get_commands().items() if app.split(".")[0] in OUR_APPS}

    assert {names_in(row[0]).pop() for row in rows(COMMANDS) if row[0].startswith("`")} == ours


@pytest.mark.parametrize("name", DOCS)
def test_each_page_of_docs_is_in_the_index(name):
    assert f"]({name})" in (ROOT / "docs/README.md").read_text() or name == "README.md"


# --- docs/behaviour.md --------------------------------------------------------------------------


def rules():
    """Return the numbers of all rules: `B12`, and `B12.3` for its third point."""
    found = set()
    for chapter in re.split(r"^## (?=B\d+ )", BEHAVIOUR, flags=re.M)[1:]:
        name = chapter.split()[0]
        found |= {name, *(f"{name}.{point}" for point in re.findall(r"^(\d+)\. ", chapter, re.M))}
    return found


def test_cited_rules_exist():
    files = [
        *(path for app in OUR_APPS for path in (ROOT / app).rglob("*.py")),
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / page for page in PAGES),
    ]
    # "B1" alone may have another meaning: rules are cited in prose, in brackets or with a point.
    cited = {
        (rule, path.relative_to(ROOT))
        for path in files
        for rule in re.findall(r"\bB(?:[1-9]|[12]\d)\.\d+\b", path.read_text())
    }

    known = rules()
    assert {(rule, path) for rule, path in cited if rule not in known} == set()


# --- Links --------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_existing_files(page):
    text = (ROOT / page).read_text()
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", text):
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.exists(), target
        headings = re.findall(r"^#+ (.+)$", file.read_text(), re.M) if anchor else []
        assert not anchor or anchor in {h.lower().replace(" ", "-") for h in headings}, anchor


def test_architecture_page_names_existing_files():
    text = (ROOT / "docs/architecture.md").read_text()
    for name in re.findall(r"`((?:\w+/)+\w+\.py)`", text):
        # A module may have become a package.
        assert (ROOT / name).exists() or (ROOT / name).with_suffix("").is_dir(), name


def test_documented_traces_exclude_all_secret_paths():
    text = (ROOT / "docs/metrics.md").read_text()
    [excluded] = re.findall(r"OTEL_PYTHON_DJANGO_EXCLUDED_URLS=(\S+)", text)

    for path in SECRET_PATHS:
        assert re.search(excluded.replace(",", "|"), path), path
