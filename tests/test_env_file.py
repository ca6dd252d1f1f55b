"""The file of settings as people save it: read rightly, or refused without its values."""

import codecs
import os
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from roombook import env_file
from tests.test_startup import GUNICORN, run


@pytest.fixture
def read(tmp_path):
    """The variables of a file with these bytes, or with this text in UTF-8."""

    def read_content(content):
        path = tmp_path / "settings"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return env_file.read_values(path)

    return read_content


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("KEY=value", "value"),
        ("KEY = value", "value"),
        ("  KEY\u00a0=\t\u00a0value \t", "value"),
        ("export KEY=value", "value"),
        ("\texport   KEY = 'value'", "value"),
        ("KEY=", ""),
        ("KEY=''", ""),
        ('KEY=""', ""),
        ("KEY=two words", "two words"),
        ("KEY=postgres://u:a=b%23@h/db?x=y#z", "postgres://u:a=b%23@h/db?x=y#z"),
        ("KEY=#begins with the character of comments", "#begins with the character of comments"),
        ('KEY="value" # comment', "value"),
        ("KEY='Room #5'\t# the fifth", "Room #5"),
        (r'KEY="a \"b\" \\ \n"', r'a "b" \ \n'),
        (r"KEY='C:\new $(x) ${y}'", r"C:\new $(x) ${y}"),
        ("KEY=Joe's Rooms <joe@example.com>", "Joe's Rooms <joe@example.com>"),
        ('KEY="Rooms" <rooms@example.com>', '"Rooms" <rooms@example.com>'),
        (
            "KEY=Säle \N{WOMAN}\u200d\N{PERSONAL COMPUTER}",
            "Säle \N{WOMAN}\u200d\N{PERSONAL COMPUTER}",
        ),
    ],
)
def test_value_without_doubt_is_read_whatever_ends_the_lines(read, line, value):
    for end in ("\n", "\r\n", "\r"):
        for mark in ("", "\ufeff"):
            text = f"{mark}{line}{end}{end}# a comment{end}LAST=1"
            assert read(text) == {"KEY": value, "LAST": "1"}


IN_DOUBT = {
    "write NAME=value": [
        *("KEY: s3cret", "KEY s3cret", "KEY\ts3cret", "s3cret", "KEY==s3cret", "=s3cret"),
        *("set KEY=s3cret", '"KEY": "s3cret=",', "KEY-S3CRET=s3cret", "; KEY=s3cret", "[s3cret]"),
        *("“KEY”=s3cret", "- KEY=s3cret", "$env:KEY = s3cret", "// KEY=s3cret"),
    ],
    "straight quotation marks": [
        *("KEY=“s3cret”", "KEY=„s3cret“", "KEY=‘s3cret’", "KEY=«s3cret»", "KEY=”s3cret"),  # noqa: RUF001
        *("KEY=`s3cret`", 'KEY="s3cret', 'KEY=s3cret"', "KEY='s3cret", "KEY=\"s3cret'"),
        *('KEY="s3"cret', r'KEY="s3cret\"', "KEY='s3'cret'", 'KEY="'),
    ],
    "comment on a line of its own": ["KEY=s3cret # mine", "KEY= # s3cret", "KEY=s3cret\t#mine"],
    "single quotation marks": ["KEY=$(echo s3cret)", 'KEY="${s3cret}"', "KEY=a${s3cret}"],
    "invisible character": [
        *("KEY=s3\u200bcret", "KEY=s3\u00a0cret", "KEY=s3\u2028cret", "KEY='s3\u00adcret'"),
        *("\ufeffKEY=s3cret", "KEY\u200b=s3cret", "KEY=s3\x1bcret", "KEY=s3cret\u200f"),
    ],
    "Delete one of the two": ["FIRST=s3cret", "export FIRST = ''"],
    "not encoded in UTF-8": [
        *(b"KEY=s3cret\0", b"KEY=s3cret\xe4", b"# f\xfcr s3cret", "KEY=s3cret\ufffd".encode()),
    ],
}


@pytest.mark.parametrize("advice", IN_DOUBT)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_line_in_doubt_is_refused_by_its_number_without_its_value(read, end, advice):
    for line in IN_DOUBT[advice]:
        encoded = line if isinstance(line, bytes) else line.encode()
        with pytest.raises(ImproperlyConfigured) as refused:
            read(end.join([b"FIRST=1", b"# comment", encoded, b"LAST=2"]))

        message = str(refused.value)
        assert message.partition(": ")[0].endswith("settings, line 3"), line
        assert advice in message, line
        assert "s3cret" not in message.lower(), line
        assert refused.value.__suppress_context__


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_file_in_another_encoding_is_refused_at_its_first_line(read, encoding):
    with pytest.raises(ImproperlyConfigured, match="line 1: the file is not encoded in UTF-8"):
        read("SECRET_KEY=x\r\nCURRENCY=EUR\r\n".encode(encoding))


def test_setting_that_is_repeated_is_read_if_it_has_one_value(read):
    assert read("KEY=\nKEY=a\nKEY='a'\nexport KEY=a\n") == {"KEY": "a"}

    for text in ("KEY=a\nKEY=b", "KEY=a\nKEY="):
        with pytest.raises(ImproperlyConfigured, match=r"line 2: an earlier line gives another"):
            read(text)


def test_environment_wins_over_the_file_which_may_be_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "environ", {"TRIAL": "environment", "EMPTY": ""})
    (tmp_path / "settings").write_text("TRIAL=file\nEMPTY=file\nTRIAL_TWO=also\n")

    env_file.load(tmp_path / "settings")
    env_file.load(tmp_path / "there is none")
    env_file.load(Path(os.devnull), must_exist=True)

    assert os.environ == {"TRIAL": "environment", "EMPTY": "", "TRIAL_TWO": "also"}


def test_path_that_is_no_readable_file_is_refused(tmp_path):
    link, loop = tmp_path / "link", tmp_path / "loop"
    link.symlink_to(tmp_path / "removed")
    loop.symlink_to(loop)

    for path, must_exist in (
        (tmp_path, False),
        (link, False),
        (loop, False),
        (tmp_path / "a", True),
    ):
        with pytest.raises(ImproperlyConfigured) as refused:
            env_file.load(path, must_exist=must_exist)
        assert str(refused.value).startswith(f"{path}: this file of settings cannot be read (")


STARTS = [("manage.py", "check"), ("manage.py", "serve"), ("-c", "import roombook.wsgi"), GUNICORN]


@pytest.mark.parametrize("command", STARTS)
def test_every_way_to_start_refuses_the_file_with_one_line(tmp_path, command):
    file = tmp_path / "settings"
    file.write_bytes(codecs.BOM_UTF8 + b"LOG_LEVEL=INFO\r\nCURRENCY: EUR\r\n")

    ended = run(*command, ENV_FILE=str(file))

    assert ended.returncode != 0
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"Error: {file}, line 2: ")
    assert len(ended.stderr.splitlines()) == 1
    assert "EUR" not in ended.stderr


@pytest.mark.parametrize("command", STARTS)
def test_every_way_to_start_reads_the_line_after_a_byte_order_mark(tmp_path, command):
    file = tmp_path / "settings"
    file.write_bytes(codecs.BOM_UTF8 + b"export CURRENCY = DOLLAR\r\n")

    assert "CURRENCY: 'DOLLAR' is not a currency" in run(*command, ENV_FILE=str(file)).stderr
