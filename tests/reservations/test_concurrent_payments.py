"""Two members of staff take a payment at once, each with a database connection of their own."""

import pytest
from django.db.models import Sum

from payments.models import Payment
from reservations.booking.taking_payment import take_manual_payment
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.errors import InvalidRequest, ReservationNotOpen
from tests.concurrency import run_concurrently
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import NOW, make_draft

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.time_machine(NOW, tick=False),
    pytest.mark.usefixtures("data_is_consistent"),
]

STAFF_AT_ONCE = 6


def take_at_once(drafts, gateway):
    """Take the payment of each draft at the same time; return how many were stored."""
    staff = AdministratorFactory()
    calls = [
        lambda draft=draft: (
            take_manual_payment(
                Reservation.objects.select_related("room__center", "user").get(pk=draft.pk),
                gateway=gateway,
                by=staff,
                now=NOW,
            ).status
        )
        for draft in drafts
    ]
    answers = run_concurrently(calls, losers=(ReservationNotOpen, InvalidRequest))
    return answers.count(Status.CONFIRMED)


def test_one_draft_paid_by_several_staff_at_once_has_one_payment():
    draft = make_draft()

    assert take_at_once([draft] * STAFF_AT_ONCE, "cash") == 1
    assert Payment.objects.get().reservation == draft


def test_bookings_on_account_at_once_do_not_exceed_the_limit():
    customer = UserFactory(credit_limit=150)
    drafts = [make_draft(customer) for _ in range(3)]

    assert take_at_once(drafts, "account") == 2
    assert Payment.objects.aggregate(owed=Sum("amount"))["owed"] == 150
