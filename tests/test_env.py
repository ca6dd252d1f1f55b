"""Environment variables are parsed strictly, and wrong values are named."""

import codecs
import os
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from roombook import env
from tests.test_startup import GUNICORN, run


@pytest.fixture
def set_variable(monkeypatch):
    """Set an environment variable."""
    return lambda value, name="TRIAL": monkeypatch.setenv(name, value)


@pytest.mark.parametrize("empty", [None, "", "  "])
def test_empty_variable_counts_as_not_set(set_variable, empty):
    if empty is not None:
        set_variable(empty)

    assert env.read_text("TRIAL", "default") == "default"
    assert env.read_bool("TRIAL", default=True) is True
    assert env.read_int("TRIAL", 7) == 7
    assert env.read_choice("TRIAL", "a", ["a", "b"]) == "a"
    assert env.read_list("TRIAL") == []
    assert not env.is_set("TRIAL")
    with pytest.raises(ImproperlyConfigured, match=r"^TRIAL is not set, and it has no default\.$"):
        env.read_text("TRIAL", env.Required)


@pytest.mark.parametrize(
    ("value", "read"), [("true", True), ("YES", True), ("1", True), ("off", False), ("No", False)]
)
def test_read_bool_accepts_common_words(set_variable, value, read):
    set_variable(value)

    assert env.read_bool("TRIAL", default=not read) is read


def test_read_text_int_choice_and_list(set_variable):
    set_variable(" 12 ")
    assert env.read_text("TRIAL") == "12"
    assert env.read_int("TRIAL", 0, least=12) == 12
    assert env.read_choice("TRIAL", "a", ["a", "12"]) == "12"
    assert env.is_set("TRIAL")
    set_variable("a, b,,c ")
    assert env.read_list("TRIAL") == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("read", "values", "problem"),
    [
        (
            lambda: env.read_bool("TRIAL", default=False),
            ["ture", "2"],
            "is neither true nor false",
        ),
        (
            lambda: env.read_int("TRIAL", 5, least=1),
            ["0", "1.5", "1_0", "٣"],
            "is not a whole number of at least",
        ),
        (
            lambda: env.read_choice("TRIAL", "card", ["card", "bank"]),
            ["cash"],
            "'cash' is not one of: card, bank",
        ),
        (
            lambda: env.read_database_url("TRIAL", "sqlite:///x"),
            [
                "mysql://u:s3cret@h/db",
                "s3cret",
                "postgres://u:s3cret@h:port/db",
                "postgres://[s3cret",
            ],
            "is not a postgres:// or sqlite:// address",
        ),
        (
            lambda: env.read_email_url("TRIAL", "smtp://h"),
            ["pop3://u:s3cret@h", "smtp://u:s3cret@", "smtp://u:s3cret@h:port", "s3cret"],
            "does not begin",
        ),
        (
            lambda: env.read_bucket_url("TRIAL"),
            [
                *("s3://key:s3cret@host/rooms", "https://key:s3cret@host/", "https:///rooms"),
                *("https://key:s3cret@host/a/b", "https://key:s3cret@host/rooms?other=1"),
                "https://[s3cret/rooms",
            ],
            "is not an address",
        ),
        (
            lambda: env.read_sentry_dsn("TRIAL"),
            ["sentry", "https://host/1", "https://s3cret@host/x", "https://["],
            "is not an address such",
        ),
    ],
)
def test_invalid_value_is_refused_without_what_may_be_secret(set_variable, read, values, problem):
    for value in values:
        set_variable(value)

        with pytest.raises(ImproperlyConfigured, match=f"^TRIAL: .*{problem}") as refused:
            read()
        assert "s3cret" not in str(refused.value)
        assert refused.value.__suppress_context__ or "s3cret" not in value


def test_value_can_be_read_from_a_file(set_variable, tmp_path):
    (tmp_path / "secret").write_text("\ufefffrom a file\r\n")
    set_variable(str(tmp_path / "secret"), "TRIAL_IN_FILE_FILE")

    assert env.read_text("TRIAL_IN_FILE") == "from a file"


