"""Pictures that people upload: checked, stripped of what is not picture, made small.

Every stored file is one that Pillow wrote itself, under a name of chance: neither a disguised file
nor the uploader's file name nor a phone's position data gets out again.
"""

import re
from collections.abc import Iterable
from functools import partial
from io import BytesIO
from pathlib import PurePath
from typing import Any
from uuid import uuid4

from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, storages
from django.db import models, transaction
from django.db.models.fields.files import FieldFile
from django.db.models.signals import post_delete
from django.utils.deconstruct import deconstructible
from django.utils.encoding import filepath_to_uri
from PIL import Image, ImageOps, UnidentifiedImageError

ALLOWED_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
MAX_UPLOAD_BYTES = 10 * 1024 * 1024
MAX_PIXELS = 40_000_000
MAX_SIDE_PIXELS = 2000
THUMBNAIL_SIDE_PIXELS = 320
URL_SAFE_NAME = re.compile(r"[A-Za-z0-9_./-]+")


@deconstructible
class RandomName:
    """Where an upload is kept: a folder and a name of chance."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, instance: models.Model, filename: str) -> str:
        return f"{self.folder}/{uuid4().hex}{PurePath(filename).suffix.lower()}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RandomName) and other.folder == self.folder

    def __hash__(self) -> int:
        return hash(self.folder)


def open_image(upload: File) -> Image.Image:
    """The upload as a picture, or a ValidationError that says what is wrong with it."""
    if upload.size > MAX_UPLOAD_BYTES:
        raise ValidationError("The picture is larger than 10 MB.", code="too_large")
    try:
        upload.seek(0)
        with Image.open(upload, formats=ALLOWED_FORMATS) as header:
            # Judged by the header, before a bomb of a few bytes becomes gigabytes.
            if header.width * header.height > MAX_PIXELS:
                raise ValidationError("The picture has too many pixels.", code="too_many_pixels")
            header.verify()
        upload.seek(0)
        picture = Image.open(upload, formats=ALLOWED_FORMATS)
        picture.load()
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise ValidationError(
            "This is not a picture that we can read.", code="unreadable"
        ) from error
    except Image.DecompressionBombError as error:
        raise ValidationError("The picture has too many pixels.", code="too_many_pixels") from error
    return ImageOps.exif_transpose(picture)


def validate_image(upload: File) -> None:
    """Validator of form and model fields."""
    # What is stored already was written by us.
    if not (isinstance(upload, FieldFile) and is_stored(upload)):
        open_image(upload)


def is_stored(file: FieldFile) -> bool:
    """Whether the file is one that the storage has, not an upload on its way there."""
    return bool(file._committed)  # type: ignore[attr-defined]


def resize_image(picture: Image.Image, side: int) -> ContentFile:
    """The picture no larger than the side, written anew: JPEG, or PNG where it is see-through."""
    see_through = "A" in picture.getbands() or "transparency" in picture.info
    copy = picture.convert("RGBA" if see_through else "RGB")
    copy.thumbnail((side, side))
    written = BytesIO()
    if see_through:
        copy.save(written, "PNG", optimize=True)
    else:
        copy.save(written, "JPEG", quality=85)
    return ContentFile(written.getvalue(), name="picture.png" if see_through else "picture.jpg")


def process_upload(row: models.Model, field: str, thumbnail_field: str | None = None) -> set[str]:
    """Before a row is saved: write its new picture anew, and its thumbnail from it.

    Returns the names of the fields that changed: for `update_fields`.
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
    fresh = resize_image(image, MAX_SIDE_PIXELS)
    picture.save(str(fresh.name), fresh, save=False)
    if thumbnail_field is None:
        return {field}
    small = resize_image(image, THUMBNAIL_SIDE_PIXELS)
    getattr(row, thumbnail_field).save(str(small.name), small, save=False)
    return {field, thumbnail_field}


def get_stored_files(row: models.Model, fields: Iterable[str]) -> list[FieldFile]:
    """The files that the database has for a row: those that a save is about to replace."""
    old = type(row)._base_manager.filter(pk=row.pk).first() if row.pk else None
    return [getattr(old, field) for field in fields] if old else []


def delete_files_with_row(model: type[models.Model], *fields: str) -> None:
    """From now on a deleted row takes its files along. For `AppConfig.ready`."""

    def forget(instance: models.Model, **_: Any) -> None:
        delete_after_commit(*(getattr(instance, field) for field in fields))

    post_delete.connect(forget, model, weak=False, dispatch_uid=f"{model.__name__}_files")


def delete_after_commit(*files: FieldFile) -> None:
    """Remove files from the storage once the row's change is certain."""
    for file in files:
        if file.name:
            transaction.on_commit(partial(file.storage.delete, file.name))


def get_url(name: str) -> str:
    """Where a stored picture is shown, as its file field would tell; nothing for no name."""
    if not name:
        return ""
    storage = storages["default"]
    if type(storage) is FileSystemStorage and storage.base_url:
        # As the storage does it, without taking its base apart for each of many pictures, nor a
        # name that says the same in an address: every one of RandomName does.
        path = name if URL_SAFE_NAME.fullmatch(name) else str(filepath_to_uri(name))
        return storage.base_url + path.lstrip("/")
    return str(storage.url(name))
