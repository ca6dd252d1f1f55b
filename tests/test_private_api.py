"""The private API of libraries that the product uses (docs/private-api.md).

Only what no test of the product's behaviour would notice is tested here.
"""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import unfold
from django.core.files.base import ContentFile
from gunicorn import systemd
from gunicorn.arbiter import Arbiter

from centers.models import MeetingRoom
from tests.import_graph import PACKAGES, parse_product


def test_templates_of_the_theme_are_as_ours_expect():
    templates = Path(unfold.__file__).parent / "templates" / "unfold"
    for name, names in {
        "helpers/userlinks.html": ("{% action_list %}", "{{ nav_global_side }}", "environment"),
        "helpers/pagination_default.html": ("pagination_required", "paginator_number"),
        "helpers/header_title.html": ("for part in parts", "part.link", "part.title|capfirst"),
        "helpers/empty_results.html": ("cl.query", "No results found"),
        "helpers/command.html": ("opencommand", "admin:search", "#command-results-list"),
        "helpers/command_results.html": ("results", "page_counter", "page_obj", "execution_time"),
        "widgets/related_widget_wrapper.html": (
            *("{{ rendered_widget }}", "model_has_limit_choices_to", "is_hidden"),
            *("change_related_template_url", "add_related_url", 'data-popup="yes"'),
        ),
    }.items():
        text = (templates / name).read_text()
        assert all(each in text for each in names), f"Compare ours with the new unfold/{name}."


def test_master_of_gunicorn_is_as_its_configuration_expects():
    assert [*inspect.signature(systemd.sd_notify).parameters][:2] == ["state", "logger"]
    assert "environ['GUNICORN_PID'] =" in inspect.getsource(Arbiter.reexec)


def test_stored_files_are_marked_as_committed():
    room = MeetingRoom(picture_thumbnail="rooms/one.png")

    assert room.picture_thumbnail._committed
    room.picture_thumbnail = ContentFile(b"", "two.png")
    assert not room.picture_thumbnail._committed


# --- The list is complete ------------------------------------------------------------------------

# These are documented, or methods of named tuples.
DOCUMENTED = {"_meta", "_state", "_default_manager", "_base_manager"}
DOCUMENTED |= {"_make", "_fields", "_asdict", "_replace"}


def test_private_names_of_libraries_are_listed():
    listed = Path("docs/private-api.md").read_text()
    trees = parse_product()
    own = {name for tree in trees.values() for name in find_private_definitions(tree)}
    used = {
        (module, name)
        for module, tree in trees.items()
        for name in find_private_uses(tree) - own - DOCUMENTED
    }
    overrides = {
        (module, name) for module, tree in trees.items() for name in find_overrides(module, tree)
    }

    assert ("roombook.images", "_committed") in used
    assert sorted(each for each in used | overrides if each[1] not in listed) == []


def find_private_definitions(tree: ast.Module) -> set[str]:
    """Return the private functions, methods and attributes that a module defines or sets."""
    nodes = list(ast.walk(tree))
    stored = (node for node in nodes if isinstance(node, ast.Attribute))
    names = {node.attr for node in stored if isinstance(node.ctx, ast.Store)}
    names |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    return {name for name in names if is_private(name)}


def find_private_uses(tree: ast.Module) -> set[str]:
    """Return the private attributes of other objects that a module uses."""
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if is_private(node.attr) and not is_self(node)}


def find_overrides(module: str, tree: ast.Module) -> set[str]:
    """Return the private methods of libraries that the classes of a module override."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            functions = (each for each in node.body if isinstance(each, ast.FunctionDef))
            names = {each.name for each in functions if is_private(each.name)}
            bases = getattr(import_module(module), node.name).__mro__[1:] if names else ()
            theirs = [base for base in bases if base.__module__.split(".")[0] not in PACKAGES]
            found |= {name for name in names if any(name in vars(base) for base in theirs)}
    return found


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