def test_missing_value_file_is_named(set_variable):
    set_variable("/nowhere/at/all", "TRIAL_FILE")

    with pytest.raises(ImproperlyConfigured, match=r"^TRIAL_FILE: this file cannot be read"):
        env.read_text("TRIAL")


def test_read_app_schemes_accepts_schemes_of_apps_only(set_variable):
    set_variable(" MyApp, com.example.rooms-beta ")
    assert env.read_app_schemes("TRIAL") == ["myapp", "com.example.rooms-beta"]

    for wrong in ("myapp://", "my app", "1app", "\u00e4pp"):
        set_variable(f"myapp,{wrong}")
        with pytest.raises(ImproperlyConfigured, match=r"TRIAL.*is not the scheme of an app"):
            env.read_app_schemes("TRIAL")


# --- The file of settings ------------------------------------------------------------------------

UNCLEAR = ", line 1: KEY: put quotation marks around the whole value, and a comment on a line"
PARTLY_QUOTED = ['"s3cret', "s3cret'", '"a" "s3cret"', ' "s3cret"', "\u201cs3cret\u201d"]
COMMENTED = ["s3cret # b", '"s3cret" # b', '"A" <s3cret@b> # c', " # s3cret"]


def test_environment_wins_over_the_file_which_may_be_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "environ", {"TRIAL": "environment"})
    monkeypatch.setattr(env.environ.Env, "ENVIRON", os.environ)
    (tmp_path / "settings").write_bytes(
        codecs.BOM_UTF8
        + b'TRIAL=file\r\n# comment\r\n\r\nexport TWO=\'a # b\'\r\nTHREE="a \\"b\\""'
        + b'\nFOUR="A # B" <a@b.example>\nFIVE=a#\'b\'-"c"!\nSIX=\n'
    )

    env.load_file(tmp_path / "settings")
    env.load_file(tmp_path / "there is none")
    env.load_file(Path(os.devnull), must_exist=True)

    assert os.environ == {
        "TRIAL": "environment",
        "TWO": "a # b",
        "THREE": 'a "b"',
        "FOUR": '"A # B" <a@b.example>',
        "FIVE": "a#'b'-\"c\"!",
        "SIX": "",
    }


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"A=1\nKEY: s3cret", r", line 2: write NAME=value"),
        (b"KEY = s3cret", r", line 1: write NAME=value"),
        (b"KEY=s3cret\xe4", r" is not encoded in UTF-8\.$"),
        (b"KEY=s3cret\0", r", line 1: there is a NUL byte\.$"),
        (b"KEY=s3cret\nA=1\nexport KEY=", r", line 3: KEY is set twice in this file\.$"),
        *((b"KEY=" + each.encode(), UNCLEAR) for each in PARTLY_QUOTED + COMMENTED),
    ],
)
def test_file_that_cannot_be_read_is_refused_without_its_values(tmp_path, content, problem):
    (tmp_path / "settings").write_bytes(content)

    with pytest.raises(ImproperlyConfigured, match=problem) as refused:
        env.load_file(tmp_path / "settings")
    assert "s3cret" not in str(refused.value)
    with pytest.raises(ImproperlyConfigured, match="there is no such file"):
        env.load_file(tmp_path / "none", must_exist=True)
    (tmp_path / "link").symlink_to(tmp_path / "none")
    with pytest.raises(ImproperlyConfigured, match="link: there is no such file"):
        env.load_file(tmp_path / "link")


@pytest.mark.parametrize("command", [("manage.py", "serve"), GUNICORN])
def test_every_way_to_start_refuses_the_file_with_one_line(tmp_path, command):
    (tmp_path / "settings").write_text("LOG_LEVEL=INFO\nCURRENCY: EUR\n")

    ended = run(*command, ENV_FILE=str(tmp_path / "settings"))

    assert ended.returncode != 0
    assert ended.stderr.startswith(f"Error: {tmp_path}/settings, line 2: ")
    assert len(ended.stderr.splitlines()) == 1
