"""Deliveries: signatures, retries, and what ends them (B25.3 to B25.6), to a real receiver."""

import datetime as dt
import threading
import time
from collections import Counter
from io import StringIO

import pytest
import time_machine
from django.core.management import CommandError, call_command
from standardwebhooks import Webhook, WebhookVerificationError

from accounts.models import OutboxMessage
from reservations.integrations import sending
from reservations.integrations.events import create_test_event, publish_events
from reservations.integrations.sending import (
    get_retry_delay,
    parse_retry_after,
    send_due_deliveries,
)
from reservations.models import WebhookDelivery, WebhookEndpoint
from reservations.models.webhooks import RETRY_PERIOD, SECRET_OVERLAP
from roombook.deliveries import DeliveryState
from roombook.public_http import HTTPResult, post
from tests.concurrency import run_concurrently
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import NOW, make_booking
from tests.webhooks.helpers import URL, make_endpoint, publish_and_send
from tests.webhooks.receiver import receive

pytestmark = pytest.mark.django_db
SECOND = dt.timedelta(seconds=1)
SECOND_AFTER_OVERLAP = SECRET_OVERLAP + SECOND


@pytest.fixture(autouse=True)
def _loopback(settings):
    """With DEBUG, the own machine may be called."""
    settings.DEBUG = True


def test_event_is_accepted_by_a_library_of_standard_webhooks():
    with receive() as receiver, time_machine.travel(NOW, tick=False):
        endpoint = make_endpoint(receiver.url)
        make_booking(now=NOW)
        publish_and_send(NOW)
        old_secret = endpoint.secret
        endpoint.rotate_secret(now=NOW)
        create_test_event(endpoint, now=NOW)
        publish_and_send(NOW + SECOND)
        create_test_event(endpoint, now=NOW)
        publish_and_send(NOW + SECOND_AFTER_OVERLAP)

        first, second, rotated, later = receiver.requests
        for headers, body in (first, second):
            assert Webhook(old_secret).verify(body, headers)["data"]["Status"]
            with pytest.raises(WebhookVerificationError):
                Webhook(old_secret).verify(body.replace(b"Status", b"status"), headers)
        for secret in (old_secret, endpoint.secret):
            assert Webhook(secret).verify(rotated[1], rotated[0])["type"] == "webhook.test"
    with time_machine.travel(NOW + SECOND_AFTER_OVERLAP, tick=False):
        assert Webhook(endpoint.secret).verify(later[1], later[0])
        with pytest.raises(WebhookVerificationError):
            Webhook(old_secret).verify(later[1], later[0])


def test_failed_delivery_is_repeated_with_the_same_id_and_body_until_it_is_accepted():
    refused = (500, {}, b"broken\n" * 100)
    with receive(refused, (429, {"Retry-After": "7200"}, b"")) as receiver:
        delivery = create_test_event(make_endpoint(receiver.url), now=NOW)
        publish_and_send(NOW)
        delivery.refresh_from_db()
        assert (delivery.state, delivery.attempts, delivery.status_code) == ("waiting", 1, 500)
        assert delivery.response.startswith("broken broken")
        assert len(delivery.response) == 200
        assert 24 * SECOND <= delivery.next_attempt_at - NOW <= 36 * SECOND
        publish_and_send(NOW + 20 * SECOND)
        assert len(receiver.requests) == 1
        publish_and_send(NOW + 36 * SECOND)
        delivery.refresh_from_db()
        assert delivery.next_attempt_at == NOW + (36 + 7200) * SECOND
        publish_and_send(delivery.next_attempt_at)
        delivery.refresh_from_db()

        assert (delivery.state, delivery.status_code) == (DeliveryState.SENT, 200)
        assert len(set(receiver.ids)) == 1
        assert len({body for _, body in receiver.requests}) == 1
        assert len({headers["webhook-timestamp"] for headers, _ in receiver.requests}) == 3
        assert delivery.send_again(now=NOW)
        publish_and_send(NOW)
        assert len(receiver.ids) == 4
        assert len(set(receiver.ids)) == 1


