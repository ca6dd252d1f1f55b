"""The lists of centers, rooms and rates: edits, searches and their cost."""

from decimal import Decimal

import pytest

from centers import models
from roombook.backoffice.pagination import CappedPaginator
from tests.admin_forms import form_of
from tests.backoffice.center_pages import url
from tests.factories_centers import (
    CenterFactory,
    LandmarkFactory,
    MeetingRoomFactory,
    RateFactory,
    make_center_with_room,
)

pytestmark = pytest.mark.django_db


# --- Concurrent edits ----------------------------------------------------------------------------


def test_concurrent_edits_of_the_rate_list_are_kept(office):
    rate = RateFactory(hourly=Decimal(25), half_day=Decimal(90))
    address = url("rate", "changelist")
    mine = form_of(office.get(address))
    models.Rate.objects.filter(pk=rate.pk).update(hourly=Decimal(30))
    saved = office.post(address, {**mine, "form-0-half_day": "95", "_save": "Save"})
    assert saved.status_code == 302
    rate.refresh_from_db()
    assert (rate.hourly, rate.half_day) == (30, 95)


# --- Lists ----------------------------------------------------------------------------------------


def test_rate_list_saves_prices(office):
    rate, other = RateFactory(hourly=Decimal(25)), RateFactory(hourly=Decimal(40))
    address = url("rate", "changelist")
    data = {**form_of(office.get(address)), "form-0-hourly": "27.50", "_save": "Save"}
    assert office.post(address, data).status_code == 302
    rate.refresh_from_db()
    other.refresh_from_db()
    assert (rate.hourly, other.hourly) == (Decimal("27.50"), 40)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("0", "This makes bookings free. Open the rate"),
        ("-3", "A price must not be negative."),
        ("cheap", "Enter a number."),
    ],
)
def test_rate_list_rejects_invalid_prices(office, typed, message):
    rate = RateFactory(hourly=Decimal(25))
    address = url("rate", "changelist")
    data = {**form_of(office.get(address)), "form-0-hourly": typed, "_save": "Save"}
    assert message in office.post(address, data).content.decode()
    rate.refresh_from_db()
    assert rate.hourly == 25


def test_room_list_saves_changes(office):
    room = MeetingRoomFactory(capacity=8)
    address = url("meetingroom", "changelist")
    data = {**form_of(office.get(address)), "form-0-capacity": "10", "_save": "Save"}
    assert office.post(address, data).status_code == 302
    room.refresh_from_db()
    assert room.capacity == 10
    data["form-0-capacity"] = "0"
    assert office.post(address, data).status_code == 200


def found(office, model, text):
    page = office.get(url(model, "changelist"), {"q": text})
    return {row.name for row in page.context["cl"].result_list}


def test_room_search_finds_name_center_or_both(office):
    denver = CenterFactory(name="Glenarm", city="Denver")
    boston = CenterFactory(name="Back Bay", city="Boston", state="MA")
    for center in (denver, boston):
        MeetingRoomFactory(center=center, name=f"Aspen of {center.name}")
        MeetingRoomFactory(center=center, name=f"Juniper of {center.name}")
    assert found(office, "meetingroom", "aspen") == {"Aspen of Glenarm", "Aspen of Back Bay"}
    assert found(office, "meetingroom", "Denver") == {"Aspen of Glenarm", "Juniper of Glenarm"}
    assert found(office, "meetingroom", "aspen colorado") == {"Aspen of Glenarm"}
    assert found(office, "meetingroom", "boston JUNIPER") == {"Juniper of Back Bay"}
    assert found(office, "meetingroom", "aspen nowhere") == set()
    assert len(found(office, "meetingroom", "")) == 4


@pytest.mark.parametrize("model", ["center", "meetingroom", "closure", "landmark"])
def test_unusual_search_text_does_not_break_a_list(office, model):
    LandmarkFactory(center=make_center_with_room())
    for text in ("'", "%", "\\", "\x00", "ß" * 300, " ".join("abcdefghij"), "🙂"):
        assert office.get(url(model, "changelist"), {"q": text}).status_code == 200


def test_center_list_counts_active_rooms(office):
    make_center_with_room(name="One")
    CenterFactory(name="None")
    three = CenterFactory(name="Three")
    MeetingRoomFactory.create_batch(3, center=three)
    MeetingRoomFactory(center=three, is_active=False)
    page = office.get(url("center", "changelist"))
    counts = {row.name: row.active_rooms for row in page.context["cl"].result_list}
    assert counts == {"One": 1, "None": 0, "Three": 3}


def test_search_is_capped_like_the_list(office, monkeypatch):
    monkeypatch.setattr(CappedPaginator, "MAX_ROWS", 3)
    center = CenterFactory()
    MeetingRoomFactory.create_batch(5, center=center)
    assert len(found(office, "meetingroom", "denver")) == 3
