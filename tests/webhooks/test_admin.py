"""Webhooks in the back office (B25.8)."""

import re
import socket
from io import StringIO

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.urls import reverse

from reservations.integrations import changes
from reservations.integrations.events import create_test_event
from reservations.integrations.sending import disable_endpoint
from reservations.models import WebhookDelivery, WebhookEndpoint, WebhookEvent
from reservations.models.webhooks import RETRY_PERIOD
from roombook.backoffice.models import AuditAction, AuditEntry
from roombook.deliveries import DeliveryState
from tests.factories_people import AdministratorFactory, make_staff_with_role
from tests.factories_reservations import HOUR, NOW, make_booking, make_room
from tests.webhooks.helpers import URL, make_endpoint, publish_and_send
from tests.webhooks.receiver import receive

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]
ADD = "admin:reservations_webhookendpoint_add"
LIST = "admin:reservations_webhookendpoint_changelist"
DELIVERIES = "admin:reservations_webhookdelivery_changelist"
FIELDS = {"description": "Door locks", "url": URL, "is_active": "on"}


@pytest.fixture
def administrator(client):
    client.force_login(AdministratorFactory())
    return client


@pytest.fixture
def manager(client):
    """A manager of one center; the center."""
    center = make_room().center
    client.force_login(make_staff_with_role("Manager", center))
    return client, center


def press(client, endpoint, button):
    address = reverse("admin:reservations_webhookendpoint_credentials", args=[endpoint.pk])
    return client.post(address, {"button": button})


def test_address_that_is_not_public_is_refused_with_a_reason(administrator, monkeypatch):
    """The stand-in for a name server answers with an address of the internal network."""

    def find(host, port, **_):
        address = "10.0.0.1" if host == "moved.example.com" else "8.8.8.8"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", find)
    for url, reason in (
        ("http://hooks.example.com/", "must begin with https://"),
        ("https://hooks.example.com:22/", "must be 443 or 8443"),
        ("https://127.1/", "not on the public internet"),
        ("https://moved.example.com/", "not on the public internet"),
    ):
        page = administrator.post(reverse(ADD), {**FIELDS, "url": url})
        assert reason in page.text
    types = ["reservation.confirmed", "reservation.expired"]
    created = administrator.post(reverse(ADD), {**FIELDS, "event_types": types})

    assert created.status_code == 302
    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.event_types, endpoint.center, endpoint.is_active) == (types, None, True)


def test_manager_sets_up_webhooks_of_the_own_center_only(manager):
    client, center = manager
    everywhere = make_endpoint(description="Of all centers")
    elsewhere = make_endpoint(description="Elsewhere", center=make_room().center)
    assert client.post(reverse(ADD), FIELDS).status_code == 200  # The center is required.
    assert client.post(reverse(ADD), {**FIELDS, "center": center.pk}).status_code == 302
    own = WebhookEndpoint.objects.get(center=center)

    page = client.get(reverse(LIST)).text
    assert own.description in page
    assert "Of all centers" not in page
    for other in (everywhere, elsewhere):
        assert press(client, other, "show").status_code == 302
        assert other.secret not in press(client, other, "show").text
    change = reverse("admin:reservations_webhookendpoint_change", args=[own.pk])
    assert client.post(change, {**FIELDS, "center": ""}).status_code == 200
    own.refresh_from_db()
    assert own.center == center
    assert own.secret in press(client, own, "show").text


def test_secret_is_shown_only_at_a_request_that_is_recorded(administrator):
    endpoint = make_endpoint()
    change = reverse("admin:reservations_webhookendpoint_change", args=[endpoint.pk])
    credentials = reverse("admin:reservations_webhookendpoint_credentials", args=[endpoint.pk])
    for page in (change, credentials, reverse(LIST)):
        assert endpoint.secret not in administrator.get(page).text
    # The length of a compressed response would reveal the secret bit by bit.
    compressed = {"accept-encoding": "gzip"}
    shown = administrator.post(credentials, {"button": "show"}, headers=compressed)
    assert endpoint.secret in shown.text
    assert "Content-Encoding" not in shown
    assert "Content-Encoding" in administrator.get(reverse(LIST), headers=compressed)
    assert "no-store" in shown["Cache-Control"]
    assert AuditEntry.objects.filter(action=AuditAction.VIEW, object_id=endpoint.pk).exists()

    rotated = press(administrator, endpoint, "rotate").text
    old_secret = endpoint.secret
    endpoint.refresh_from_db()
    assert endpoint.old_secret == old_secret != endpoint.secret
    assert endpoint.secret in rotated
    [access_key] = re.findall(r"rbk_\w+", press(administrator, endpoint, "access_key").text)
    assert access_key not in administrator.get(credentials).text
    recorded = str(list(AuditEntry.objects.values()))
    assert "access_key_hash" in recorded
    for secret in (endpoint.secret, old_secret, access_key):
        assert secret not in recorded
    delete = reverse("admin:reservations_webhookendpoint_delete", args=[endpoint.pk])
    administrator.post(delete, {"post": "yes"})
    assert not WebhookEndpoint.objects.exists()