def test_retry_delays_double_up_to_six_hours_and_vary():
    delays = [get_retry_delay(attempts).total_seconds() for attempts in range(1, 60)]
    for delay, usual in zip(delays[:10], [30 * 2**n for n in range(10)], strict=True):
        assert 0.8 * usual <= delay <= 1.2 * usual
    assert all(0.8 * 21600 <= delay <= 1.2 * 21600 for delay in delays[11:])
    assert len(set(delays[11:])) > 40


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        *[("soon", 0), ("-5", 0), ("90", 90), ("9" * 30, 0), ("999999", 86400)],
        ("Mon, 01 Mar 2027 15:00:30 GMT", 30),
        ("Mon, 01 Mar 2027 14:00:30 -0000", 0),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", 0),
        ("Mon, 01 Mar 2027 14:00:30 +" + "9" * 30, 0),
    ],
)
def test_retry_after_is_seconds_or_a_date_of_at_most_a_day(header, seconds):
    now = dt.datetime(2027, 3, 1, 15, tzinfo=dt.UTC)
    assert parse_retry_after(header, now) == seconds * SECOND


def test_unexpected_error_of_a_request_is_a_failure_of_that_delivery_only(monkeypatch, caplog):
    with receive() as receiver:
        delivery = create_test_event(make_endpoint("http://127.0.0.1:1/"), now=NOW)
        other = create_test_event(make_endpoint(receiver.url), now=NOW)

        def post_or_raise(url, *args):
            if url != receiver.url:
                raise RuntimeError("can't start new thread")
            return post(url, *args)

        monkeypatch.setattr(sending, "post", post_or_raise)
        assert len(publish_and_send(NOW)) == 2

    delivery.refresh_from_db()
    other.refresh_from_db()
    assert (delivery.state, other.state) == (DeliveryState.WAITING, DeliveryState.SENT)
    assert delivery.response == "RuntimeError: can't start new thread"
    assert 24 * SECOND <= delivery.next_attempt_at - NOW <= 36 * SECOND
    [record] = caplog.records
    assert record.exc_info


def test_nothing_is_sent_without_send_webhooks_or_during_the_lease_of_another_sender(
    settings, caplog
):
    with receive() as receiver:
        delivery = create_test_event(make_endpoint(receiver.url), now=NOW)
        settings.SEND_WEBHOOKS = False
        assert publish_and_send(NOW) == []
        assert "SEND_WEBHOOKS is false" in caplog.text
        settings.SEND_WEBHOOKS = True
        waiting = WebhookDelivery.objects.waiting()
        # The other one is killed then.
        assert delivery.lease(waiting, period=sending.SENDING_LEASE, now=NOW)
        publish_and_send(NOW + SECOND)
        assert receiver.ids == []
        publish_and_send(NOW + sending.SENDING_LEASE)

    assert receiver.ids == [delivery.event.message_id]


def test_webhook_that_accepts_nothing_for_three_days_is_disabled_with_an_email():
    administrator = AdministratorFactory()
    with receive(*[(302, {"Location": "http://127.0.0.1:1/"}, b"")] * 100) as receiver:
        endpoint = make_endpoint(receiver.url)
        delivery = create_test_event(endpoint, now=NOW)
        other = create_test_event(endpoint, now=NOW + RETRY_PERIOD)
        now = NOW
        while delivery.state == DeliveryState.WAITING:
            publish_and_send(now)
            delivery.refresh_from_db()
            endpoint.refresh_from_db()
            assert endpoint.is_active == (delivery.state == DeliveryState.WAITING)
            now = delivery.next_attempt_at or now

    assert now == NOW + RETRY_PERIOD
    assert 15 <= delivery.attempts <= 30
    assert delivery.status_code == 302
    other.refresh_from_db()
    assert other.state == DeliveryState.FAILED
    email = OutboxMessage.objects.get(kind=sending.DISABLED_KIND)
    assert email.to == administrator.email
    assert endpoint.description in email.text
    assert "three days" in email.text


