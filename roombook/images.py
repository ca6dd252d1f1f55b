"""Uploaded pictures: validated, re-encoded and resized.

Pillow re-encodes every stored file, without its metadata and under a random name. Therefore no
disguised file, original file name, comment or GPS position of a phone is published.
"""

import struct
import time
from functools import lru_cache
from io import BytesIO
from pathlib import PurePath
from typing import Any, ClassVar
from uuid import uuid4

from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage, storages
from django.db import models, transaction
from django.db.models.fields.files import FieldFile
from django.db.models.signals import post_delete
from django.utils.deconstruct import deconstructible
from PIL import Image, ImageOps

ALLOWED_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
MAX_UPLOAD_BYTES = 10 * 1024 * 1024
# A small file can be decompressed into gigabytes.
MAX_PIXELS = 20_000_000
# Of what is stored.
MAX_SIDE_PIXELS = 2000
THUMBNAIL_SIDE_PIXELS = 320


@deconstructible
class RandomName:
    """The `upload_to` of picture fields: a folder and a random file name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, instance: models.Model, filename: str) -> str:
        return f"{self.folder}/{uuid4().hex}{PurePath(filename).suffix.lower()}"


def open_image(upload: File) -> Image.Image:
    """Decode an upload and turn it upright. Raises ValidationError if it is no picture."""
    if upload.size > MAX_UPLOAD_BYTES:
        raise ValidationError("The picture is larger than 10 MB.", code="too_large")
    try:
        upload.seek(0)
        with Image.open(upload, formats=ALLOWED_FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise Image.DecompressionBombError
            return ImageOps.exif_transpose(image)
    except Image.DecompressionBombError as error:
        text = f"The picture has more than {MAX_PIXELS // 10**6} megapixels."
        raise ValidationError(text, code="too_many_pixels") from error
    except (OSError, SyntaxError, ValueError, struct.error) as error:
        raise ValidationError("This picture cannot be read.", code="unreadable") from error


def validate_image(upload: File) -> None:
    """Validator of form fields and model fields."""
    # This module has written all stored files.
    if not (isinstance(upload, FieldFile) and is_stored(upload)):
        open_image(upload)


def is_stored(file: FieldFile) -> bool:
    """Whether the file is in the storage already, and not a new upload."""
    return bool(file._committed)  # type: ignore[attr-defined]


def resize_image(image: Image.Image, side: int) -> ContentFile:
    """Return the picture with sides of at most `side`: as PNG if it is transparent, else JPEG."""
    is_transparent = "A" in image.getbands() or "transparency" in image.info
    mode = "RGBA" if is_transparent else "RGB"
    # Copies of a large picture are large.
    copy = image if image.mode == mode else image.convert(mode)
    copy = ImageOps.contain(copy, (side, side)) if max(copy.size) > side else copy.copy()
    # Pillow would write comments, XMP and color profiles again.
    copy.info = {}
    output = BytesIO()
    copy.save(output, "PNG" if is_transparent else "JPEG", optimize=is_transparent, quality=85)
    return ContentFile(output.getvalue(), name="picture.png" if is_transparent else "picture.jpg")


def process_upload(row: models.Model, field: str, thumbnail_field: str | None = None) -> set[str]:
    """Re-encode the new picture of a row that is about to be saved, and make its thumbnail.

    Returns the names of the fields that changed, for `update_fields`.
    """
    picture: FieldFile = getattr(row, field)
    sides = {field: MAX_SIDE_PIXELS}
    if thumbnail_field:
        sides[thumbnail_field] = THUMBNAIL_SIDE_PIXELS
    if picture and is_stored(picture):
        return set()
    if picture:
        image = open_image(picture.file)
        for name, side in sides.items():
            resized = resize_image(image, side)
            getattr(row, name).save(str(resized.name), resized, save=False)
    elif thumbnail_field and getattr(row, thumbnail_field):
        setattr(row, thumbnail_field, "")
    else:
        return set()
    return set(sides)


class PictureModel(models.Model):
    """A row with a picture and its thumbnail: `picture_fields` are their names."""

    picture_fields: ClassVar[tuple[str, str]]

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if changed := process_upload(self, *self.picture_fields):
            stored = type(self)._base_manager.filter(pk=self.pk).first()
            delete_after_commit(*(getattr(stored, field) for field in changed if stored))
            if kwargs.get("update_fields") is not None:
                kwargs["update_fields"] = {*kwargs["update_fields"], *changed}
        super().save(*args, **kwargs)


def delete_files_with_row(model: type[models.Model], *fields: str) -> None:
    """From now on, delete the files of a row when it is deleted. Called by `AppConfig.ready`."""

    def delete_files(instance: models.Model, **_: object) -> None:
        delete_after_commit(*(getattr(instance, field) for field in fields))

    post_delete.connect(delete_files, model, weak=False, dispatch_uid=f"{model.__name__}_files")


def delete_after_commit(*files: FieldFile) -> None:
    """Delete files once the transaction is committed; errors are only logged: no row has them."""
    for file in filter(None, files):

        def delete(storage: Storage = file.storage, name: str = str(file.name)) -> None:
            storage.delete(name)

        transaction.on_commit(delete, robust=True)


def get_url(name: str | None) -> str:
    """Return the URL of a stored picture, as its file field does; empty for an empty name."""
    if not name:
        return ""
    storage = storages["default"]
    # Signing takes longer than everything else about a picture, and clients cache by the address.
    # Temporary credentials are valid for at least ten minutes more when boto3 signs with them.
    seconds = 60 * 60 if getattr(storage, "access_key", None) else 5 * 60
    return _build_url(storage, name, time.time() // seconds)


@lru_cache(maxsize=65536)
def _build_url(storage: Storage, name: str, period: float) -> str:
    """Build the address of a file, once per period."""
    return str(storage.url(name))
