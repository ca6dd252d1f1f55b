"""The lists of centers, rooms and rates: edits, searches and their cost."""

from decimal import Decimal

import pytest

from centers import models
from roombook.backoffice.pagination import CappedPaginator
from tests.admin_forms import form_of
from tests.backoffice.center_pages import url
from tests.backoffice.reading import list_rows
from tests.factories_centers import (
    CenterFactory,
    MeetingRoomFactory,
    RateFactory,
    make_center_with_room,
)

pytestmark = pytest.mark.django_db


def test_rate_list_saves_only_valid_prices_that_were_edited(office):
    rate, other = RateFactory(hourly=25, half_day=90), RateFactory(hourly=40)
    address = url("rate", "changelist")
    mine = {**form_of(office.get(address)), "_save": "Save"}
    for typed, message in (
        ("0", "open the rate to confirm it"),
        ("-3", "A price must not be negative."),
        ("cheap", "Enter a number."),
    ):
        refused = office.post(address, {**mine, "form-0-hourly": typed, "form-1-hourly": "41"})
        assert message in refused.text
        # Beside the field.
        assert "hourly" in refused.context["cl"].formset.forms[0].errors
    # Somebody else changed a price since the list was opened.
    models.Rate.objects.filter(pk=rate.pk).update(hourly=30)
    assert office.post(address, {**mine, "form-0-half_day": "95.50"}).status_code == 302
    rate.refresh_from_db()
    other.refresh_from_db()
    assert (rate.hourly, rate.half_day, other.hourly) == (30, Decimal("95.50"), 40)


def found(office, model, text):
    return {row.name for row in list_rows(office, f"centers.{model}", q=text)}


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


def test_unusual_search_text_does_not_break_a_list(office):
    make_center_with_room()
    for model in ("center", "meetingroom", "closure"):
        for text in ("'", "%", "\\", "\x00", "ß" * 300, " ".join("abcdefghij"), "🙂"):
            list_rows(office, f"centers.{model}", q=text)
        assert office.get(url(model, "changelist"), {"q": "\x00"}).status_code == 200


def test_center_list_counts_active_rooms(office):
    make_center_with_room(name="One")
    CenterFactory(name="None")
    three = CenterFactory(name="Three")
    MeetingRoomFactory.create_batch(3, center=three)
    MeetingRoomFactory(center=three, is_active=False)
    counts = {row.name: row.active_rooms for row in list_rows(office, "centers.center")}
    assert counts == {"One": 1, "None": 0, "Three": 3}


def test_search_is_capped_like_the_list(office, monkeypatch):
    monkeypatch.setattr(CappedPaginator, "MAX_ROWS", 3)
    center = CenterFactory()
    MeetingRoomFactory.create_batch(5, center=center)
    assert len(found(office, "meetingroom", "denver")) == 3
