from datetime import UTC, datetime, time

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from tests.factories_centers import (
    CenterFactory,
    ClosureFactory,
    MeetingRoomFactory,
    NeighborhoodFactory,
    OpeningHoursFactory,
    RateFactory,
    ResourceTypeFactory,
    ServiceFactory,
    ServiceTypeFactory,
)

pytestmark = pytest.mark.django_db

NEW_YEAR, LATER = datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC)


# --- Address --------------------------------------------------------------------------------------


def test_center_without_time_zone_and_coordinates_is_rejected():
    with pytest.raises(IntegrityError), transaction.atomic():
        CenterFactory(time_zone_id="", latitude=None, longitude=None)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"country": "Atlantis"}, "country"),
        ({"time_zone_id": "America/Atlantis"}, "time_zone_id"),
        ({"time_zone_id": "", "latitude": None, "longitude": None}, "time_zone_id"),
        ({"longitude": None}, "longitude"),
        ({"latitude": 91}, "latitude"),
        ({"tax_rate": 101}, "tax_rate"),
    ],
)
def test_invalid_center_is_rejected_by_field(fields, wrong):
    center = CenterFactory.build(**fields)
    with pytest.raises(ValidationError) as refusal:
        center.full_clean()
    assert wrong in refusal.value.message_dict


def test_search_columns_are_saved_with_update_fields():
    center = CenterFactory()
    center.latitude, center.city = 40.0, "Fort Collins"
    center.save(update_fields=["latitude", "city"])
    center.refresh_from_db()
    assert center.z == pytest.approx(0.6427876)
    assert center.city_folded == "fort collins"
    center.rank = 5
    center.save(update_fields=["rank"])
    assert "fort collins" in center.search_text


# --- What the database refuses --------------------------------------------------------------------


NONSENSE = {
    "half a place": lambda: CenterFactory(longitude=None),
    "off the map": lambda: CenterFactory(latitude=91),
    "tax above all": lambda: CenterFactory(tax_rate=101),
    "negative price": lambda: RateFactory(hourly=-1),
    "negative fee": lambda: RateFactory(setup_fee=-1),
    "room for nobody": lambda: MeetingRoomFactory(capacity=0),
    "no grid": lambda: MeetingRoomFactory(grid_minutes=0),
    "shortest above longest": lambda: MeetingRoomFactory(minimum_minutes=60, maximum_minutes=30),
    "closes as it opens": lambda: OpeningHoursFactory(opens=time(9), closes=time(9)),
    "eighth weekday": lambda: OpeningHoursFactory(weekday=7),
    "closure of no length": lambda: ClosureFactory(starts_at=NEW_YEAR, ends_at=NEW_YEAR),
    "neighborhood twice": lambda: [NeighborhoodFactory(name=name) for name in ("LoDo", "LODO")],
    "type twice": lambda: [ResourceTypeFactory(name=name) for name in ("Desk", "desk")],
    "room name twice": lambda: [
        MeetingRoomFactory(center=center, name=name)
        for center in [CenterFactory()]
        for name in ("Aspen", "ASPEN")
    ],
}


@pytest.mark.parametrize("make", NONSENSE.values(), ids=NONSENSE.keys())
def test_database_rejects_invalid_rows(make):
    with pytest.raises(IntegrityError), transaction.atomic():
        make()


FOREIGN = {
    "rate of another center": (lambda: MeetingRoomFactory(rate=RateFactory()), "rate"),
    "service type": (
        lambda: MeetingRoomFactory(resource_type=ServiceTypeFactory()),
        "resource_type",
    ),
    "service rate of another center": (lambda: ServiceFactory(rate=RateFactory()), "rate"),
    "room type": (lambda: ServiceFactory(resource_type=ResourceTypeFactory()), "resource_type"),
    "flat rate without a price": (
        lambda: RateFactory(is_flat_rate=True, flat_rate=None),
        "flat_rate",
    ),
    "room of another center": (
        lambda: ClosureFactory(room=MeetingRoomFactory(), starts_at=NEW_YEAR, ends_at=LATER),
        "room",
    ),
}


@pytest.mark.parametrize(("make", "wrong"), FOREIGN.values(), ids=FOREIGN.keys())
def test_row_of_another_center_is_rejected(make, wrong):
    with pytest.raises(ValidationError) as refusal:
        make().full_clean()
    assert wrong in refusal.value.message_dict
