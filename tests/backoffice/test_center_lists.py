"""The lists of centers, rooms and rates: edits, searches and their cost."""

import datetime as dt
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group

from accounts.models import CenterRole
from centers import models
from roombook.backoffice.pagination import CappedPaginator
from tests.admin_forms import form_of
from tests.backoffice.center_pages import url
from tests.backoffice.counting import queries_of
from tests.factories_centers import (
    CenterFactory,
    LandmarkFactory,
    MeetingRoomFactory,
    RateFactory,
    ResourceTypeFactory,
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


def test_list_rejects_changes_at_centers_with_view_permission_only(client, staff):
    mine, other = RateFactory(), RateFactory()
    manager = staff("Manager", mine.center)
    CenterRole.objects.create(
        user=manager, center=other.center, group=Group.objects.get(name="Viewer")
    )
    client.force_login(manager)
    address = url("rate", "changelist")
    data = form_of(client.get(address))
    row = next(index for index in (0, 1) if data[f"form-{index}-id"] == str(other.pk))
    refused = client.post(address, {**data, f"form-{row}-hourly": "1", "_save": "Save"})
    assert refused.status_code == 403
    other.refresh_from_db()
    assert other.hourly == 25


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


@pytest.mark.parametrize("text", ["'", "%", "\\", "\x00", "ß" * 300, " ".join("abcdefghij"), "🙂"])
@pytest.mark.parametrize("model", ["center", "meetingroom", "closure", "landmark"])
def test_unusual_search_text_does_not_break_a_list(office, model, text):
    center = make_center_with_room()
    LandmarkFactory(center=center)
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


def fill(first, last):
    """Create centers with a room, a rate and a closure each."""
    kind = ResourceTypeFactory()
    numbers = range(first, last)
    centers = [
        CenterFactory.build(name=f"Center {number}", name_folded=f"center {number:04}")
        for number in numbers
    ]
    models.Center.objects.bulk_create(centers)
    rates = models.Rate.objects.bulk_create(
        models.Rate(center=center, name="Standard", hourly=25) for center in centers
    )
    models.MeetingRoom.objects.bulk_create(
        models.MeetingRoom(
            center=rate.center, name="Room", resource_type=kind, capacity=8, rate=rate
        )
        for rate in rates
    )
    day = datetime(2027, 1, 1, tzinfo=UTC)
    models.Closure.objects.bulk_create(
        models.Closure(
            center=center, starts_at=day, ends_at=day + dt.timedelta(days=1), reason="Holiday"
        )
        for center in centers
    )


def test_lists_of_200_rows_send_no_more_queries_than_of_20(office):
    addresses = [
        f"{url(model, 'changelist')}{query}"
        for model in ("center", "meetingroom", "rate", "closure")
        for query in ("", "?q=center")
    ]
    fill(0, 20)
    few = {address: queries_of(office, address) for address in addresses}
    fill(20, 200)
    assert {address: queries_of(office, address) for address in addresses} == few
    assert max(few.values()) <= 16


def test_search_is_capped_like_the_list(office, monkeypatch):
    monkeypatch.setattr(CappedPaginator, "MAX_ROWS", 3)
    center = CenterFactory()
    MeetingRoomFactory.create_batch(5, center=center)
    assert len(found(office, "meetingroom", "denver")) == 3
