"""The page of a reservation and what it offers, through HTTP requests."""

from decimal import Decimal

import pytest

from accounts.act import Act
from reservations.booking import checkout, price_adjustments
from reservations.desk.actions import ACTIONS
from reservations.models import Reservation, history
from reservations.models.status import Status
from tests.backoffice.reading import count_queries, messages_of, words
from tests.backoffice.reservation_pages import action_url, confirm, offered, reservation_url
from tests.factories_people import UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    AllowanceFactory,
    PromoCodeFactory,
    ReservationFactory,
    get_current_status,
    make_booking,
    make_draft,
    make_payment_method,
    make_pending_booking,
    update_promo_code,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


def test_reservation_page_shows_booking_payment_emails_and_history(office):
    ada = UserFactory()
    AllowanceFactory(user=ada, hours=1, description="Plan B")
    PromoCodeFactory(code="TEN")
    reservation = make_draft(ada, attendees=[{"name": "Grace Hopper"}])
    update_promo_code(reservation.pk, "TEN", user=ada, now=NOW)
    checkout.check_out(Act(ada, NOW), reservation.pk, payment_method=make_payment_method())
    price_adjustments.adjust_price(
        Act(ada, NOW, is_staff=True), reservation.pk, amount=Decimal(-5), reason="Projector broke"
    )

    page = words(office.get(reservation_url(reservation)))

    for text in (
        *("Wed 2027-03-03 09:00 - 12:00 MST", "Ada Lovelace", ada.email, "Grace Hopper"),
        *("Plan B", "Promo code TEN", "Adjustment: Projector broke", "$40.00", "Visa ending 4242"),
        *("Refunds payable -$5.00", "Price changed", "Processing → Confirmed", "the customer"),
    ):
        assert text in page, text


def test_reservation_page_changes_nothing_and_unknown_ones_and_actions_are_not_found(office):
    reservation = make_draft()
    assert office.post(reservation_url(reservation), {"status": "Confirmed"}).status_code == 405
    assert get_current_status(reservation) == Status.NEW
    for pk in ("²", "9" * 30, "0"):
        assert office.get(f"/admin/reservations/reservation/{pk}/change/").status_code == 302
        assert office.get(f"/admin/reservations/reservation/{pk}/step/move/").status_code == 404
    assert office.get(action_url(reservation, "teleport")).status_code == 404


def test_reservation_page_query_count_is_constant(office):
    quiet, busy = make_booking(), make_booking()
    for number in range(8):
        price_adjustments.adjust_price(
            Act(busy.user, NOW, is_staff=True), busy.pk, amount=Decimal(-1), reason=f"No. {number}"
        )
    office.get(reservation_url(quiet))  # It fills the caches.

    few, more = (count_queries(office, reservation_url(each)) for each in (quiet, busy))

    # One more, which loads the refunds.
    assert more <= few + 1


def test_reservation_page_offers_available_actions(office, wait_until):
    draft, pending = make_draft(), make_pending_booking()
    expected = ["take-payment", "move", "services", "adjust", "hold", "cancel"]
    assert offered(office, draft) == expected
    expected = ["approve", "decline", "move", "services", "resend", "cancel"]
    assert offered(office, pending) == expected
    confirmed = make_booking()
    expected = ["move", "services", "extend", "adjust", "resend", "cancel"]
    assert offered(office, confirmed) == expected
    for status in (Status.DECLINED, Status.CANCELLED, Status.EXPIRED, Status.PROCESSING):
        assert offered(office, ReservationFactory(status=status)) == []
    wait_until(START + HOUR)
    assert offered(office, draft) == ["adjust", "cancel"]
    expected = ["check-in", "services", "extend", "adjust", "resend", "no-show"]
    assert offered(office, confirmed) == expected
    assert "E-mail to Nobody" in words(office.get(action_url(confirmed, "check-in")))
    confirm(office, confirmed, "check-in")
    expected = ["undo-check-in", "services", "extend", "adjust", "resend"]
    assert offered(office, confirmed) == expected


@pytest.mark.parametrize("status", [Status.CANCELLED, Status.PROCESSING])
def test_unavailable_action_is_refused(office, status):
    row = ReservationFactory(status=status)
    before = Reservation.objects.filter(pk=row.pk).values().get()

    for name in ACTIONS:
        response = confirm(office, row, name, amount="-5", reason="x", expected_amount="1")
        assert response.url == reservation_url(row), name
        level, text = messages_of(response)[-1]
        assert (level, "Nothing was changed." in text) == ("error", True), name
    assert Reservation.objects.filter(pk=row.pk).values().get() == before
    assert not history.get_changes(row).exists()
