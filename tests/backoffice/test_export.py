"""Exporting tables of rows: guarded, scoped, streamed; an import takes them as they are."""

import csv
import datetime as dt
import io
import re
import zipfile
from decimal import Decimal

import pytest
from django.db import connection
from django.http import StreamingHttpResponse
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from centers.models import Center
from reservations.reports.pages import REPORTS
from roombook.backoffice.models import AuditAction, AuditEntry
from roombook.backoffice.spreadsheets import iterate_csv
from roombook.imports.resources import RESOURCES
from roombook.imports.widgets import DateTimeWidget, FloatWidget
from roombook.spreadsheets import unescape_formulas
from roombook.texts import clean_line
from tests.factories_centers import (
    CenterFactory,
    ClosureFactory,
    MeetingRoomFactory,
    NeighborhoodFactory,
    PriceListFactory,
    RateFactory,
    ResourceTypeFactory,
    ServiceFactory,
    TermsFactory,
    open_every_day,
)
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    AllowanceFactory,
    PartnerFactory,
    PaymentFactory,
    PromoCodeFactory,
    ReservationFactory,
    make_room,
)
from tests.faults.size import LONG
from tests.imports import count_rows, export_csv, export_workbook

pytestmark = pytest.mark.django_db

NEW_YEAR = dt.datetime(2027, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def everything():
    """One of all that can be exported, with what is hard to write."""
    center = CenterFactory(
        name="=cmd|'/c calc'!A1",
        promo_text="  +1 555 \r\nsecond line, with a comma; and a semicolon ",
        parking_information="'=1+1",
        neighborhood=NeighborhoodFactory(name="Río, Norte"),
        latitude=-33.8688197,
        tax_rate=Decimal("8.875"),
    )
    open_every_day(center)
    rate = RateFactory(center=center, name="@standard", hourly=Decimal("0.00"), half_day=None)
    PriceListFactory(rate=rate, name="=evening", weekdays="sat,sun", valid_from=NEW_YEAR.date())
    kind = ResourceTypeFactory(name='Board, "room"')
    room = MeetingRoomFactory(center=center, rate=rate, resource_type=kind, name="#N/A")
    ServiceFactory(center=center, name="-A'")
    center.terms = room.terms = TermsFactory(center=center, name="+flexible", change_hours=0)
    center.save()
    room.save()
    ClosureFactory(center=center, starts_at=NEW_YEAR, ends_at=NEW_YEAR + dt.timedelta(days=1))
    ClosureFactory(
        center=center, room=room, starts_at=NEW_YEAR, ends_at=NEW_YEAR + dt.timedelta(seconds=1)
    )
    code = PromoCodeFactory(valid_until=NEW_YEAR, meeting_from=NEW_YEAR.date())
    code.centers.add(center)
    code.room_types.add(kind)
    AllowanceFactory(user=UserFactory()).centers.add(center)
    return center


@pytest.mark.parametrize("name", RESOURCES)
def test_export_is_unchanged_when_imported(everything, workbooks_in_process, name):
    text = export_csv(name)

    assert text.count("\n") > 1
    assert set(count_rows(name, text.encode())) == {"unchanged"}
    assert set(count_rows(name, export_workbook(name))) == {"unchanged"}


# Text that a database and CSV can hold.
texts = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), max_size=40
) | st.sampled_from(["=1+1", "'=1", "''+", "-5", "@x", "\t=1", " =1", "\r\n", "a\r\nb", '"', ";"])


class RoundTrips(TestCase):
    @settings(max_examples=150 if LONG else 30)
    @given(name=texts.filter(clean_line), promo=texts, parking=texts)
    def test_any_text_is_imported_as_exported(self, name, promo, parking):
        center = CenterFactory(name=name, promo_text=promo, parking_information=parking)
        content = export_csv("centers").encode()

        assert count_rows("centers", content) == {"unchanged": 1}
        Center.objects.filter(pk=center.pk).delete()


@given(st.floats(-180, 180))
def test_any_coordinate_is_read_as_rendered(number):
    widget = FloatWidget()
    text = widget.render(number)

    # Workbooks have 15 digits.
    assert widget.render(widget.clean(text)) == text
    assert widget.clean(text) == pytest.approx(number, rel=1e-14)


@given(st.datetimes(dt.datetime(1000, 1, 1), timezones=st.just(dt.UTC)))  # noqa: DTZ001 (a bound)
def test_any_time_is_read_as_rendered(when):
    widget = DateTimeWidget()

    assert widget.clean(widget.render(when)) == when


def test_export_queries_do_not_grow_with_rows():
    def queries():
        with CaptureQueriesContext(connection) as captured:
            export_csv("rooms")
        return len(captured)

    MeetingRoomFactory()
    one = queries()
    MeetingRoomFactory.create_batch(20)

    assert queries() == one


ROOMS = "/admin/centers/meetingroom/"


def download(client, list_url, query="", extension="csv"):
    response = client.get(f"{list_url}export/{extension}/{query}")
    assert response.status_code == 200
    return response, response.getvalue()


def test_table_is_streamed_as_csv_with_a_byte_order_mark_and_has_the_rows_of_the_list(client):
    client.force_login(AdministratorFactory())
    room = MeetingRoomFactory(name="Aspen")
    MeetingRoomFactory(name="Birch", is_active=False)
    response, content = download(client, ROOMS, "?is_active__exact=1")

    assert isinstance(response, StreamingHttpResponse)
    assert response["Content-Disposition"].startswith('attachment; filename="rooms-')
    assert content.startswith(b"\xef\xbb\xbf")
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig")))
    assert header[:4] == ["id", "center_id", "center", "name"]
    assert [row[:4] for row in rows] == [
        [str(room.pk), str(room.center_id), room.center.name, "Aspen"]
    ]
    _, content = download(client, ROOMS, "?q=birch&o=1&p=0")
    assert (b"Birch" in content, b"Aspen" in content) == (True, False)
    assert client.get(f"{ROOMS}export/csv/?is_active__exact=x").status_code == 302


def test_exported_addresses_are_in_the_audit_log(client):
    ann, customer = AdministratorFactory(), UserFactory(email="someone@example.com")
    AllowanceFactory.create_batch(2, user=customer)
    client.force_login(ann)
    AuditEntry.objects.all().delete()

    _, content = download(client, "/admin/reservations/allowance/")
    assert b"someone@example.com" in content

    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == (ann, AuditAction.VIEW)
    assert (entry.object_id, "someone" in entry.object_name) == (customer.pk, False)


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


def test_exports_have_no_formulas(office, everything):
    # The cells of any text are those of test_any_text_is_guarded_at_any_separator_and_read_back.
    names = dict.fromkeys(("first_name", "last_name", "company_name"), TEXTS[0])
    booking = ReservationFactory(
        user=UserFactory(**names), partner=PartnerFactory(name=TEXTS[0]), room=make_room()
    )
    payment = PaymentFactory(reservation=booking, amount=50, reference=TEXTS[0], at=booking.start)
    payment.refunds.create(amount=5, created_at=booking.start, reason=TEXTS[0])
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
