"""Requests with codes by e-mail, and what the e-mails say."""

import re

from accounts.models import OutboxMessage
from tests.http import post

WRONG_CODE = "Code: This code is wrong, or no longer valid."
NEW_PASSWORD = "stormy-lighthouse-7"
GRACE = {
    "EmailAddress": "grace@example.com",
    "Password": NEW_PASSWORD,
    "FirstName": "Grace",
    "LastName": "Hopper",
    "CompanyName": "Navy",
    "PhoneNumber": "+1 555 0102",
}


def call(client, operation, **fields):
    """Send a request to `/api/account/<operation>`."""
    address = fields.pop("address", "192.0.2.1")
    return post(client, f"/api/account/{operation}", fields, REMOTE_ADDR=address)


def reset(client, email, code, new_password=NEW_PASSWORD, **fields):
    passwords = {"NewPassword": new_password, "ConfirmNewPassword": new_password}
    body = {"EmailAddress": email, "Code": code, **passwords, **fields}
    return call(client, "reset-password", **body)


def sign_in(client, email, password):
    return post(client, "/api/sign-in", {"EmailAddress": email, "Password": password})


def read_code(to, **fields):
    """Return the code in the last e-mail to an address."""
    message = OutboxMessage.objects.filter(to=to, **fields).latest("pk")
    return re.search(r"^(\d{4} \d{4}|[0-9a-f]{32})$", message.text, re.M)[1]


def get_kinds(to):
    """Return the kinds of the e-mails to an address that will be sent."""
    messages = OutboxMessage.objects.filter(to=to).order_by("pk")
    return [each.kind for each in messages if each.expires_at != each.created_at]


def get_details(response):
    assert response.status_code == 400, response.content
    return response.json()["Error"]["Details"]
