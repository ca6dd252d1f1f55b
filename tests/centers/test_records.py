"""Records of centers: what responses show of them, whatever the settings."""

import datetime as dt

import pytest
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from centers import search
from centers.serializers import CenterInfoFull
from roombook.api.serializers import RenderContext
from tests import factories_centers as make
from tests.factories_people import UserFactory


@pytest.fixture
def user(db):
    return UserFactory()


def load(user):
    return search.search_locations(user).centers


@pytest.mark.parametrize(
    ("public_url", "media_url", "expected"),
    [
        ("https://rooms.example.com/", "/media/", "https://rooms.example.com/media/"),
        ("", "/media/", "http://testserver/media/"),
        ("https://rooms.example.com", "https://pictures.example.com/", "https://pictures."),
    ],
)
def test_image_urls_are_absolute_wherever_images_are_stored(
    user, settings, public_url, media_url, expected
):
    settings.PUBLIC_URL, settings.MEDIA_URL = public_url, media_url
    image = make.CenterImageFactory(center=make.make_center_with_room())
    (center,) = load(user)

    rendered = CenterInfoFull.render(center, RenderContext(RequestFactory().get("/")))

    assert rendered["Image"] == rendered["Images"][0]
    for url, name in (("FullUrl", image.image.name), ("ThumbnailUrl", image.thumbnail.name)):
        assert rendered["Image"][url].startswith(expected)
        assert rendered["Image"][url].endswith(name)


def test_a_center_with_little_has_only_the_fields_that_have_a_value(user):
    center = make.make_center_with_room(
        name="Bare", city="", state="", latitude=None, longitude=None
    )
    center.opening_hours.all().delete()
    make.ServiceFactory(center=center, rate=None, name="On request")
    make.ServiceFactory(center=center, is_active=False, name="No longer offered")
    make.MeetingRoomFactory(center=center, rate=None)

    (record,) = load(user)
    rendered = CenterInfoFull.render(record, RenderContext())

    assert not {"Image", "DistanceFromQuery", "CenterHoursConcatenated"} & set(rendered)
    assert rendered["CenterHours"] == rendered["Images"] == rendered["Landmarks"] == []
    assert not {"City", "Latitude"} & set(rendered["Address"])
    (room,) = rendered["MeetingRooms"]
    (service,) = room["AvailableServices"]
    assert service["Name"] == "On request"
    assert not {"Rate", "RateDescription"} & set(service)


def test_room_has_its_provider_and_its_rate_its_setup_fee(user):
    """What the examples of the contract, which have every other field, leave out."""
    rate = make.RateFactory(setup_fee=20)
    make.MeetingRoomFactory(center=rate.center, rate=rate, provider="Glenarm Ltd")

    (room,) = CenterInfoFull.render(load(user)[0], RenderContext())["MeetingRooms"]

    assert (room["Provider"], room["Rate"]["SetupFee"]) == ("Glenarm Ltd", 20)


# --- Special price lists --------------------------------------------------------------------------


def make_center_with_list(**fields):
    center = make.make_center_with_room()
    make.PriceListFactory(rate=center.rooms.get().rate, **fields)
    return center


def render_room(user):
    rendered = CenterInfoFull.render(load(user)[0], RenderContext())
    (room,) = rendered["MeetingRooms"]
    assert rendered["LowestRate"] == room["LowestRate"]
    return room


@pytest.mark.parametrize(
    ("fields", "lowest"),
    [
        ({"hourly": 20}, "$20.00/hour"),
        ({"hourly": 30}, "$25.00/hour"),
        ({"hourly": None, "full_day": 9}, "$25.00/hour"),
        # It has ended.
        ({"hourly": 20, "valid_until": dt.date(2020, 12, 31)}, "$25.00/hour"),
        ({"hourly": 20, "valid_until": dt.date(2020, 12, 31), "is_yearly": True}, "$20.00/hour"),
    ],
)
def test_lowest_rate_is_that_of_standard_prices_and_lists(user, fields, lowest):
    make_center_with_list(**fields)
    room = render_room(user)
    assert room["LowestRate"] == lowest
    assert room["Rate"]["Hourly"] == 25


def test_description_of_a_rate_with_lists_says_the_lowest_price(user):
    center = make_center_with_list(hourly=20)
    assert render_room(user)["Rate"]["Description"] == "from $20.00/hour"
    center.rates.update(description="By the hour")
    assert render_room(user)["Rate"]["Description"] == "By the hour"


def test_special_prices_of_all_centers_are_read_by_one_query(user):
    make.make_center_with_room()

    def count():
        with CaptureQueriesContext(connection) as queries:
            load(user)
        return len(queries)

    without_lists = count()
    for _ in range(3):
        make_center_with_list()
    assert count() == without_lists + 1
