"""New migrations neither lock a large table nor break the version that still runs.

An upgrade migrates first, while the old version serves requests (docs/upgrade.md).
"""

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import Index, Q, UniqueConstraint
from django.test.utils import CaptureQueriesContext
from django_migration_linter.sql_analyser import PostgresqlAnalyser, analyse_sql_statements

from roombook.db.indexes import AddIndexWithoutLock, AddUniqueConstraintWithoutLock

# The last migration of each app that was made before this rule.
BASELINE = {
    "accounts": "0014",
    "backoffice": "0002",
    "centers": "0002",
    "imports": "0002",
    "payments": "0003",
    "reservations": "0007",
    "roombook": "0001",
}
# Migrations that are safe although the linter refuses them, with the reason.
REVIEWED: dict[tuple[str, str], str] = dict.fromkeys(
    [
        ("accounts", "0021_emails_are_found_by_their_time"),
        ("backoffice", "0004_unpublished_audit_entries_have_an_index"),
        ("payments", "0007_payments_have_an_index_by_spare_key"),
        ("payments", "0009_payments_have_a_purpose"),
        ("payments", "0011_payments_have_an_index_of_receivables"),
        ("payments", "0014_cards_that_pay_once_have_an_index"),
        ("payments", "0017_payments_have_an_index_of_fees_that_are_due"),
        ("reservations", "0013_webhook_events_have_an_index_by_former_center"),
    ],
    "an index built without a lock, whose SQL cannot be shown in the transaction of a test",
) | {
    (
        "payments",
        "0005_payments_can_wait_for_their_customer",
    ): "PostgreSQL makes a varchar longer without rewriting the table, which only the sandbox has",
    ("payments", "0008_sandbox_setups_name_their_card"): "no release has this column",
}


def find_risks(sql):
    errors, _, warnings = analyse_sql_statements(PostgresqlAnalyser, sql.splitlines(), [])
    return [issue.message for issue in [*errors, *warnings]]


@pytest.mark.postgres
@pytest.mark.django_db
def test_new_migrations_are_safe_while_the_old_version_runs(capsys):
    risks = {}
    for app, name in sorted(MigrationLoader(connection).disk_migrations):
        if app in BASELINE and name[:4] > BASELINE[app] and (app, name) not in REVIEWED:
            call_command("sqlmigrate", app, name)
            if found := find_risks(capsys.readouterr().out):
                risks[f"{app}.{name}"] = found

    assert risks == {}, "docs/upgrade.md says how to write these migrations"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ('ALTER TABLE "a" ADD COLUMN "b" integer NOT NULL;', "NOT NULL constraint"),
        ('ALTER TABLE "a" DROP COLUMN "b";', "DROPPING columns"),
        ('ALTER TABLE "a" RENAME COLUMN "b" TO "c";', "RENAMING columns"),
        ('ALTER TABLE "a" ALTER COLUMN "b" TYPE bigint;', "ALTERING columns"),
        ('CREATE INDEX "i" ON "a" ("b");', "CREATE INDEX locks table"),
    ],
)
def test_risky_statements_are_found(sql, message):
    assert message in " ".join(find_risks(sql))


@pytest.mark.parametrize(
    "sql",
    [
        'ALTER TABLE "a" ADD COLUMN "b" integer NULL;',
        'ALTER TABLE "a" ADD COLUMN "b" integer DEFAULT 0 NOT NULL;',
        'CREATE INDEX CONCURRENTLY "i" ON "a" ("b");',
        'CREATE TABLE "a" ("b" integer NOT NULL);\nCREATE INDEX "i" ON "a" ("b");',
    ],
)
def test_additive_statements_pass(sql):
    assert find_risks(sql) == []


@pytest.mark.django_db(transaction=True)
def test_index_and_unique_constraint_are_built_without_a_lock():
    """Run the operations as a migration does, on either database."""
    index = Index(fields=["name"], name="without_lock")
    constraint = UniqueConstraint(fields=["name"], condition=Q(name=""), name="without_lock")
    before = MigrationLoader(connection).project_state()
    statements = []
    for operation in (
        AddIndexWithoutLock("center", index),
        AddUniqueConstraintWithoutLock("center", constraint),
    ):
        after = before.clone()
        operation.state_forwards("centers", after)
        with CaptureQueriesContext(connection) as queries:
            with connection.schema_editor(atomic=False) as editor:
                operation.database_forwards("centers", editor, before, after)
            assert "without_lock" in get_indexes()
            with connection.schema_editor(atomic=False) as editor:
                operation.database_backwards("centers", editor, after, before)
        assert "without_lock" not in get_indexes()
        statements.append(sum("CONCURRENTLY" in query["sql"] for query in queries))
    if connection.vendor == "postgresql":
        # To remove a constraint takes no time.
        assert statements == [2, 1]


def get_indexes():
    with connection.cursor() as cursor:
        return connection.introspection.get_constraints(cursor, "centers_center")
