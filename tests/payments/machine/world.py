"""Two customers who want the same rooms, a promo code for one of them, and included hours."""

from dataclasses import dataclass, field
from typing import Any

from django.test import Client

from accounts.models import User
from tests.factories_people import UserFactory, issue_token
from tests.factories_reservations import AllowanceFactory, PromoCodeFactory, make_room
from tests.http import post

PROMO = "ONLYONE"


@dataclass
class Customer:
    user: User
    token: str
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def post(self, path: str, **fields: Any) -> Any:
        return post(self.client, path, {"Token": self.token, **fields})


class World:
    """Made once for all examples, which roll their changes back."""

    def __init__(self) -> None:
        self.customers = [self._make_customer() for _ in range(2)]
        # The second one must approve requests.
        self.rooms = [
            make_room(is_live_inventory=True),
            make_room(is_live_inventory=False),
        ]
        self.promo = PromoCodeFactory(code=PROMO, max_uses=1)

    def _make_customer(self) -> Customer:
        user = UserFactory()
        AllowanceFactory(user=user, hours=1)
        return Customer(user, issue_token(user))
