"""System checks of the settings, each with its id."""

import inspect
import re
from pathlib import Path

import pytest
from django.core.checks import run_checks

from roombook import checks

ENV_EXAMPLE = (Path(__file__).parent.parent / "deploy/env.example").read_text()

VALID = {
    "DEBUG": False,
    "SECRET_KEY": "sK7vQ2xW9mB4nL6pR8tY1uE3iO5aD0fG-hJzXcVbNqMwZ_kTrPs",
    "ALLOWED_HOSTS": ["rooms.example.com"],
    "PAYMENT_GATEWAY_IS_CHOSEN": True,
    "DEFAULT_FROM_EMAIL": "Rooms <rooms@example.com>",
    "TRUSTED_PROXIES": 1,
}


@pytest.fixture(autouse=True)
def _valid_settings(settings):
    for name, value in VALID.items():
        setattr(settings, name, value)


def get_problem_ids():
    return {problem.id for problem in run_checks(tags=["roombook"])}


def test_valid_settings_have_no_problems():
    assert get_problem_ids() == set()


@pytest.mark.parametrize(
    ("name", "value", "id_"),
    [
        ("SECRET_KEY", "short", "E001"),
        ("SECRET_KEY", "django-insecure-" + "abcdefghijklmnop" * 4, "E001"),
        ("PAYMENT_GATEWAY_IS_CHOSEN", False, "E002"),
        ("CURRENCY", "usd", "E003"),
        ("LOCALE", "xx_YY", "E004"),
        ("MINIMUM_APP_VERSION", "2.x", "E005"),
        ("MINIMUM_APP_VERSION", "٢.1", "E005"),
        ("ALLOWED_HOSTS", [], "E006"),
        ("ALLOWED_HOSTS", ["*"], "E007"),
        ("PUBLIC_URL", "rooms.example.com", "E008"),
        ("PUBLIC_URL", "https://rooms.example.com/?a=b", "E008"),
        ("PAYMENT_LEASE_SECONDS", 20, "E009"),
        ("DEFAULT_FROM_EMAIL", "Rooms", "E011"),
        ("SUPPORT_EMAIL", "Rooms <help@example.com>", "E011"),
    ],
)
def test_invalid_setting_is_an_error(settings, name, value, id_):
    setattr(settings, name, value)

    problems = run_checks(tags=["roombook"])

    assert [problem.id for problem in problems] == [f"roombook.{id_}"]
    assert problems[0].is_serious()


ONE_HOST = {"ENGINE": "roombook.db.postgresql", "HOST": "db1"}
SHARED = {"MACHINES": 2, "MEDIA_IS_SHARED": True}
DEBUG = {"DEBUG": True, "TRUSTED_PROXIES": 0}
STRIPE = {
    "PAYMENT_GATEWAY": "stripe",
    "STRIPE_SECRET_KEY": "sk_live_4eC39HqLyjWD",
    "STRIPE_TEST_SECRET_KEY": "sk_test_4eC39HqLyjWD",
    "STRIPE_PUBLISHABLE_KEY": "pk_live_4eC39HqLyjWD",
    "STRIPE_WEBHOOK_SECRET": "whsec_4eC39HqLyjWD",
}
TEST_KEYS = {
    "STRIPE_SECRET_KEY": "rk_test_4eC39HqLyjWD",
    "STRIPE_TEST_SECRET_KEY": "",
    "STRIPE_PUBLISHABLE_KEY": "pk_test_4eC39HqLyjWD",
    "STRIPE_API_BASE": "http://127.0.0.1:12111",
}


def several_hosts(attributes):
    return {"HOST": "db1,db2", "OPTIONS": {"target_session_attrs": attributes}}


