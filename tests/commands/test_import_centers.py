"""import_centers and export_centers: the same code as the pages, for engineers."""

import io
import sys
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command

from centers.models import Center
from tests.factories_centers import CenterFactory
from tests.imports import build_csv

pytestmark = pytest.mark.django_db

ROW = {"name": "Old Market", "city": "Omaha", "time_zone": "America/Chicago"}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "centers.csv"

    def write(*rows):
        path.write_bytes(build_csv(*rows))
        return path

    return write


def refused(capsys, *words):
    errors = io.StringIO()
    with pytest.raises(CommandError) as error:
        call_command("import_centers", *map(str, words), stdout=io.StringIO(), stderr=errors)
    assert error.value.returncode == 1
    return f"{errors.getvalue()}{error.value}"


def test_import_twice_changes_nothing_and_a_dry_run_writes_nothing(run, file, monkeypatch):
    path = file(ROW)

    said = run("import_centers", path, "--dry-run")
    assert said == "Nothing was written: --dry-run. 1 new, 0 changed, 0 unchanged.\n"
    assert not Center.objects.exists()
    assert run("import_centers", path) == "Imported centers: 1 new, 0 changed, 0 unchanged.\n"
    # From standard input.
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(build_csv(ROW))))
    assert run("import_centers", "-") == "Imported centers: 0 new, 0 changed, 1 unchanged.\n"
    assert Center.objects.count() == 1


def test_errors_are_reported_by_row_and_column_for_a_hundred_rows(capsys, file):
    said = refused(capsys, file(ROW | {"rank": "1"}, ROW | {"name": "B", "rank": "first"}))

    assert "Row 3, rank: Write a whole number, such as 12." in said
    assert "Nothing was written. 1 new, 0 changed, 0 unchanged, 1 with errors." in said
    assert not Center.objects.exists()
    rows = [ROW | {"name": f"C{number}", "rank": "x"} for number in range(150)]
    assert "and 50 more rows" in refused(capsys, file(*rows))


def test_missing_or_invalid_file_is_reported(capsys, tmp_path):
    assert "No such file" in refused(capsys, tmp_path / "none.csv")
    (tmp_path / "wrong.csv").write_text("name,seats\nA,3\n")
    assert "Unknown columns" in refused(capsys, tmp_path / "wrong.csv")
    # Another kind of rows has other columns.
    assert "turnaround_minutes" in refused(capsys, tmp_path / "wrong.csv", "--what", "rooms")


@pytest.mark.parametrize("name", ["centers.csv", "centers.xlsx"])
def test_export_can_be_imported(run, tmp_path, name):
    center = CenterFactory(name="=1+1")
    path = tmp_path / name

    assert run("export_centers", path) == f"Exported 1 centers to {path}.\n"
    assert "0 new, 0 changed, 1 unchanged" in run("import_centers", path)
    assert [each.name for each in tmp_path.iterdir()] == [name]
    with pytest.raises(CommandError):
        run("export_centers", tmp_path / f"no/{name}")
    lines = run("export_centers").splitlines()  # to standard output
    assert lines[0].startswith("id,name,is_active,street1")
    assert lines[1].startswith(f"{center.pk},'=1+1,true")
