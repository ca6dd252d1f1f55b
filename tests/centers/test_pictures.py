"""Pictures that reveal something, or are too large."""

import struct
import zlib
from io import BytesIO

import pytest
from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile
from PIL import ExifTags, Image, ImageCms, ImageFile, ImageOps, PngImagePlugin

from roombook import images
from tests.factories_centers import CenterImageFactory

SECRET = b"secret place"


def draw(file_format, *, size=(60, 40), mode="RGB", **options):
    out = BytesIO()
    Image.new(mode, size).save(out, file_format, **options)
    return out.getvalue()


def build_png_header(width, height):
    """A PNG that says how large it is, and has no pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
        for chunk in (header, b"IDAT" + zlib.compress(b""), b"IEND")
    )


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


@pytest.mark.django_db
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


@pytest.mark.parametrize(
    ("size", "is_allowed"),
    [
        ((5_000, 4_000), True),
        ((5_000, 4_001), False),
        ((2**31 - 1, 2**31 - 1), False),
    ],
)
def test_picture_that_is_too_large_is_refused_by_its_header(size, is_allowed, monkeypatch):
    monkeypatch.setattr(ImageFile.ImageFile, "load", refuse_to_decode)

    with pytest.raises((AssertionError, ValidationError)) as refused:
        images.open_image(ContentFile(build_png_header(*size), name="x.png"))

    assert isinstance(refused.value, AssertionError) is is_allowed
    assert is_allowed or refused.value.code == "too_many_pixels"


@pytest.mark.parametrize("orientation", range(1, 9))
def test_picture_is_turned_as_pillow_turns_it(orientation):
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    out = BytesIO()
    Image.frombytes("L", (3, 2), bytes(range(0, 240, 40))).save(out, "PNG", exif=exif)
    with Image.open(BytesIO(out.getvalue())) as image:
        expected = ImageOps.exif_transpose(image)

    turned = images.open_image(ContentFile(out.getvalue()))
    assert (turned.size, turned.tobytes()) == (expected.size, expected.tobytes())
