"""Factories of rows in which every optional field has a value."""

from decimal import Decimal
from io import BytesIO

from django.core.files.base import ContentFile
from PIL import Image

from accounts.models import User
from centers import models as centers
from tests import factories_centers as make
from tests.factories_people import SavedCardFactory, UserFactory

ADDRESS = {
    "street1": "1600 Glenarm Place",
    "street2": "Floor 2",
    "street3": "Door C",
    "city": "Denver",
    "state": "CO",
    "postal_code": "80202",
    "country": "US",
    "latitude": 39.7433,
    "longitude": -104.9903,
    "time_zone_id": "America/Denver",
}


def make_full_center(neighborhood: centers.Neighborhood) -> centers.Center:
    center = make.CenterFactory(
        **ADDRESS,
        name="Glenarm",
        neighborhood=neighborhood,
        promo_text="First hour free",
        parking_information="In the yard.",
        is_new_location=True,
        is_new_low_price=True,
        is_after_hours_support_enabled=True,
        tax_rate=Decimal("8.31"),
    )
    make.open_every_day(center)
    make.CenterImageFactory(center=center, image__width=64, image__height=40)
    make.LandmarkFactory(center=center, description="With a clock.", type="Station")
    return center


def make_full_room(center: centers.Center) -> centers.MeetingRoom:
    return make.MeetingRoomFactory(
        center=center,
        name="Boardroom",
        rate=make_full_rate(center),
        provider="Rooms Inc",
        picture=make_picture(),
    )


def make_picture() -> ContentFile:
    written = BytesIO()
    Image.new("RGB", (64, 40)).save(written, "PNG")
    return ContentFile(written.getvalue(), name="room.png")


def make_full_rate(center: centers.Center) -> centers.Rate:
    """A rate with a flat price that is not used, but returned by the API."""
    return make.RateFactory(
        center=center,
        flat_rate=Decimal(50),
        setup_fee=Decimal("12.50"),
        bill_in_blocks=True,
        description="By the hour.",
    )


def make_full_service(center: centers.Center) -> centers.Service:
    return make.ServiceFactory(
        center=center,
        name="Projector",
        description="Very bright.",
        rate=make_full_rate(center),
        minimum_booking=1,
        needs_duration=True,
        needs_quantity=True,
    )


def make_full_user(email: str) -> User:
    user = UserFactory(
        email=email,
        company_name="Engines Ltd",
        phone_number="+1 555 0100",
        thumbnail="accounts/portrait.png",
    )
    SavedCardFactory(
        user=user,
        company_name="Engines Ltd",
        **{name: value for name, value in ADDRESS.items() if name != "country"},
    )
    return user
