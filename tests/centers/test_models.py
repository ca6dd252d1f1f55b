from datetime import UTC, datetime, time
from io import BytesIO

import pytest
from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction
from PIL import Image

from centers.models import CenterImage
from roombook import images
from tests.factories_centers import (
    CenterFactory,
    CenterImageFactory,
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


# --- Address --------------------------------------------------------------------------------------


def test_missing_time_zone_is_derived_from_the_coordinates():
    center = CenterFactory(time_zone_id="", latitude=35.68, longitude=139.69)
    assert center.time_zone_id == "Asia/Tokyo"
    assert center.zone.key == "Asia/Tokyo"


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
    "closure of no length": lambda: ClosureFactory(
        starts_at=datetime(2027, 1, 1, tzinfo=UTC), ends_at=datetime(2027, 1, 1, tzinfo=UTC)
    ),
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


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda: MeetingRoomFactory(rate=RateFactory()), "rate"),
        (lambda: MeetingRoomFactory(resource_type=ServiceTypeFactory()), "resource_type"),
        (lambda: ServiceFactory(rate=RateFactory()), "rate"),
        (lambda: ServiceFactory(resource_type=ResourceTypeFactory()), "resource_type"),
        (lambda: RateFactory(is_flat_rate=True, flat_rate=None), "flat_rate"),
        (
            lambda: ClosureFactory(
                room=MeetingRoomFactory(),
                starts_at=datetime(2027, 1, 1, tzinfo=UTC),
                ends_at=datetime(2027, 1, 2, tzinfo=UTC),
            ),
            "room",
        ),
    ],
    ids=[
        "rate of another center",
        "service type",
        "service rate of another center",
        "room type",
        "flat rate without a price",
        "room of another center",
    ],
)
def test_row_of_another_center_is_rejected(make, wrong):
    with pytest.raises(ValidationError) as refusal:
        make().full_clean()
    assert wrong in refusal.value.message_dict


# --- Pictures -------------------------------------------------------------------------------------


def picture(size=(3000, 1500), format="JPEG", mode="RGB", **options) -> ContentFile:  # noqa: A002
    written = BytesIO()
    Image.new(mode, size, "teal").save(written, format, **options)
    return ContentFile(written.getvalue(), name=f"../../my holiday.{format.lower()}")


def test_picture_is_reencoded_with_a_thumbnail_and_a_random_name():
    exif = Image.Exif()
    exif[0x0112] = 6  # turned
    exif[0x010E] = "secret"
    image = CenterImageFactory(image=picture(exif=exif))
    stored = CenterImage.objects.get(pk=image.pk)
    with stored.image.open() as file, Image.open(file) as full:
        assert full.size == (1000, 2000)
        assert not full.getexif()
    with stored.thumbnail.open() as file, Image.open(file) as small:
        assert small.size == (160, 320)
    assert stored.image.name.startswith("centers/")
    assert "holiday" not in stored.image.name


def test_transparent_picture_stays_transparent():
    image = CenterImageFactory(image=picture((10, 10), "PNG", "RGBA"))
    assert image.image.name.endswith(".png")


@pytest.mark.parametrize(
    ("upload", "code"),
    [
        (lambda: ContentFile(b"<svg onload=alert(1)>", name="x.png"), "unreadable"),
        (lambda: ContentFile(b"", name="x.png"), "unreadable"),
        (lambda: ContentFile(picture().read()[:500], name="x.jpg"), "unreadable"),
        (lambda: picture((10, 10), "BMP"), "unreadable"),
        # Drawn only here, and not by each process that collects the tests.
        (lambda: picture((8000, 8000), "PNG", "1"), "too_many_pixels"),
        (lambda: picture((15000, 15000), "PNG", "1"), "too_many_pixels"),
        (lambda: ContentFile(b"x" * (images.MAX_UPLOAD_BYTES + 1), name="x.png"), "too_large"),
    ],
    ids=["disguised", "empty", "cut off", "other format", "large", "bomb", "heavy"],
)
def test_invalid_picture_is_rejected(upload, code):
    image = CenterImage(center=CenterFactory(), image=upload())
    with pytest.raises(ValidationError) as refusal:
        image.full_clean()
    assert [error.code for error in refusal.value.error_dict["image"]] == [code]


def test_deleting_a_row_deletes_its_files(django_capture_on_commit_callbacks):
    image = CenterImageFactory()
    names = [image.image.name, image.thumbnail.name]
    assert all(map(default_storage.exists, names))
    with django_capture_on_commit_callbacks(execute=True):
        image.delete()
    assert not any(map(default_storage.exists, names))


def test_row_is_deleted_although_the_storage_is_away(
    monkeypatch, caplog, django_capture_on_commit_callbacks
):
    def refuse(name):
        raise OSError("no route to the bucket")

    image = CenterImageFactory()
    monkeypatch.setattr(default_storage._wrapped, "delete", refuse)
    with django_capture_on_commit_callbacks(execute=True):
        image.delete()
    assert caplog.text.count("Error calling") == 2


def test_replacing_or_clearing_a_picture_deletes_its_files(django_capture_on_commit_callbacks):
    room = MeetingRoomFactory(picture=picture())
    old = [room.picture.name, room.picture_thumbnail.name]
    with django_capture_on_commit_callbacks(execute=True):
        room.picture = picture((50, 50))
        room.save(update_fields=["picture"])
    room.refresh_from_db()
    new = [room.picture.name, room.picture_thumbnail.name]
    assert [default_storage.exists(name) for name in old + new] == [False, False, True, True]
    with django_capture_on_commit_callbacks(execute=True):
        room.picture = ""
        room.save()
    room.refresh_from_db()
    assert not room.picture_thumbnail
    assert not any(map(default_storage.exists, new))
