"""Files to import: what can be taken, and in which words another is refused."""

import io
import zipfile
from decimal import Decimal

import pytest

from roombook.backoffice.spreadsheets import InvalidFile
from roombook.imports import files
from tests.factories_centers import CenterFactory, MeetingRoomFactory, RateFactory
from tests.imports import (
    build_csv,
    build_workbook,
    check,
    count_rows,
    get_cells,
    get_counts,
    get_errors,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("workbooks_in_process")]


def refusal(content, name="centers"):
    with pytest.raises(InvalidFile) as refused:
        check(name, content)
    return str(refused.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xef\xbb\xbf \n", "empty"),
        (b"name,city\n,\n\n", "no row"),
        (b"name,citty\nA,B\n", 'Unknown columns: "citty". There are: id, name,'),
        (b"name," + b"x" * 100_000 + b"\nA,B\n", f'Unknown columns: "{"x" * 50}".'),
        (b"Our centers,,\nname,city,rank\nA,B,1\n", "delete what stands above their names."),
        (b"city,rank\nA,3\n", '"name"'),
        (b"name,NAME\nA,B\n", "twice: name"),
        (b"name,,city\nA,B,C\n", "Column 2"),
        (b"name,city\nA,B,C\n", "Row 2 has more"),
        (b"name,city\nA\n", "Row 2 has fewer"),
        (b'name,city\n"A,B\n', "line"),
        (b'name,city\n"A"x,B\n', "line 2"),
        ("name\nZürich\n".encode("latin-1"), "UTF-8"),
        ("name\nA\n".encode("utf-16"), "UTF-16"),
        (b"\xd0\xcf\x11\xe0 old", ".xls"),
        (b"name\x00\nA\n", "neither"),
        (b"name\n" + b"x" * 200_000, "too long"),
    ],
)
def test_invalid_file_is_refused_with_a_reason(content, words):
    assert words in refusal(content)


def test_too_many_rows_or_bytes_are_refused(monkeypatch):
    monkeypatch.setattr(files, "MAX_ROWS", 2)
    assert "more than 2 rows" in refusal(b"name\nA\nB\nC\n")
    monkeypatch.setattr(files, "MAX_BYTES", 5)
    assert "larger" in refusal(b"name\nA\n")


def test_formulas_and_error_cells_are_refused():
    book = build_workbook(["name", "rank", "tax_rate"], ["A", "=1+1", "#DIV/0!"])

    assert get_cells(get_errors("centers", book)) == [(2, "tax_rate"), (2, "rank")]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        *(('="8 ""A"" St."', '8 "A" St.'), ("'=1+1", "=1+1"), ("+1 555", "+1 555"), ("-5", "-5")),
        *(("#12", "#12"), ("'#N/A", "#N/A"), ("a;'=1;b", "a;=1;b"), ("1-3", "1-3")),
        *((text, None) for text in ("=02116", " =A1", "\uff1d1", "#N/A", "#BEZUG!", "#####")),
    ],
)
def test_text_in_csv_is_read_or_refused_but_no_formula_or_error_is_stored(cell, expected):
    name, content = "centers", build_csv({"name": cell, "time_zone": "UTC"})
    if expected is None:
        assert [(row, column) for row, column, _ in get_errors(name, content)] == [(2, "name")]
    else:
        _, result = check(name, content)
        assert result.rows[0].changes["name"] == ("", expected)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        *(("8", "8"), ("8%", "8"), ("8.875\xa0%", "8.875"), ('="8"', "8"), ("8,875 %", "8.875")),
        *((text, None) for text in ("8,5,0", "1.0,5", "8%%", "%", "8e0", "$8")),
    ],
)
def test_percentage_in_csv_is_read_or_refused(cell, expected):
    content = build_csv({"name": "A", "time_zone": "UTC", "tax_rate": cell})
    if expected is None:
        assert get_cells(get_errors("centers", content)) == [(2, "tax_rate")]
    else:
        assert check("centers", content)[1].rows[0].instance.tax_rate == Decimal(expected)


