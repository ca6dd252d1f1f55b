"""A client that posts any body to an operation."""

import json

import pytest


@pytest.fixture
def post(client):
    """Post a body (an object is sent as JSON) and get the response."""
    client.raise_request_exception = False

    def send(path, body=None, content_type="application/json", **options):
        if not isinstance(body, str | bytes):
            body = json.dumps(body if body is not None else {})
        return client.generic("POST", path, body, content_type=content_type, **options)

    return send


@pytest.fixture
def refused(post):
    """Post a body that must be refused, and get status, Summary and Details."""

    def send(*args, **kwargs):
        response = post(*args, **kwargs)
        body = response.json()
        assert body["Success"] is False
        assert set(body) == {"Success", "Error"}
        return response.status_code, body["Error"]["Summary"], body["Error"].get("Details", "")

    return send
