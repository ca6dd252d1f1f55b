"""Nested fields to dotted columns and back.

All operations do both in tests/test_every_operation.py.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roombook.api import csv_table
from roombook.api.formats import CSVRenderer

# No empty text (it is no value) and no halves of surrogate pairs (no bytes can hold them).
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
RISKY = st.text("'=+-@\t\r\n\",;. a1", min_size=1, max_size=6)


@given(TEXTS | RISKY)
def test_any_text_that_was_rendered_is_read_back(text):
    fields = {"A": text, "L": [{"B": text}, {"C": [text]}]}

    assert csv_table.parse_request(CSVRenderer().render(fields).decode()) == fields


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1 555", "-20", "@x", "\tx", "\rx", "'=x", "''-x"),
        *("\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20x"),
    ],
)
def test_text_that_a_spreadsheet_would_execute_starts_with_an_apostrophe(text):
    assert csv_table.format_cell(text) == "'" + text


@pytest.mark.parametrize("text", ["1+1", "'x", "''", "$5", " =1", "\n=1", "a@b.c"])
def test_harmless_text_is_unchanged(text):
    assert csv_table.format_cell(text) == text


def test_columns_are_in_the_contracts_order_and_fields_without_value_have_none():
    fields = {"E": 0, "A": None, "B": "", "C": [], "D": {}, "L": [{"Z": 1}, {"Y": 2}], "Success": 1}
    tree = {"L": {"Y": {}, "Z": {}}, "E": {}}

    table = csv_table.build_table(fields, rows_field="L", field_tree=tree)

    assert table.header == ["Success", "L.Y", "L.Z", "E"]
    assert table.rows == [{"Success": "1", "L.Z": "1", "E": "0"}, {"Success": "1", "L.Y": "2"}]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        # Empty cells are absent, and absent elements leave no gap.
        ("A,B.C,L.0.X,L.2.X,L.10.X\r\n,,,b,a\r\n", {"L": [{"X": "b"}, {"X": "a"}]}),
        # Digits at the top level or with a leading zero are names.
        ("0,L.00,L.1\r\na,b,c\r\n", {"0": "a", "L": {"00": "b", "1": "c"}}),
        ("A\r\n1\r\n\r\n", {"A": "1"}),
        ("\r\nA\r\n1", {"A": "1"}),
        ("A\n1", {"A": "1"}),
    ],
)
def test_table_is_parsed(text, fields):
    assert csv_table.parse_request(text) == fields


@pytest.mark.parametrize(
    "text",
    [
        *("", "A\r\n", "A\r\n1\r\n2\r\n", "A,B\r\n1\r\n", 'A\r\n"1\r\n', 'A\r\n"4242"2\r\n'),
        "A\r\n" + "x" * 200_000 + "\r\n",
        # Names: twice, empty, of a value and of what is in it, too deep, too many.
        *("A,A\r\n,\r\n", "A,\r\n1,2\r\n", "A..B\r\n1\r\n", "A,A.B\r\n1,2\r\n"),
        *("A.B.C,A.B\r\n1,2\r\n", ".".join("A" * 33) + "\r\n1\r\n"),
        ",".join(f"A{i}" for i in range(513)) + "\r\n" + "," * 512 + "\r\n",
    ],
)
def test_malformed_table_raises_an_error_without_its_cells(text):
    with pytest.raises(csv_table.InvalidTable) as caught:
        csv_table.parse_request(text)

    assert "4242" not in str(caught.value)


@given(st.text(max_size=40) | st.text('A.,"\r\n01', max_size=30))
def test_any_text_is_parsed_or_raises_invalid_table(text):
    try:
        fields = csv_table.parse_request(text)
    except csv_table.InvalidTable:
        return
    assert isinstance(fields, dict)
