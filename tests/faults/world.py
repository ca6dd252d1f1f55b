"""Rooms, customers and drafts of the fault tests, created with the ORM of the test."""

import datetime as dt
import itertools
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.test import override_settings
from django.utils import timezone

from accounts.act import Act
from accounts.models import User
from centers.models import MeetingRoom
from reservations.booking import drafts
from reservations.models import Reservation
from tests.factories_centers import (
    CenterFactory,
    MeetingRoomFactory,
    RateFactory,
    ResourceTypeFactory,
)
from tests.factories_people import AdministratorFactory, UserFactory, issue_token
from tests.factories_reservations import update_promo_code
from tests.faults.client import CustomerClient
from tests.faults.service import SECRET_KEY, Service

HOUR = dt.timedelta(hours=1)
EXPIRES = "2031-02-10T00:00:00Z"


def card(number: str = "4242424242424242") -> dict[str, Any]:
    """A card as clients send it."""
    return {
        "FirstName": "Ada",
        "LastName": "Lovelace",
        "CreditCardNumber": number,
        "SecurityCode": "123",
        "ExpirationDate": EXPIRES,
    }


CARD = card()


@dataclass(frozen=True, slots=True)
class Customer:
    user: User
    client: CustomerClient


class World:
    """A center in Denver that never closes. Its rooms cost 25 an hour."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.center = CenterFactory(is_after_hours_support_enabled=True)
        self.rate = RateFactory(center=self.center, half_day=None, full_day=None)
        self.type = ResourceTypeFactory()
        tomorrow = timezone.now().replace(minute=0, second=0, microsecond=0) + 24 * HOUR
        self._starts = (tomorrow + n * 4 * HOUR for n in itertools.count(12))

    def room(self, **fields: Any) -> MeetingRoom:
        return MeetingRoomFactory(
            center=self.center, rate=self.rate, resource_type=self.type, **fields
        )

    def customer(self, port: int | None = None) -> Customer:
        """A customer whose app calls the service, or a proxy in front of it at this port."""
        user = UserFactory()
        return Customer(user, CustomerClient(port or self.service.port, issue_token(user)))

    def staff_session(self) -> str:
        """The session of an administrator who is signed in."""
        user = AdministratorFactory()
        engine = import_module(settings.SESSION_ENGINE)
        with override_settings(SECRET_KEY=SECRET_KEY):
            session = engine.SessionStore()
            session[SESSION_KEY] = str(user.pk)
            session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
            session[HASH_SESSION_KEY] = user.get_session_auth_hash()
            session.save()
        key: str = session.session_key
        return key

    def start(self) -> dt.datetime:
        """The next unused time. It is late enough for a free cancellation."""
        return next(self._starts)

    def draft(
        self,
        customer: Customer,
        room: MeetingRoom,
        start: dt.datetime | None = None,
        *,
        hours: int = 2,
        promo: str = "",
        made: dt.datetime | None = None,
    ) -> Reservation:
        """A priced draft. If it was `made` long ago, its hold has expired."""
        now = made or timezone.now()
        start = start or self.start()
        reservation = drafts.create_draft(
            Act(customer.user, now),
            customer.user,
            room_id=room.pk,
            start=start,
            end=start + hours * HOUR,
        )
        if promo:
            update_promo_code(reservation.pk, promo, user=customer.user, now=now)
        return reservation
