"""Pictures: stored again without what they reveal, refused if too large, deleted with their row."""

from io import BytesIO

import pytest
from django.apps import apps
from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db.models import ImageField
from PIL import Image, ImageCms, ImageFile, PngImagePlugin

from centers.models import CenterImage
from roombook import images
from tests.factories_centers import CenterFactory, CenterImageFactory, MeetingRoomFactory

pytestmark = pytest.mark.django_db

SECRET = b"secret place"


def draw(file_format, *, size=(60, 40), mode="RGB", **options):
    out = BytesIO()
    Image.new(mode, size).save(out, file_format, **options)
    return out.getvalue()


def build_metadata():
    exif = Image.Exif()
    exif[0x010E] = SECRET.decode()
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", SECRET.decode())
    text.add_itxt("XML:com.adobe.xmp", SECRET.decode())
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    shared = {"exif": exif, "icc_profile": profile}
    return {
        "JPEG": draw("JPEG", comment=SECRET, xmp=SECRET, dpi=(300, 300), **shared),
        "PNG": draw("PNG", mode="RGBA", pnginfo=text, **shared),
        "GIF": draw("GIF", comment=SECRET),
        "WEBP": draw("WEBP", xmp=SECRET, **shared),
    }


@pytest.mark.parametrize("file_format", images.ALLOWED_FORMATS)
def test_picture_with_metadata_is_stored_without_it(file_format):
    upload = build_metadata()[file_format]
    assert SECRET in upload or b"Exif" in upload

    row = CenterImageFactory(image=ContentFile(upload, name="x.jpg"))

    for file in (row.image, row.thumbnail):
        with file.open() as stored:
            content = stored.read()
        assert not any(each in content for each in (SECRET, b"Exif", b"ICC", b"iCCP", b"tEXt"))
        with Image.open(BytesIO(content)) as image:
            assert set(image.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


def refuse_to_decode(*args):
    raise AssertionError("a decoder ran")


def test_picture_that_is_too_large_is_refused_by_its_header(monkeypatch):
    monkeypatch.setattr(images, "MAX_PIXELS", 10 * 10)
    allowed, larger = (ContentFile(draw("PNG", size=(10, side)), name="x.png") for side in (10, 11))
    monkeypatch.setattr(ImageFile.ImageFile, "load", refuse_to_decode)

    with pytest.raises(AssertionError, match="a decoder ran"):
        images.open_image(allowed)
    with pytest.raises(ValidationError) as refused:
        images.open_image(larger)
    assert refused.value.code == "too_many_pixels"


# --- Stored files ---------------------------------------------------------------------------------


def picture(size=(3000, 1500), file_format="JPEG", mode="RGB", **options):
    content = draw(file_format, size=size, mode=mode, **options)
    return ContentFile(content, name=f"../../my holiday.{file_format.lower()}")


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
        (lambda: ContentFile(b"x" * (images.MAX_UPLOAD_BYTES + 1), name="x.png"), "too_large"),
    ],
    ids=["disguised", "empty", "cut off", "other format", "heavy"],
)
def test_invalid_picture_is_rejected(upload, code):
    image = CenterImage(center=CenterFactory(), image=upload())
    with pytest.raises(ValidationError) as refusal:
        image.full_clean()
    assert [error.code for error in refusal.value.error_dict["image"]] == [code]


def test_every_picture_field_is_validated():
    fields = [each for model in apps.get_models() for each in model._meta.fields]
    pictures = [each for each in fields if isinstance(each, ImageField) and each.editable]
    assert len(pictures) >= 4
    assert all(images.validate_image in each.validators for each in pictures)


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
