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
    "METRICS_BIND": ("127.0.0.1", 9464),
}


@pytest.fixture(autouse=True)
def _valid_settings(settings):
    for name, value in VALID.items():
        setattr(settings, name, value)


def get_problem_ids():
    return {problem.id for problem in run_checks(tags=["roombook"])}


def test_valid_settings_have_no_problems():
    assert get_problem_ids() == set()


def test_misspelled_name_in_the_file_of_settings_is_an_error(settings, tmp_path):
    settings.ENV_FILE = tmp_path / "settings"
    lines = [
        *re.findall(r"^#?([A-Z_]+)=", ENV_EXAMPLE, re.M),
        "SECRET_KEY_FILE",
        "POSTGRES_PASSWORD",
        "SENTRY_ENVIRONMENT",
        "OTEL_SERVICE_NAME",
    ]
    settings.ENV_FILE.write_text("".join(f"{name}=1\n" for name in lines))
    assert get_problem_ids() == set()

    settings.ENV_FILE.write_text(
        "# HELD_DRAFT_MAX=1\nTRUSTED_PROXYS=2\nexport STRIPE_KEY_FILE=/x\n"
    )

    assert [
        (problem.msg.split()[0], problem.hint) for problem in run_checks(tags=["roombook"])
    ] == [("TRUSTED_PROXYS", "Is TRUSTED_PROXIES meant?")]


@pytest.mark.parametrize(
    ("name", "value", "id_"),
    [
        ("SECRET_KEY", "short", "roombook.E001"),
        ("SECRET_KEY", "ab" * 40, "roombook.E001"),
        ("SECRET_KEY", "django-insecure-" + "abcdefghijklmnop" * 4, "roombook.E001"),
        ("PAYMENT_GATEWAY_IS_CHOSEN", False, "roombook.E002"),
        ("CURRENCY", "DOLLAR", "roombook.E003"),
        ("CURRENCY", "usd", "roombook.E003"),
        ("LOCALE", "xx_YY", "roombook.E004"),
        ("LOCALE", "not a locale", "roombook.E004"),
        ("MINIMUM_APP_VERSION", "2.x", "roombook.E005"),
        ("DEFAULT_FROM_EMAIL", "Rooms", "roombook.E011"),
        ("SUPPORT_EMAIL", "Rooms <help@example.com>", "roombook.E011"),
        ("MINIMUM_APP_VERSION", "2.", "roombook.E005"),
        ("MINIMUM_APP_VERSION", "٢.1", "roombook.E005"),
        ("ALLOWED_HOSTS", [], "roombook.E006"),
        ("ALLOWED_HOSTS", ["*"], "roombook.E007"),
        ("PUBLIC_URL", "rooms.example.com", "roombook.E008"),
        ("PUBLIC_URL", "https://", "roombook.E008"),
        ("PUBLIC_URL", "https://rooms.example.com/?a=b", "roombook.E008"),
        ("PAYMENT_LEASE_SECONDS", 20, "roombook.E009"),
        ("TOKEN_IDLE_DAYS", 181, "roombook.E010"),
    ],
)
def test_invalid_setting_is_an_error(settings, name, value, id_):
    setattr(settings, name, value)

    problems = run_checks(tags=["roombook"])

    assert [problem.id for problem in problems] == [id_]
    assert problems[0].is_serious()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CURRENCY", "EUR"),
        ("LOCALE", "de_DE"),
        ("SUPPORT_EMAIL", "help@example.com"),
        ("MINIMUM_APP_VERSION", "2.4.1"),
        ("PUBLIC_URL", "https://rooms.example.com:8443/booking"),
    ],
)
def test_other_valid_settings_pass(settings, name, value):
    setattr(settings, name, value)

    assert get_problem_ids() == set()


def test_sender_at_localhost_is_a_warning(settings):
    settings.DEFAULT_FROM_EMAIL = "roombook <roombook@localhost>"

    assert get_problem_ids() == {"roombook.W001"}


