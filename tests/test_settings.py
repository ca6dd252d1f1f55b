"""Settings as a new process reads them from its environment."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PRODUCTION = {
    "ENV_FILE": os.devnull,
    "SECRET_KEY": "sK7vQ2xW9mB4nL6pR8tY1uE3iO5aD0fG-hJzXcVbNqMwZ_kTrPs",
    "ALLOWED_HOSTS": "rooms.example.com, www.example.com",
    "PAYMENT_GATEWAY": "sandbox",
}
# UNFOLD has functions and URLs, and reads no variable.
SHOW = """
import json
from roombook import settings
shown = {k: v for k, v in vars(settings).items() if k.isupper() and k != "UNFOLD"}
print(json.dumps(shown, default=str))
"""


def run(code, **variables):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def read(**variables):
    """The settings that a process with these variables has."""
    result = run(SHOW, **PRODUCTION | variables)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_production_settings_are_safe_by_default():
    settings = read()

    assert settings["DEBUG"] is False
    assert settings["SECURE_SSL_REDIRECT"] is True
    assert settings["SESSION_COOKIE_SECURE"] is True
    assert settings["SESSION_EXPIRE_AT_BROWSER_CLOSE"] is True
    assert settings["CSRF_COOKIE_SECURE"] is True
    assert settings["SECURE_HSTS_SECONDS"] == 31_536_000
    assert settings["ALLOWED_HOSTS"] == ["rooms.example.com", "www.example.com"]
    assert settings["LOGGING"]["handlers"]["stdout"]["formatter"] == "json"
    assert "SECURE_PROXY_SSL_HEADER" not in settings
    assert settings["DATABASES"]["default"]["ATOMIC_REQUESTS"] is False


def test_development_needs_only_debug():
    settings = read(DEBUG="true", SECRET_KEY="", ALLOWED_HOSTS="", PAYMENT_GATEWAY="")

    assert settings["DEBUG"] is True
    assert settings["SECURE_SSL_REDIRECT"] is False
    assert settings["PAYMENT_GATEWAY_IS_CHOSEN"] is False
    assert settings["LOGGING"]["handlers"]["stdout"]["formatter"] == "plain"


def test_sqlite_locks_immediately_and_syncs():
    database = read()["DATABASES"]["default"]

    assert database["NAME"] == str(ROOT / "db.sqlite3")
    assert database["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert database["OPTIONS"]["timeout"] == 20
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        assert pragma in database["OPTIONS"]["init_command"]


def test_postgres_connections_are_reused_checked_and_limited():
    database = read(DATABASE_URL="postgres://u:p%40ss@h:5433/rooms")["DATABASES"]["default"]

    assert (database["HOST"], database["PORT"], database["PASSWORD"]) == ("h", 5433, "p@ss")
    assert database["CONN_MAX_AGE"] == 60
    assert database["CONN_HEALTH_CHECKS"] is True
    assert database["OPTIONS"]["connect_timeout"] == 2
    assert "lock_timeout=4s" in database["OPTIONS"]["options"]
    assert "statement_timeout=30s" in database["OPTIONS"]["options"]
    assert "jit=off" in database["OPTIONS"]["options"]


def test_postgres_url_can_list_several_hosts():
    database = read(
        DATABASE_URL="postgres://u:p@db1:5432,db2:5432/rooms?target_session_attrs=read-write"
    )["DATABASES"]["default"]

    assert database["HOST"] == "db1,db2"
    assert database["OPTIONS"]["target_session_attrs"] == "read-write"
    assert database["OPTIONS"]["keepalives_idle"] == 5


def test_pgbouncer_gets_no_session_settings():
    database = read(DATABASE_URL="postgres://u:p@h/rooms", PGBOUNCER="true")["DATABASES"]["default"]

    assert "options" not in database["OPTIONS"]
    assert database["DISABLE_SERVER_SIDE_CURSORS"] is True


def test_email_url_configures_the_mail_server():
    local = read()
    tls = read(EMAIL_URL="smtp+tls://rooms%40example.com:p%40ss@mail.example.com")
    ssl = read(EMAIL_URL="smtp+ssl://u:p@mail.example.com:4650")

    assert local["EMAIL_BACKEND"] == "django.core.mail.backends.smtp.EmailBackend"
    assert (local["EMAIL_HOST"], local["EMAIL_PORT"]) == ("127.0.0.1", 25)
    assert local["EMAIL_TIMEOUT"] == 10
    assert (tls["EMAIL_HOST"], tls["EMAIL_PORT"]) == ("mail.example.com", 587)
    assert (tls["EMAIL_HOST_USER"], tls["EMAIL_HOST_PASSWORD"]) == ("rooms@example.com", "p@ss")
    assert (tls["EMAIL_USE_TLS"], tls["EMAIL_USE_SSL"]) == (True, False)
    assert (ssl["EMAIL_PORT"], ssl["EMAIL_USE_TLS"], ssl["EMAIL_USE_SSL"]) == (4650, False, True)


def test_development_prints_emails():
    settings = read(DEBUG="true")

    assert settings["EMAIL_BACKEND"] == "roombook.console_email.EmailBackend"


def test_invalid_email_url_is_named_without_its_password():
    for wrong in ("pop3://u:hidden@h", "smtp://u:hidden@", "smtp://u:hidden@h:port", "hidden"):
        result = run(SHOW, **PRODUCTION | {"EMAIL_URL": wrong})

        assert result.returncode != 0
        assert "ImproperlyConfigured: EMAIL_URL: does not begin" in result.stderr
        assert "hidden" not in result.stderr


def test_forwarded_protocol_is_trusted_only_behind_proxies():
    assert read(TRUSTED_PROXIES="1")["SECURE_PROXY_SSL_HEADER"] == [
        "HTTP_X_FORWARDED_PROTO",
        "https",
    ]


def test_wsgi_starts_with_valid_settings_while_the_database_is_away():
    url = "postgres://rooms:hidden@127.0.0.1:1/rooms"
    result = run("import roombook.wsgi", **PRODUCTION, TRUSTED_PROXIES="1", DATABASE_URL=url)

    assert result.returncode == 0, result.stderr


# --- Documents ----------------------------------------------------------------------------------


def variables_read():
    """Every variable that settings.py reads."""
    tree = ast.parse((ROOT / "roombook/settings.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        call.args[0].value
        for call in calls
        if re.fullmatch(r"(env|os\.environ)\.\w+", ast.unparse(call.func))
        and isinstance(call.args[0], ast.Constant)
    }


def test_env_example_lists_exactly_the_variables():
    listed = re.findall(r"^#?([A-Z_]+)=", (ROOT / "deploy/env.example").read_text(), re.M)
    # deploy/gunicorn.conf.py reads these.
    servers = {"BIND", "PORT", "PIDFILE", "WEB_CONCURRENCY", "WEB_THREADS"}

    assert len(listed) == len(set(listed))
    assert set(listed) == variables_read() | servers


def test_env_example_shows_the_defaults():
    """A line that is commented out shows the default."""
    example = (ROOT / "deploy/env.example").read_text()
    given = {"ENV_FILE": os.devnull, "SECRET_KEY": "k"}
    defaults = dict(re.findall(r"^#([A-Z_]+)=(.*)$", example, re.M)) | given

    without, with_them = run(SHOW, **given), run(SHOW, **defaults)

    assert with_them.returncode == 0, with_them.stderr
    # A gateway that is set counts as chosen, even if it is the default.
    chosen = {"PAYMENT_GATEWAY_IS_CHOSEN": True}
    assert json.loads(with_them.stdout) == json.loads(without.stdout) | chosen
