"""The accounts agree to the cent after random days of sales, changes, cancellations and refunds.

FAULTS=long runs a hundred days, BOOKS_SEED=7 other ones.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import pytest
from django.db import transaction
from django.db.models import F, QuerySet

from payments.models import Payment, Refund
from tests.backoffice.business import Business

pytestmark = pytest.mark.django_db

SEED = int(os.environ.get("BOOKS_SEED", "14"))
DAYS, ACTIONS_A_DAY = (100, 20) if os.environ.get("FAULTS") == "long" else (3, 14)


def test_books_agree_after_random_days_and_find_defects():
    business = Business(SEED)
    for _ in range(DAYS):
        business.run_day(ACTIONS_A_DAY)
        assert business.find_disagreements() == []

    assert "missed" in {each.status for each in business.books.values()}
    captured = Payment.objects.captured()
    cent = Decimal("0.01")
    assert captured.filter(is_by_link=True).exists()
    for rows, values in (
        (captured.filter(reservation__status="Confirmed", gateway="cash"), {"amount": cent}),
        (captured.filter(fee__gt=0), {"fee": cent}),
        (Refund.objects.filter(state="done"), {"amount": cent}),
        (captured.filter(gateway="terminal"), {"amount": 1}),
    ):
        with planted(rows, **{name: F(name) + more for name, more in values.items()}):
            assert "differ from the ledger" in find_all(business)
    with planted(captured.filter(received_at__isnull=False, gateway="account"), received_at=None):
        assert "differ from the ledger" in find_all(business)
    moved = captured.exclude(cash_center=F("reservation__room__center"))
    with planted(moved, cash_center=moved.earliest("pk").reservation.room.center):
        assert "differ from the ledger" in find_all(business)
    with planted(captured.filter(counts=True), counts=False):
        assert "differ from the ledger" in find_all(business)


@contextmanager
def planted(rows: QuerySet, **values: object) -> Iterator[None]:
    """Give the first of the rows other values for as long as the block runs."""
    with transaction.atomic():
        first = rows.order_by("pk")[:1].get()
        assert rows.model.objects.filter(pk=first.pk).update(**values)
        yield
        transaction.set_rollback(True)


def find_all(business: Business) -> str:
    return "\n".join(business.find_disagreements())
