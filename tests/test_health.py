"""The health checks that load balancers ask."""

import pytest
from django.db import DatabaseError, connection


@pytest.mark.django_db
def test_healthz_says_ok_without_sign_in(client):
    response = client.get("/healthz")

    assert response.status_code == 200
    assert response.json() == {"status": "ok"}
    assert "no-store" in response["Cache-Control"]


@pytest.mark.django_db
def test_readyz_says_ok_when_every_migration_is_applied(client):
    assert client.get("/readyz").json() == {"status": "ok"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_database_that_does_not_answer_is_503(client, path, monkeypatch):
    def refuse(*_):
        raise DatabaseError("connection refused by secret-host")

    monkeypatch.setattr(connection, "cursor", refuse)

    response = client.get(path)

    assert response.status_code == 503
    assert response.json() == {"status": "database unreachable"}


@pytest.mark.django_db
def test_a_database_that_goes_away_meanwhile_is_503(client, monkeypatch):
    def refuse(*_):
        raise DatabaseError("gone")

    monkeypatch.setattr("roombook.health.MigrationExecutor", refuse)

    assert client.get("/readyz").json() == {"status": "database unreachable"}


@pytest.mark.django_db
def test_readyz_waits_for_migrations_but_healthz_does_not(client, monkeypatch):
    monkeypatch.setattr(
        "roombook.health.MigrationExecutor.migration_plan", lambda *_: ["one", "two"]
    )

    assert client.get("/readyz").status_code == 503
    assert client.get("/readyz").json() == {"status": "migrations missing", "missing": 2}
    assert client.get("/healthz").status_code == 200


@pytest.mark.django_db
def test_health_is_asked_without_tls(client, settings):
    settings.SECURE_SSL_REDIRECT = True

    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 200
    assert client.get("/admin/").status_code == 301
