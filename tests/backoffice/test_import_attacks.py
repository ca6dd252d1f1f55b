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
from tests.imports import build_workbook, check

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


def build_texts(texts):
    return {"xl/sharedStrings.xml": incompressible(f'<sst xmlns="{MAIN}">{texts}</sst>')}


def build_styles(styles):
    return {"xl/styles.xml": f'<styleSheet xmlns="{MAIN}">{styles}</styleSheet>'}


def use_worksheet_as_texts():
    with zipfile.ZipFile(io.BytesIO(build_workbook(["name"], ["A"]))) as archive:
        types = archive.read("[Content_Types].xml").decode()
    override = (
        '<Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/'
        'vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/></Types>'
    )
    return build_sheet("<row><c/></row>" * 50_000) | {
        "[Content_Types].xml": types.replace("</Types>", override)
    }


def build_book(sheets, names=""):
    sheets = f"<sheets>{sheets}</sheets><definedNames>{names}</definedNames>"
    return {"xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="x">{sheets}</workbook>'}


def rename_worksheet(parts, name):
    """The parts of a workbook whose worksheet has another name."""
    with zipfile.ZipFile(io.BytesIO(build_workbook(["name"], ["A"]))) as archive:
        relations = archive.read("xl/_rels/workbook.xml.rels").decode()
    assert f"/{SHEET}" in relations
    return {name: parts[SHEET], "xl/_rels/workbook.xml.rels": relations.replace(SHEET, name)}


SHARED_FORMULA = f'<row r="1"><c r="A1"><f t="shared" si="0">{"A1+" * 2_700}</f></c></row>'
CELLS_OF_SHARED_FORMULA = '<c r="B1"><f t="shared" si="0"/></c>' * 250

ATTACKS = {
    "styles of 30 MB": lambda: build_styles(f"<cellXfs>{'<xf/>' * 6_000_000}</cellXfs>"),
    "200,000 fonts": lambda: build_styles(f"<fonts>{'<font/>' * 200_000}</fonts>"),
    "format of 100,000 brackets": lambda: build_styles(
        f'<numFmts><numFmt numFmtId="164" formatCode="{"[" * 100_000}"/></numFmts>'
        + "<cellXfs>"
        + '<xf numFmtId="164"/>' * 10_000
        + "</cellXfs>"
    ),
    "40,000 names of styles": lambda: build_styles(
        "<cellStyleXfs><xf/></cellStyleXfs><cellXfs><xf/></cellXfs><cellStyles>"
        + "".join(f'<cellStyle name="{i}" xfId="0"/>' for i in range(40_000))
        + "</cellStyles>"
    ),
    "print titles of 90,000 characters": lambda: build_book(
        "", f'<definedName name="_xlnm.Print_Titles" localSheetId="0">{"A" * 90_000}</definedName>'
    ),
    "1,000 print titles": lambda: build_book(
        "", f'<definedName name="_xlnm.Print_Titles">{"A" * 200}</definedName>' * 1_000
    ),
    "formula of 99,000 characters": lambda: build_sheet(
        f'<row><c r="A1"><f t="shared" si="0">{"A1+" * 33_000}</f></c></row>'
        + "<row>"
        + '<c r="B1"><f t="shared" si="0"/></c>' * 250
        + "</row>"
    ),
    "rows that all have number 1": lambda: build_sheet('<row r="1"/>' * 1_000),
    "rows in a row": lambda: build_sheet(
        f'<row r="1">{CELLS_OF_SHARED_FORMULA}{SHARED_FORMULA}</row>'
    ),
    "shared formula in rows that all have number 1": lambda: build_sheet(
        SHARED_FORMULA + f'<row r="1">{CELLS_OF_SHARED_FORMULA}</row>' * 400
    ),
    "shared formula in 100,000 cells": lambda: build_sheet(
        SHARED_FORMULA
        + "".join(f'<row r="{i}">{CELLS_OF_SHARED_FORMULA}</row>' for i in range(2, 402))
    ),
    "1,001 shared formulas": lambda: build_sheet(
        "".join(
            f'<row r="{i}"><c r="A{i}"><f t="shared" si="{i}">A1</f></c></row>'
            for i in range(1, 1_002)
        )
    ),
    "worksheet that is not called .xml": lambda: rename_worksheet(
        build_sheet(f"<row>{'<c/>' * 60_000}</row>"), "xl/worksheets/sheet1.bin"
    ),
    "worksheet among the pictures": lambda: rename_worksheet(
        build_sheet(SHARED_FORMULA + f'<row r="1">{CELLS_OF_SHARED_FORMULA}</row>' * 40),
        "xl/media/sheet1.png",
    ),
    "row of 20 million cells": lambda: build_sheet(f"<row>{'<c/>' * 20_000_000}</row>"),
    "10 million elements in a cell": lambda: build_sheet(
        f"<row><c>{'<v></v>' * 10_000_000}</c></row>"
    ),
    "10 million rows": lambda: build_sheet("<row/>" * 10_000_000),
    "10 million cells": lambda: build_sheet(f"<row>{'<c/>' * 200}</row>" * 50_000),
    "row number two billion": lambda: build_sheet(
        '<row r="1"><c t="str"><v>name</v></c></row><row r="2000000000"/>'
    ),
    "10 million texts": lambda: build_texts("<si/>" * 10_000_000),
    "text of 300,000 runs": lambda: build_texts(f"<si>{'<r><t>a</t></r>' * 300_000}</si>"),
    "text of 300,000 runs and texts": lambda: build_texts(
        f"<si>{('<r><t>a</t></r>' * 10 + '<si/>') * 30_000}</si>"
    ),
    "text of 90 MB": lambda: build_sheet(f"<row><c><v>{'1' * 90_000_000}</v></c></row>"),
    "tag of 90 MB": lambda: build_sheet(f'<row a="{"1" * 90_000_000}"/>'),
    "worksheet as texts": use_worksheet_as_texts,
    "110 MB in small parts": lambda: {f"p{i}.bin": bytes(2_000_000) for i in range(55)},
    "2 MB that pack too well": lambda: {"xl/theme/theme1.xml": bytes(2_000_000)},
    "100,000 parts": lambda: {f"p{i}": b"" for i in range(100_000)},
    "20,000 sheets": lambda: build_book('<sheet name="s" sheetId="1" r:id="rId1"/>' * 20_000),
    "document type": lambda: {SHEET: f'<!DOCTYPE x><worksheet xmlns="{MAIN}"/>'},
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


def test_workbook_that_takes_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(files, "MAX_SECONDS", 0.01)

    with pytest.raises(InvalidFile, match="too large"):
        read(build_workbook(["name"], ["A"]))


def test_failure_of_the_process_is_not_displayed_as_an_error_of_the_file(monkeypatch):
    monkeypatch.setattr(files.sys, "executable", shutil.which("false"))

    with pytest.raises(subprocess.CalledProcessError):
        read(build_workbook(["name"], ["A"]))


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


def test_import_csv_with_too_many_empty_lines_is_refused():
    content = b"name\n" + b"\n" * files.MAX_LINES + b"A\n"

    with pytest.raises(InvalidFile, match="more than 100,000 lines"):
        check("centers", content)
