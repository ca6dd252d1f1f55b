"""The health checks for load balancers."""

import logging

import pytest
from django.db import DatabaseError


@pytest.mark.django_db
def test_health_checks_are_ok_and_neither_cached_nor_redirected_to_https(client, settings):
    settings.SECURE_SSL_REDIRECT = True

    for path in ("/healthz", "/readyz"):
        response = client.get(path)
        assert (response.status_code, response.json()) == (200, {"status": "ok"})
        assert "no-store" in response["Cache-Control"]
    assert client.get("/admin/").status_code == 301


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "used"),
    [
        ("/healthz", "django.db.connection.cursor"),
        ("/readyz", "django.db.connection.cursor"),
        ("/readyz", "roombook.startup.MigrationExecutor"),
    ],
)
def test_health_without_database_is_503_and_one_warning(client, path, used, monkeypatch, caplog):
    def fail(*_):
        raise DatabaseError("connection refused by secret-host")

    monkeypatch.setattr(used, fail)

    response = client.get(path)

    assert response.status_code == 503
    assert response.json() == {"status": "database unreachable"}
    logged = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [(record.levelname, record.exc_info) for record in logged] == [("WARNING", None)]


@pytest.mark.django_db
def test_readyz_is_503_with_missing_migrations_but_healthz_is_not(client, monkeypatch):
    monkeypatch.setattr("roombook.health.find_missing_migrations", lambda: ["app.one", "app.two"])

    assert client.get("/readyz").status_code == 503
    assert client.get("/readyz").json() == {"status": "migrations missing", "missing": 2}
    assert client.get("/healthz").status_code == 200