def test_any_host_is_allowed_with_a_public_url(settings):
    settings.ALLOWED_HOSTS = ["*"]
    settings.PUBLIC_URL = "https://rooms.example.com"

    assert get_problem_ids() == set()


@pytest.mark.parametrize(
    ("name", "value"),
    [("SECRET_KEY", "short"), ("PAYMENT_GATEWAY_IS_CHOSEN", False), ("ALLOWED_HOSTS", [])],
)
def test_development_needs_no_production_settings(settings, name, value):
    settings.DEBUG = True
    settings.TRUSTED_PROXIES = 0
    setattr(settings, name, value)

    assert get_problem_ids() == set()


@pytest.mark.parametrize(
    ("name", "value"),
    [("TRUSTED_PROXIES", 1), ("MACHINES", 2), ("STRIPE_SECRET_KEY", "sk_live_4eC39HqLyjWD")],
)
def test_debug_on_a_server_is_an_error(settings, name, value):
    settings.DEBUG = True
    settings.TRUSTED_PROXIES = 0
    settings.MEDIA_IS_SHARED = True
    assert "roombook.E017" not in get_problem_ids()
    setattr(settings, name, value)

    assert "roombook.E017" in get_problem_ids()
    settings.DEBUG = False
    assert "roombook.E017" not in get_problem_ids()


@pytest.mark.parametrize(
    ("redirect", "public_url", "is_error"),
    [
        (True, "", True),
        (False, "https://rooms.example.com", True),
        (False, "http://rooms.internal", False),
        (False, "", False),
    ],
)
def test_https_without_a_trusted_proxy_is_an_error(settings, redirect, public_url, is_error):
    settings.SECURE_SSL_REDIRECT = redirect
    settings.PUBLIC_URL = public_url
    assert get_problem_ids() == set()

    settings.TRUSTED_PROXIES = 0
    assert get_problem_ids() == ({"roombook.E022"} if is_error else set())

    settings.DEBUG = True
    assert get_problem_ids() == set()


@pytest.mark.parametrize(
    ("host", "is_error"),
    [
        ("0.0.0.0", True),
        ("0", True),
        ("::", True),
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("10.0.0.5", False),
        ("fd00::5", False),
        ("metrics.internal", False),
    ],
)
def test_metrics_on_a_public_address_are_an_error(settings, host, is_error):
    settings.METRICS_BIND = (host, 9464)
    assert get_problem_ids() == ({"roombook.E023"} if is_error else set())

    settings.DEBUG = True
    settings.TRUSTED_PROXIES = 0
    assert get_problem_ids() == set()


@pytest.mark.parametrize(
    ("machines", "engine", "host", "is_shared", "ids"),
    [
        (1, "django.db.backends.sqlite3", "", False, set()),
        (1, "roombook.db.postgresql", "127.0.0.1", False, set()),
        (2, "roombook.db.postgresql", "db1", True, set()),
        (2, "roombook.db.sqlite", "", True, {"roombook.E018"}),
        (2, "roombook.db.postgresql", "db1", False, {"roombook.E019"}),
    ],
)
def test_database_or_pictures_of_one_machine_are_an_error_with_several(
    settings, monkeypatch, machines, engine, host, is_shared, ids
):
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", engine)
    monkeypatch.setitem(settings.DATABASES["default"], "HOST", host)
    settings.MACHINES = machines
    settings.MEDIA_IS_SHARED = is_shared

    assert get_problem_ids() == ids


@pytest.mark.parametrize(
    "host", ["", "/run/postgresql", "localhost", "127.0.0.1", "127.1.2.3", "::1"]
)
def test_database_on_this_machine_is_an_error_with_several_but_behind_a_pooler(
    settings, monkeypatch, host
):
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "roombook.db.postgresql")
    monkeypatch.setitem(settings.DATABASES["default"], "HOST", host)
    settings.MACHINES = 2
    settings.MEDIA_IS_SHARED = True

    assert get_problem_ids() == {"roombook.E018"}
    settings.PGBOUNCER = True
    assert get_problem_ids() == set()