def test_lines_and_columns_beyond_the_limits_are_refused_or_not_read(monkeypatch):
    monkeypatch.setattr(files, "MAX_LINES", 5)
    with pytest.raises(InvalidFile, match="more than 5 lines"):
        check("types", b"name\n" + b"\n" * files.MAX_LINES + b"A\n")
    with pytest.raises(InvalidFile, match="more than 256 columns"):
        check("types", b"name" + b",x" * files.MAX_COLUMNS + b"\nA,\n")

    # A stray blank in the last column that a spreadsheet has does not multiply the cells of rows.
    blank = [*["name"], *[""] * 16_382, " "]
    assert count_rows("types", build_workbook(blank, ["A1"], ["A2"])) == {"new": 2}


def test_german_csv_with_semicolons_decimal_commas_and_byte_order_mark_is_read():
    center = CenterFactory(name="Mitte")
    text = (
        "center;name;hourly;half_day;description\r\n"
        "Mitte;Abend;52,50;180,00;Für abends\r\nMitte;Nacht;12,5;-1,5;\r\n;;;;\r\n"
    )

    _, result = check("rates", text.encode("utf-8-sig"))

    assert get_counts(result) == {"new": 1, "errors": 1}
    rate = result.rows[0].instance
    assert (rate.center, rate.hourly, rate.half_day) == (center, Decimal("52.5"), Decimal(180))
    assert count_rows("types", b"name\tposition\nStudio\t1\n") == {"new": 1}
    assert get_errors("rates", text.encode()) == [(3, "", "A price must not be negative.")]
    place = {"name": "A", "time_zone": "UTC", "latitude": "52,520", "longitude": "-13,405"}
    [row] = check("centers", build_csv(place))[1].rows
    assert (row.instance.latitude, row.instance.longitude) == (52.52, -13.405)


def test_cell_merged_over_rows_counts_for_all_of_them():
    center = CenterFactory(name="Back Bay")
    rate = RateFactory(center=center, name="Standard")
    rooms = [MeetingRoomFactory(center=center, rate=rate, capacity=8) for _ in range(4)]
    rows = [[room.pk, center.name, rate.name, 8] for room in rooms[:3]]
    # Rows 6 and 7 are empty, apart from merged cells.
    content = build_workbook(
        *(["id", "center", "rate", "capacity"], *rows, [rooms[3].pk, None, rate.name, 9], [], []),
        merged=["B2:B7", "C2:C4", "D5:D7"],
    )

    _, result = check("rooms", content)

    assert get_counts(result) == {"changed": 1, "unchanged": 3}
    assert result.rows[0].changes == {"capacity": ("8", "9")}


@pytest.mark.parametrize("cells", ["B2:C2", "A1:A2", "Z1:AA9"])
def test_cells_merged_across_columns_or_with_the_header_are_refused_by_name(cells):
    rows = ["id", "center", "rate", "capacity"], [1, "A", "B", 8]
    content = build_workbook(*rows, merged=[cells])

    assert f"({cells}): unmerge them" in refusal(content, "rooms")


def test_sheet_is_chosen_by_name():
    assert count_rows("centers", build_workbook(["name", "time_zone"], ["A", "UTC"])) == {"new": 1}
    several = build_workbook(["name", "time_zone"], ["A", "UTC"], sheet="Centers", more=["Notes"])
    assert count_rows("centers", several) == {"new": 1}

    assert '"Notes"' in refusal(build_workbook(["name"], ["A"], more=["Notes"]))


def test_sheet_with_wrong_dimensions_is_read():
    """Some programs write a dimension of one cell."""
    content = edited(
        build_workbook(["name", "time_zone"], ["A", "UTC"]),
        lambda data: data.replace(b'ref="A1:B2"', b'ref="A1"'),
    )

    assert count_rows("centers", content) == {"new": 1}


def edited(book, edit):
    """The workbook with its sheet's XML changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as source, zipfile.ZipFile(out, "w") as target:
        for entry in source.infolist():
            data = source.read(entry)
            target.writestr(entry, edit(data) if entry.filename.endswith("sheet1.xml") else data)
    return out.getvalue()
