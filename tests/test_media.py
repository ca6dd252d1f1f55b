"""The settings of an S3-compatible storage; tests/faults/test_s3.py has a real one."""

from urllib.parse import urlsplit

import pytest
import time_machine

from roombook import images
from roombook.media import build_s3_storage
from tests.test_settings import read

BUCKET = "https://key:p%2Fss@s3.example.com:9000/rooms?region=eu-central-1"


def read_default_storage(**variables):
    settings = read(**variables)
    return settings["STORAGES"]["default"], settings["MEDIA_URL"]


def test_bucket_without_a_public_url_has_signed_addresses():
    storage, media_url = read_default_storage(MEDIA_BUCKET_URL=BUCKET)

    options = storage["OPTIONS"]
    assert storage["BACKEND"] == "storages.backends.s3.S3Storage"
    assert (options["access_key"], options["secret_key"]) == ("key", "p/ss")
    assert (options["endpoint_url"], options["bucket_name"], options["region_name"]) == (
        *("https://s3.example.com:9000", "rooms", "eu-central-1"),
    )
    assert (options["querystring_auth"], options["querystring_expire"]) == (True, 86400)
    # A picture that was removed stays in caches of others for an hour at most.
    assert options["object_parameters"] == {"CacheControl": "public, max-age=3600"}
    # The policy of the back office's pages allows pictures from this host.
    assert media_url == "https://s3.example.com:9000/rooms/"


@pytest.mark.parametrize(("key", "seconds"), [("key:secret@", 3600), ("", 300)])
def test_signed_address_changes_once_a_period(settings, monkeypatch, tmp_path, key, seconds):
    # boto3 finds this key, as it finds the one of a machine's role.
    found = tmp_path / "credentials"
    found.write_text("[default]\naws_access_key_id = found\naws_secret_access_key = secret\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(found))
    address = urlsplit(f"https://{key}s3.example.com/rooms?region=eu-central-1")
    settings.STORAGES = {**settings.STORAGES, "default": build_s3_storage(address, "/media/")}

    def sign(*, at):
        with time_machine.travel(at, tick=False):
            return images.get_url("rooms/a.jpg")

    first = sign(at=7200)
    assert "X-Amz-Expires=86400" in first
    assert sign(at=7200 + seconds - 1) == first
    assert sign(at=7200 + seconds) != first


def test_bucket_with_a_public_url_has_addresses_without_signature():
    storage, media_url = read_default_storage(
        MEDIA_BUCKET_URL=BUCKET, MEDIA_URL="https://cdn.example.com/pictures/"
    )

    options = storage["OPTIONS"]
    assert options["custom_domain"] == "cdn.example.com/pictures"
    assert (options["querystring_auth"], options["url_protocol"]) == (False, "https:")
    assert media_url == "https://cdn.example.com/pictures/"
