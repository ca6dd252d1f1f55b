"""Requests lock the same rows in opposite order: no client ever sees a deadlock."""

import datetime as dt
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.factories_reservations import AllowanceFactory, PromoCodeFactory
from tests.faults.client import Answer
from tests.faults.size import SIZE
from tests.faults.world import CARD, HOUR, Customer, World


def run_client(pairs: list[tuple[Customer, int, dict]], until: float, seed: int) -> list[Answer]:
    """Check out, apply the promo code, change, cancel and draft again, in random order."""
    rng, received = random.Random(seed), []
    while time.monotonic() < until:
        customer, pk, booking = rng.choice(pairs)
        client = customer.client
        act = rng.randrange(5)
        if act == 0:
            received.append(client.checkout(pk, CARD))
        elif act == 1:
            received.append(client.cancel(pk))
        elif act == 2:
            received.append(apply_promo_code(customer, pk))
        elif act == 3:
            received += change(customer, pk, booking, hours=rng.choice((7, 8)))
        else:
            again = client.post("reservations/create", **booking)
            received.append(again)
            if again.status == 200:
                new = again.body["Reservation"]["Id"]
                pairs.append((customer, new, booking))
                received.append(apply_promo_code(customer, new))
    return received


def apply_promo_code(customer: Customer, pk: int) -> Answer:
    return customer.client.post(
        "reservation/update-promo-code", ReservationId=pk, PromoCode="SHARED"
    )


def change(customer: Customer, pk: int, booking: dict, *, hours: int) -> list[Answer]:
    end = dt.datetime.fromisoformat(booking["StartDate"]) + hours * HOUR
    request = {"ReservationId": pk, "EndDate": end.isoformat()}
    preview = customer.client.post("reservations/preview-change", **request)
    if preview.status != 200:
        return [preview]
    payment = {"PaymentInfo": CARD, "ExpectedTotal": preview.body["NewTotal"]}
    return [preview, customer.client.post("reservations/change", **request, **payment)]


@pytest.mark.postgres
def test_clients_never_see_a_deadlock(guarded, check_everything):
    with guarded.database.open():
        world = World(guarded)
        PromoCodeFactory(code="SHARED")
        customers = [world.customer() for _ in range(4)]
        for customer in customers:
            for _ in range(2):
                AllowanceFactory(user=customer.user, hours=3)
        rooms, start = [world.room() for _ in range(2)], world.start()
        pairs = []
        for n in range(12):
            for customer in customers:
                # Each overlaps the previous and the next one in its room.
                begin = start + n * HOUR
                made = world.draft_anyway(customer, rooms[n % 2], begin, hours=8, promo="SHARED")
                booking = {
                    "MeetingRoomId": made.room_id,
                    "StartDate": made.start.isoformat(),
                    "EndDate": made.end.isoformat(),
                }
                pairs.append((customer, made.pk, booking))
    until = time.monotonic() + SIZE.hunt
    with ThreadPoolExecutor(SIZE.clients) as pool:
        # Half of the clients use the opposite order.
        orders = [pairs[:] if n % 2 else pairs[::-1] for n in range(SIZE.clients)]
        futures = [pool.submit(run_client, order, until, n) for n, order in enumerate(orders)]
        received = [answer for each in futures for answer in each.result()]
    check_everything(guarded)
    assert {answer.status for answer in received} <= {200, 409}
