"""Pictures that reveal something, or are made to cost memory."""

import json
import random
import struct
import subprocess
import sys
import time
import zlib
from io import BytesIO

import pytest
from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import ExifTags, Image, ImageCms, ImageFile, ImageOps, PngImagePlugin, TiffImagePlugin

from accounts.models import User
from centers.models import CenterImage, MeetingRoom
from roombook import images
from tests.factories_centers import CenterImageFactory

SECRET = b"secret place"
# Of a JPEG.
END = b"\xff\xd9"
# Opens and stores a picture in a process of its own: prints the megabytes that it took.
MEASURE = """
import django, json, re, sys
from pathlib import Path
from django.conf import settings
settings.configure()
django.setup()
from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile
from roombook import images

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

upload = ContentFile(Path(sys.argv[1]).read_bytes(), name="picture")
before = peak()
try:
    images.resize_image(images.open_image(upload), images.MAX_SIDE_PIXELS)
    code = "stored"
except ValidationError as error:
    code = error.code
print(json.dumps([code, (peak() - before) // 1024]))
"""


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


@pytest.mark.parametrize(
    ("size", "is_allowed"),
    [
        ((5_000, 4_000), True),
        ((5_000, 4_001), False),
        ((8_000, 1), True),
        ((8_001, 1), False),
        ((1, 8_001), False),
        ((2**31 - 1, 2**31 - 1), False),
    ],
)
def test_picture_that_is_too_large_is_refused_by_its_header(size, is_allowed, monkeypatch):
    monkeypatch.setattr(ImageFile.ImageFile, "load", refuse_to_decode)
    monkeypatch.setattr(PngImagePlugin.PngImageFile, "verify", lambda image: None)

    with pytest.raises((AssertionError, ValidationError)) as refused:
        images.open_image(ContentFile(build_png_header(*size), name="x.png"))

    assert isinstance(refused.value, AssertionError) is is_allowed
    assert is_allowed or refused.value.code == "too_many_pixels"


def test_picture_with_damaged_metadata_is_turned_upright():
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    exif[ExifTags.Base.ResolutionUnit] = 2
    # The unit of the resolution becomes a text, which Pillow reads but cannot write again.
    entry = struct.pack(">HH", ExifTags.Base.ResolutionUnit, 3)
    metadata = exif.tobytes()
    little = entry[1::-1] + entry[:1:-1]
    assert (entry in metadata) or (little in metadata)
    for each in (entry, little):
        metadata = metadata.replace(each, each.replace(b"\x03", b"\x02"))
    upload = draw("JPEG", size=(60, 40), exif=metadata)
    with pytest.raises(struct.error), Image.open(BytesIO(upload)) as image:
        ImageOps.exif_transpose(image, in_place=True)

    assert images.open_image(ContentFile(upload)).size == (40, 60)


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


def refuse_to_decode(*args):
    raise AssertionError("a decoder ran")


@pytest.mark.parametrize(
    ("model", "field"), [(CenterImage, "image"), (MeetingRoom, "picture"), (User, "thumbnail")]
)
def test_picture_of_another_format_is_refused_before_a_decoder_runs(model, field, monkeypatch):
    upload = draw("TIFF")
    monkeypatch.setattr(TiffImagePlugin.TiffImageFile, "_open", refuse_to_decode)

    with pytest.raises(ValidationError) as refused:
        model._meta.get_field(field).formfield().clean(SimpleUploadedFile("x.png", upload))

    assert refused.value.code == "unreadable"


def test_jpeg_of_many_scans_is_refused_before_a_decoder_runs(monkeypatch):
    picture = draw("JPEG", progressive=True)
    scan = picture[picture.rindex(b"\xff\xda") : -2]
    assert images.open_image(ContentFile(picture[:-2] + 50 * scan + END, name="x.jpg")).size == (
        60,
        40,
    )
    monkeypatch.setattr(ImageFile.ImageFile, "load", refuse_to_decode)

    with pytest.raises(ValidationError) as refused:
        images.open_image(ContentFile(picture[:-2] + 100 * scan + END, name="x.jpg"))

    assert refused.value.code == "unreadable"


def insert(picture, position, part, *, size):
    """A picture with a part that is repeated up to a size in bytes."""
    return picture[:position] + size // len(part) * part + picture[position:]


@pytest.mark.parametrize(
    ("file_format", "position", "part"),
    [
        ("JPEG", 2, b"\xff"),
        ("JPEG", 2, b"\xff\xe1\x00\x02"),
        ("PNG", 33, struct.pack(">I4sI", 0, b"abCd", zlib.crc32(b"abCd"))),
        ("PNG", -12, struct.pack(">I4sI", 0, b"IDAT", zlib.crc32(b"IDAT"))),
        ("GIF", 13 + 256 * 3, b"!\x01\x01x\x00"),
    ],
    ids=["fill bytes", "segments", "chunks", "data chunks", "extensions"],
)
def test_picture_of_millions_of_parts_is_refused_at_once(file_format, position, part):
    picture = draw(file_format, mode="1" if file_format == "GIF" else "RGB")
    assert images.open_image(ContentFile(insert(picture, position, part, size=1_000), name="x"))
    upload = ContentFile(insert(picture, position, part, size=10_000_000), name="x")
    started = time.process_time()

    with pytest.raises(ValidationError) as refused:
        images.open_image(upload)

    assert refused.value.code == "unreadable"
    assert time.process_time() - started < 0.5


def test_picture_of_ten_megabytes_in_small_chunks_is_allowed():
    noise = random.Random(1).randbytes(1_850 * 1_850 * 3)
    out = BytesIO()
    Image.frombytes("RGB", (1_850, 1_850), noise).save(out, "PNG", compress_level=0)
    assert out.tell() > 9_000_000

    assert images.open_image(ContentFile(out.getvalue(), name="x.png")).size == (1_850, 1_850)


@pytest.mark.parametrize(
    ("upload", "code", "megabytes"),
    [
        (lambda: draw("PNG", size=(7_000, 6_000), mode="1"), "too_many_pixels", 10),
        (lambda: draw("PNG", size=(5_000, 4_000), mode="1"), "stored", 200),
        (lambda: draw("GIF", size=(5_000, 4_000), mode="P"), "stored", 250),
        (lambda: draw("JPEG", size=(5_000, 4_000), mode="CMYK"), "stored", 250),
        (lambda: draw("WEBP", size=(4_000, 3_000), mode="RGBA", method=0), "stored", 250),
        (lambda: draw("WEBP", size=(4_000, 3_001), method=0), "too_many_pixels", 30),
    ],
    ids=["png refused", "png", "gif", "jpeg", "webp", "webp refused"],
)
def test_picture_of_many_megapixels_is_stored_within_bounded_memory(
    upload, code, megabytes, tmp_path
):
    path = tmp_path / "picture"
    path.write_bytes(upload())

    run = subprocess.run(
        [sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True
    )

    outcome, used = json.loads(run.stdout)
    assert outcome == code
    assert used < megabytes
