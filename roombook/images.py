"""Uploaded pictures: validated, re-encoded and resized.

Pillow re-encodes every stored file, without its metadata and under a random name. Therefore no
disguised file, original file name, comment or GPS position of a phone is published.
"""

import logging
import re
import struct
import time
from collections.abc import Collection
from functools import lru_cache, partial
from io import BytesIO
from pathlib import PurePath
from typing import Any, ClassVar
from uuid import uuid4

from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.db import models, transaction
from django.db.models.fields.files import FieldFile
from django.db.models.signals import post_delete
from django.utils.deconstruct import deconstructible
from django.utils.encoding import filepath_to_uri
from PIL import Image, ImageOps, UnidentifiedImageError

logger = logging.getLogger(__name__)

ALLOWED_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
MAX_UPLOAD_BYTES = 10 * 1024 * 1024
# A small file can be decompressed into gigabytes.
MAX_PIXELS = 20_000_000
# Of what is stored.
MAX_SIDE_PIXELS = 2000
THUMBNAIL_SIDE_PIXELS = 320
URL_SAFE_NAME = re.compile(r"[A-Za-z0-9_./-]+")


@deconstructible
class RandomName:
    """The `upload_to` of picture fields: a folder and a random file name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, instance: models.Model, filename: str) -> str:
        return f"{self.folder}/{uuid4().hex}{PurePath(filename).suffix.lower()}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RandomName) and other.folder == self.folder

    def __hash__(self) -> int:
        return hash(self.folder)


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
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, struct.error) as error:
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
    if is_transparent:
        copy.save(output, "PNG", optimize=True)
    else:
        copy.save(output, "JPEG", quality=85)
    return ContentFile(output.getvalue(), name="picture.png" if is_transparent else "picture.jpg")


def process_upload(row: models.Model, field: str, thumbnail_field: str | None = None) -> set[str]:
    """Re-encode the new picture of a row that is about to be saved, and make its thumbnail.

    Returns the names of the fields that changed, for `update_fields`.
    """
    picture: FieldFile = getattr(row, field)
    if picture and is_stored(picture):
        return set()
    if not picture:
        if thumbnail_field and getattr(row, thumbnail_field):
            setattr(row, thumbnail_field, "")
            return {field, thumbnail_field}
        return set()
    image = open_image(picture.file)
    resized = resize_image(image, MAX_SIDE_PIXELS)
    picture.save(str(resized.name), resized, save=False)
    if thumbnail_field is None:
        return {field}
    thumbnail = resize_image(image, THUMBNAIL_SIDE_PIXELS)
    getattr(row, thumbnail_field).save(str(thumbnail.name), thumbnail, save=False)
    return {field, thumbnail_field}


def get_stored_files(row: models.Model, fields: Collection[str]) -> list[FieldFile]:
    """Return the files of a row that the database refers to, before a save replaces them."""
    old = type(row)._base_manager.filter(pk=row.pk).first() if row.pk and fields else None
    return [getattr(old, field) for field in fields] if old else []


class PictureModel(models.Model):
    """A row with a picture and its thumbnail: `picture_fields` are their names."""

    picture_fields: ClassVar[tuple[str, str]]

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        changed = process_upload(self, *self.picture_fields)
        delete_after_commit(*get_stored_files(self, changed))
        if changed and kwargs.get("update_fields") is not None:
            kwargs["update_fields"] = {*kwargs["update_fields"], *changed}
        super().save(*args, **kwargs)


def delete_files_with_row(model: type[models.Model], *fields: str) -> None:
    """From now on, delete the files of a row when it is deleted. Called by `AppConfig.ready`."""

    def delete_files(instance: models.Model, **_: object) -> None:
        delete_after_commit(*(getattr(instance, field) for field in fields))

    post_delete.connect(delete_files, model, weak=False, dispatch_uid=f"{model.__name__}_files")


def delete_after_commit(*files: FieldFile) -> None:
    """Delete files from the storage once the transaction is committed."""
    for file in files:
        if file.name:
            transaction.on_commit(partial(delete_file, file.storage, file.name))


def delete_file(storage: Storage, name: str) -> None:
    """Delete a file that no row refers to; errors are only logged, because the change is done."""
    try:
        storage.delete(name)
    except Exception:
        logger.exception("The file %s could not be deleted.", name)


def get_url(name: str) -> str:
    """Return the URL of a stored picture, as its file field does; empty for an empty name."""
    if not name:
        return ""
    storage = storages["default"]
    if type(storage) is FileSystemStorage and storage.base_url:
        # Same as FileSystemStorage.url, but without parsing the base URL for each picture, and
        # without quoting the names of RandomName, which need no quoting.
        path = name if URL_SAFE_NAME.fullmatch(name) else str(filepath_to_uri(name))
        return storage.base_url + path.lstrip("/")
    # Signing takes longer than everything else about a picture, and clients cache by the address.
    # Temporary credentials are valid for at least ten minutes more when boto3 signs with them.
    seconds = 60 * 60 if getattr(storage, "access_key", None) else 5 * 60
    return _build_url(storage, name, time.time() // seconds)


@lru_cache(maxsize=65536)
def _build_url(storage: Storage, name: str, period: float) -> str:
    """Build the address of a file, once per period."""
    return str(storage.url(name))