def test_lists_cannot_be_filtered_by_secrets(administrator):
    make_endpoint()
    for page, path in ((LIST, ""), (DELIVERIES, "endpoint__")):
        for field in ("secret", "old_secret", "access_key_hash"):
            for lookup in ("", "__startswith", "__regex"):
                query = {f"{path}{field}{lookup}": "w"}
                assert administrator.get(reverse(page), query).status_code == 400, query
    allowed = administrator.get(reverse(DELIVERIES), {"endpoint__id__exact": "1"})
    assert allowed.status_code == 200


def test_test_event_is_sent_listed_and_sent_again(administrator, settings):
    settings.DEBUG = True
    with receive((500, {}, b"broken <b>")) as receiver:
        endpoint = make_endpoint(receiver.url)
        selected = {"_selected_action": [endpoint.pk]}
        administrator.post(reverse(LIST), {"action": "send_test_event", **selected})
        publish_and_send(NOW)
        page = administrator.get(reverse(DELIVERIES)).text
        assert "webhook.test" in page
        assert "broken &lt;b&gt;" in page
        delivery = WebhookDelivery.objects.get()
        again = {"action": "send_again", "_selected_action": [delivery.pk]}
        answer = administrator.post(reverse(DELIVERIES), again, follow=True).text
        assert "0 events will be sent again" in answer
        disable_endpoint(endpoint, "It answered 410 Gone.", now=NOW)
        alert = administrator.get(reverse("admin:index")).text
        assert "Webhook disabled: Door locks" in alert
        change = reverse("admin:reservations_webhookendpoint_change", args=[endpoint.pk])
        activated = administrator.post(change, {**FIELDS, "url": receiver.url})
        assert activated.status_code == 302
        endpoint.refresh_from_db()
        assert (endpoint.is_active, endpoint.disabled_reason) == (True, "")
        answer = administrator.post(reverse(DELIVERIES), again, follow=True).text
        assert "1 event will be sent again" in answer
        publish_and_send(NOW)

    delivery.refresh_from_db()
    assert delivery.state == DeliveryState.SENT
    page = reverse("admin:reservations_webhookdelivery_change", args=[delivery.pk])
    assert "It works." in administrator.get(page).text


def test_webhook_that_is_switched_off_and_on_gets_nothing_that_waited(administrator, settings):
    settings.DEBUG = True
    with receive((500, {}, b"")) as receiver:
        endpoint = make_endpoint(receiver.url)
        old = create_test_event(endpoint, now=NOW)
        change = reverse("admin:reservations_webhookendpoint_change", args=[endpoint.pk])
        fields = {**FIELDS, "url": receiver.url}
        administrator.post(change, {**fields, "description": "Doors"})
        assert len(publish_and_send(NOW)) == 1  # It still waits, after a failure.
        administrator.post(change, {**fields, "is_active": ""})
        old.refresh_from_db()
        assert (old.state, old.attempts) == (DeliveryState.FAILED, 1)
        before = make_booking(now=NOW)
        # Published by a process that had read the webhook before.
        late = create_test_event(endpoint, now=NOW)
        with time_machine.travel(NOW + HOUR, tick=False):
            administrator.post(change, fields)
        new = create_test_event(endpoint, now=NOW)
        after = make_booking(now=NOW + HOUR)
        sent = publish_and_send(NOW + RETRY_PERIOD)

    endpoint.refresh_from_db()
    late.refresh_from_db()
    assert (endpoint.is_active, endpoint.description) == (True, "Door locks")
    assert late.state == DeliveryState.FAILED
    assert sent[0] == new
    assert {each.event.data["ReservationId"] for each in sent[1:]} == {after.pk}
    assert WebhookEvent.objects.filter(data__ReservationId=before.pk).exists()
    assert receiver.ids == [old.event.message_id, *(each.event.message_id for each in sent)]


def test_command_creates_a_webhook_of_a_center_or_says_why_not():
    center, output = make_room().center, StringIO()
    call_command("create_webhook", "Doors", URL, "--center", str(center.pk), stdout=output)

    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.center, endpoint.created_at) == (center, NOW)
    assert endpoint.secret in output.getvalue()
    [access_key] = re.findall(r"rbk_\w+", output.getvalue())
    assert changes.authenticate(endpoint.pk, access_key) == endpoint
    for arguments, reason in (
        (("Doors", "https://10.0.0.1/"), "not on the public internet"),
        (("Doors", URL, "--center", "999"), "There is no center 999."),
    ):
        with pytest.raises(CommandError, match=reason):
            call_command("create_webhook", *arguments)
    assert WebhookEndpoint.objects.count() == 1
