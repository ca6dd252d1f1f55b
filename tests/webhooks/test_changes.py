"""List reservation changes (B25.9)."""

import datetime as dt

import pytest
import time_machine
from django.db import transaction

from accounts.act import Act
from reservations.booking import amendments, cancellation
from reservations.booking.amendments import ChangeRequest
from reservations.integrations.events import create_test_event, publish_events
from reservations.models import WebhookEvent
from tests.concurrency import run_concurrently
from tests.factories_centers import CenterFactory
from tests.factories_people import StaffFactory
from tests.factories_reservations import NOW, make_booking, make_room
from tests.http import post
from tests.webhooks.helpers import make_endpoint

pytestmark = pytest.mark.django_db
PATH = "/api/integrations/changes"
DAY = dt.timedelta(days=1)


class Integrator:
    """Someone with a webhook and its access key."""

    def __init__(self, client, **fields):
        self.client, self.endpoint = client, make_endpoint(**fields)
        self.access_key = self.endpoint.issue_access_key()

    def read(self, status=200, *, now=NOW, **fields):
        body = {"WebhookId": self.endpoint.pk, "AccessKey": self.access_key, **fields}
        with time_machine.travel(now, tick=False):
            response = post(self.client, PATH, body)
        assert response.status_code == status, response.content
        return response.json()


@pytest.fixture
def integrator(client):
    return Integrator(client)


def test_each_event_is_listed_once_in_order_while_more_are_published(integrator):
    bookings = [make_booking(now=NOW) for _ in range(2)]
    publish_events(now=NOW)
    versions, cursor, rounds = [], "", 0
    while True:
        page = integrator.read(Cursor=cursor, PageSize=2)
        versions += [each["Version"] for each in page["Changes"]]
        cursor, rounds = page["NextCursor"], rounds + 1
        if rounds == 1:
            cancellation.cancel(Act(bookings[0].user, NOW), bookings[0].pk)
            publish_events(now=NOW)
        if not page["HasMore"]:
            break

    assert versions == list(WebhookEvent.objects.order_by("pk").values_list("version", flat=True))
    assert len(versions) == 5
    assert integrator.read(Cursor=cursor)["Changes"] == []
    cancellation.cancel(Act(bookings[1].user, NOW), bookings[1].pk)
    publish_events(now=NOW)
    [change] = integrator.read(Cursor=cursor)["Changes"]
    event = WebhookEvent.objects.latest("pk")
    shown = {"EventId": event.message_id, "Timestamp": NOW.isoformat(), "Version": event.version}
    assert change == {**event.data, "Type": "reservation.cancelled", **shown}


def test_cursor_of_an_empty_first_page_leads_to_what_comes_later_only(integrator):
    make_booking(now=NOW)
    publish_events(now=NOW)
    later = NOW + DAY
    page = integrator.read(now=later, Since=(NOW + DAY / 2).isoformat())
    assert (page["Changes"], page["HasMore"]) == ([], False)
    assert integrator.read(now=later, Cursor=page["NextCursor"])["Changes"] == []
    make_booking(now=NOW)
    publish_events(now=later)

    assert len(integrator.read(now=later, Cursor=page["NextCursor"])["Changes"]) == 2


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_first_cursor_before_events_that_are_being_published_leads_to_them(integrator):
    make_booking(now=NOW)
    since = (NOW + DAY / 2).isoformat()

    def send_test_event_and_read():
        create_test_event(integrator.endpoint, now=NOW)
        return integrator.read(now=NOW + DAY, Since=since)["NextCursor"]

    with transaction.atomic():
        publish_events(now=NOW)
        [cursor] = run_concurrently([send_test_event_and_read])

    assert len(integrator.read(now=NOW + DAY, Cursor=cursor)["Changes"]) == 2


def test_webhook_lists_its_center_and_types_since_its_creation_only_and_no_test_events(client):
    here, there = make_booking(now=NOW), make_booking(now=NOW)
    limited = Integrator(
        client, center=here.room.center, event_types=["reservation.confirmed"], is_active=False
    )
    everything = Integrator(client)
    later = Integrator(client, created_at=NOW + dt.timedelta(seconds=1))
    publish_events(now=NOW)
    create_test_event(everything.endpoint, now=NOW)

    [change] = limited.read()["Changes"]
    assert (change["ReservationId"], change["Type"]) == (here.pk, "reservation.confirmed")
    assert {each["ReservationId"] for each in everything.read()["Changes"]} == {here.pk, there.pk}
    assert later.read(now=NOW + DAY)["Changes"] == []


def test_move_to_another_center_is_reported_to_both_and_later_changes_to_the_new_one(client):
    booking, new_room = make_booking(now=NOW), make_room()
    old, new = booking.room.center_id, new_room.center_id
    integrators = [Integrator(client, center_id=each) for each in (old, new, CenterFactory().pk)]
    change = ChangeRequest(new_room.pk, booking.start, booking.end)
    amendments.amend(Act(StaffFactory(), NOW, is_staff=True), booking.pk, change)
    cancellation.cancel(Act(booking.user, NOW), booking.pk)
    publish_events(now=NOW)

    booked = [("reservation.processing", old, None), ("reservation.confirmed", old, None)]
    moved = ("reservation.rescheduled", new, old)
    cancelled = ("reservation.cancelled", new, None)
    for each, expected in zip(integrators, ([*booked, moved], [moved, cancelled], []), strict=True):
        listed = [
            (change["Type"], change["CenterId"], change.get("FormerCenterId"))
            for change in each.read()["Changes"]
        ]
        pushed = WebhookEvent.objects.filter(deliveries__endpoint=each.endpoint).order_by("pk")
        assert listed == expected
        assert [
            (event.type, event.data["CenterId"], event.data.get("FormerCenterId"))
            for event in pushed
        ] == expected


def test_wrong_credentials_are_refused_alike(client, integrator):
    old_key = integrator.access_key
    integrator.endpoint.issue_access_key()
    answers = [
        integrator.read(401, AccessKey=Integrator(client).access_key),
        integrator.read(401, AccessKey="ключ\ufdfa"),
        integrator.read(401, WebhookId=2**31 - 1),
        integrator.read(401, AccessKey=old_key),
        # One that has no key.
        integrator.read(401, WebhookId=make_endpoint().pk, AccessKey="0"),
    ]

    assert answers == [answers[0]] * 5
    assert answers[0]["Error"]["Summary"] == "InvalidCredentials"
    assert old_key not in str(answers)


def test_cursors_of_others_and_what_is_older_than_30_days_are_refused(client, integrator):
    make_booking(now=NOW)
    publish_events(now=NOW)
    cursor = integrator.read(PageSize=1)["NextCursor"]
    final = integrator.read()["NextCursor"]
    for wrong in (Integrator(client).read()["NextCursor"], cursor[:-1], "1"):
        error = integrator.read(400, Cursor=wrong)["Error"]
        assert error["Details"].startswith("Cursor:")
    assert integrator.read(now=NOW + 30 * DAY, Cursor=cursor)["Changes"]
    for old in (cursor, final):
        error = integrator.read(400, now=NOW + 30.1 * DAY, Cursor=old)["Error"]
        assert "older than 30 days" in error["Details"]
    error = integrator.read(400, Since=(NOW - 31 * DAY).isoformat())["Error"]
    assert error["Details"].startswith("Since:")
