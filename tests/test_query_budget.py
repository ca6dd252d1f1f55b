"""Each operation executes a limited number of queries, however many rows its response has."""

import datetime as dt
from decimal import Decimal
from functools import cached_property

import pytest
import time_machine
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from accounts.act import Act
from centers.models import CenterImage, Rate
from reservations.booking import drafts, price_adjustments
from reservations.models import Allowance, AllowanceEntry
from tests import factories_centers as make
from tests.factories_reservations import show_price, update_promo_code
from tests.test_every_operation import TABLE
from tests.world import END, NOW, OPERATIONS_BY_NAME, START, World

# Statements that control the transaction are not counted.
TRANSACTION_STATEMENTS = ("SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "COMMIT")


class LargeWorld(World):
    """A world in which every list of a response has at least `count` elements."""

    def __init__(self, client, count):
        super().__init__(client)
        self.options = [
            {"service_id": make.ServiceFactory(center=self.center).pk} for _ in range(count)
        ]
        for number in range(count):
            make.MeetingRoomFactory(center=self.center)
            make.LandmarkFactory(center=self.center)
            CenterImage.objects.create(center=self.center, image=f"centers/{number}.png")
            another = make.make_center_with_room()
            make.ServiceFactory(center=another)
            make.FavoriteFactory(user=self.ada, center=another)
            allowance = Allowance.objects.create(
                user=self.ada, description="More hours", hours=1, is_automatic=number % 2
            )
            allowance.centers.add(self.center)
            allowance.room_types.add(self.room.resource_type)
            AllowanceEntry.objects.create(
                allowance=allowance, reservation=self.paid, hours=5, reason="Gift", at=NOW
            )
        self.guests = [
            {"name": f"Guest {number}", "email_address": f"guest{number}@example.com"}
            for number in range(count)
        ]
        self.room.capacity = 100
        self.room.save()
        for number in range(count):
            self.create_draft(dt.timedelta(days=1 + number))
        self.reservation = self.create_draft(dt.timedelta(days=0))
        price_adjustments.adjust_price(
            Act(self.bob, NOW, is_staff=True),
            self.reservation.pk,
            amount=Decimal(-5),
            reason="Kindness",
        )
        show_price(self.reservation)
        # So that the operations that price a draft again change its total.
        Rate.objects.update(hourly=F("hourly") * 2, flat_rate=F("flat_rate") * 2)

    def create_draft(self, offset):
        reservation = drafts.create_draft(
            Act(self.ada, NOW),
            self.ada,
            room_id=self.room.pk,
            start=START + offset,
            end=END + offset,
            services=self.options,
            attendees=self.guests,
        )
        return update_promo_code(reservation.pk, "SPRING", user=self.ada, now=NOW)

    @cached_property
    def changed_total(self):
        return self.call("Preview change").json()["NewTotal"]

    def body(self, operation):
        body = super().body(operation)
        if "ExpectedTotal" in body:
            body["ExpectedTotal"] = self.changed_total
        if "Filters" in body:
            del body["Filters"]
        if "ServiceOptions" in body:
            body["ServiceOptions"] = [{"ServiceId": each["service_id"]} for each in self.options]
        if "Attendees" in body:
            del body["NumberOfAttendees"]
            body["Attendees"] = [{"EmailAddress": each["email_address"]} for each in self.guests]
        if "PageSize" in body:
            body["PageSize"] = 100
        if "AllowanceIds" in body:
            body["AllowanceIds"] = [
                each.pk for each in Allowance.objects.filter(user=self.ada).order_by("pk")
            ]
        return body


def capture_statements(world, name):
    """Return the statements of an operation, after a first call has filled the caches."""
    first = world.call(name)
    assert first.status_code == 200, (name, first.content)
    with CaptureQueriesContext(connection) as captured:
        world.call(name)
    return [each["sql"] for each in captured if not each["sql"].startswith(TRANSACTION_STATEMENTS)]


def capture_all_statements(client, count):
    """Return the statements of each operation in a world with lists of that length."""
    world = LargeWorld(client, count)
    return {name: capture_statements(world, name) for name in OPERATIONS_BY_NAME}


@pytest.mark.django_db
def test_operations_with_longer_lists_execute_the_same_number_of_queries(client):
    with time_machine.travel(NOW, tick=False):
        few = LargeWorld.call_and_roll_back(lambda: capture_all_statements(client, 1))
        many = LargeWorld.call_and_roll_back(lambda: capture_all_statements(client, 20))

    for name, statements in many.items():
        more = "\n".join(each[:160] for each in statements)
        assert len(statements) == len(few[name]), f"{name} asks more for more:\n{more}"
        assert len(statements) <= TABLE[name].queries, (
            f"{name} asks {len(statements)} times:\n{more}"
        )
