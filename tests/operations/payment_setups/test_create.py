"""POST /api/account/create-payment-setup (B21.1)"""

from datetime import timedelta

import pytest

from payments.gateways.sandbox_models import SandboxFault, SandboxSetup
from payments.models import PaymentSetup
from roombook.models import SavedResponse
from tests.factories_people import UserFactory, issue_token
from tests.http import post, post_csv
from tests.operations.payment_setups.helpers import CREATE, NOW

pytestmark = pytest.mark.django_db


def test_setup_has_what_the_app_needs_to_collect_a_card(client, ada, token):
    body = {"Token": token, "ReturnUrl": "https://app.example.com/cards?done=1"}
    response = post(client, CREATE, body)

    assert response.status_code == 200
    secret = SandboxSetup.objects.get().secret
    assert response.json() == {
        "Success": True,
        "PaymentSetup": {
            "Id": str(PaymentSetup.objects.get().key),
            "Gateway": "sandbox",
            "PublishableKey": "pk_sandbox",
            "ClientSecret": secret,
            "CustomerId": f"customer_{ada.pk}",
            "Url": f"http://testserver/sandbox/setups/{secret}",
            "ExpiresAt": "2027-03-15T13:00:00+00:00",
        },
    }
    # Our own table has no secret.
    assert secret not in str(PaymentSetup.objects.values())
    assert "Content-Encoding" not in response.headers


def test_page_of_the_service_is_at_the_end_if_there_is_no_other(client, create, settings):
    settings.PAYMENT_RETURN_URLS = ["roombook-test"]
    silent, app = create(), create(ReturnUrl="roombook-test://cards?a=1&b=2")
    links = []

    for setup, row in zip((silent, app), SandboxSetup.objects.order_by("pk"), strict=True):
        # Gateways lead to pages only.
        assert row.return_url == f"http://testserver/payments/return/{setup['Id']}"
        links.append(client.get(row.return_url).content.decode())

    assert "You can close this page and go back to the app." in links[0]
    assert '<a href="roombook-test://cards?a=1&amp;b=2">Go back to the app</a>' in links[1]
    page = client.get("/payments/return")
    assert "refresh" not in page.content.decode()
    # Stripe adds a secret to its address.
    assert (page["Referrer-Policy"], "no-store" in page["Cache-Control"]) == ("no-referrer", True)


@pytest.mark.parametrize(
    "url",
    [
        "https://app.example.com",
        "https://app.example.com:8443/a/b?c=d&e=%20#f",
        "HTTPS://app.example.com/",
        "roombook-test://cards/done",
    ],
)
def test_return_url_of_a_page_or_a_known_app_is_accepted(create, settings, url):
    settings.PAYMENT_RETURN_URLS = ["roombook-test"]

    create(ReturnUrl=url)

    assert PaymentSetup.objects.get().return_url == url


@pytest.mark.parametrize(
    "url",
    [
        "http://app.example.com/",
        "//app.example.com/",
        "/payments/return",
        "javascript:alert(1)",
        "JavaScript://app.example.com/%0aalert(1)",
        "data:text/html,hello",
        "otherapp://cards",
        "https:app.example.com",
        "https:///app.example.com",
        "https://",
        "https://ada:secret@app.example.com/",
        "https://app.example.com@evil.example/",
        "https://app.example.com\\@evil.example/",
        "https:\\\\evil.example",
        "https://app.exa\tmple.com/",
        "https://app.example.com/a b",
        'https://app.example.com/"><script>',
        "https://app.example.com:port/",
        "https://app.example.com:99999/",
        "https://[::1/",
        "https://ex\u00e4mple.com/",
    ],
)
def test_other_return_url_is_refused(client, token, settings, url):
    settings.PAYMENT_RETURN_URLS = ["roombook-test"]

    response = post(client, CREATE, {"Token": token, "ReturnUrl": url})

    assert response.status_code == 400
    assert response.json()["Error"]["Details"].startswith("ReturnUrl: Must begin with https://")
    assert not PaymentSetup.objects.exists()


def test_repeated_request_with_its_key_gives_the_same_setup(client, token):
    key = {"HTTP_IDEMPOTENCY_KEY": "a-new-phone"}
    body = {"Token": token, "ReturnUrl": "https://app.example.com/"}

    first = post(client, CREATE, body, **key)
    again = post(client, CREATE, body, **key)
    as_csv = post_csv(client, CREATE, body, **key)
    other = post(client, CREATE, {"Token": token}, **key)
    another = post(client, CREATE, body)

    assert first.content == again.content == as_csv.content
    assert other.status_code == 409
    assert another.json()["PaymentSetup"]["Id"] != first.json()["PaymentSetup"]["Id"]
    # No secret is saved with the key.
    secret = first.json()["PaymentSetup"]["ClientSecret"]
    assert [row.content for row in SavedResponse.objects.all() if secret in row.content] == []


def test_key_is_free_again_after_a_failure(client, token):
    key = {"HTTP_IDEMPOTENCY_KEY": "a-new-phone"}
    SandboxFault.objects.create(operation="create_setup", kind="timeout_after", times=1)

    failed = post(client, CREATE, {"Token": token}, **key)

    assert failed.status_code == 503
    assert post(client, CREATE, {"Token": token, "ReturnUrl": ""}, **key).status_code == 200


def test_key_of_another_account_is_another_key(client, token):
    key = {"HTTP_IDEMPOTENCY_KEY": "a-new-phone"}
    other = issue_token(UserFactory())

    ids = {
        post(client, CREATE, {"Token": each}, **key).json()["PaymentSetup"]["Id"]
        for each in (token, other)
    }

    assert len(ids) == 2


def test_too_many_setups_are_refused_for_the_rest_of_the_hour(client, token, create, clock):
    for _ in range(30):
        create()

    refused = post(client, CREATE, {"Token": token})

    assert (refused.status_code, refused["Retry-After"]) == (429, "3600")
    clock.move_to(NOW + timedelta(hours=1))
    create()