def test_delivery_that_fails_alone_leaves_its_webhook_active():
    with receive((500, {}, b"")) as receiver:
        delivery = create_test_event(make_endpoint(receiver.url), now=NOW)
        WebhookEndpoint.objects.update(last_success_at=NOW + SECOND)
        publish_and_send(NOW + RETRY_PERIOD)

    delivery.refresh_from_db()
    assert delivery.state == DeliveryState.FAILED
    assert WebhookEndpoint.objects.get().is_active


def test_answer_410_disables_at_once_and_the_command_says_so():
    AdministratorFactory()
    with receive((410, {}, b"gone")) as receiver:
        endpoint = make_endpoint(receiver.url)
        create_test_event(endpoint, now=NOW)
        create_test_event(endpoint, now=NOW)
        travel = time_machine.travel(NOW, tick=False)
        with travel, pytest.raises(CommandError, match="Some webhooks failed"):
            call_command("send_webhooks", stdout=StringIO())

    endpoint.refresh_from_db()
    assert (endpoint.is_active, len(receiver.requests)) == (False, 1)
    assert "410" in endpoint.disabled_reason
    assert set(endpoint.deliveries.values_list("state", flat=True)) == {DeliveryState.FAILED}
    assert OutboxMessage.objects.filter(kind=sending.DISABLED_KIND).count() == 1


def test_slow_and_dead_receivers_do_not_delay_the_others(monkeypatch):
    with receive(hangs=True) as slow, receive() as quick:
        were_sent = threading.Event()

        def send(url, *args):
            if url == slow.url:
                were_sent.wait(60)
            return post(url, *args, seconds=2)

        monkeypatch.setattr(sending, "post", send)
        dead = make_endpoint("http://127.0.0.1:1/")
        hanging, working = make_endpoint(slow.url), make_endpoint(quick.url)
        for endpoint in (hanging, dead, working):
            for _ in range(3):
                create_test_event(endpoint, now=NOW)
        results = send_due_deliveries(clock=lambda: NOW)
        states = []
        for delivery in results:
            states.append((delivery.endpoint, delivery.state))
            if states.count((working, DeliveryState.SENT)) == 3:
                break
        assert (hanging, DeliveryState.WAITING) not in states
        were_sent.set()
        list(results)

    # The slow and the dead one got one request each, in spite of bytes that never ended.
    assert (len(slow.requests), len(quick.requests)) == (1, 3)
    assert [each.attempts for each in dead.deliveries.order_by("pk")] == [1, 0, 0]
    assert "No complete answer within 2 seconds." in hanging.deliveries.order_by("pk")[0].response


def test_webhooks_with_one_address_get_one_request_at_a_time(monkeypatch):
    """Another address is called meanwhile."""
    running, most = Counter(), Counter()

    def send(url, *args):
        running[url] += 1
        most[url] = max(most[url], running[url])
        most["all"] = max(most["all"], running.total())
        time.sleep(0.1)
        running[url] -= 1
        return HTTPResult(200, "", "")

    monkeypatch.setattr(sending, "post", send)
    for url in (URL, URL, URL, "https://other.example.com/"):
        for _ in range(2):
            create_test_event(make_endpoint(url), now=NOW)

    assert len(list(send_due_deliveries(clock=lambda: NOW))) == 8
    assert most == {URL: 1, "https://other.example.com/": 1, "all": 2}


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_senders_at_the_same_time_send_each_event_once():
    with receive() as receiver:
        for _ in range(4):
            make_endpoint(receiver.url)
        make_booking(now=NOW)
        run_concurrently([lambda: publish_events(now=NOW)] * 4)
        run_concurrently([lambda: list(send_due_deliveries(clock=lambda: NOW))] * 4)

    assert len(receiver.requests) == 8
    assert len(set(receiver.ids)) == 2
