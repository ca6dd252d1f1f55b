"""No exported file has a cell that a spreadsheet runs as a formula, whatever customers enter."""

import csv
import datetime as dt
import io
import re
import zipfile
from decimal import Decimal

import pytest
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from payments.models import Refund
from reservations.models.status import Status
from reservations.reports.pages import REPORTS
from roombook.backoffice.spreadsheets import iterate_csv
from roombook.imports.resources import RESOURCES
from roombook.spreadsheets import unescape_formulas
from tests.factories_centers import CenterFactory, ServiceFactory
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    AllowanceFactory,
    PartnerFactory,
    PaymentFactory,
    PromoCodeFactory,
    ReservationFactory,
    make_room,
)
from tests.imports import export_csv, export_workbook

pytestmark = pytest.mark.django_db

TEXTS = [
    '=HYPERLINK("https://evil.example/","Ada")',
    "=1+1",
    "+1",
    "-1",
    "@x",
    "\tx",
    "\rx",
    "\uff1d1",
    *("Röhm;=1+1;x", "Röhm,=1+1", "Röhm|@x", "Röhm\t+1", "Röhm\n-1", "Röhm; =1+1"),
    *('Röhm;"=1+1"', "Röhm;\u200b=1+1", ' "=1+1'),
    "#N/A",
]
SEPARATORS_OF_PROGRAMS = ",;\t|"
# Whatever stands before a formula and may be skipped; an apostrophe may not.
FORMULA = re.compile(r'["\s\u200b\x07]*([=+\-@\uff1d]|#N/A$)')
LISTS = {"reservations_reservation": "?when=all", "payments_payment": "", "payments_refund": ""}
NUMBER = re.compile(r"-?\d+(\.\d+)?$")


def create_rows(text, number):
    user = UserFactory(first_name=text, last_name=text, company_name=text)
    room = make_room(center=CenterFactory(name=text, promo_text=text), name=text)
    ServiceFactory(center=room.center, name=text)
    AllowanceFactory(user=user, description=text).centers.add(room.center)
    PromoCodeFactory(code=f"CODE{number}", description=text).centers.add(room.center)
    now = timezone.now()
    reservation = ReservationFactory(
        user=user,
        room=room,
        start=now - dt.timedelta(hours=4),
        status=Status.COMPLETED,
        total_cost=Decimal(50),
        booked_at=now,
        partner=PartnerFactory(name=text),
    )
    payment = PaymentFactory(reservation=reservation, reference=text, at=now)
    Refund.objects.create(
        payment=payment, amount=Decimal(5), state="done", created_at=now, done_at=now, reason=text
    )


def find_formulas_in_workbook(content):
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        sheets = [name for name in book.namelist() if name.startswith("xl/worksheets/")]
        assert sheets
        return [cell for name in sheets for cell in re.findall(rb"<f[ >].*?</f>", book.read(name))]


def find_formulas_in_csv(content):
    """Cells that a program would run that splits at any of the separators, and knows no quotes."""
    text = content.decode("utf-8-sig")
    found = []
    for separator in SEPARATORS_OF_PROGRAMS:
        for lines in (io.StringIO(text, newline=""), re.split("[\r\n]", text)):
            for row in csv.reader(lines, delimiter=separator):
                found += [cell for cell in row if FORMULA.match(cell)]
    return [cell for cell in found if not NUMBER.match(cell)]


@given(st.text("'\"=+-@\t\r\n,;| a1\uff1d\x07\u200b#N/A", max_size=9) | st.sampled_from(TEXTS))
def test_any_text_is_guarded_at_any_separator_and_read_back(text):
    content = "".join(iterate_csv([text], [[text, Decimal("-1.50")]]))

    assert find_formulas_in_csv(content.encode()) == []
    *_, (cell, number) = csv.reader(io.StringIO(content, newline=""))
    assert (unescape_formulas(cell), number) == (text, "-1.50")
    assert content.count('"') >= 4 or not re.search("[,;|\t]", text)


def get_export_urls():
    for name, query in LISTS.items():
        for extension in ("csv", "xlsx"):
            yield reverse(f"admin:{name}_list_export", args=[extension]) + query
    for name in REPORTS:
        yield reverse("admin:reservations_report", args=[name]) + "?format=xlsx"
    yield reverse("admin:reservations_report", args=["revenue"]) + "?format=csv&table=center"


def test_exports_have_no_formulas(office):
    for number, text in enumerate(TEXTS):
        create_rows(text, number)
    with_text = 0
    for url in get_export_urls():
        response = office.get(url)
        assert response.status_code == 200, url
        content = response.getvalue()
        find = find_formulas_in_workbook if "xlsx" in url else find_formulas_in_csv
        assert find(content) == [], url
        with_text += "xlsx" not in url and b"HYPERLINK" in content
    assert with_text >= len(LISTS)
    for name in RESOURCES:
        assert find_formulas_in_csv(export_csv(name).encode()) == []
        assert find_formulas_in_workbook(export_workbook(name)) == []
