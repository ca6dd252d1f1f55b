"""The private API of libraries that the product uses is still there (docs/private-api.md)."""

import inspect
from pathlib import Path

import pytest
import unfold
from django.contrib.admin import ModelAdmin
from django.contrib.auth.admin import UserAdmin
from django.db import connection, transaction
from django.db.models import query
from django.forms import BaseModelForm
from gunicorn import systemd
from gunicorn.arbiter import Arbiter
from import_export.admin import ExportMixin
from prometheus_client import values
from unfold.contrib.filters.forms import AutocompleteDropdownForm

from centers.models import MeetingRoom
from tests.factories_people import SavedCardFactory, UserFactory

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
