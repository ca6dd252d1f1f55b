"""Refuses requests of app versions that are too old (B4)."""

import re
from typing import Any

from django.conf import settings
from rest_framework import status
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request

from roombook.api.fields import TextField

VERSION_FIELD = TextField()
DOTTED_NUMBERS = re.compile(r"[0-9]+(\.[0-9]+)*")


class AppVersionTooOld(APIException):
    """The app is older than MINIMUM_APP_VERSION."""

    status_code = status.HTTP_426_UPGRADE_REQUIRED
    default_code = "AppVersionTooOld"


def check_app_version(request: Request) -> None:
    """Raise AppVersionTooOld if the app is too old; a missing or unreadable version passes."""
    fields: Any = request.data  # The parsers make sure that it is an object.
    sent = fields.get("AppVersion")
    if sent is None:
        return
    try:
        version = VERSION_FIELD.run_validation(sent)
    except ValidationError as error:
        raise ValidationError({"AppVersion": error.detail}) from error
    # For the log line of this request.
    request._request.app_version = "".join(filter(str.isprintable, version))  # type: ignore[attr-defined]
    numbers, minimum = parse_version(version), parse_version(settings.MINIMUM_APP_VERSION)
    if numbers is not None and minimum is not None and numbers < minimum:
        raise AppVersionTooOld


def parse_version(version: str) -> tuple[int, ...] | None:
    """Return `2.10.0` as numbers that compare: 2.10 is above 2.9 and equal to 2.10.0."""
    if not DOTTED_NUMBERS.fullmatch(version):
        return None
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
