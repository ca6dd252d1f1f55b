"""Responses are compressed, but not those that contain a secret (B2.7)."""

import gzip

import pytest
import time_machine
from django.http import HttpResponse
from django.test import RequestFactory

from roombook.middleware import CompressionMiddleware
from tests.backoffice.second_factor_helpers import LOGIN, SET_UP, sign_in
from tests.factories_people import AdministratorFactory
from tests.world import NOW, OPERATIONS_BY_NAME, World

SECRET_OPERATIONS = {
    *("Sign in", "Get calendar", "Get payment action", "Confirm email", "Create payment setup"),
    "Get receipts",
}


def compress(response, accepted="gzip"):
    request = RequestFactory().get("/", headers={"Accept-Encoding": accepted})
    return CompressionMiddleware(lambda _: response)(request)


@pytest.mark.django_db
def test_every_operation_without_a_secret_compresses_its_response(client, monkeypatch):
    monkeypatch.setattr(CompressionMiddleware, "MIN_BYTES", 0)
    compressed = set()
    with time_machine.travel(NOW, tick=False):
        world = World(client)
        for name in OPERATIONS_BY_NAME:
            # The form makes no difference to the middleware.
            for form in ("", ".csv") if name == "Search locations" else ("",):
                client.defaults.pop("HTTP_ACCEPT_ENCODING", None)
                plain = world.call(name, form)
                client.defaults["HTTP_ACCEPT_ENCODING"] = "br, gzip"
                zipped = world.call(name, form)

                assert "Content-Encoding" not in plain
                if name in SECRET_OPERATIONS:
                    assert "Content-Encoding" not in zipped
                    assert zipped["Vary"] == "Accept"
                else:
                    assert plain["Vary"] == zipped["Vary"] == "Accept, Accept-Encoding"
                if "Content-Encoding" in zipped:
                    compressed.add(name)
                    assert zipped["Content-Encoding"] == "gzip"
                    assert zipped["Content-Length"] == str(len(zipped.content))
                    assert len(zipped.content) < len(plain.content)
                    # These have other ids each time.
                    if name not in {"Create reservation", "Change reservation"}:
                        assert gzip.decompress(zipped.content) == plain.content

    # The responses of the others are too short to gain anything.
    assert len(compressed) > len(OPERATIONS_BY_NAME) / 3
    assert {"Search locations", "Create reservation", "List reservations"} <= compressed


@pytest.mark.parametrize(("length", "is_compressed"), [(1024, False), (1025, True)])
def test_only_responses_above_one_kilobyte_are_compressed(length, is_compressed):
    response = compress(HttpResponse(b"x" * length, content_type="application/json"))

    assert ("Content-Encoding" in response) == ("Vary" in response) == is_compressed


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [
        *(("deflate, gzip;q=1.0, *;q=0.5", True), ("gzip;q=0.1", True)),
        *(("", False), ("br", False), ("gzip; q=0.000, br", False)),
    ],
)
def test_compression_needs_the_consent_of_the_client(accepted, is_compressed):
    response = compress(HttpResponse(b"x" * 2000), accepted)

    assert ("Content-Encoding" in response) == is_compressed


def test_length_of_a_compressed_response_is_random():
    assert len({len(compress(HttpResponse(b"x" * 2000)).content) for _ in range(20)}) > 1


@pytest.mark.parametrize(
    ("content_type", "is_compressed"),
    [
        *(("text/calendar; charset=utf-8", True), ("application/vnd.oai.openapi+json", True)),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", False),
    ],
)
def test_only_text_is_compressed(content_type, is_compressed):
    response = compress(HttpResponse(b"x" * 2000, content_type=content_type))

    assert ("Content-Encoding" in response) == is_compressed


@pytest.mark.django_db
def test_pages_are_compressed_but_not_the_secret_of_a_second_factor(client):
    client.defaults["HTTP_ACCEPT_ENCODING"] = "gzip"
    page = client.get(LOGIN)
    sign_in(client, AdministratorFactory())
    secret = client.get(SET_UP)

    assert page["Content-Encoding"] == "gzip"
    assert {"Accept-Encoding", "Cookie"} <= set(page["Vary"].split(", "))
    assert secret.status_code == 200
    assert len(secret.content) > CompressionMiddleware.MIN_BYTES
    assert "Content-Encoding" not in secret
    assert "Accept-Encoding" not in secret["Vary"]
