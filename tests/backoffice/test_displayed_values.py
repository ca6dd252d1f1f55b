"""What a cell of a workbook means: value and number format in, text or a refusal out."""

import datetime as dt

import pytest

from roombook.imports.displayed_values import CellKind, read_value

DAY = dt.datetime(2026, 1, 3)  # noqa: DTZ001 (workbooks know of no time zones)
NINE_THIRTY = dt.datetime(2026, 1, 3, 9, 30)  # noqa: DTZ001
ZIP_4 = r"00000\-0000"
ACCOUNTING = '_-* #,##0.00\\ "$"_-;\\-* #,##0.00\\ "$"_-;_-* "-"??\\ "$"_-;_-@_-'
TEXT, NUMBER, PERCENT, BOOLEAN, TIME = CellKind
# None: refused, with what is stored, the format, and how to repair it.
CASES = {
    TEXT: [
        *((101, "General", "101"), (101, "@", "101"), (-5, "General", "-5"), (0, "0", "0")),
        *((2116, "00000", "02116"), (802021234, ZIP_4, "80202-1234"), (7, '"Room "0', "Room 7")),
        *((0, "#", None), (0, "0;-0;;@", None), (12, "000-000", "000-012"), (5, "0_);(0)", "5")),
        *((0.08, "0%", "8%"), (0.085, "0%", None), (0.08, "0.00%", None), (12.4, "0", None)),
        *((49301234567, "General", "49301234567"), (493012345678, "General", None)),
        *((493012345678, "0", "493012345678"), (10**15, "0", None), (10**15, "0.00E+00", None)),
        *((1234, "#,##0", None), (0.5, "# ?/?", None), (5, "[<9]0;00", None), (5, "[Red]0", "5")),
        *((-5, "0;0", None), (-5, r"0;\-0", "-5"), (-5, "0;[Red]0", None), (5, ";;;", None)),
        *((True, "General", None), (float("nan"), "0", None), (DAY, "yyyy-mm-dd", None)),
    ],
    NUMBER: [
        *((12.5, "General", "12.5"), (12.5, "@", "12.5"), (1250.5, "#,##0.00", "1250.5")),
        *((1250.5, "[$$-409]#,##0.00", "1250.5"), (45, '0\\ "USD"', "45"), (0, ACCOUNTING, "0")),
        *((1250.5, ACCOUNTING, "1250.5"), (-5, ACCOUNTING, "-5"), (-5, "0_);(0)", "-5")),
        *((5, '0 "€"', None), (5, '0" h"', None), (-5, "0;0", None), (-5, "0;0-", "-5")),
        *((7.6, "0", None), (12.345, "0.00", None), (1250, "0,", None), (0.3, "0.00", "0.3")),
        *((150000, "0.0E+00", "150000"), (123456, "0.00E+00", None), (0.5, "0%", None)),
        *((float("inf"), "0", None), (True, "General", None), (DAY, "d/m/yyyy", None)),
    ],
    PERCENT: [
        *((0.08, "0%", "8"), (0.08, r"0\ %", "8"), (0.0881, "0.00%", "8.81"), (1, "0%", "100")),
        *((0.0875, "%0.00", "8.75"), (8, "General", "8"), (8, '0"%"', "8"), (0.29, "0%", "29")),
        *((0.08875, "0%", None), (8, '0"‰"', None), (8, "$0", None), (DAY, "0%", None)),
        *((0.08, '0%" VAT"', None), (0.0008, "0%%", None)),
    ],
    BOOLEAN: [(False, '"TRUE";"TRUE";"FALSE"', "false"), (1, "0", "1"), (1, '"yes";"no"', None)],
    TIME: [
        *((DAY, "d/m/yyyy", "2026-01-03T00:00"), (DAY, "d-mmm", None), (DAY, "mmm-yy", None)),
        *((DAY, '"d"m"y"', None), (DAY.date(), "d.m.yy", "2026-01-03"), (46025, "General", None)),
        *((NINE_THIRTY, "yyyy-mm-dd hh:mm", "2026-01-03T09:30"), (NINE_THIRTY, "d.m.yyyy", None)),
        *((NINE_THIRTY.replace(second=5), "d/m/yy h:mm", None), (dt.time(9, 30), "h:mm", None)),
    ],
}


@pytest.mark.parametrize(
    ("kind", "value", "number_format", "expected"),
    [(kind, *case) for kind, cases in CASES.items() for case in cases],
)
def test_cell_means_what_the_sheet_displays_or_is_refused(kind, value, number_format, expected):
    if expected is not None:
        assert read_value(value, number_format, kind) == expected
        return
    with pytest.raises(ValueError, match="The workbook has") as refused:
        read_value(value, number_format, kind)
    assert f'{value} in the format "{number_format}" here: {kind.value}.' in str(refused.value)


def test_currency_of_the_deployment_is_accepted(settings):
    settings.CURRENCY = "CAD"
    for number_format in ("$0.00", '0.00 "CAD"', "[$CA$]0.00"):
        assert read_value(5.5, number_format, NUMBER) == "5.5"
    settings.CURRENCY, settings.LOCALE = "EUR", "de_DE"
    assert read_value(5.5, "0.00\xa0[$€-407]", NUMBER) == "5.5"
    with pytest.raises(ValueError, match=r"\$0"):
        read_value(5.5, "$0.00", NUMBER)
