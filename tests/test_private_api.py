"""The private API of libraries that the product uses is still there (docs/private-api.md)."""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest
import unfold
from django.contrib.admin import ModelAdmin, options
from django.contrib.auth.admin import UserAdmin
from django.core.files.base import ContentFile
from django.core.handlers.wsgi import WSGIRequest
from django.db import connection, transaction
from django.db.models import query
from django.forms import BaseModelForm
from django.http import HttpRequest
from gunicorn import systemd
from gunicorn.arbiter import Arbiter
from import_export.admin import ExportMixin
from openpyxl import Workbook
from prometheus_client import values
from rest_framework.request import Request
from unfold.contrib.filters.forms import AutocompleteDropdownForm

from centers.models import MeetingRoom
from tests.factories_people import SavedCardFactory, UserFactory
from tests.import_graph import PACKAGES, parse_product

WHAT_TO_DO = (
    "{what} is not what {module} expects. Read how the new version of the library does it, change"
    " {module}, run {tests}, and update docs/private-api.md."
)


def assert_has_attributes(instance, names, **what_to_do):
    for name in names:
        what = f"{type(instance).__name__}.{name}"
        assert hasattr(instance, name), WHAT_TO_DO.format(what=what, **what_to_do)


COMPILED_QUERIES = {"module": "roombook/db/compiled_queries.py", "tests": "tests/db"}


def test_compiler_of_querysets_is_as_compiled_queries_expect():
    queryset = MeetingRoom.objects.select_related("center")
    compiler = queryset.query.get_compiler(using=queryset.db)
    compiler.as_sql()

    assert_has_attributes(
        queryset, ("_iterable_class", "_prefetch_related_lookups"), **COMPILED_QUERIES
    )
    assert_has_attributes(
        compiler,
        ("select", "col_count", "klass_info", "annotation_col_map", "get_converters"),
        **COMPILED_QUERIES,
    )
    assert {"model", "select_fields"} <= compiler.klass_info.keys(), WHAT_TO_DO.format(
        what="klass_info", **COMPILED_QUERIES
    )


def test_related_populators_are_as_compiled_queries_expect():
    signature = inspect.signature(query.get_related_populators)

    assert {*signature.parameters} <= {"klass_info", "select", "db", "fetch_mode"}, (
        WHAT_TO_DO.format(what="get_related_populators", **COMPILED_QUERIES)
    )
    assert {*inspect.signature(query.RelatedPopulator.populate).parameters} == {
        *("self", "row", "from_obj")
    }, WHAT_TO_DO.format(what="RelatedPopulator.populate", **COMPILED_QUERIES)


@pytest.mark.django_db
def test_connection_is_as_compiled_queries_expect():
    names = ("in_atomic_block", "close_at", "wrap_database_errors", "is_usable")
    assert_has_attributes(connection, (*names, "get_new_connection"), **COMPILED_QUERIES)
    with connection.cursor() as cursor:
        assert_has_attributes(cursor, ("cursor",), **COMPILED_QUERIES)


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
def test_user_keeps_the_saved_card_in_its_cache():
    user = SavedCardFactory().user
    assert user.saved_card

    assert "saved_card" in user._state.fields_cache, WHAT_TO_DO.format(
        what="Model._state.fields_cache",
        module="payments/saved_cards.py",
        tests="tests/payments",
    )


@pytest.mark.django_db
def test_transaction_around_a_test_case_is_marked():
    what_to_do = WHAT_TO_DO.format(
        what="Atomic._from_testcase",
        module="payments/gateways/base.py",
        tests="tests/payments",
    )
    [around_the_test] = connection.atomic_blocks
    assert around_the_test._from_testcase, what_to_do
    with transaction.atomic():
        assert not connection.atomic_blocks[-1]._from_testcase, what_to_do


def test_admin_loads_rows_by_a_method_that_can_lock_them():
    loaded = inspect.signature(ModelAdmin.get_object)
    password = inspect.signature(UserAdmin.user_change_password)
    what_to_do = WHAT_TO_DO.format(
        what="ModelAdmin.get_object or UserAdmin.user_change_password",
        module="accounts/admin/users.py",
        tests="tests/backoffice",
    )

    assert list(loaded.parameters) == ["self", "request", "object_id", "from_field"], what_to_do
    assert "self.get_object" in inspect.getsource(ModelAdmin._changeform_view), what_to_do
    assert "self.get_object" in inspect.getsource(UserAdmin.user_change_password), what_to_do
    assert list(password.parameters)[:3] == ["self", "request", "id"], what_to_do


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("changeform_view", "request object_id form_url extra_context"),
        ("formfield_for_dbfield", "db_field request kwargs"),
        ("log_addition", "request obj message"),
        ("log_change", "request obj message"),
        ("log_deletions", "request queryset"),
        ("render_change_form", "request context add change form_url obj"),
        ("response_action", "request queryset"),
        ("response_post_save_add", "request obj"),
        ("response_post_save_change", "request obj"),
        ("save_form", "request form change"),
    ],
)
def test_admin_calls_the_methods_that_ours_replace(name, parameters):
    method = getattr(ModelAdmin, name, None)
    what_to_do = WHAT_TO_DO.format(
        what=f"ModelAdmin.{name}", module="the admin of every app", tests="tests/backoffice"
    )

    assert method is not None, what_to_do
    assert list(inspect.signature(method).parameters) == ["self", *parameters.split()], what_to_do
    assert f"self.{name}" in inspect.getsource(options), what_to_do


