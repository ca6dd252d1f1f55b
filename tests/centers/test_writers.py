"""The fast path of centers says what the serializers say, of the same rows and of the models."""

import json
from decimal import Decimal

import pytest
from django.test import RequestFactory
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from centers.models import Center
from centers.records import CenterRecord
from centers.search import locations
from centers.serializers import CenterInfoFull
from roombook.api.serializers import ContractSerializer
from tests import factories_centers as make
from tests.factories_people import UserFactory
from tests.world import World

TEXT = st.sampled_from(["", "Plain", "Zoë's “loft” </b>", "'=1+1"])
PRICE = st.none() | st.decimals(0, 9_999, places=2)
RATES = st.fixed_dictionaries(
    {
        "is_flat_rate": st.booleans(),
        "flat_rate": PRICE,
        "hourly": PRICE,
        "half_day": PRICE,
        "full_day": PRICE,
        "setup_fee": PRICE,
        "bill_in_blocks": st.booleans(),
        "description": TEXT,
    }
)


@pytest.fixture
def user(db):
    return UserFactory()


def assert_told_alike(user, **context):
    """As JSON, so that the order of the names counts too."""
    found = locations.search_locations(user).centers
    plain = Center.objects.with_details().for_user(user).in_bulk()
    for shown in found:
        assert isinstance(shown, CenterRecord)
        fast = written(CenterInfoFull.render(shown, context))
        assert fast == written(plain_fields(shown, context))
        assert fast == written(CenterInfoFull.render(plain[shown.id], context))
    return found


def plain_fields(shown, context):
    serializer = CenterInfoFull.get_shared()
    serializer._context = dict(context)
    return ContractSerializer.to_representation(serializer, shown)


def written(fields):
    return json.dumps(fields, allow_nan=False)


@pytest.mark.time_machine("2027-03-01T15:00:00Z", tick=False)
def test_a_center_with_everything_and_centers_with_little(client, db):
    world = World(client)
    bare = make.make_center_with_room(name="Bare", city="", state="", latitude=None, longitude=None)
    bare.opening_hours.all().delete()
    make.ServiceFactory(center=world.center, rate=None, name="On request")
    make.ServiceFactory(center=world.center, is_active=False, name="No more")
    make.MeetingRoomFactory(center=world.center, rate=make.FlatRateFactory(center=world.center))
    make.MeetingRoomFactory(center=world.center, rate=None)
    make.CenterImageFactory(center=world.center, position=9)

    assert len(assert_told_alike(world.ada)) == 3
    request = RequestFactory().get("/", headers={"Host": "testserver"})
    assert_told_alike(world.ada, request=request)
    assert_told_alike(world.bob, request=request)


def test_addresses_of_pictures_wherever_they_are_kept(user, settings):
    make.CenterImageFactory(center=make.make_center_with_room())
    for public, media in (
        ("https://rooms.example.com", "/media/"),
        ("", "https://pictures.example.com/"),
        ("https://rooms.example.com", "https://pictures.example.com/"),
    ):
        settings.PUBLIC_URL, settings.MEDIA_URL = public, media
        assert_told_alike(user, request=RequestFactory().get("/"))


def test_money_in_other_words(user, settings):
    make.make_center_with_room()
    for currency, locale in (("USD", "en_US"), ("EUR", "de_DE"), ("JPY", "ja_JP")):
        settings.CURRENCY, settings.LOCALE = currency, locale
        assert_told_alike(user)


@hypothesis_settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rooms=st.lists(st.tuples(RATES, TEXT, st.booleans()), max_size=3),
    services=st.lists(st.tuples(st.none() | RATES, TEXT), max_size=3),
    texts=st.tuples(TEXT, TEXT, TEXT),
    place=st.none() | st.tuples(st.floats(-90, 90), st.floats(-180, 180)),
)
def test_any_center(user, rooms, services, texts, place):
    street, promo, parking = texts
    center = make.make_center_with_room(
        street2=street,
        promo_text=promo,
        parking_information=parking,
        latitude=place[0] if place else None,
        longitude=place[1] if place else None,
    )
    try:
        for rate, provider, is_live in rooms:
            if rate["is_flat_rate"] and rate["flat_rate"] is None:
                rate["flat_rate"] = Decimal(5)
            make.MeetingRoomFactory(
                center=center,
                rate=make.RateFactory(center=center, **rate),
                provider=provider,
                is_live_inventory=is_live,
            )
        for rate, description in services:
            make.ServiceFactory(
                center=center,
                rate=rate and make.RateFactory(center=center, **rate),
                description=description,
            )
        assert_told_alike(user)
    finally:
        center.rooms.all().delete()
        center.services.all().delete()
        center.delete()
