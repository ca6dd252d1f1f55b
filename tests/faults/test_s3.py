"""Pictures in a bucket of a real S3-compatible server: moto's, which needs many packages.

The long form installs it into an environment of its own; MOTO_SERVER names one that exists.
"""

import os
import subprocess
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import boto3
import pytest
from django.core.files.base import ContentFile
from PIL import Image

from centers.models import CenterImage
from roombook import images
from roombook.media import build_s3_storage
from tests import pg_plugin
from tests.factories_centers import CenterFactory
from tests.faults.processes import find_free_port, is_listening, wait_for
from tests.faults.size import LONG
from tests.locks import LONG_LOCK, install_lock

pytestmark = [
    pytest.mark.skipif(not (LONG or "MOTO_SERVER" in os.environ), reason="S3: make faults"),
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if given := os.environ.get("MOTO_SERVER"):
        return Path(given)
    return install_lock(LONG_LOCK, tmp_path_factory.mktemp("moto")) / "moto_server"


@pytest.fixture(scope="module")
def endpoint(program):
    port = find_free_port()
    server = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)])
    try:
        wait_for(lambda: is_listening(port), "moto")
        yield f"http://127.0.0.1:{port}"
    finally:
        pg_plugin.stop_server(server)


@pytest.fixture
def bucket(endpoint, settings):
    """The bucket in which the service stores pictures."""
    address = urlsplit(f"{endpoint.replace('//', '//key:secret@')}/rooms?region=us-east-1")
    settings.STORAGES = {**settings.STORAGES, "default": build_s3_storage(address, "/media/")}
    resource = boto3.resource(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    created = resource.create_bucket(Bucket="rooms")
    yield created
    created.objects.delete()
    created.delete()


def get_keys(bucket):
    return {each.key for each in bucket.objects.all()}


def test_picture_is_stored_read_and_deleted_in_the_bucket(bucket, endpoint):
    picture = BytesIO()
    Image.new("RGB", (640, 400), "red").save(picture, "PNG")
    image = CenterImage.objects.create(
        center=CenterFactory(), image=ContentFile(picture.getvalue(), name="picture.png")
    )
    names = {image.image.name, image.thumbnail.name}
    assert get_keys(bucket) == names
    for name in names:
        url = images.get_url(name)
        assert url.startswith(f"{endpoint}/rooms/{name}?")
        assert "X-Amz-Signature=" in url
        with urlopen(url, timeout=10) as response:
            assert response.headers["Cache-Control"] == "public, max-age=3600"
            red, green, _ = Image.open(BytesIO(response.read())).convert("RGB").getpixel((5, 5))
        assert red > green

    image.delete()
    assert get_keys(bucket) == set()
