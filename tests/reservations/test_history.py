"""The history of a reservation: who changed which field, when, and both values."""

import pytest

from accounts.act import Act
from reservations import records
from reservations.booking import (
    approval,
    cancellation,
    charging,
    drafts,
    expiry,
)
from reservations.models import Reservation, history
from reservations.serializers import ReservationInfo
from roombook.api.serializers import RenderContext
from tests.factories_centers import ServiceFactory
from tests.factories_people import StaffFactory, UserFactory
from tests.factories_reservations import (
    DAY,
    HOUR,
    NOW,
    START,
    AllowanceFactory,
    PromoCodeFactory,
    make_booking,
    make_draft,
    make_pending_booking,
)
from tests.gateway_faults import FaultKind, add_fault
from tests.reservations.rescheduling_helpers import adjust
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]


def get_history(reservation):
    """Return actor and changes of each history entry, the oldest first."""
    return [(row.actor, row.changes) for row in reversed(history.get_changes(reservation))]


def get_status_changes(reservation):
    return [
        (row.actor, *row.changes["status"])
        for row in reversed(history.get_changes(reservation))
        if "status" in row.changes
    ]


def test_checkout_history_names_the_customer_and_what_happens_by_itself_nobody():
    booking, late = make_booking(), make_draft(start=START + 4 * HOUR)
    add_fault(operation="authorize", kind=FaultKind.TIMEOUT_AFTER, times=1)
    resolved = make_booking()
    charging.resolve_payment(resolved.payments.get(), now=NOW + HOUR)
    list(expiry.close_overdue(now=START + DAY))

    ada = booking.user
    assert get_status_changes(booking) == [
        (ada, "New", "Processing"),
        (ada, "Processing", "Confirmed"),
        (None, "Confirmed", "Completed"),
    ]
    assert history.get_changes(booking).last().timestamp == NOW
    assert get_status_changes(late) == [(None, "New", "Expired")]
    assert get_status_changes(resolved)[1] == (None, "Processing", "Confirmed")


CANCELLED = {"status": ["Confirmed", "Cancelled"], "refund_promised": [None, "75.00"]}


@pytest.mark.parametrize(
    ("make", "do", "changes"),
    [
        (make_pending_booking, approval.approve, {"status": ["Pending", "Confirmed"]}),
        (make_pending_booking, approval.decline, {"status": ["Pending", "Declined"]}),
        (make_booking, cancellation.cancel, CANCELLED),
    ],
)
def test_history_names_the_staff_user(make, do, changes):
    clerk, reservation = StaffFactory(), make()

    do(Act(clerk, NOW + HOUR, is_staff=True), reservation.pk)

    latest = history.get_changes(reservation).first()
    assert (latest.actor, latest.actor_email) == (clerk, clerk.email)
    assert latest.timestamp == NOW + HOUR
    assert latest.changes == changes


def test_draft_changes_are_in_the_history():
    clerk, ada = StaffFactory(), UserFactory()
    reservation = make_draft(ada)
    plan = AllowanceFactory(user=ada, hours=1, is_automatic=False)
    PromoCodeFactory(code="TEN")

    drafts.apply_promo_code(Act(ada, NOW), reservation.pk, "ten")
    drafts.select_allowances(Act(ada, NOW), reservation.pk, [plan.pk])
    adjust(reservation, clerk, -5, reason="Kind")
    drafts.extend_hold(Act(clerk, NOW, is_staff=True), reservation.pk, until=NOW + HOUR)

    assert get_history(reservation) == [
        (ada, {"promo_code": [None, "TEN"], "total_cost": ["75.00", "67.50"]}),
        (ada, {"allowances": [None, plan.description], "total_cost": ["67.50", "45.00"]}),
        (clerk, {"adjustment": [None, "-$5.00: Kind"], "total_cost": ["45.00", "40.00"]}),
        (
            clerk,
            {"hold_until": ["2027-03-01T16:15:00+00:00", "2027-03-01T17:00:00+00:00"]},
        ),
    ]


# --- Reservation records, from which responses are rendered ---------------------------------------


def assert_listed_as_read_one_by_one(user):
    reservations = Reservation.objects.for_user(user).order_by("pk")
    listed = records.list_records(reservations, user=user)
    context = RenderContext()
    for record in listed:
        alone = records.get_record(record.id, user=user)
        rendered = ReservationInfo.render(record, context)
        assert rendered == ReservationInfo.render(alone, RenderContext())
    return listed


def test_a_selected_service_stays_listed_when_the_center_no_longer_offers_it(client):
    world = World(client)
    removed = ServiceFactory(center=world.center, name="Removed")
    world.reservation.chosen_services.create(service=removed)
    removed.is_active = False
    removed.save()

    records_by_id = {each.id: each for each in assert_listed_as_read_one_by_one(world.ada)}

    record = records_by_id[world.reservation.pk]
    selected = [each.service_name for each in record.services if each.selected]
    assert selected == ["Coffee", "Projector", "Removed"]
    assert record.allowances
    assert record.usable_allowances