def test_export_of_the_library_can_be_replaced_by_a_stream():
    signature = inspect.signature(ExportMixin._do_file_export)

    assert [*signature.parameters] == [
        *("self", "file_format", "request", "queryset", "export_form")
    ], WHAT_TO_DO.format(
        what="ExportMixin._do_file_export",
        module="roombook/imports/admin.py",
        tests="tests/backoffice/test_export.py",
    )


def test_model_forms_name_the_fields_that_they_do_not_validate():
    signature = inspect.signature(BaseModelForm._get_validation_exclusions)

    assert [*signature.parameters] == ["self"], WHAT_TO_DO.format(
        what="BaseModelForm._get_validation_exclusions",
        module="centers/admin/opening_hours_forms.py",
        tests="tests/backoffice/test_center_page.py",
    )


def test_templates_of_the_theme_are_as_ours_expect():
    helpers = Path(unfold.__file__).parent / "templates" / "unfold" / "helpers"
    texts = {
        "userlinks.html": ("{% action_list %}", "{{ nav_global_side }}", "environment"),
        "pagination_default.html": ("pagination_required", "paginator_number"),
        "header_title.html": ("for part in parts", "part.link", "part.title|capfirst"),
        "empty_results.html": ("cl.query", "No results found"),
        "command.html": ("opencommand", "admin:search", "#command-results-list"),
        "command_results.html": ("results", "page_counter", "page_obj", "execution_time"),
    }
    for name, names in texts.items():
        text = (helpers / name).read_text()
        assert all(each in text for each in names), WHAT_TO_DO.format(
            what=f"unfold/helpers/{name}",
            module="roombook/templates/unfold/helpers/userlinks.html",
            tests="tests/browser/test_search.py",
        )


def test_form_of_a_filter_takes_the_field_and_the_page():
    signature = inspect.signature(AutocompleteDropdownForm)

    assert {"request", "field", "model_admin"} <= {*signature.parameters}, WHAT_TO_DO.format(
        what="AutocompleteDropdownForm.__init__",
        module="roombook/backoffice/widgets.py",
        tests="tests/backoffice/test_hidden_accounts.py",
    )


def test_metrics_can_be_written_under_another_name_than_the_process_id():
    signature = inspect.signature(values.MultiProcessValue)

    assert [*signature.parameters] == ["process_identifier"], WHAT_TO_DO.format(
        what="prometheus_client.values.MultiProcessValue",
        module="roombook/metrics/counters.py",
        tests="tests/metrics/test_server.py",
    )
    assert hasattr(values, "ValueClass")


def test_master_of_gunicorn_is_as_its_configuration_expects():
    what_to_do = {
        "module": "deploy/gunicorn.conf.py or deploy/reload.sh",
        "tests": "tests/faults/test_upgrade.py",
    }

    assert isinstance(Arbiter.WORKERS, dict), WHAT_TO_DO.format(what="WORKERS", **what_to_do)
    assert [*inspect.signature(systemd.sd_notify).parameters][:2] == ["state", "logger"], (
        WHAT_TO_DO.format(what="sd_notify", **what_to_do)
    )
    assert "environ['GUNICORN_PID'] =" in inspect.getsource(Arbiter.reexec), WHAT_TO_DO.format(
        what="GUNICORN_PID", **what_to_do
    )


def test_requests_of_django_have_the_attributes_that_ours_replace():
    what_to_do = WHAT_TO_DO.format(
        what="HttpRequest", module="roombook/handler.py", tests="tests/api"
    )

    assert "self._set_content_type_params(environ)" in inspect.getsource(WSGIRequest), what_to_do
    assert "self._stream.read" in inspect.getsource(HttpRequest.read), what_to_do


def test_stored_files_are_marked_as_committed():
    room = MeetingRoom(picture_thumbnail="rooms/one.png")
    what_to_do = WHAT_TO_DO.format(
        what="FieldFile._committed", module="roombook/images.py", tests="tests/test_media.py"
    )

    assert room.picture_thumbnail._committed, what_to_do
    room.picture_thumbnail = ContentFile(b"", "two.png")
    assert not room.picture_thumbnail._committed, what_to_do


def test_request_of_rest_framework_loads_its_stream_as_ours_expects():
    request = Request(HttpRequest())
    what_to_do = WHAT_TO_DO.format(
        what="rest_framework.request.Request", module="roombook/api/parsers.py", tests="tests/api"
    )

    assert isinstance(request._request, HttpRequest), what_to_do
    assert "self._load_stream()" in inspect.getsource(Request.stream.fget), what_to_do
    assert "return self._stream" in inspect.getsource(Request.stream.fget), what_to_do


def test_sheet_that_is_not_saved_can_remove_its_file():
    sheet = Workbook(write_only=True).create_sheet()
    sheet.append(["one"])
    sheet.close()

    sheet._writer.cleanup()

    assert not Path(sheet._writer.out).exists(), WHAT_TO_DO.format(
        what="WriteOnlyWorksheet._writer",
        module="roombook/backoffice/spreadsheets.py",
        tests="tests/backoffice",
    )


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

    assert ("roombook.api.parsers", "_load_stream") in overrides
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