@pytest.mark.parametrize(
    ("changes", "database", "id_"),
    [
        *(
            ({name: value}, {}, None)
            for name, value in (
                *(("CURRENCY", "EUR"), ("LOCALE", "de_DE"), ("MINIMUM_APP_VERSION", "2.4.1")),
                ("SUPPORT_EMAIL", "help@example.com"),
                ("PUBLIC_URL", "https://rooms.example.com:8443/booking"),
                # Of other gateways.
                ("PENDING_HOURS", 500),
            )
        ),
        ({"DEFAULT_FROM_EMAIL": "roombook <roombook@localhost>"}, {}, "W001"),
        ({"ALLOWED_HOSTS": ["*"], "PUBLIC_URL": "https://rooms.example.com"}, {}, None),
        # Development needs no settings of production, which must not be there on a server.
        *(
            ({**DEBUG, name: value}, {}, None)
            for name, value in (
                *(("SECRET_KEY", "short"), ("PAYMENT_GATEWAY_IS_CHOSEN", False)),
                ("ALLOWED_HOSTS", []),
                *(("SECURE_SSL_REDIRECT", True), ("PUBLIC_URL", "https://rooms.example.com")),
            )
        ),
        *(
            ({**DEBUG, "MEDIA_IS_SHARED": True, name: value}, ONE_HOST, "E017")
            for name, value in (
                *(("TRUSTED_PROXIES", 1), ("MACHINES", 2)),
                ("STRIPE_SECRET_KEY", "sk_live_4eC39HqLyjWD"),
            )
        ),
        # HTTPS without a trusted proxy.
        *(
            ({"TRUSTED_PROXIES": proxies, **changes}, {}, None if proxies else id_)
            for proxies in (0, 1)
            for changes, id_ in (
                ({"SECURE_SSL_REDIRECT": True, "PUBLIC_URL": ""}, "E022"),
                ({"SECURE_SSL_REDIRECT": False, "PUBLIC_URL": "https://rooms.example.com"}, "E022"),
                ({"SECURE_SSL_REDIRECT": False, "PUBLIC_URL": "http://rooms.internal"}, None),
                ({"SECURE_SSL_REDIRECT": False, "PUBLIC_URL": ""}, None),
            )
        ),
        # Several machines with a database or pictures of one; a pooler is on each.
        ({}, {"ENGINE": "django.db.backends.sqlite3", "HOST": ""}, None),
        ({}, {**ONE_HOST, "HOST": "127.0.0.1"}, None),
        (SHARED, ONE_HOST, None),
        (SHARED, {"ENGINE": "django.db.backends.sqlite3", "HOST": ""}, "E018"),
        ({"MACHINES": 2, "MEDIA_IS_SHARED": False}, ONE_HOST, "E019"),
        *(
            (
                {**SHARED, "PGBOUNCER": pooler},
                {**ONE_HOST, "HOST": host},
                None if pooler else "E018",
            )
            for host in ("", "/run/postgresql", "127.1.2.3", "::1")
            for pooler in (False, True)
        ),
        # Several hosts without a choice of the primary.
        ({}, {"HOST": "db1", "OPTIONS": {"target_session_attrs": None}}, None),
        *(({}, several_hosts(which), "E016") for which in (None, "any", "prefer-standby")),
        *(({}, several_hosts(which), None) for which in ("read-write", "primary")),
        # Keys of Stripe; only test keys, and a restricted one.
        (STRIPE, {}, None),
        (STRIPE | TEST_KEYS, {}, None),
        (STRIPE | {"PENDING_HOURS": 114}, {}, "E025"),
        *(
            (STRIPE | {name: value}, {}, id_)
            for name, value, id_ in (
                ("STRIPE_SECRET_KEY", "", "E012"),
                ("STRIPE_SECRET_KEY", "pk_live_4eC39HqLyjWD", "E012"),
                ("STRIPE_SECRET_KEY", "sk_live_", "E012"),
                ("STRIPE_TEST_SECRET_KEY", "", "E013"),
                ("STRIPE_TEST_SECRET_KEY", "sk_live_4eC39HqLyjWD", "E013"),
                ("STRIPE_PUBLISHABLE_KEY", "", "E024"),
                ("STRIPE_PUBLISHABLE_KEY", "pk_test_4eC39HqLyjWD", "E024"),
                ("STRIPE_PUBLISHABLE_KEY", "sk_live_4eC39HqLyjWD", "E024"),
                ("STRIPE_WEBHOOK_SECRET", "", "E014"),
                ("STRIPE_WEBHOOK_SECRET", "sk_live_4eC39HqLyjWD", "E014"),
                ("STRIPE_API_BASE", "https://stripe.example.com", "E015"),
            )
        ),
    ],
)
def test_settings_together_have_the_problem(settings, monkeypatch, changes, database, id_):
    for name, value in changes.items():
        setattr(settings, name, value)
    for name, value in database.items():
        monkeypatch.setitem(settings.DATABASES["default"], name, value)

    problems = run_checks(tags=["roombook"])

    assert [problem.id for problem in problems] == ([f"roombook.{id_}"] if id_ else [])
    assert all(problem.is_serious() is (id_[0] == "E") for problem in problems)
    # A problem hides the key.
    assert "4eC39HqLyjWD" not in str(problems)


def test_each_problem_has_an_id_of_its_own():
    ids = re.findall(r'id="(roombook\.\w+)"', inspect.getsource(checks))

    assert sorted(set(ids)) == sorted(ids)
