"""Files that are made to cost memory or time: they cost the service nothing."""

import base64
import contextlib
import io
import os
import resource
import shutil
import subprocess
import time
import zipfile

import pytest

from roombook.backoffice.spreadsheets import InvalidFile
from roombook.imports import files
from roombook.imports.displayed_values import CellKind
from tests.imports import build_workbook

SHEET = "xl/worksheets/sheet1.xml"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def pack(parts):
    """A workbook some of whose parts are replaced or added."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(build_workbook(["name"], ["A"]))) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
    ):
        parts = {name: source.read(name) for name in source.namelist()} | parts
        for name, data in parts.items():
            target.writestr(name, data)
    return out.getvalue()


def get_peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def read(content):
    return files.read_file(content, {"name": CellKind.TEXT}, "centers")


def incompressible(xml):
    """XML with a comment that packs badly, so that the part as a whole does not pack too well."""
    noise = base64.b64encode(os.urandom(len(xml) // 200)).decode()
    return f"{xml}<!--{noise}-->"


def build_sheet(rows):
    return {
        SHEET: incompressible(
            f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>'
        )
    }


CELL_OF_SHARED_FORMULA = '<c r="B1"><f t="shared" si="0"/></c>'

# One that is slow, one that is large in memory, and one that has rows without end.
ATTACKS = {
    "shared formula in 100,000 cells": lambda: build_sheet(
        f'<row r="1"><c r="A1"><f t="shared" si="0">{"A1+" * 2_700}</f></c></row>'
        + "".join(f'<row r="{i}">{CELL_OF_SHARED_FORMULA * 250}</row>' for i in range(2, 402))
    ),
    "row number two billion": lambda: build_sheet(
        '<row r="1"><c t="str"><v>name</v></c></row><row r="2000000000"/>'
    ),
    "text of 90 MB": lambda: build_sheet(f"<row><c><v>{'1' * 90_000_000}</v></c></row>"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_workbook_made_to_cost_memory_or_time_costs_this_process_nothing(name, monkeypatch):
    monkeypatch.setattr(files, "MAX_PROCESSOR_SECONDS", 1)
    monkeypatch.setattr(files, "MAX_MEMORY_BYTES", 256 * 2**20)
    content = pack(ATTACKS[name]())
    memory, processor = get_peak_memory(), time.process_time()

    with contextlib.suppress(InvalidFile):
        read(content)

    assert get_peak_memory() - memory < 60 * 2**20
    assert time.process_time() - processor < 2


def test_file_that_is_no_workbook_or_takes_too_long_is_refused(monkeypatch):
    entity = {SHEET: f'<!DOCTYPE x [<!ENTITY a "a">]><worksheet xmlns="{MAIN}"/>'}
    for content, words in (
        (b"PK\x03\x04 no zip", "neither CSV nor an .xlsx workbook"),
        (pack(entity), "damaged"),
    ):
        with pytest.raises(InvalidFile, match=words):
            read(content)
    monkeypatch.setattr(files, "MAX_SECONDS", 0.01)
    with pytest.raises(InvalidFile, match="too large"):
        read(pack({}))


def test_failure_of_the_process_is_not_displayed_as_an_error_of_the_file(monkeypatch):
    monkeypatch.setattr(files.sys, "executable", shutil.which("false"))

    with pytest.raises(subprocess.CalledProcessError):
        read(pack({}))


def test_import_workbook_with_parts_that_are_not_xml_is_read():
    links = '<sheetData sheetId="{}"><row r="1"><cell r="A1"/></row></sheetData>'
    parts = {
        "xl/printerSettings/printerSettings1.bin": "Printer".encode("utf-16-le") + bytes(500),
        "docProps/thumbnail.jpeg": b"\xff\xd8\xff\xe0" + os.urandom(500),
        "xl/drawings/vmlDrawing1.vml": "<xml><div><br></div></xml>",
        "xl/media/image1.svg": '<!DOCTYPE svg><svg xmlns="http://www.w3.org/2000/svg"/>',
        "xl/media/image1.png": b"\x89PNG\r\n\x1a\n" + os.urandom(500),
        "customXml/item1.xml": '<row r="1"><row r="1"/></row>',
        "xl/externalLinks/externalLink1.xml": (
            f'<externalLink xmlns="{MAIN}">{links.format(0)}{links.format(1)}</externalLink>'
        ),
    }

    assert read(pack(parts)).dict == [{"name": "A"}]