STRIPE = {
    "PAYMENT_GATEWAY": "stripe",
    "STRIPE_SECRET_KEY": "sk_live_4eC39HqLyjWD",
    "STRIPE_TEST_SECRET_KEY": "sk_test_4eC39HqLyjWD",
    "STRIPE_PUBLISHABLE_KEY": "pk_live_4eC39HqLyjWD",
    "STRIPE_WEBHOOK_SECRET": "whsec_4eC39HqLyjWD",
}


@pytest.fixture
def _stripe(settings):
    for name, value in STRIPE.items():
        setattr(settings, name, value)


@pytest.mark.usefixtures("_stripe")
def test_valid_stripe_keys_pass(settings):
    assert get_problem_ids() == set()

    # Only test keys, and a restricted one.
    settings.STRIPE_SECRET_KEY = "rk_test_4eC39HqLyjWD"
    settings.STRIPE_TEST_SECRET_KEY = ""
    settings.STRIPE_PUBLISHABLE_KEY = "pk_test_4eC39HqLyjWD"
    settings.STRIPE_API_BASE = "http://127.0.0.1:12111"
    assert get_problem_ids() == set()


@pytest.mark.parametrize(
    ("host", "attributes", "ids"),
    [
        ("db1", None, []),
        ("db1,db2", None, ["roombook.E016"]),
        ("db1,db2", "any", ["roombook.E016"]),
        ("db1,db2", "prefer-standby", ["roombook.E016"]),
        ("db1,db2", "read-write", []),
        ("db1,db2", "primary", []),
    ],
)
def test_several_database_hosts_without_a_choice_of_the_primary_are_an_error(
    settings, monkeypatch, host, attributes, ids
):
    database = settings.DATABASES["default"]
    monkeypatch.setitem(database, "HOST", host)
    monkeypatch.setitem(database, "OPTIONS", {"target_session_attrs": attributes})

    assert [problem.id for problem in run_checks(tags=["roombook"])] == ids


@pytest.mark.usefixtures("_stripe")
@pytest.mark.parametrize(
    ("name", "value", "id_"),
    [
        ("STRIPE_SECRET_KEY", "", "roombook.E012"),
        ("STRIPE_SECRET_KEY", "pk_live_4eC39HqLyjWD", "roombook.E012"),
        ("STRIPE_SECRET_KEY", "sk_live_", "roombook.E012"),
        ("STRIPE_TEST_SECRET_KEY", "", "roombook.E013"),
        ("STRIPE_TEST_SECRET_KEY", "sk_live_4eC39HqLyjWD", "roombook.E013"),
        ("STRIPE_PUBLISHABLE_KEY", "", "roombook.E024"),
        ("STRIPE_PUBLISHABLE_KEY", "pk_test_4eC39HqLyjWD", "roombook.E024"),
        ("STRIPE_PUBLISHABLE_KEY", "sk_live_4eC39HqLyjWD", "roombook.E024"),
        ("STRIPE_WEBHOOK_SECRET", "", "roombook.E014"),
        ("STRIPE_WEBHOOK_SECRET", "sk_live_4eC39HqLyjWD", "roombook.E014"),
        ("STRIPE_API_BASE", "https://stripe.example.com", "roombook.E015"),
    ],
)
def test_invalid_stripe_key_is_an_error_that_hides_the_key(settings, name, value, id_):
    setattr(settings, name, value)

    (problem,) = run_checks(tags=["roombook"])

    assert problem.id == id_
    assert problem.is_serious()
    assert "4eC39HqLyjWD" not in str(problem)


@pytest.mark.usefixtures("_stripe")
def test_pending_hours_beyond_the_authorization_are_a_warning(settings):
    settings.PENDING_HOURS = 114

    assert get_problem_ids() == {"roombook.W002"}


def test_stripe_keys_are_not_needed_for_other_gateways(settings):
    settings.PENDING_HOURS = 500

    assert get_problem_ids() == set()


def test_each_problem_has_an_id_of_its_own():
    ids = re.findall(r'id="(roombook\.\w+)"', inspect.getsource(checks))

    assert sorted(set(ids)) == sorted(ids)
