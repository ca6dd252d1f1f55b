"""The private API of libraries that the product uses is still there (docs/private-api.md)."""

import ast
import inspect
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
import unfold
from django.contrib.admin import ModelAdmin, options
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.tokens import default_token_generator
from django.core.files.base import ContentFile
from django.db import connection
from django.db.models import query
from gunicorn import systemd
from gunicorn.arbiter import Arbiter
from unfold.contrib.filters.forms import AutocompleteDropdownForm

from accounts.invitations import FORGOTTEN_PASSWORD_TOKENS
from centers.models import MeetingRoom
from tests.factories_people import UserFactory
from tests.import_graph import PACKAGES, parse_product


class Use(NamedTuple):
    """Where the product uses private API, and the tests that show whether it still works."""

    module: str
    tests: str

    def explain(self, what: object) -> str:
        name = getattr(what, "__qualname__", what)
        return (
            f"{name} is not what {self.module} expects. Read how the new version of the library"
            f" does it, change {self.module}, run {self.tests}, and update docs/private-api.md."
        )


COMPILED_QUERIES = Use("roombook/db/compiled_queries.py", "tests/db")
ACCOUNTS = Use("accounts/admin/users.py", "tests/backoffice")
ADMIN = Use("the admin of every app", "tests/backoffice")
FILTER = Use("roombook/backoffice/widgets.py", "tests/backoffice/test_hidden_accounts.py")
GUNICORN = Use("deploy/gunicorn.conf.py or deploy/reload.sh", "tests/faults/test_upgrade.py")
IMAGES = Use("roombook/images.py", "tests/test_media.py")

# Methods of ModelAdmin that ours replace, without `self`.
ADMIN_METHODS = {
    "changeform_view": "request object_id form_url extra_context",
    "formfield_for_dbfield": "db_field request kwargs",
    "log_addition": "request obj message",
    "log_change": "request obj message",
    "log_deletions": "request queryset",
    "render_change_form": "request context add change form_url obj",
    "response_action": "request queryset",
    "response_post_save_add": "request obj",
    "response_post_save_change": "request obj",
    "save_form": "request form change",
}


@pytest.mark.parametrize(
    ("function", "parameters", "use"),
    [
        (ModelAdmin.get_object, "self request object_id from_field", ACCOUNTS),
        (query.RelatedPopulator.populate, "self row from_obj", COMPILED_QUERIES),
        *(
            (getattr(ModelAdmin, name), f"self {parameters}", ADMIN)
            for name, parameters in ADMIN_METHODS.items()
        ),
    ],
)
def test_function_has_the_parameters_that_ours_expect(function, parameters, use):
    assert list(inspect.signature(function).parameters) == parameters.split(), use.explain(function)


def test_functions_have_at_least_the_parameters_that_ours_send():
    populators = inspect.signature(query.get_related_populators).parameters
    password = inspect.signature(UserAdmin.user_change_password).parameters
    notify = inspect.signature(systemd.sd_notify).parameters
    form = inspect.signature(AutocompleteDropdownForm).parameters

    assert {*populators} <= {"klass_info", "select", "db"}, COMPILED_QUERIES.explain(
        query.get_related_populators
    )
    assert [*password][:3] == ["self", "request", "id"], ACCOUNTS.explain(UserAdmin)
    assert [*notify][:2] == ["state", "logger"], GUNICORN.explain(systemd.sd_notify)
    assert {"request", "field", "model_admin"} <= {*form}, FILTER.explain(AutocompleteDropdownForm)


@pytest.mark.parametrize(
    ("function", "text", "use"),
    [
        (ModelAdmin._changeform_view, "self.get_object", ACCOUNTS),
        (UserAdmin.user_change_password, "self.get_object", ACCOUNTS),
        (Arbiter.reexec, "environ['GUNICORN_PID'] =", GUNICORN),
        *((options, f"self.{name}", ADMIN) for name in ADMIN_METHODS),
    ],
)
def test_source_calls_what_ours_replace(function, text, use):
    assert text in inspect.getsource(function), use.explain(text)


@pytest.mark.django_db
def test_objects_have_the_attributes_that_ours_use():
    queryset = MeetingRoom.objects.select_related("center")
    compiler = queryset.query.get_compiler(using=queryset.db)
    compiler.as_sql()
    with connection.cursor() as cursor:
        for instance, names, use in (
            (queryset, "_iterable_class _prefetch_related_lookups", COMPILED_QUERIES),
            (
                compiler,
                "select col_count klass_info annotation_col_map get_converters",
                COMPILED_QUERIES,
            ),
            (
                connection,
                "in_atomic_block wrap_database_errors is_usable get_new_connection",
                COMPILED_QUERIES,
            ),
            (cursor, "cursor", COMPILED_QUERIES),
        ):
            for name in names.split():
                assert hasattr(instance, name), use.explain(f"{type(instance).__name__}.{name}")
    assert {"model", "select_fields"} <= compiler.klass_info.keys(), COMPILED_QUERIES.explain(
        "klass_info"
    )


@pytest.mark.django_db
def test_user_keeps_the_raw_password_until_save():
    user = UserFactory()
    user.set_password("stormy-lighthouse-7")
    assert user._password == "stormy-lighthouse-7", (
        "Django no longer keeps the raw password in `_password` until `save`: find another sign in"
        " accounts/models/user.py that the password was changed, and not only its hash upgraded."
    )
    user.save()
    assert user._password is None


@pytest.mark.django_db
def test_tokens_of_links_depend_on_their_salt():
    user, use = UserFactory(), Use("accounts/invitations.py", "tests/backoffice/test_signing_in.py")
    token = FORGOTTEN_PASSWORD_TOKENS.make_token(user)
    what_to_do = use.explain("PasswordResetTokenGenerator.key_salt")

    assert FORGOTTEN_PASSWORD_TOKENS.check_token(user, token), what_to_do
    assert not default_token_generator.check_token(user, token), what_to_do


def test_templates_of_the_theme_are_as_ours_expect():
    templates = Path(unfold.__file__).parent / "templates" / "unfold"
    use = Use(
        "roombook/templates/unfold/helpers/userlinks.html", "tests/browser/test_accessibility.py"
    )
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
        assert all(each in text for each in names), use.explain(f"unfold/{name}")


def test_stored_files_are_marked_as_committed():
    room = MeetingRoom(picture_thumbnail="rooms/one.png")
    what_to_do = IMAGES.explain("FieldFile._committed")

    assert room.picture_thumbnail._committed, what_to_do
    room.picture_thumbnail = ContentFile(b"", "two.png")
    assert not room.picture_thumbnail._committed, what_to_do


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
