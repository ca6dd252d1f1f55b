"""Settings as a new process reads them from its environment."""

import ast
import json
import os
import re

from tests.test_startup import ROOT, VALID, run

# UNFOLD has functions and URLs, and reads no variable.
SHOW = """
import json
from roombook import settings
shown = {k: v for k, v in vars(settings).items() if k.isupper() and k != "UNFOLD"}
print(json.dumps(shown, default=str))
"""


def read(**variables):
    """The settings that a process with these variables has."""
    result = run("-c", SHOW, **variables)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_production_settings_are_safe_by_default():
    settings = read(ALLOWED_HOSTS="rooms.example.com, www.example.com", TRUSTED_PROXIES="")

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
    assert settings["EMAIL_BACKEND"] == "django.core.mail.backends.smtp.EmailBackend"
    assert (settings["EMAIL_HOST"], settings["EMAIL_PORT"]) == ("127.0.0.1", 25)
    assert settings["EMAIL_TIMEOUT"] == 10


def get_mail_server(settings):
    names = ("HOST", "PORT", "HOST_USER", "HOST_PASSWORD", "USE_TLS", "USE_SSL")
    return tuple(settings[f"EMAIL_{name}"] for name in names)


def test_development_needs_only_debug():
    settings = read(DEBUG="true", SECRET_KEY="", ALLOWED_HOSTS="", PAYMENT_GATEWAY="")
    database = settings["DATABASES"]["default"]

    assert database["NAME"] == str(ROOT / "db.sqlite3")
    assert database["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert database["OPTIONS"]["timeout"] == 20
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        assert pragma in database["OPTIONS"]["init_command"]
    assert settings["DEBUG"] is True
    assert settings["SECURE_SSL_REDIRECT"] is False
    assert settings["PAYMENT_GATEWAY_IS_CHOSEN"] is False
    assert settings["EMAIL_BACKEND"] == "roombook.console_email.EmailBackend"
    assert settings["LOGGING"]["handlers"]["stdout"]["formatter"] == "plain"


def test_postgres_connections_are_reused_checked_and_limited():
    settings = read(
        DATABASE_URL="postgres://u:p%40ss@h:5433/rooms",
        EMAIL_URL="smtp+tls://r%40b.example:p%40ss@h",
    )
    database = settings["DATABASES"]["default"]

    # Behind a proxy, its header tells the protocol.
    assert settings["SECURE_PROXY_SSL_HEADER"] == ["HTTP_X_FORWARDED_PROTO", "https"]
    assert get_mail_server(settings) == ("h", 587, "r@b.example", "p@ss", True, False)
    assert (database["HOST"], database["PORT"], database["PASSWORD"]) == ("h", 5433, "p@ss")
    assert database["CONN_MAX_AGE"] == 60
    assert database["CONN_HEALTH_CHECKS"] is True
    assert database["OPTIONS"]["connect_timeout"] == 2
    assert "lock_timeout=4s" in database["OPTIONS"]["options"]
    assert "statement_timeout=30s" in database["OPTIONS"]["options"]
    assert "jit=off" in database["OPTIONS"]["options"]


def test_pgbouncer_gets_no_session_settings_and_a_url_may_list_several_hosts():
    settings = read(
        DATABASE_URL="postgres://u:p@db1:5432,db2:5432/rooms?target_session_attrs=read-write",
        PGBOUNCER="true",
        EMAIL_URL="smtp+ssl://u:p@h:4650",
    )
    database = settings["DATABASES"]["default"]

    assert "options" not in database["OPTIONS"]
    assert database["DISABLE_SERVER_SIDE_CURSORS"] is True
    assert database["HOST"] == "db1,db2"
    assert database["OPTIONS"]["target_session_attrs"] == "read-write"
    assert database["OPTIONS"]["keepalives_idle"] == 5
    assert get_mail_server(settings) == ("h", 4650, "u", "p", False, True)


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
    # An empty variable counts as not set.
    given = {"ENV_FILE": os.devnull, "SECRET_KEY": "k"}
    nothing = dict.fromkeys(VALID, "") | given
    defaults = dict(re.findall(r"^#([A-Z_]+)=(.*)$", example, re.M)) | given

    # A gateway that is set counts as chosen, even if it is the default.
    chosen = {"PAYMENT_GATEWAY_IS_CHOSEN": True}
    assert read(**nothing | defaults) == read(**nothing) | chosen
