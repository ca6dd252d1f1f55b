"""Workbooks that LibreOffice and Gnumeric wrote. See tests/fixtures/spreadsheets."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

from centers.models import Center, Closure, MeetingRoom, Rate
from reservations.models import PromoCode
from tests.factories_centers import CenterFactory, ResourceTypeFactory, ServiceTypeFactory
from tests.imports import get_errors, load

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("workbooks_in_process"),
    # Of workbooks by Gnumeric.
    pytest.mark.filterwarnings("ignore:Workbook contains no default style"),
]

FOLDER = Path(__file__).parents[1] / "fixtures" / "spreadsheets"


def read(program):
    return (FOLDER / f"{program}.xlsx").read_bytes()


@pytest.mark.parametrize("program", ["libreoffice", "gnumeric"])
def test_workbook_of_a_program_means_what_it_displays(program):
    content = read(program)
    ResourceTypeFactory(name="Board room")
    for name in ("centers", "rates", "rooms", "closures", "promo-codes"):
        load(name, content)

    centers = Center.objects.order_by("name").values_list("postal_code", "tax_rate", "longitude")
    assert list(centers) == [
        ("02116", Decimal("6.25"), -71.0745),
        ("80202-1234", Decimal(8), -105.001),
    ]
    prices = Rate.objects.order_by("hourly").values_list("name", "hourly", "full_day")
    assert list(prices) == [
        ("Standard", Decimal("45.50"), Decimal("1250.50")),
        ("Large", Decimal(60), Decimal(300)),
    ]
    # The center and the rate are cells that are merged over three rows.
    rooms = MeetingRoom.objects.order_by("capacity")
    assert list(rooms.values_list("center__name", "name", "rate__name")) == [
        ("Back Bay", "101", "Standard"),
        ("Back Bay", "1-3", "Standard"),
        ("Back Bay", "00007", "Standard"),
    ]
    closure = Closure.objects.get()
    assert closure.starts_at == dt.datetime(2027, 12, 24, 5, tzinfo=dt.UTC)
    assert closure.ends_at == dt.datetime(2027, 12, 27, 14, 30, tzinfo=dt.UTC)
    code = PromoCode.objects.get()
    assert (code.percent, code.is_active) == (Decimal(50), True)
    assert (code.meeting_from, code.meeting_until) == (dt.date(2027, 1, 2), dt.date(2027, 2, 3))


SERVICES = {2: "2026-01-03", 3: "09:30", 4: "True", 5: "1000000000000000", 6: "formula"}
TYPED = {
    3: "09:30",
    4: "True",
    5: "1000000000000000",
    6: "0.08",
    7: "2027-01-02",
    8: '5 in the format "',
    11: "formula",
}


@pytest.mark.parametrize(
    ("program", "seen"),
    [
        *(("libreoffice", SERVICES), ("gnumeric", SERVICES)),
        *(("libreoffice-typed", TYPED), ("gnumeric-typed", TYPED)),
    ],
)
def test_text_that_a_program_changed_is_refused_with_row_column_and_what_was_seen(program, seen):
    CenterFactory(name="Back Bay")
    ServiceTypeFactory(name="Catering")

    errors = get_errors("services", read(program))

    assert [(row, column) for row, column, _ in errors] == [(row, "name") for row in seen]
    for row, _, message in errors:
        assert seen[row] in message
        assert "format the column as text" in message or "formula" in message
