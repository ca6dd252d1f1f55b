"""How often each operation asks the database: so many times, however much there is to show."""

import datetime as dt
from decimal import Decimal

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from centers.models import CenterImage
from reservations.booking import drafts, price_adjustments
from reservations.models import Allowance, AllowanceEntry
from tests import factories_centers as make
from tests.world import END, NOW, OPERATIONS_BY_NAME, START, World

# A ceiling each, the Token's own query included. Raise one only with a reason.
BUDGET = {
    "Sign in": 9,
    "Get reservation": 14,
    "Update account info": 4,  # one writes down who changed it
    "Update payment info": 13,
    "Remove account thumbnail": 4,
    "Change password": 9,
    "Search locations": 9,
    "City centers": 9,
    "Check room availability": 3,
    "Reservation cost": 3,
    "Update promo code": 30,
    "Get allowances": 14,
    "Checkout": 48,
    "Create reservation": 28,
    "Cancel reservation": 25,
    "Update allowances": 29,
    "List reservations": 14,
    "Update favorite": 9,
    "Remove payment info": 7,
    "Sign out": 2,
}
# Marks of the transaction, not questions.
FRAME = ("SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "COMMIT")


class Crowd(World):
    """The world with so many of everything that is told in lists."""

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
            AllowanceEntry.objects.create(allowance=allowance, hours=5, reason="Gift", at=NOW)
        self.guests = [
            {"name": f"Guest {number}", "email_address": f"guest{number}@example.com"}
            for number in range(count)
        ]
        self.room.capacity = 100
        self.room.save()
        for number in range(count):
            self.crowded(dt.timedelta(days=1 + number))
        self.reservation = self.crowded(dt.timedelta(days=0))
        price_adjustments.adjust_price(
            self.reservation.pk, amount=Decimal(-5), reason="Kindness", by=self.bob, now=NOW
        )

    def crowded(self, later):
        reservation = drafts.create_draft(
            self.ada,
            room_id=self.room.pk,
            start=START + later,
            end=END + later,
            service_options=self.options,
            attendees=self.guests,
            now=NOW,
        )
        return drafts.apply_promo_code(reservation.pk, "SPRING", user=self.ada, now=NOW)

    def body(self, operation):
        body = super().body(operation)
        if "Filters" in body:
            del body["Filters"]
        if "ServiceOptions" in body:
            body["ServiceOptions"] = [{"ServiceId": each["service_id"]} for each in self.options]
        if "Attendees" in body:
            del body["NumberOfAttendees"]
            body["Attendees"] = [{"EmailAddress": each["email_address"]} for each in self.guests]
        if "AllowanceIds" in body:
            body["AllowanceIds"] = [
                each.pk for each in Allowance.objects.filter(user=self.ada).order_by("pk")
            ]
        return body


def questions(crowd, name):
    """The statements of an operation, once whatever is remembered has been read."""
    first = crowd.call(name)
    assert first.status_code == 200, (name, first.content)
    with CaptureQueriesContext(connection) as captured:
        crowd.call(name)
    return [each["sql"] for each in captured if not each["sql"].startswith(FRAME)]


def asked(client, count):
    """The statements of each operation where there are so many of everything."""
    crowd = Crowd(client, count)
    return {name: questions(crowd, name) for name in OPERATIONS_BY_NAME}


@pytest.mark.django_db
def test_no_operation_asks_more_often_where_there_is_more_to_show(client):
    with time_machine.travel(NOW, tick=False):
        few = Crowd.call_and_roll_back(lambda: asked(client, 1))
        many = Crowd.call_and_roll_back(lambda: asked(client, 20))

    for name, statements in many.items():
        more = "\n".join(each[:160] for each in statements)
        assert len(statements) == len(few[name]), f"{name} asks more for more:\n{more}"
        assert len(statements) <= BUDGET[name], f"{name} asks {len(statements)} times:\n{more}"
    assert list(BUDGET) == list(OPERATIONS_BY_NAME)


@pytest.mark.django_db
def test_the_crowd_is_one(client):
    """The test of the test: the lists are as long as they should be."""
    with time_machine.travel(NOW, tick=False):
        crowd = Crowd(client, 3)
        centers = crowd.call("Search locations", Query="").json()["Centers"]
        reservation = crowd.call("Get reservation").json()["Reservation"]
        reservations = crowd.call("List reservations").json()["Reservations"]

    full = next(each for each in centers if each["Id"] == crowd.center.pk)
    assert len(centers) == 2 + 3
    assert len(full["MeetingRooms"]) == len(full["MeetingRooms"][0]["AvailableServices"]) - 1 == 4
    assert len(full["Images"]) == len(full["Landmarks"]) == 1 + 3
    assert len(reservation["Attendees"]) == 1 + 3
    assert sum(each["Selected"] for each in reservation["Services"]) == 3
    assert len(reservation["Allowances"]) + len(reservation["UsableAllowances"]) == 2 + 3
    assert len(reservation["LineItems"]) > 3
    assert len(reservations) == 2 + 3
