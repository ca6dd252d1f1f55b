"""A filter that cannot be read lists and exports nothing, and says so, in every list."""

import pytest
from django.urls import reverse

from reservations.desk.forms import LocalTimeField
from roombook.backoffice import audit_log
from roombook.backoffice.widgets import TimeTextInput
from roombook.dates import read_time_of_day
from tests.backoffice.reading import list_rows, messages_of
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import make_booking

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

UNREADABLE = ["yesterday", "31/3/2027", "9999-12-31"]
LISTS = {
    "reservations_reservation": ("start_from", "start_to", "when"),
    "payments_payment": ("created_at_from", "made", "gateway", "owed"),
    "payments_ledgerline": ("account", "day_from", "day_to"),
    "payments_refund": ("created_at_to", "made"),
    "payments_dispute": ("opened_at_from",),
    "payments_unknownpayment": ("found_at_from",),
    "reservations_receipt": ("issued_at_from",),
    "accounts_outboxmessage": ("created_at_from",),
    "centers_closure": ("starts_at_from", "starts_at__gte"),
    "reservations_promocode": ("valid_until__gte",),
    "payments_savedcard": ("gateway",),
    "backoffice_auditentry": ("timestamp_from", "timestamp_to", "what"),
}


@pytest.mark.parametrize("name", LISTS)
def test_filter_that_cannot_be_read_lists_and_exports_nothing(client, name):
    client.force_login(AdministratorFactory())
    audit_log.record_change(make_booking(), {}, by=None, note="Seen")

    for parameter in LISTS[name]:
        # Django's own filters compare with any day.
        for value in UNREADABLE[:-1] if "__" in parameter else UNREADABLE:
            listed = list_rows(client, name.replace("_", "."), **{parameter: value})
            assert listed == [], (parameter, value)
    page = client.get(reverse(f"admin:{name}_changelist"), {parameter: UNREADABLE[0]})
    assert "A filter cannot be read, so nothing is listed" in messages_of(page)[0][1]
    if name in {"reservations_reservation", "payments_payment", "payments_refund"}:
        export = reverse(f"admin:{name}_list_export", args=["csv"])
        assert client.get(export, {parameter: UNREADABLE[0]}).status_code == 302


def test_filters_that_can_be_read_list_what_they_say(office):
    booking = make_booking()
    for query, found in (
        *(({"when": each}, [booking]) for each in ("", "upcoming")),
        *(({"start_to": each}, [booking]) for each in ("", "3/4/2027", "3/4/27")),
        ({"start_to": "2027-02-01"}, []),
    ):
        assert list_rows(office, "reservations.reservation", **query) == found, query


def test_page_with_a_day_that_cannot_be_read_says_so_and_shows_nothing(office):
    booking = make_booking()
    shown = str(reverse("admin:reservations_reservation_change", args=[booking.pk]))
    for page in ("reservations_today", "reservations_timeline"):
        url = reverse(f"admin:{page}")
        local = booking.start.astimezone(booking.room.center.zone)
        assert shown in office.get(url, {"date": f"{local:%m/%d/%Y}"}).text
        for value in UNREADABLE:
            text = office.get(url, {"date": value}).text
            assert shown not in text, (page, value)
            assert 'value="' + value in text, (page, value)


def test_times_are_read_as_people_type_them():
    read = {each: each for each in ("24:00", "13pm", "noon", "9:3", "12345", "")}
    read |= {"9": "09:00", "930": "09:30", "9:30": "09:30", "0930": "09:30", "130": "01:30"}
    read |= {"1pm": "13:00", "1:30 PM": "13:30", "12 a.m.": "00:00", "12p": "12:00"}
    assert {text: read_time_of_day(text) for text in read} == read

    assert TimeTextInput().value_from_datadict({"closes": "24:00"}, {}, "closes") == "00:00"
    field = LocalTimeField()
    for text, expected in {"24:00": "2027-03-05 00:00", "1pm": "2027-03-04 13:00"}.items():
        data = {"at_0": "3/4/2027", "at_1": text}
        value = field.clean(field.widget.value_from_datadict(data, {}, "at"))
        assert f"{value:%Y-%m-%d %H:%M}" == expected
