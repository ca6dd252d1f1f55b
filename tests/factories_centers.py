"""Factories of centers, rooms and prices.

`CenterFactory` makes an empty center, `make_center_with_room` one that can be found and booked.
"""

import datetime as dt
from datetime import time
from decimal import Decimal

import factory
from factory.django import DjangoModelFactory

from centers import models


class NeighborhoodFactory(DjangoModelFactory):
    class Meta:
        model = models.Neighborhood

    name = factory.Sequence(lambda n: f"Quarter {n}")
    city = "Denver"
    state = "CO"


class ResourceTypeFactory(DjangoModelFactory):
    class Meta:
        model = models.ResourceType

    name = factory.Sequence(lambda n: f"Meeting room {n}")
    position = factory.Sequence(lambda n: n)


class ServiceTypeFactory(ResourceTypeFactory):
    name = factory.Sequence(lambda n: f"Service type {n}")
    is_service = True


class CenterFactory(DjangoModelFactory):
    """Denver: UTC-7 in winter, UTC-6 in summer."""

    class Meta:
        model = models.Center
        skip_postgeneration_save = True

    name = factory.Sequence(lambda n: f"Center {n}")
    street1 = "1600 Glenarm Place"
    city = "Denver"
    state = "CO"
    postal_code = "80202"
    country = "US"
    latitude = 39.7433
    longitude = -104.9903
    time_zone_id = "America/Denver"


class OpeningHoursFactory(DjangoModelFactory):
    class Meta:
        model = models.OpeningHours

    center = factory.SubFactory(CenterFactory)
    weekday = 0
    opens = time(8, 30)
    closes = time(17)


class ClosureFactory(DjangoModelFactory):
    class Meta:
        model = models.Closure

    center = factory.SubFactory(CenterFactory)
    reason = "Holiday"


class RateFactory(DjangoModelFactory):
    """All tiers: 25 an hour, 90 a half day, 160 a day."""

    class Meta:
        model = models.Rate

    center = factory.SubFactory(CenterFactory)
    name = factory.Sequence(lambda n: f"Rate {n}")
    hourly = Decimal("25.00")
    half_day = Decimal("90.00")
    full_day = Decimal("160.00")


class PriceListFactory(DjangoModelFactory):
    """Evenings, from 18:00: 30 an hour."""

    class Meta:
        model = models.PriceList

    rate = factory.SubFactory(RateFactory)
    name = "Evening"
    starts = dt.time(18)
    hourly = Decimal("30.00")


class TermsFactory(DjangoModelFactory):
    """All back until a week before, half until two days before."""

    class Meta:
        model = models.Terms

    center = factory.SubFactory(CenterFactory)
    name = "Flexible"
    steps = "168: 100; 48: 50"


class FlatRateFactory(RateFactory):
    is_flat_rate = True
    flat_rate = Decimal("50.00")
    hourly = half_day = full_day = None


class MeetingRoomFactory(DjangoModelFactory):
    class Meta:
        model = models.MeetingRoom

    center = factory.SubFactory(CenterFactory)
    name = factory.Sequence(lambda n: f"Room {n}")
    resource_type = factory.SubFactory(ResourceTypeFactory)
    capacity = 8
    rate = factory.SubFactory(RateFactory, center=factory.SelfAttribute("..center"))


class ServiceFactory(DjangoModelFactory):
    class Meta:
        model = models.Service

    center = factory.SubFactory(CenterFactory)
    resource_type = factory.SubFactory(ServiceTypeFactory)
    name = factory.Sequence(lambda n: f"Service {n}")
    rate = factory.SubFactory(
        FlatRateFactory, center=factory.SelfAttribute("..center"), flat_rate=Decimal("15.00")
    )


class CenterImageFactory(DjangoModelFactory):
    class Meta:
        model = models.CenterImage

    center = factory.SubFactory(CenterFactory)
    image = factory.django.ImageField(width=640, height=400)


class LandmarkFactory(DjangoModelFactory):
    class Meta:
        model = models.Landmark

    center = factory.SubFactory(CenterFactory)
    name = factory.Sequence(lambda n: f"Landmark {n}")


class FavoriteFactory(DjangoModelFactory):
    class Meta:
        model = models.Favorite

    center = factory.SubFactory(CenterFactory)


def open_every_day(center: models.Center, opens: time = time(8), closes: time = time(18)) -> None:
    """Add the same opening hours on every day of the week."""
    models.OpeningHours.objects.bulk_create(
        models.OpeningHours(center=center, weekday=weekday, opens=opens, closes=closes)
        for weekday in range(7)
    )


def make_center_with_room(**fields: object) -> models.Center:
    """A center that a search finds: one room for eight at 25 an hour, open 8 to 18 every day."""
    center = CenterFactory(**fields)
    MeetingRoomFactory(center=center, name="Boardroom")
    open_every_day(center)
    return center
